"""The package that `make dist` builds: what is in it, and that it works where nothing else is.

The wheel is installed from its file, with the newest packages that its bounds allow, into an empty
environment; programs run in an empty folder, so that nothing of the checkout is found.
"""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.dist

_SECONDS = 600
_OURS = ("PYTHON", "SSL_CERT_FILE")
"""Variables of the tests that would change what the programs find."""


def _file(repository: Path, pattern: str) -> Path:
    found = sorted((repository / "dist").glob(pattern))
    assert len(found) == 1, f"dist/ has {len(found)} files {pattern}; run `make dist`."
    return found[0]


@pytest.fixture(scope="session")
def wheel(repository: Path) -> Path:
    return _file(repository, "*.whl")


@pytest.fixture(scope="session")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that has the wheel and what it asks for."""
    environment = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", environment], check=True, timeout=_SECONDS)
    programs = environment / "bin"
    _run(environment, programs / "python", "-m", "pip", "install", "--quiet", str(wheel))
    return programs


@pytest.fixture(scope="session")
def folder(repository: Path, programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the README's first example ran; beside it is what it printed."""
    folder = tmp_path_factory.mktemp("newcomer")
    (folder / "guard.py").write_text(_first_block(repository, "python"), encoding="utf-8")
    (folder / "printed.txt").write_text(_run(folder, programs / "python", "guard.py"))
    return folder


def _run(folder: Path, *command: str | Path, code: int = 0) -> str:
    """What a program prints, started in a folder; it must end with the exit code."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**own, "COAG_TRUST": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stderr


def _first_block(repository: Path, kind: str) -> str:
    page = (repository / "README.md").read_text(encoding="utf-8")
    block = re.search(rf"^```{kind}\n(.*?)^```$", page, re.M | re.S)
    assert block is not None
    return block.group(1)


def test_wheel_has_every_file_of_the_packages_and_no_other(
    repository: Path, repository_files: list[Path], wheel: Path
) -> None:
    tree = {path.relative_to(repository).as_posix() for path in repository_files}
    wanted = {name for name in tree if name.startswith(("coag/", "vacuum_world/", "case_study/"))}
    with ZipFile(wheel) as opened:
        found = {name for name in opened.namelist() if ".dist-info/" not in name}
    assert (sorted(wanted - found), sorted(found - wanted)) == ([], [])
    assert "coag/py.typed" in found
    data = {PurePosixPath(name).suffix for name in found}
    assert {".html", ".css", ".js", ".md", ".json", ".txt", ".svg"} <= data


def test_sdist_has_every_file_of_the_repository(
    repository: Path, repository_files: list[Path]
) -> None:
    with tarfile.open(_file(repository, "*.tar.gz")) as opened:
        found = {name.partition("/")[2] for name in opened.getnames()}
    tree = {path.relative_to(repository).as_posix() for path in repository_files}
    assert sorted(tree - found) == []


def test_installed_package_has_the_declared_version(
    repository: Path, programs: Path, tmp_path: Path
) -> None:
    text = (repository / "pyproject.toml").read_text(encoding="utf-8")
    declared = tomllib.loads(text)["project"]["version"]
    assert _run(tmp_path, programs / "coag", "--version") == f"coag {declared}\n"
    where = _run(tmp_path, programs / "python", "-c", "import coag; print(coag.__file__)")
    assert Path(where).is_relative_to(programs.parent)


def test_first_example_of_the_readme_prints_what_the_readme_says(
    repository: Path, folder: Path
) -> None:
    assert (folder / "printed.txt").read_text() == _first_block(repository, "text")


def test_run_of_the_example_is_shown_and_verified(programs: Path, folder: Path) -> None:
    assert "it is more than 50" in _run(folder, programs / "coag", "log", "latest")
    assert "verified" in _run(folder, programs / "coag", "verify", "latest")


@pytest.mark.parametrize("program", ["coag", "case-study", "vacuum-world"])
def test_every_command_shows_its_help(programs: Path, tmp_path: Path, program: str) -> None:
    assert "Usage:" in _run(tmp_path, programs / program, "--help")


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("inspect", "ui"),
        ("report latest", "ui"),
        ("top", "ui"),
        ("rules check rules.yaml", "policy"),
        ("otel latest", "otel"),
        ("doctor openai:gpt-5-mini", "openai"),
    ],
)
def test_command_whose_extra_is_missing_names_it(
    programs: Path, folder: Path, command: str, extra: str
) -> None:
    printed = _run(folder, programs / "coag", *command.split(), code=2)
    assert f"pip install 'coag[{extra}]'" in " ".join(printed.split())


def test_every_public_name_can_be_imported(programs: Path, tmp_path: Path) -> None:
    program = "import coag; print(*[name for name in coag.__all__ if getattr(coag, name) is None])"
    assert _run(tmp_path, programs / "python", "-c", program) == "\n"
