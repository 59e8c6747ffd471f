"""Which versions are told to fit, and what to do about the others."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from coag.doctor import Fit, Grade, Installation, PackageCheck, VersionReport, check_versions

OURS = (
    "autogen-core<0.8,>=0.7.5",
    "chromadb<2,>=1.5.9",
    'anthropic<1,>=0.48; extra == "all"',
    'mcp<2,>=1.21.2; extra == "all"',
    'mcp<2,>=1.21.2; extra == "mcp"',
    'anthropic<1,>=0.48; extra == "anthropic"',
)
THEIRS = {
    "autogen-core": ("protobuf~=5.29.3", "pydantic<3.0.0,>=2.10.0"),
    "autogen-ext": ('mcp>=1.11.0; extra == "mcp"', "grpcio~=1.70.0; extra == 'grpc'"),
}
WORKING = {
    "autogen-core": "0.7.5",
    "chromadb": "1.5.9",
    "mcp": "1.30.0",
    "protobuf": "5.29.6",
    "pydantic": "2.14.3",
}


def judged(
    versions: Mapping[str, str],
    python: str = "3.12.1",
    environment: Mapping[str, str] | None = None,
) -> VersionReport:
    return check_versions(
        Installation(
            versions={**WORKING, **versions},
            requirements={"coag": OURS, **THEIRS},
            python=python,
            python_bounds=">=3.11",
            environment=environment or {},
        )
    )


def of(report: VersionReport, name: str) -> PackageCheck:
    return next(check for check in report.packages if check.name == name)


def test_versions_within_bounds_fit() -> None:
    report = judged({})
    assert report.sound
    assert of(report, "mcp").fit is Fit.FITS
    assert of(report, "protobuf").asked_by == "autogen-core"


@pytest.mark.parametrize(
    ("name", "version", "told"),
    [
        ("mcp", "2.3.0", "RequestContext"),
        ("mcp", "1.11.0", "pip install 'mcp>=1.21.2,<2'"),
        ("anthropic", "2.0.1", "TypeError: temperature"),
        ("autogen-core", "0.6.4", "pip install 'autogen-core>=0.7.5,<0.8'"),
        ("chromadb", "2.0.0", "pip install 'chromadb>=1.5.9,<2'"),
    ],
)
def test_a_version_beyond_our_bounds_is_bad_and_says_why(
    name: str, version: str, told: str
) -> None:
    report = judged({name: version})
    check = of(report, name)
    assert (check.fit, check.grade, check.installed) == (Fit.UNFIT, Grade.BAD, version)
    assert told in check.advice
    assert not report.sound


def test_our_bounds_count_before_those_of_autogen() -> None:
    check = of(judged({}), "mcp")
    assert (check.asked_by, check.bounds) == ("coag[mcp]", ">=1.21.2,<2")


def test_of_several_extras_the_narrowest_is_told() -> None:
    check = of(judged({}), "anthropic")
    assert check.asked_by == "coag[anthropic]"
    assert check.advice == "only if you need it: pip install 'coag[anthropic]'"


def test_what_is_needed_without_an_extra_is_not_told_as_one() -> None:
    requirements = {"coag": ('chromadb<2,>=1.5.9; extra == "disk"', "chromadb<2,>=1.5.9")}
    installation = Installation(
        versions={}, requirements=requirements, python="3.11.0", python_bounds="", environment={}
    )
    assert of(check_versions(installation), "chromadb").fit is Fit.MISSING


def test_a_version_beyond_the_bounds_of_others_alone_is_poor() -> None:
    report = judged({"grpcio": "1.85.1"})
    check = of(report, "grpcio")
    assert (check.fit, check.grade, check.asked_by) == (
        Fit.UNTRIED,
        Grade.POOR,
        "autogen-ext[grpc]",
    )
    assert report.sound


def test_an_extra_that_is_not_installed_is_no_fault() -> None:
    report = judged({})
    check = of(report, "anthropic")
    assert (check.fit, check.installed) == (Fit.ABSENT, None)
    assert "pip install 'coag[anthropic]'" in check.advice
    assert report.sound


def test_a_needed_package_that_is_missing_is_bad() -> None:
    installation = Installation(
        versions={},
        requirements={"coag": OURS},
        python="3.11.0",
        python_bounds=">=3.11",
        environment={},
    )
    report = check_versions(installation)
    assert of(report, "chromadb").fit is Fit.MISSING
    assert of(report, "openai").fit is Fit.ABSENT
    assert not report.sound


def test_a_python_that_is_too_old_is_bad() -> None:
    report = judged({}, python="3.10.4")
    assert of(report, "python").fit is Fit.UNFIT
    assert not report.sound


@pytest.mark.parametrize(
    ("value", "off"), [(None, False), ("True", False), ("False", True), ("0", True)]
)
def test_telemetry_of_chroma_is_told_from_the_environment(value: str | None, off: bool) -> None:
    report = judged({}, environment={} if value is None else {"ANONYMIZED_TELEMETRY": value})
    assert report.telemetry_off is off
    assert "ANONYMIZED_TELEMETRY" in report.telemetry


def test_what_is_installed_here_fits_our_own_bounds() -> None:
    report = check_versions()
    assert report.sound, [check for check in report.packages if check.grade is Grade.BAD]
    assert of(report, "autogen-core").asked_by == "coag"
    assert of(report, "openai").asked_by == "coag[openai]"
