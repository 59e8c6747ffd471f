"""The same jobs on a Ray cluster: the one module that meets Ray."""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, cast

from coag.errors import ConfigurationError

from ._domain import How
from ._kept import CASES
from ._playing import broken_trial, play_job
from ._trial import Job, Trial

LOCAL = "local"
"""The address that starts a cluster of this machine alone, for as long as the sweep lasts."""


class _Ray(Protocol):
    """What is used of Ray, which is not typed strictly."""

    def init(self, **settings: Any) -> object: ...
    def is_initialized(self) -> bool: ...
    def shutdown(self) -> None: ...
    def cluster_resources(self) -> dict[str, float]: ...
    def remote(self, function: object) -> Any: ...
    def get(self, reference: object) -> Any: ...
    def wait(self, references: Sequence[object]) -> tuple[list[Any], list[Any]]: ...


def _ray() -> _Ray:
    try:
        import ray
    except ImportError as error:
        raise ConfigurationError(
            "--ray needs the package ray, which is not installed: pip install 'coag[ray]'. "
            "Without it, processes of this machine play the same jobs: leave --ray out."
        ) from error
    return cast("_Ray", ray)


@contextmanager
def ray_crew(address: str, size: int | None = None) -> Generator[RayCrew]:
    """A crew on a Ray cluster.

    Args:
        address: `auto` for the cluster of this machine, `ray://HOST:PORT` or `HOST:PORT` for
            another one, `local` to start one here. Where this process is connected already, that
            cluster is taken.
        size: How many jobs are played at the same time; as many as it has processors if None.

    Raises:
        ConfigurationError: Ray is not installed, or there is no cluster at the address.
    """
    ray = _ray()
    connected = ray.is_initialized()
    if not connected:
        _connect(ray, address)
    try:
        processors = max(1, int(ray.cluster_resources().get("CPU", 1)))
        yield RayCrew(size or processors)
    finally:
        if not connected:
            ray.shutdown()


def _connect(ray: _Ray, address: str) -> None:
    settings: dict[str, Any] = {"address": address, "log_to_driver": False}
    if address == LOCAL:
        settings |= {"include_dashboard": False}
    try:
        ray.init(**settings, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        raise ConfigurationError(
            f"There is no Ray cluster at {address!r}: {str(error).splitlines()[0]} Start one with "
            "'ray start --head', or let --ray local start one here."
        ) from error


@dataclass(frozen=True, slots=True)
class RayCrew:
    """Processes of a cluster; on each machine the same version of this package is installed.

    A job is played in a folder of its machine; runs that are kept come back with the trial.
    """

    size: int

    def trials(self, jobs: Iterator[Job], folder: Path, how: How) -> Generator[Trial]:
        """The trials, each as soon as it is over."""
        from ray.exceptions import RayError

        ray = _ray()
        play = ray.remote(play_elsewhere).options(max_retries=how.retries)
        waiting: dict[Any, Job] = {}
        while True:
            while len(waiting) < self.size and (job := next(jobs, None)) is not None:
                waiting[play.remote(job, how)] = job
            if not waiting:
                return
            for ready in ray.wait(list(waiting))[0]:
                job = waiting.pop(ready)
                try:
                    trial, runs = cast("tuple[Trial, bytes]", ray.get(ready))
                except RayError as error:
                    yield broken_trial(job, f"{type(error).__name__}: {error}", how.retries + 1)
                    continue
                _unpack(runs, folder)
                yield trial


def play_elsewhere(job: Job, how: How) -> tuple[Trial, bytes]:
    """Plays a job on whatever machine this is; gives the trial, and the kept runs as an archive."""
    with TemporaryDirectory(prefix="assess-") as name:
        folder = Path(name)
        trial = asyncio.run(play_job(job, how, folder))
        return trial, _packed(folder)


def _packed(folder: Path) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
        if (folder / CASES).is_dir():
            archive.add(folder / CASES, arcname=CASES)
    return packed.getvalue()


def _unpack(runs: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(runs), mode="r:gz") as archive:
        archive.extractall(folder, filter="data")
