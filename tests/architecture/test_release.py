"""What a release is made by: the changelog's form, the workflow, the forms of issues."""

import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

_HEADINGS = ("Changed", "Deprecated", "Removed", "Added", "Fixed", "Security")


def _yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def faults(repository: Path) -> Callable[[str, str, str], list[str]]:
    """The check that the workflow runs before it builds anything."""
    return runpy.run_path(str(repository / ".ci/release.py"))["faults"]


def test_changelog_has_the_form_of_keep_a_changelog(repository: Path) -> None:
    lines = (repository / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    versions = [line for line in lines if line.startswith("## ")]
    assert versions[0] == "## [Unreleased]"
    released = r"## \[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d"
    assert [line for line in versions[1:] if not re.fullmatch(released, line)] == []
    assert {line[4:] for line in lines if line.startswith("### ")} <= set(_HEADINGS)


@pytest.mark.parametrize(
    ("tag", "version", "changelog", "wrong"),
    [
        ("v1.2.0", "1.2.0", "\n## [Unreleased]\n\n## [1.2.0] - 2026-12-01\n- New.\n", ""),
        ("v1.2.1", "1.2.0", "\n## [Unreleased]\n\n## [1.2.0] - 2026-12-01\n", "The tag is"),
        (
            "v1.2.0",
            "1.2.0",
            "\n## [Unreleased]\n\n## [1.1.0] - 2026-12-01\n",
            "the changelog needs",
        ),
        ("v1.2.0", "1.2.0", "\n## [Unreleased]\n\n## [1.2.0]\n", "the changelog needs"),
        ("v1.2.0", "1.2.0", "\n## [Unreleased]\n- X.\n\n## [1.2.0] - 2026-12-01\n", "has lines"),
    ],
)
def test_release_needs_one_version_and_a_changelog_of_it(
    faults: Callable[[str, str, str], list[str]],
    tag: str,
    version: str,
    changelog: str,
    wrong: str,
) -> None:
    found = faults(tag, version, changelog)
    assert len(found) == (1 if wrong else 0)
    assert wrong in "".join(found)


def test_workflow_publishes_tags_only_with_the_least_permissions(repository: Path) -> None:
    workflow = _yaml(repository / ".github/workflows/release.yml")
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML 1.1 reads `on` as a truth value
    assert workflow["permissions"] == {}
    jobs = workflow["jobs"]
    assert jobs["build"]["permissions"] == {"contents": "read"}
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert (jobs["publish"]["needs"], jobs["publish"]["environment"]) == ("build", "release")
    assert "vars.PACKAGE_INDEX" in jobs["publish"]["if"]
    assert "make dist" in [step.get("run") for step in jobs["build"]["steps"]]


def test_actions_of_workflows_are_pinned_to_a_major_version(repository: Path) -> None:
    for path in (repository / ".github/workflows").glob("*.yml"):
        used = re.findall(r"uses: (\S+)", path.read_text(encoding="utf-8"))
        assert used
        assert [one for one in used if not re.fullmatch(r"[\w./-]+@(release/)?v\d+", one)] == []


def test_forms_of_issues_have_fields_with_names(repository: Path) -> None:
    forms = [_yaml(path) for path in (repository / ".github/ISSUE_TEMPLATE").glob("*.yml")]
    bodies = [form["body"] for form in forms if "body" in form]
    assert len(bodies) == 2
    for body in bodies:
        fields = [field for field in body if field["type"] != "markdown"]
        assert all(field["id"] and field["attributes"]["label"] for field in fields)


def test_citation_names_no_version_that_could_be_old(repository: Path) -> None:
    citation = _yaml(repository / "CITATION.cff")
    assert (citation["cff-version"], citation["license"]) == ("1.2.0", "MIT")
    assert not {"version", "date-released"} & set(citation)
