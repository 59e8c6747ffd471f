"""Which versions fit, and what to do about the others."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from coag.doctor import Fit, Grade, PackageCheck, VersionReport, check_versions
from coag.doctor.versions import Installation

OURS = (
    "autogen-core<0.8,>=0.7.5",
    "chromadb<2,>=1.5.9",
    'anthropic<1,>=0.48; extra == "all"',
    'mcp<3,>=1.21.2; extra == "all"',
    'mcp<3,>=1.21.2; extra == "mcp"',
    'anthropic<1,>=0.48; extra == "anthropic"',
    'ollama<2,>=1; extra == "ollama"',
    "ollama<2,>=1",
)
THEIRS = {
    "autogen-core": ("protobuf~=5.29.3", "pydantic<3.0.0,>=2.10.0"),
    "autogen-ext": ('mcp>=1.11.0; extra == "mcp"', "grpcio~=1.70.0; extra == 'grpc'"),
}
WORKING = {
    "autogen-core": "0.7.5",
    "chromadb": "1.5.9",
    "mcp": "1.30.0",
    "ollama": "1.2",
    "protobuf": "5.29.6",
    "pydantic": "2.14.3",
}


def judged(versions: Mapping[str, str | None], **other: object) -> VersionReport:
    facts = {"python": "3.12.1", "python_bounds": ">=3.11", "environment": dict[str, str]()}
    facts |= other
    installed = {name: version for name, version in {**WORKING, **versions}.items() if version}
    requirements = {"coag": OURS, **THEIRS}
    return check_versions(Installation(versions=installed, requirements=requirements, **facts))  # type: ignore[arg-type]


def of(report: VersionReport, name: str) -> PackageCheck:
    return next(check for check in report.packages if check.name == name)


@pytest.mark.parametrize(
    ("name", "version", "fit", "grade", "asked_by", "advice"),
    [
        ("mcp", "1.30.0", Fit.FITS, Grade.GOOD, "coag[mcp]", ""),  # ours count before AutoGen's
        ("protobuf", "5.29.6", Fit.FITS, Grade.GOOD, "autogen-core", ""),
        ("mcp", "2.3.0", Fit.FITS, Grade.GOOD, "coag[mcp]", ""),
        ("mcp", "3.0.0", Fit.UNFIT, Grade.BAD, "coag[mcp]", "another major may fail"),
        ("mcp", "1.11.0", Fit.UNFIT, Grade.BAD, "coag[mcp]", "pip install 'mcp>=1.21.2,<3'"),
        ("anthropic", "2.0.1", Fit.UNFIT, Grade.BAD, "coag[anthropic]", "TypeError: temperature"),
        ("chromadb", "2.0.0", Fit.UNFIT, Grade.BAD, "coag", "pip install 'chromadb>=1.5.9,<2'"),
        ("grpcio", "1.85.1", Fit.UNTRIED, Grade.POOR, "autogen-ext[grpc]", "asks for"),
        # Of several extras the narrowest is named, and of a need without an extra none.
        ("anthropic", None, Fit.ABSENT, Grade.UNKNOWN, "coag[anthropic]", "only if you need it: "),
        ("ollama", None, Fit.MISSING, Grade.BAD, "coag", "coag needs it"),
        ("tiktoken", None, Fit.ABSENT, Grade.UNKNOWN, "", ""),
    ],
)
def test_a_version_is_judged_by_the_bounds_of_who_asks_first(
    name: str, version: str | None, fit: Fit, grade: Grade, asked_by: str, advice: str
) -> None:
    report = judged({name: version})
    check = of(report, name)
    assert (check.installed, check.fit, check.grade) == (version, fit, grade)
    assert check.asked_by == asked_by
    assert advice in check.advice
    assert bool(advice) == bool(check.advice)
    assert report.sound is (grade is not Grade.BAD)


def test_a_python_that_is_too_old_is_bad() -> None:
    report = judged({}, python="3.10.4")
    assert of(report, "python").fit is Fit.UNFIT
    assert not report.sound


@pytest.mark.parametrize(
    ("value", "off"), [(None, False), ("True", False), ("False", True), ("0", True)]
)
def test_telemetry_of_chroma_is_reported_from_the_environment(value: str | None, off: bool) -> None:
    report = judged({}, environment={} if value is None else {"ANONYMIZED_TELEMETRY": value})
    assert report.telemetry_off is off
    assert "ANONYMIZED_TELEMETRY" in report.telemetry


def test_what_is_installed_here_fits_our_own_bounds() -> None:
    report = check_versions()
    assert report.sound, [check for check in report.packages if check.grade is Grade.BAD]
    assert of(report, "autogen-core").asked_by == "coag"
    assert of(report, "openai").asked_by == "coag[openai]"
