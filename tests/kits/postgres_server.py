"""A Postgres server of the tests' own, which listens on a socket in its folder only."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

_USUAL = "/usr/lib/postgresql"


def postgres_programs() -> Path | None:
    """The folder of `initdb` and `pg_ctl`; None where they are not installed."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    newest = sorted(Path(_USUAL).glob("*/bin/initdb"))
    return newest[-1].parent if newest else None


def url_of(conninfo: str, database: str = "postgres") -> str:
    """The same words as an address."""
    host, user, _ = (part.partition("=")[2] for part in conninfo.split())
    return f"postgresql:///{database}?host={quote(host, safe='')}&user={user}"


@contextmanager
def postgres_server(programs: Path) -> Generator[str]:
    """The words that connect to a new server, which ends with its folder.

    The server refuses to run as root; then it runs as `nobody`.
    """
    user = "nobody" if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="coag-pg-") as name:
        if user is not None:
            account = pwd.getpwnam(user)
            os.chown(name, account.pw_uid, account.pw_gid)

        def run(*command: str) -> None:
            log = Path(name, "log.txt")
            with log.open("ab") as said:
                done = subprocess.run(
                    command,
                    user=user,
                    cwd=name,
                    stdout=said,
                    stderr=subprocess.STDOUT,
                    check=False,
                )
            assert done.returncode == 0, log.read_text(errors="replace")

        data = str(Path(name, "data"))
        control = str(programs / "pg_ctl")
        run(str(programs / "initdb"), "-D", data, "-U", "coag", "-A", "trust", "--no-sync")
        settings = f"-c listen_addresses='' -c unix_socket_directories={name} -c fsync=off"
        run(control, "start", "-w", "-D", data, "-l", f"{data}/server.log", "-o", settings)
        try:
            yield f"host={name} user=coag dbname=postgres"
        finally:
            run(control, "stop", "-w", "-m", "immediate", "-D", data)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The words that connect to a real Postgres server."""
    programs = postgres_programs()
    if programs is None:
        pytest.skip("no initdb and pg_ctl on this machine")
    pytest.importorskip("psycopg", reason="the extra coag[postgres] is not installed")
    with postgres_server(programs) as conninfo:
        yield conninfo
