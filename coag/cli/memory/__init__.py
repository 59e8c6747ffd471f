"""`coag memory`: reading and correcting what an agent remembers.

As in the app above it, each command is declared in the module that does its work. What records say
is untrusted: characters that do not show are written out.
"""

from coag.cli.commands import lazy_group

__all__ = ["app"]

app = lazy_group(
    "memory",
    "Reads and corrects what an agent remembers.\n\n"
    "Example: coag memory search 'where is the charger' --memory ~/robbie",
    {
        "search": {
            "ls": "Lists records, the newest first.",
            "search": "Finds records as the agent would, with the parts of their scores.",
            "show": "Shows everything that records say.",
        },
        "history": {
            "history": "Shows the records before and after one in its chain, and those it is "
            "linked to.",
            "stats": "Shows the state of a memory: what it holds, and whether its parts agree.",
        },
        "edit": {
            "edit": "Corrects a record; without options, opens its text in $EDITOR.",
            "forget": "Removes records for good, and nothing that was concluded from them.",
            "revoke": "Takes back a record and everything concluded from it, rules of procedures "
            "included.",
        },
        "sleep": {
            "sleep": "Consolidates a memory: fading, archive, gists, feelings, clusters, links.",
            "archived": "Lists the faded records in the archive, the last first.",
            "restore": "Puts archived records back, word for word, so that they are recalled "
            "again.",
        },
        "strength": {
            "strength": "Shows how well records are kept, and when they fade; of one its gist and "
            "drift too.",
            "persona": "Shows the versions of a personality; applies, refuses or takes back one.",
        },
        "transfer": {
            "export": "Writes every record with every field into a file, one JSON object a line.",
            "import": "Brings the records of an exported file into a memory, which is made if "
            "missing.",
            "reembed": "Makes new vectors for all records with another embedder; the texts stay.",
        },
    },
    package="coag.cli.memory",
)
