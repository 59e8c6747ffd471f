"""Beginning an assessment, continuing one, and making one larger."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from coag._util.files import remove_drafts
from coag._util.text import counted
from coag.errors import ConfigurationError, UnknownNameError
from coag.schema import Clock, SystemClock

from .trials import (
    NO_MODEL,
    PLAN,
    AssessmentError,
    Plan,
    Resumption,
    TrialLog,
    has_plan,
    read_plan,
    read_trials,
    write_plan,
)

_PACKAGES = ("coag", "autogen-agentchat", "autogen-ext", "chromadb", "pydantic")
_DECIDING = ("domain", "conditions")
"""Fields that must be the same in all trials of an assessment."""
_GROWING = ("contenders", "scenarios", "models", "seeds")
"""Fields to which more can be added."""
_SEEDS = re.compile(r"(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?")
_LETTERS = re.compile(r"(?P<first>[A-Z])(?:-(?P<last>[A-Z]))?")
_MOST_SEEDS = 100_000


def begin(folder: Path, wanted: Plan, *, extend: bool = False, clock: Clock | None = None) -> Plan:
    """Begins the assessment in a folder, continues it, or makes it larger; gives its plan.

    A folder that holds an assessment of the same plan is continued; where other code does so, or
    another machine, the plan notes from which trial on.

    Args:
        folder: The assessment's folder, which need not exist yet.
        wanted: The plan that is asked for now.
        extend: Whether what is asked for is added to what was asked for before.
        clock: Gives the time.

    Raises:
        AssessmentError: The folder holds another assessment, or something else; or the plan would
            change while another process is writing.
    """
    if not has_plan(folder):
        _refuse_foreign(folder)
        write_plan(folder, wanted)
        return wanted
    there = read_plan(folder)
    plan = _extended(folder, there, wanted) if extend else there
    different = () if extend else plan_differences(there, wanted)
    if different:
        raise AssessmentError(
            f"{str(folder)!r} holds another assessment: {'; '.join(different)}. Continue it by "
            "asking for the same, add to it with --extend (`extend=True`), or give another folder."
        )
    latest = there.resumptions[-1] if there.resumptions else there
    done = len(read_trials(folder, plan))
    if done and (latest.versions, latest.machine) != (wanted.versions, wanted.machine):
        resumption = Resumption(
            at=(clock or SystemClock()).now(),
            versions=wanted.versions,
            machine=wanted.machine,
            trials=done,
        )
        plan = plan.model_copy(update={"resumptions": (*plan.resumptions, resumption)})
    if plan != there:
        with TrialLog(folder):
            write_plan(folder, plan)
    return plan


def _refuse_foreign(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise AssessmentError(f"{str(folder)!r} is a file: give a folder.")
    if folder.is_dir():
        remove_drafts(folder)
        (folder / f"{PLAN}.tmp").unlink(missing_ok=True)
        if any(folder.iterdir()):
            raise AssessmentError(
                f"{str(folder)!r} is not empty and holds no assessment (no {PLAN}): give another "
                "folder."
            )


def _extended(folder: Path, there: Plan, wanted: Plan) -> Plan:
    """The plan with the wanted one added to it."""
    fixed = plan_differences(there, wanted, _DECIDING)
    if fixed:
        raise AssessmentError(
            f"{str(folder)!r} cannot be added to: {'; '.join(fixed)}. Trials of one assessment are "
            "compared with each other, so these must be the same. Give another folder."
        )
    grown = {
        name: _union(getattr(there, name), getattr(wanted, name))
        for name in (*_GROWING, "without_model")
    }
    fewer = {
        name: wanted.fewer_seeds.get(name, there.fewer_seeds.get(name, 0))
        for name in {*there.fewer_seeds, *wanted.fewer_seeds}
        if name in wanted.fewer_seeds or name not in wanted.contenders
    }
    plan = there.model_copy(update={**grown, "fewer_seeds": fewer})
    if plan == there or not wanted.command:
        return plan
    return plan.model_copy(update={"command": f"{there.command}, then {wanted.command} --extend"})


def _union(there: Sequence[object], wanted: Sequence[object]) -> tuple[object, ...]:
    """Both, in order; `none` is a model's name only where there is no other."""
    both = (*there, *(one for one in wanted if one not in there))
    return tuple(one for one in both if one != NO_MODEL) or both


def plan_differences(
    there: Plan, wanted: Plan, fields: Sequence[str] = (*_DECIDING, *_GROWING, "fewer_seeds")
) -> tuple[str, ...]:
    """In which fields two plans ask for different things, as phrases."""
    differing: list[str] = []
    for name in fields:
        old, new = getattr(there, name), getattr(wanted, name)
        if name in _GROWING and name != "seeds" and set(old) == set(new):
            continue
        if name == "conditions":
            differing += [
                f"{key.replace('_', ' ')} there {old.get(key, 'none')}, asked for "
                f"{new.get(key, 'none')}"
                for key in dict.fromkeys((*old, *new))
                if old.get(key) != new.get(key)
            ]
        elif old != new:
            words = name.replace("_", " ")
            differing.append(f"{words} there {_described(old)}, asked for {_described(new)}")
    return tuple(differing)


