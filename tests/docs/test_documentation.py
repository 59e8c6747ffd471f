"""What the documentation shows works: its Python runs here, offline, and its links lead somewhere.

A page's ```python blocks run in order in one namespace, as a reader would type them; `await` may
be at top level. A block that cannot run says why in its opening line:
```python no-run: needs a real model
"""

import ast
import asyncio
import inspect
import re
import runpy
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

_ROOT = Path(__file__).parents[2]
_PAGES = [path for path in [_ROOT / "README.md", *(_ROOT / "docs").rglob("*.md")] if path.is_file()]
_EXAMPLES = sorted((_ROOT / "examples").glob("*.py"))
_EXAMPLE_LINES = 60
_README_WORDS = 900

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^`]*)$")
_LINK = re.compile(r"\]\((?!\w+://|mailto:|#)(?P<target>[^)#\s]+)")
_NEEDS = {"agent-framework": "agent_framework"}
"""Pages whose code needs a package that no extra brings."""
_PYTHON = re.compile(r"python(?P<skipped> no-run(?P<reason>: \S.*)?)?")
_OTHER_PYTHONS = re.compile(r"(?i)py(thon\d?|con|3)?\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """One fenced code block of a page."""

    info: str
    """What follows the opening fence."""
    line: int
    """The line of the page on which the code starts, counted from 1."""
    code: str
    """The code without the fences and without their indentation."""


def _code_blocks(page: str) -> list[_Block]:
    """The fenced blocks of a page, in order; `ValueError` where one is not closed."""
    blocks: list[_Block] = []
    opened: re.Match[str] | None = None
    start, code = 0, list[str]()
    for number, line in enumerate(page.splitlines(), 1):
        fence = _FENCE.match(line)
        if opened is None:
            if fence is not None:
                opened, start, code = fence, number + 1, []
        elif fence is not None and fence["ticks"].startswith(opened["ticks"]) and not fence["info"]:
            blocks.append(_Block(info=opened["info"].strip(), line=start, code="\n".join(code)))
            opened = None
        else:
            code.append(line.removeprefix(opened["indent"]))
    if opened is not None:
        raise ValueError(f"The code block that starts at line {start - 1} is not closed.")
    return blocks


def _python_to_run(block: _Block) -> bool:
    """Whether a block is Python that runs; `ValueError` where its opening line is unclear."""
    if not _OTHER_PYTHONS.match(block.info):
        return False
    understood = _PYTHON.fullmatch(block.info)
    if understood is None or (understood["skipped"] and not understood["reason"]):
        raise ValueError(
            f"Line {block.line - 1}: {block.info!r} is neither 'python' nor "
            "'python no-run: REASON'."
        )
    return understood["skipped"] is None


def _run_blocks(blocks: list[_Block], source: str, module: ModuleType) -> None:
    """Runs blocks one after the other in a module; places in tracebacks are those of the page."""
    with asyncio.Runner() as runner:
        for block in blocks:
            padded = "\n" * (block.line - 1) + block.code
            compiled = compile(padded, source, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = eval(compiled, module.__dict__)
            if compiled.co_flags & inspect.CO_COROUTINE:
                runner.run(result)


def _exit_code_of(script: Path) -> object:
    """Runs a script as the main program; the code it exits with, None where it just ends."""
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as end:
        return end.code
    return None


def _name(path: Path) -> str:
    return str(path.relative_to(_ROOT))


@pytest.fixture
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a new folder the current one, for code that writes to the current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("in_an_empty_folder")
@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_python_of_the_page_runs(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.stem in _NEEDS:
        pytest.importorskip(_NEEDS[page.stem])
    blocks = _code_blocks(page.read_text(encoding="utf-8"))
    module = ModuleType(f"page_{page.stem.replace('-', '_')}")
    # Forward references of classes are looked up in the module that a class says it is from.
    monkeypatch.setitem(sys.modules, module.__name__, module)
    _run_blocks([block for block in blocks if _python_to_run(block)], str(page), module)


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_python_that_the_page_only_shows_is_at_least_python(page: Path) -> None:
    for block in _code_blocks(page.read_text(encoding="utf-8")):
        if block.info.startswith("python") and not _python_to_run(block):
            padded = "\n" * (block.line - 1) + block.code
            compile(padded, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_readme_is_read_in_a_few_minutes() -> None:
    assert len((_ROOT / "README.md").read_text(encoding="utf-8").split()) < _README_WORDS


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_links_of_the_page_lead_to_files(page: Path) -> None:
    targets = [found["target"] for found in _LINK.finditer(page.read_text(encoding="utf-8"))]
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.usefixtures("in_an_empty_folder")
@pytest.mark.parametrize("example", _EXAMPLES, ids=_name)
def test_example_runs(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(example)])
    assert _exit_code_of(example) in (None, 0)


@pytest.mark.parametrize("example", _EXAMPLES, ids=_name)
def test_example_fits_on_a_screen(example: Path) -> None:
    assert len(example.read_text(encoding="utf-8").splitlines()) <= _EXAMPLE_LINES


def test_blocks_share_names_and_may_await_at_top_level() -> None:
    page = (
        "```python\nimport asyncio\nvalue = 1\n```\n"
        "Then:\n\n  ```python\n  await asyncio.sleep(0)\n  value += 1\n  ```\n"
        "```python\nasync def more() -> int:\n    return value + 1\n```\n"
        "```python\nvalue = asyncio.run(more())\n```\n"
    )
    module = ModuleType("page_of_the_test")
    _run_blocks(_code_blocks(page), "page.md", module)
    assert vars(module)["value"] == 3


def test_a_failing_block_is_reported_with_its_line_of_the_page() -> None:
    blocks = _code_blocks("# Title\n\n```python\nvalue = 1\nassert value == 2\n```\n")
    with pytest.raises(AssertionError) as caught:
        _run_blocks(blocks, "page.md", ModuleType("page_of_the_test"))
    assert (str(caught.traceback[-1].path), caught.traceback[-1].lineno) == ("page.md", 4)


@pytest.mark.parametrize(
    ("info", "runs"),
    [
        ("python", True),
        ("python no-run: needs a real model", False),
        ("console", False),
        ("pyproject", False),
        ("", False),
    ],
)
def test_opening_line_says_whether_a_block_runs(info: str, runs: bool) -> None:
    assert _python_to_run(_Block(info=info, line=2, code="")) is runs


@pytest.mark.parametrize("info", ["python no-run", "python no-run:", "py", "Python", "pycon"])
def test_python_that_is_skipped_without_a_reason_is_refused(info: str) -> None:
    with pytest.raises(ValueError, match="neither 'python' nor"):
        _python_to_run(_Block(info=info, line=2, code=""))


def test_a_block_that_is_not_closed_is_refused() -> None:
    with pytest.raises(ValueError, match="starts at line 3 is not closed"):
        _code_blocks("text\n\n```python\nvalue = 1\n")
