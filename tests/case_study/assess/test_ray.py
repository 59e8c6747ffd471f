from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from kits.ponds import Noted

from case_study.assess import How, ray_crew, sweep
from coag.errors import ConfigurationError


def test_a_missing_ray_is_told_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'coag\[ray\]'"), ray_crew("auto"):
        pass


@pytest.fixture
def cluster() -> Generator[Any]:
    """A Ray cluster of this machine, with this process connected to it."""
    ray: Any = pytest.importorskip("ray")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": ":".join(filter(None, sys.path))}},
    )
    yield ray
    ray.shutdown()


@pytest.mark.long
@pytest.mark.timeout(280)
@pytest.mark.filterwarnings("default")
def test_a_cluster_plays_what_one_process_would_and_sends_the_runs_back(
    cluster: Any, pond: Callable[..., Path], noted: Noted
) -> None:
    folder = pond("fisher", "mute", "shaky", "unlucky", seeds=(0,))
    with ray_crew("auto") as crew:
        assert crew.size == 2
        found = sweep(folder, crew, How(pause=0, retries=1, keep="all"), noted)
    told = {each.job.contender: (each.outcome, each.attempts) for each in found.trials}
    assert told["fisher"] == ("success", 1)
    assert told["mute"] == ("failure", 1)
    assert told["shaky"] == ("success", 2)
    assert told["unlucky"] == ("broken", 2)
    (trial,) = [each for each in found.trials if each.job.contender == "fisher"]
    assert trial.case is not None
    assert (folder / trial.case / "run.txt").is_file()
    assert cluster.is_initialized()
