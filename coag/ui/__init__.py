"""Views at the terminal: a console for streams, and a live view of runs.

`PhaseConsole` shows a stream of AutoGen's events phase by phase, where its `Console` shows
messages. `Board` follows the traces of many runs, of any process, and keeps the status of each;
`snapshot` gives that as text, and `coag.ui.top` shows it live (it alone needs textual, and so is
imported by its own name).

All that is shown here was written by models, tools and strangers: it passes through `cleaned`, is
never read as markup, and is short however long it is. Colour never says what the words do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coag._util.lazy import loaded_on_use

from .board import Board, snapshot

if TYPE_CHECKING:
    from .phase_console import PhaseConsole

__all__ = ["PhaseConsole", "Board", "snapshot"]

# The board needs no agent.
__getattr__ = loaded_on_use(__name__, {"PhaseConsole": f"{__name__}.phase_console"})
