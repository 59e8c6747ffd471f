"""Files that several processes may want, and files that are written whole or not at all."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO


def replace_file(output: Path, text: str) -> int:
    """Bytes written; the file takes the place of an older one in one step.

    It is its owner's alone, as the logs are.

    Raises:
        OSError: It cannot be written; an older one is as it was.
    """
    data = text.encode("utf-8", "replace")
    with NamedTemporaryFile(
        dir=output.parent, prefix=f".{output.name}.", delete=False
    ) as temporary:
        path = Path(temporary.name)
        try:
            temporary.write(data)
            temporary.close()
            os.replace(path, output)
        except OSError:
            path.unlink(missing_ok=True)
            raise
    return len(data)


if sys.platform == "win32":  # pragma: no cover - the branch of another system
    import msvcrt

    def try_lock(lock: IO[bytes]) -> bool:
        """Takes an open file for this process, until it is closed; False if another has it."""
        lock.seek(0)
        try:
            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def try_lock(lock: IO[bytes]) -> bool:
        """Takes an open file for this process, until it is closed; False if another has it."""
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
