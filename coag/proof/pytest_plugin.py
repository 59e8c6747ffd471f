"""A pytest plugin: whatever your agents do in a test, their runs are verified at its end.

```python
# the conftest.py at the top, where pytest is started: it takes plugins from no other
pytest_plugins = ["coag.proof.pytest_plugin"]
```

Every run folder that a test leaves below its `tmp_path` is verified right after the test's body;
a violation fails the test. A test that breaks a trace on purpose says so and why:
`@pytest.mark.broken_trace("it edits the log")`.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from coag.errors import TraceError
from coag.tracing import RunFolder

from .findings import folded
from .verify import examine

MARKER = "broken_trace"


class BrokenTraceError(AssertionError):
    """A test left runs that do not hold; the message names them and what is violated."""


def check_runs(folder: Path) -> int:
    """Verifies all runs below a folder, however deep, and returns how many there were.

    Raises:
        BrokenTraceError: Something is violated.
    """
    problems: list[str] = []
    count = 0
    for run in runs_below(folder):
        count += 1
        try:
            violations = examine(run).violations
        except TraceError as error:
            problems.append(f"{run.path.name}: {error}")
        else:
            problems += [f"{run.path.name}: {sentence}" for sentence in folded(violations)]
    if problems:
        raise BrokenTraceError("\n".join(("The runs of this test do not hold:", *problems)))
    return count


def runs_below(folder: Path) -> Iterator[RunFolder]:
    """The runs below a folder; what is in a run is not looked into."""
    for place, folders, files in os.walk(folder):
        if "run.json" in files:
            folders.clear()
            yield RunFolder(Path(place))
        folders.sort()


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker known."""
    config.addinivalue_line(
        "markers", f"{MARKER}(reason): the test breaks a trace on purpose; it is not verified"
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Verifies what a test has left, once its body has passed."""
    result = yield
    place = pyfuncitem.funcargs.get("tmp_path")
    problem = _problem(pyfuncitem, place) if isinstance(place, Path) else None
    if problem is not None:
        pytest.fail(problem, pytrace=False)
    return result


def _problem(item: pytest.Function, place: Path) -> str | None:
    try:
        if not exempt(item):
            check_runs(place)
    except (BrokenTraceError, pytest.UsageError) as error:
        return str(error)
    return None


def exempt(item: pytest.Item) -> bool:
    """Whether a test breaks a trace on purpose.

    Raises:
        pytest.UsageError: It does not say why.
    """
    marker = item.get_closest_marker(MARKER)
    if marker is None:
        return False
    if not (marker.args and isinstance(marker.args[0], str)):
        raise pytest.UsageError(f"{item.nodeid}: {MARKER} needs a reason, as a text.")
    return True
