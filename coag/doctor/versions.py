"""Are the packages that coag meets installed in versions that work?

The bounds are written once, in `pyproject.toml`, and read here from the metadata of the installed
package; where coag asks for nothing, those of the AutoGen package that needs it count.
"""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, metadata

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from coag.schema import Value

from .findings import Grade

_OURS = "coag"
_ASKERS = (_OURS, "autogen-agentchat", "autogen-core", "autogen-ext")
"""Whose requirements count, the first that asks for a package before the others."""
_PYTHON = "python"
_TELEMETRY = "ANONYMIZED_TELEMETRY"
_OFF = frozenset({"false", "0", "no", "off", "f", "n"})

_WATCHED: Mapping[str, str] = {
    "autogen-agentchat": "coag is made for this line of AutoGen",
    "autogen-core": "coag is made for this line of AutoGen",
    "autogen-ext": "coag is made for this line of AutoGen",
    "pydantic": "values and forms of answers may fail to validate",
    "chromadb": "long-term memory on disk may fail to open",
    "openai": "AutoGen's OpenAI client may fail to import or to ask",
    "anthropic": "AutoGen's Anthropic client sends an argument that newer versions refuse "
    "(TypeError: temperature)",
    "ollama": "AutoGen's Ollama client may fail to import or to ask",
    "tiktoken": "AutoGen's clients may fail to import",
    "mcp": "AutoGen's McpWorkbench cannot be imported with 2.x (ImportError: RequestContext), nor "
    "versions before 1.21 with a newer pydantic",
    "grpcio": "AutoGen's distributed runtime may fail to import",
    "protobuf": "AutoGen's generated messages fail to import with another major version",
}
"""The packages that are looked at, and what goes wrong beyond their bounds."""


class Fit(StrEnum):
    """How an installed version and its bounds go together."""

    FITS = "fits"
    UNFIT = "unfit"
    """Outside the bounds that coag claims."""
    UNTRIED = "untried"
    """Outside the bounds of another package only, which coag does not claim."""
    ABSENT = "absent"
    """Not installed; only an extra needs it."""
    MISSING = "missing"
    """Not installed, and needed."""


class PackageCheck(Value):
    """One package, or Python itself."""

    name: str
    installed: str | None
    """The version; None if it is not installed."""
    bounds: str
    """As in a requirement, e.g. `>=1.21.2,<2`; empty if nobody asks for one."""
    asked_by: str
    """Who asks for these bounds, e.g. `coag[mcp]`; empty if nobody does."""
    fit: Fit
    advice: str = ""
    """What goes wrong and what to do; empty if there is nothing to do."""

    @property
    def grade(self) -> Grade:
        """What it means for agents."""
        if self.fit in (Fit.UNFIT, Fit.MISSING):
            return Grade.BAD
        return {Fit.UNTRIED: Grade.POOR, Fit.ABSENT: Grade.UNKNOWN}.get(self.fit, Grade.GOOD)


