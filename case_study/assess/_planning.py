"""Beginning an assessment, going on with one, and making one larger."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from coag.schema import Clock, SystemClock

from ._errors import AssessmentError
from ._kept import PLAN, has_plan, read_plan, read_trials, write_plan
from ._log import locked
from ._trial import NO_MODEL, Plan, Resumption

_PACKAGES = ("coag", "autogen-agentchat", "autogen-ext", "chromadb", "pydantic")
_CODE = ("coag", "vacuum_world", "case_study")
_NO_PART = (
    "case_study/report/",
    "case_study/results/",
    "case_study/film.py",
    "case_study/drawing.py",
    "coag/inspector/",
)
"""Folders of the code that only show results."""
_DECIDING = ("domain", "place", "episodes", "token_budget", "max_actions")
"""What must be the same in all trials of an assessment."""
_GROWING = ("contenders", "scenarios", "models", "seeds")
"""What an assessment can be given more of."""


def begun(folder: Path, asked: Plan, *, extend: bool = False, clock: Clock | None = None) -> Plan:
    """The plan of the assessment in a folder, after beginning it or making it larger.

    A folder that holds an assessment of the same plan is gone on with; where other code does so,
    or another machine, the plan tells from which trial on.

    Args:
        folder: The assessment's folder, which need not exist yet.
        asked: What is asked for now.
        extend: Whether what is asked for is added to what was asked for before.
        clock: Tells the time.

    Raises:
        AssessmentError: The folder holds another assessment, or something else; or the plan is
            to change while another process is at it.
    """
    if not has_plan(folder):
        _refuse_foreign(folder)
        write_plan(folder, asked)
        return asked
    there = read_plan(folder)
    plan = _extended(folder, there, asked) if extend else there
    different = () if extend else differences(there, asked)
    if different:
        raise AssessmentError(
            f"{str(folder)!r} holds another assessment: {'; '.join(different)}. Go on with it: "
            f"case-study assess -o {folder}. Add to it: --extend. Or give another folder."
        )
    return _gone_on(folder, there, plan, asked, clock or SystemClock())


def _refuse_foreign(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise AssessmentError(f"{str(folder)!r} is a file: give a folder with -o.")
    if folder.is_dir() and any(not path.name.startswith(f".{PLAN}.") for path in folder.iterdir()):
        raise AssessmentError(
            f"{str(folder)!r} is not empty and holds no assessment (no {PLAN}): give another "
            "folder with -o."
        )


def _extended(folder: Path, there: Plan, asked: Plan) -> Plan:
    """The plan with what is asked for added to it."""
    fixed = differences(there, asked, _DECIDING)
    if fixed:
        raise AssessmentError(
            f"{str(folder)!r} cannot be added to: {'; '.join(fixed)}. Trials of one assessment are "
            "compared with each other, so these must be the same. Give another folder."
        )
    grown = {
        name: _union(getattr(there, name), getattr(asked, name))
        for name in (*_GROWING, "without_model")
    }
    fewer = {
        name: asked.fewer_seeds.get(name, there.fewer_seeds.get(name, 0))
        for name in {*there.fewer_seeds, *asked.fewer_seeds}
        if name in asked.fewer_seeds or name not in asked.contenders
    }
    plan = there.model_copy(update={**grown, "fewer_seeds": fewer})
    if plan == there or not asked.command:
        return plan
    command = f"{there.command}, then {asked.command} --extend"
    return plan.model_copy(update={"command": command})


def _union(there: Sequence[object], asked: Sequence[object]) -> tuple[object, ...]:
    """Those that were there, then the new ones; no model is none beside any other."""
    both = (*there, *(one for one in asked if one not in there))
    return tuple(one for one in both if one != NO_MODEL) or both


def differences(
    there: Plan, asked: Plan, fields: Sequence[str] = (*_DECIDING, *_GROWING, "fewer_seeds")
) -> tuple[str, ...]:
    """In which fields two plans ask for different things, as phrases."""
    found: list[str] = []
    for name in fields:
        old, new = getattr(there, name), getattr(asked, name)
        if name in _GROWING and name != "seeds" and set(old) == set(new):
            continue
        if old != new:
            told = name.replace("_", " ")
            found.append(f"{told} there {_told(old)}, asked for {_told(new)}")
    return tuple(found)


def _told(value: object) -> str:
    match value:
        case None:
            return "none"
        case dict():
            pairs = cast("dict[str, int]", value)
            return ", ".join(f"{name}={count}" for name, count in pairs.items()) or "none"
        case tuple():
            return _listed(cast("tuple[object, ...]", value))
        case _:
            return str(value)


def _listed(items: tuple[object, ...]) -> str:
    first = items[0]
    count = len(items)
    if isinstance(first, int) and count > 1 and items == tuple(range(first, first + count)):
        return f"{first}-{items[-1]}"
    return ", ".join(map(str, items))


def _gone_on(folder: Path, there: Plan, plan: Plan, asked: Plan, clock: Clock) -> Plan:
    """The plan, with a note where other code or another machine goes on from here."""
    latest = there.resumptions[-1] if there.resumptions else there
    done = len(read_trials(folder, plan))
    if done and (latest.versions, latest.machine) != (asked.versions, asked.machine):
        noted = Resumption(
            at=clock.now(), versions=asked.versions, machine=asked.machine, trials=done
        )
        plan = plan.model_copy(update={"resumptions": (*plan.resumptions, noted)})
    if plan != there:
        with locked(folder):
            write_plan(folder, plan)
    return plan


def versions() -> dict[str, str]:
    """Versions of what decides results; `sources` is a digest of the code as it lies on disk."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return {**found, "sources": _digest()}


@cache
def _digest() -> str:
    digest = sha256()
    for package in _CODE:
        for root in _roots(package):
            for path in sorted(root.rglob("*")):
                name = path.relative_to(root.parent).as_posix()
                if path.suffix in (".py", ".md") and not name.startswith(_NO_PART):
                    digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _roots(package: str) -> Iterable[Path]:
    spec = find_spec(package)
    locations = spec.submodule_search_locations if spec is not None else None
    return [Path(location) for location in locations or ()]


def machine_class() -> str:
    """What kind of machine this is, without its name."""
    cores = os.cpu_count() or 1
    told = [platform.system(), platform.machine(), f"{cores} core{'' if cores == 1 else 's'}"]
    memory = _memory()
    if memory is not None:
        told.append(f"{memory} GB")
    return ", ".join(part for part in told if part)


def _memory() -> int | None:
    """Gigabytes of memory, where the system tells."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    return round(total / 2**30)
