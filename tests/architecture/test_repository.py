"""What a clone brings works on any machine: no machine's paths, no download addresses."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

# A home or work folder of one machine; a bare `/home` or an API path such as `/api/home/` is none.
_MACHINE_PATH = re.compile(r"(?<![\w.}~:/-])/(?:root|work|home|Users)/\w")
_ADDRESS = re.compile(r"\b(?:https?|ssh|git\+\w+|file|ftp)://[^\s\"'`<>)\]},;]*")

# Hosts that documentation and clients may name; none of them is one that packages come from.
_KNOWN_HOSTS = frozenset(
    {
        "arxiv.org",
        "api.openai.com",
        "api.anthropic.com",
        "json-schema.org",
        "www.w3.org",
        "microsoft.github.io",
    }
)
_EXAMPLES = (".example", ".test", ".invalid", "example.com", "example.org")
_LOCK_FILES = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "package-lock.json")


def _texts(files: list[Path]) -> list[tuple[Path, int, str]]:
    """Every line of every text file, with its place."""
    lines: list[tuple[Path, int, str]] = []
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        lines.extend((path, number, line) for number, line in enumerate(text.splitlines(), 1))
    return lines


def _is_known(address: str) -> bool:
    """Whether an address is this machine, a placeholder, an example or a known host."""
    if "{" in address or "[" in address:  # filled in at run time, or an IPv6 literal
        return True
    host = urlsplit(address).hostname or ""
    if "." not in host or host.startswith(("127.", "0.")):  # `localhost`, `HOST`, or none at all
        return True
    return host in _KNOWN_HOSTS or host.endswith(_EXAMPLES)


def test_no_file_names_a_folder_of_one_machine(repository_files: list[Path]) -> None:
    found = [
        f"{path}:{number}: {line.strip()[:120]}"
        for path, number, line in _texts(repository_files)
        if _MACHINE_PATH.search(line)
    ]
    assert found == []


def test_no_file_names_an_address_outside_the_known_ones(repository_files: list[Path]) -> None:
    found = [
        f"{path}:{number}: {address}"
        for path, number, line in _texts(repository_files)
        if "://" in line
        for address in _ADDRESS.findall(line)
        if not _is_known(address)
    ]
    assert found == []


def test_no_lock_file_with_addresses_is_kept(repository_files: list[Path]) -> None:
    assert [str(path) for path in repository_files if path.name in _LOCK_FILES] == []


@pytest.mark.parametrize(
    "name",
    [
        *("run.txt", "dev.txt", "docs.txt", "mutants.txt", "lowest.txt", "newest.txt"),
        *("bench.txt", "bench-alone.txt", "dist.txt"),
    ],
)
def test_requirements_are_pinned_by_hash_and_carry_no_address(repository: Path, name: str) -> None:
    text = (repository / "requirements" / name).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    entries = [line for line in lines if not line.startswith(" ")]
    assert [line for line in entries if not re.match(r"[A-Za-z0-9._\[\]-]+==[\w.+!]+ ", line)] == []
    assert [line for line in lines if line.startswith(" ") and "--hash=sha256:" not in line] == []
    assert "://" not in text
    assert " @ " not in text


def test_requirements_of_run_and_dev_agree(repository: Path) -> None:
    run, dev = (
        set(re.findall(r"^[\w.-]+==\S+", (repository / "requirements" / name).read_text(), re.M))
        for name in ("run.txt", "dev.txt")
    )
    assert run - dev == set()


@pytest.mark.parametrize("package", ["pydantic-core", "numpy", "chromadb", "grpcio", "wordllama"])
def test_compiled_packages_have_hashes_for_more_than_one_platform(
    repository: Path, package: str
) -> None:
    text = (repository / "requirements" / "run.txt").read_text(encoding="utf-8")
    entry = re.search(rf"^{package}==.*?(?=^\S|\Z)", text, re.M | re.S)
    assert entry is not None
    assert entry.group().count("--hash=sha256:") >= 5