class VersionReport(Value):
    """What is installed."""

    packages: tuple[PackageCheck, ...]
    """Python first."""
    telemetry: str
    """A sentence on whether Chroma may send telemetry, and how to set it."""
    telemetry_off: bool
    """True if the environment turns Chroma's telemetry off for all code in this process."""

    @property
    def sound(self) -> bool:
        """True if nothing is outside the bounds that coag claims."""
        return all(check.grade is not Grade.BAD for check in self.packages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The facts to judge: what is installed, and who asks for what."""

    versions: Mapping[str, str]
    """Installed versions by package name; what is absent is not installed."""
    requirements: Mapping[str, tuple[str, ...]]
    """Requirements as in a package's metadata, by the package that asks."""
    python: str
    python_bounds: str
    """As coag asks for it, e.g. `>=3.11`."""
    environment: Mapping[str, str]

    @classmethod
    def here(cls) -> Installation:
        """That of this interpreter."""
        versions: dict[str, str] = {}
        requirements: dict[str, tuple[str, ...]] = {}
        python_bounds = ""
        for name in {*_ASKERS, *_WATCHED}:
            try:
                package = metadata(name)
            except PackageNotFoundError:
                continue
            versions[name] = package["Version"]
            requirements[name] = tuple(package.get_all("Requires-Dist") or ())
            if name == _OURS:
                python_bounds = package["Requires-Python"]
        return cls(
            versions=versions,
            requirements={name: requirements.get(name, ()) for name in _ASKERS},
            python=platform.python_version(),
            python_bounds=python_bounds,
            environment=dict(os.environ),
        )


def check_versions(installation: Installation | None = None) -> VersionReport:
    """Judges what is installed; asks no network.

    Args:
        installation: The facts; by default those of this interpreter.
    """
    facts = installation or Installation.here()
    checks = [_python(facts), *(_checked(name, facts) for name in _WATCHED)]
    off = facts.environment.get(_TELEMETRY, "").strip().lower() in _OFF
    return VersionReport(packages=tuple(checks), telemetry=_telemetry(off), telemetry_off=off)


@dataclass(frozen=True, slots=True)
class _Requirement:
    """A requirement of somebody."""

    by: str
    specifier: SpecifierSet
    optional: bool


def _checked(name: str, facts: Installation) -> PackageCheck:
    requirement = _foremost(name, facts)
    installed = facts.versions.get(name)
    fit = _fit(installed, requirement)
    # The upper bound last, as one writes it.
    bounds = ",".join(sorted(str(requirement.specifier).split(","), key=lambda part: "<" in part))
    return PackageCheck(
        name=name,
        installed=installed,
        bounds=bounds,
        asked_by=requirement.by,
        fit=fit,
        advice=_advice(name, bounds, requirement, fit),
    )


def _foremost(name: str, facts: Installation) -> _Requirement:
    """Who asks for a package, and for which versions.

    coag before others; whoever needs it anyway before an extra; a narrow extra before a broad one.
    """
    for asker in _ASKERS:
        requirements = [Requirement(text) for text in facts.requirements.get(asker, ())]
        extras = Counter(_extra_of(each) for each in requirements)
        asking = [each for each in requirements if each.name == name]
        if asking:
            first = min(asking, key=lambda each: _breadth(_extra_of(each), extras))
            extra = _extra_of(first)
            by = f"{asker}[{extra}]" if extra else asker
            return _Requirement(by, first.specifier, optional=bool(extra))
    return _Requirement("", SpecifierSet(), optional=True)


def _breadth(extra: str, extras: Mapping[str, int]) -> int:
    """How many packages an extra brings; 0 for what is needed without one."""
    return extras[extra] if extra else 0


def _extra_of(requirement: Requirement) -> str:
    """The extra in a requirement's marker, such as `extra == "mcp"`; empty if there is none."""
    _, _, behind = str(requirement.marker or "").partition("extra == ")
    return behind.split('"')[1] if behind else ""


def _fit(installed: str | None, requirement: _Requirement) -> Fit:
    if installed is None:
        return Fit.ABSENT if requirement.optional else Fit.MISSING
    if requirement.specifier.contains(installed, prereleases=True):
        return Fit.FITS
    return Fit.UNFIT if requirement.by.partition("[")[0] == _OURS else Fit.UNTRIED


def _advice(name: str, bounds: str, requirement: _Requirement, fit: Fit) -> str:
    install = f"pip install '{name}{bounds}'"
    if fit is Fit.UNFIT:
        return f"{_WATCHED[name]}: {install}"
    if fit is Fit.UNTRIED:
        return f"{requirement.by} asks for {bounds}; if it fails ({_WATCHED[name]}): {install}"
    if fit is Fit.MISSING:
        return f"{requirement.by} needs it: {install}"
    if fit is Fit.ABSENT and requirement.by:
        return f"only if you need it: pip install '{requirement.by}'"
    return ""


def _python(facts: Installation) -> PackageCheck:
    fits = SpecifierSet(facts.python_bounds).contains(facts.python, prereleases=True)
    advice = f"install a Python {facts.python_bounds} and coag in an environment of it"
    return PackageCheck(
        name=_PYTHON,
        installed=facts.python,
        bounds=facts.python_bounds,
        asked_by=_OURS if facts.python_bounds else "",
        fit=Fit.FITS if fits else Fit.UNFIT,
        advice="" if fits else advice,
    )


def _telemetry(off: bool) -> str:
    if off:
        return f"{_TELEMETRY} turns Chroma's telemetry off."
    return (
        "coag opens Chroma with its telemetry off. For other code in the same process, such as "
        f"AutoGen's ChromaDBVectorMemory, which has no setting for it, set {_TELEMETRY}=False."
    )
