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
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, metadata

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from coag.schema import Value

from .findings import Grade

_OURS = "coag"
_ASKERS = (_OURS, "autogen-agentchat", "autogen-core", "autogen-ext")
"""Whose requirements count, the first that asks for a package before the others."""
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
    "mcp": "versions before 1.21 cannot be imported with a newer pydantic, and another major may "
    "fail to be imported (AutoGen's own McpWorkbench does with 2.x)",
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


_GRADES = {Fit.FITS: Grade.GOOD, Fit.UNTRIED: Grade.POOR, Fit.ABSENT: Grade.UNKNOWN}


class PackageCheck(Value):
    """One package, or Python itself."""

    name: str
    installed: str | None
    """The version; None if it is not installed."""
    bounds: str
    """As in a requirement, e.g. `>=1.21.2,<3`; empty if nobody asks for one."""
    asked_by: str
    """Who asks for these bounds, e.g. `coag[mcp]`; empty if nobody does."""
    fit: Fit
    advice: str = ""
    """What goes wrong and what to do; empty if there is nothing to do."""

    @property
    def grade(self) -> Grade:
        """What it means for agents."""
        return _GRADES.get(self.fit, Grade.BAD)


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
            requirements=requirements,
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
    off = facts.environment.get(_TELEMETRY, "").strip().lower() in _OFF
    telemetry = (
        "coag opens Chroma with its telemetry off. For other code in the same process, such as "
        f"AutoGen's ChromaDBVectorMemory, which has no setting for it, set {_TELEMETRY}=False."
    )
    return VersionReport(
        packages=(_python(facts), *(_checked(name, facts) for name in _WATCHED)),
        telemetry=f"{_TELEMETRY} turns Chroma's telemetry off." if off else telemetry,
        telemetry_off=off,
    )


def _checked(name: str, facts: Installation) -> PackageCheck:
    by, specifier = _foremost(name, facts)
    installed = facts.versions.get(name)
    # The upper bound last, as one writes it.
    bounds = ",".join(sorted(str(specifier).split(","), key=lambda part: "<" in part))
    install = f"pip install '{name}{bounds}'"
    if installed is None and (not by or "[" in by):
        fit, advice = Fit.ABSENT, f"only if you need it: pip install '{by}'" if by else ""
    elif installed is None:
        fit, advice = Fit.MISSING, f"{by} needs it: {install}"
    elif specifier.contains(installed, prereleases=True):
        fit, advice = Fit.FITS, ""
    elif by.partition("[")[0] == _OURS:
        fit, advice = Fit.UNFIT, f"{_WATCHED[name]}: {install}"
    else:
        fit = Fit.UNTRIED
        advice = f"{by} asks for {bounds}; if it fails ({_WATCHED[name]}): {install}"
    return PackageCheck(
        name=name, installed=installed, bounds=bounds, asked_by=by, fit=fit, advice=advice
    )


def _foremost(name: str, facts: Installation) -> tuple[str, SpecifierSet]:
    """Who asks for a package, such as `coag[mcp]`, and for which versions.

    coag before others; a plain requirement before an extra; a narrow extra before a broad one.
    """
    for asker in _ASKERS:
        required = _parsed(facts.requirements.get(asker, ()))
        breadths = Counter(map(_extra_of, required))
        breadths[""] = 0  # what is needed without an extra
        asking = [each for each in required if each.name == name]
        if asking:
            first = min(asking, key=lambda each: breadths[_extra_of(each)])
            extra = _extra_of(first)
            return f"{asker}[{extra}]" if extra else asker, first.specifier
    return "", SpecifierSet()


@lru_cache(maxsize=8)
def _parsed(texts: tuple[str, ...]) -> tuple[Requirement, ...]:
    return tuple(map(Requirement, texts))


def _extra_of(requirement: Requirement) -> str:
    """The extra in a requirement's marker, such as `extra == "mcp"`; empty if there is none."""
    _, _, behind = str(requirement.marker or "").partition("extra == ")
    return behind.split('"')[1] if behind else ""


def _python(facts: Installation) -> PackageCheck:
    fits = SpecifierSet(facts.python_bounds).contains(facts.python, prereleases=True)
    advice = f"install a Python {facts.python_bounds} and coag in an environment of it"
    return PackageCheck(
        name="python",
        installed=facts.python,
        bounds=facts.python_bounds,
        asked_by=_OURS if facts.python_bounds else "",
        fit=Fit.FITS if fits else Fit.UNFIT,
        advice="" if fits else advice,
    )
