"""`coag memory`: reading and correcting what an agent remembers.

As in the app above it, each command is declared in the module that does its work. What records say
is untrusted: characters that do not show are written out.
"""

from collections.abc import Mapping
from typing import ClassVar

import typer

from coag.cli.commands import LazyGroup

__all__ = ["app"]

_HERE = "coag.cli.memory"


class _MemoryCommands(LazyGroup):
    lazy: ClassVar[Mapping[str, tuple[str, str]]] = {
        "ls": (f"{_HERE}.search:ls", "Lists records, the newest first."),
        "search": (
            f"{_HERE}.search:search",
            "Finds records as the agent would, with the parts of their scores.",
        ),
        "show": (f"{_HERE}.search:show", "Shows everything that records say."),
        "history": (
            f"{_HERE}.history:history",
            "Shows the records before and after one in its chain, and those it is linked to.",
        ),
        "stats": (
            f"{_HERE}.history:stats",
            "Shows the state of a memory: what it holds, and whether its parts agree.",
        ),
        "edit": (
            f"{_HERE}.edit:edit",
            "Corrects a record; without options, opens its text in $EDITOR.",
        ),
        "forget": (
            f"{_HERE}.edit:forget",
            "Removes records for good, and nothing that was concluded from them.",
        ),
        "revoke": (
            f"{_HERE}.edit:revoke",
            "Takes back a record and everything concluded from it, rules of procedures included.",
        ),
        "sleep": (
            f"{_HERE}.sleep:sleep",
            "Consolidates a memory: fading, archive, gists, feelings, clusters, links.",
        ),
        "archived": (
            f"{_HERE}.sleep:archived",
            "Lists what has faded and rests in the archive, the last first.",
        ),
        "restore": (
            f"{_HERE}.sleep:restore",
            "Puts archived records back, word for word, so that they are recalled again.",
        ),
        "strength": (
            f"{_HERE}.strength:strength",
            "Shows how well records are kept, and when they fade; of one its gist and drift too.",
        ),
        "persona": (
            f"{_HERE}.strength:persona",
            "Shows the versions of a personality; applies, refuses or takes back one.",
        ),
        "export": (
            f"{_HERE}.transfer:export",
            "Writes every record with every field into a file, one JSON object a line.",
        ),
        "import": (
            f"{_HERE}.transfer:import_",
            "Brings the records of an exported file into a memory, which is made if missing.",
        ),
        "reembed": (
            f"{_HERE}.transfer:reembed",
            "Makes new vectors for all records with another embedder; the texts stay.",
        ),
    }


app = typer.Typer(
    name="memory",
    cls=_MemoryCommands,
    help="Reads and corrects what an agent remembers.\n\n"
    "Example: coag memory search 'where is the charger' --memory ~/robbie",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def memory() -> None:
    """Reads and corrects what an agent remembers.

    Example: coag memory search 'where is the charger' --memory ~/robbie
    """
