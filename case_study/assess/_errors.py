"""What is wrong with an assessment."""

from __future__ import annotations

from coag.errors import CoagError


class AssessmentError(CoagError):
    """An assessment's folder cannot be used as it is; the message says what to do."""