def _described(value: object) -> str:
    if isinstance(value, dict):
        pairs = cast("dict[str, int]", value)
        return ", ".join(f"{name}={count}" for name, count in pairs.items()) or "none"
    if not isinstance(value, tuple):
        return str(value)
    items = cast("tuple[object, ...]", value)
    first, count = items[0], len(items)
    if isinstance(first, int) and count > 1 and items == tuple(range(first, first + count)):
        return f"{first}-{items[-1]}"
    return ", ".join(map(str, items))


# ---- what decides results ----


def versions(code: Sequence[str] = ("coag",), ignored: tuple[str, ...] = ()) -> dict[str, str]:
    """Versions of what decides results; `sources` is a digest of the code on disk.

    Args:
        code: Packages whose sources are digested.
        ignored: Beginnings of paths that decide no results, e.g. `coag/inspector/`.
    """
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    digest = sha256()
    ignored = (*ignored, "coag/inspector/", "coag/evals/")
    for package in code:
        spec = find_spec(package)
        for location in (spec.submodule_search_locations if spec else None) or ():
            for path in sorted(Path(location).rglob("*")):
                name = path.relative_to(Path(location).parent).as_posix()
                if path.suffix in (".py", ".md") and not name.startswith(ignored):
                    digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return {**found, "sources": digest.hexdigest()[:12]}


def machine_class() -> str:
    """What kind of machine this is, without its name."""
    cores = os.cpu_count() or 1
    parts = [platform.system(), platform.machine(), counted(cores, "core")]
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        parts.append(f"{round(memory / 2**30)} GB")
    except (AttributeError, ValueError, OSError):
        pass  # this system does not say
    return ", ".join(part for part in parts if part)


# ---- names on a command line ----


def contenders_named(
    text: str, known: Sequence[str], groups: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """The contenders that a text asks for: names by comma, names of groups, or `all`.

    Where contenders have arms, such as `coag-full:kept`, the name before the colon asks for all.

    Raises:
        UnknownNameError: There is no such contender; lists what exists.
    """
    found = {
        name: tuple(one for one in known if one.partition(":")[0] in members)
        for name, members in groups.items()
    }
    for one in known:
        base, colon, _ = one.partition(":")
        if colon:
            found[base] = tuple(other for other in known if other.partition(":")[0] == base)
    return _named("contender", text, known, found)


def scenarios_named(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """The scenarios that a text asks for: names by comma, letters such as `A-D`, or `all`.

    A is the first scenario of the domain. The beginning of several names, such as `open-world`,
    asks for all of them.

    Raises:
        UnknownNameError: There is no such scenario; lists what exists.
    """
    groups: dict[str, tuple[str, ...]] = {}
    for name in (part.strip() for part in text.split(",")):
        letters = _LETTERS.fullmatch(name)
        begun = tuple(one for one in known if one.startswith(f"{name}-"))
        if letters is not None:
            first, last = (ord(letters[g] or letters["first"]) - 65 for g in ("first", "last"))
            if first <= last < len(known):
                groups[name] = tuple(known[first : last + 1])
        elif name and begun:
            groups[name] = begun
    return _named("scenario", text, known, groups)


def _named(
    what: str, text: str, known: Sequence[str], groups: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """The names and groups of a text, each name once, in the order of what exists."""
    chosen: set[str] = set()
    for name in (part.strip() for part in text.split(",")):
        if name == "all":
            chosen.update(known)
        elif groups.get(name):
            chosen.update(groups[name])
        elif name in known:
            chosen.add(name)
        else:
            raise UnknownNameError(what, name, (*known, *groups, "all"))
    return tuple(name for name in known if name in chosen)


def seeds_named(text: str) -> tuple[int, ...]:
    """The seeds that a text asks for: `N` for the first N from 0 on, or `FIRST-LAST`.

    Raises:
        ConfigurationError: It is neither, or asks for none.
    """
    match = _SEEDS.fullmatch(text.strip())
    if match is None:
        raise ConfigurationError(
            f"--seeds {text!r} names no seeds: give how many, such as 6, or which, such as 6-11."
        )
    first, last = int(match["first"]), match["last"]
    seeds = range(first) if last is None else range(first, int(last) + 1)
    if not seeds:
        raise ConfigurationError(
            f"--seeds {text!r} asks for no seed at all: give at least one, such as 6 or 6-11."
        )
    if len(seeds) > _MOST_SEEDS:
        raise ConfigurationError(
            f"--seeds {text!r} asks for {len(seeds):,} seeds: give {_MOST_SEEDS:,} at most."
        )
    return tuple(seeds)


def fewer_seeds_named(texts: Sequence[str], contenders: Sequence[str]) -> dict[str, int]:
    """Contenders that play fewer seeds, each as `NAME=N`.

    Raises:
        ConfigurationError: A text is not of that form.
        UnknownNameError: It names a contender that was not asked for.
    """
    counts: dict[str, int] = {}
    for text in texts:
        name, sign, count = text.partition("=")
        if not sign or not count.isdecimal() or int(count) < 1:
            raise ConfigurationError(
                f"--fewer-seeds {text!r}: write a contender and how many, such as coag-full=3."
            )
        if name not in contenders:
            raise UnknownNameError("contender in this assessment", name, contenders)
        counts[name] = int(count)
    return counts
