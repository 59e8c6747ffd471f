"""Where an agent's memory lies within the folder that it was given."""

from __future__ import annotations

from coag.store import LTM_FOLDER

PROCEDURES_FILE = "procedures.json"
"""The procedures, with all their versions."""

__all__ = ["LTM_FOLDER", "PROCEDURES_FILE"]
