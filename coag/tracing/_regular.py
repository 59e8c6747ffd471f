"""Reading only what is a file: nothing that would be waited for, or that never ends."""

from __future__ import annotations

import errno
import os
import stat

_NO_WAITING = getattr(os, "O_NONBLOCK", 0)
"""A pipe is opened at once, whether somebody writes to it or not; a file is read as always."""


def regular(path: str, flags: int) -> int:
    """Opens a regular file. For `open(..., opener=regular)`.

    Raises:
        OSError: It is a pipe, a socket or a device, or it cannot be opened.
    """
    file = os.open(path, flags | _NO_WAITING)
    mode = os.fstat(file).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # `open` itself tells of a folder
        return file
    os.close(file)
    raise OSError(errno.EINVAL, "it is not a regular file")
