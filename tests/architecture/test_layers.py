"""The layers hold: the contracts of `.importlinter`, as `make check` runs them."""

import subprocess
import sys
from pathlib import Path


def test_every_import_contract_is_kept(repository: Path) -> None:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == 0, done.stdout + done.stderr
