"""Saying how to go on with a case that broke off."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from coag.errors import CoagError
from vacuum_world.errors import WorldError

from ._folder import CaseFolder


class BrokenOffError(CoagError):
    """A case broke off; the message names it and how to go on with it.

    Attributes:
        case: The case's folder.
    """

    def __init__(self, case: CaseFolder, reason: str) -> None:
        self.case = case
        super().__init__(
            f"{reason.rstrip('.')}. The case is kept; go on with it: "
            f"case-study run --resume {case.path}"
        )


@contextmanager
def resumable(case: CaseFolder) -> Generator[None]:
    """Names the case in what breaks it off.

    Raises:
        BrokenOffError: The model, the log, the memory or the world failed.
    """
    try:
        yield
    except (CoagError, WorldError, OSError) as error:
        raise BrokenOffError(case, str(error)) from error
