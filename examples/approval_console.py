"""Human approval at the terminal: deletions run only after somebody has typed yes.

Run it in a terminal and answer. With `--auto`, or where there is no terminal, a script answers
for the person and denies the second deletion.
"""

import asyncio
import sys
from typing import Any

from coag import CoagAgent, ScriptedModel
from coag.compat import ConsoleApprover, ScriptedApprover
from coag.cycle import ApprovalPolicy
from coag.models import scripted_answers

FILES = {"draft.txt", "thesis.txt"}


def list_files() -> list[str]:
    """Lists all files."""
    return sorted(FILES)


def delete_file(name: str) -> str:
    """Deletes a file for good."""
    FILES.discard(name)
    return f"deleted {name}"


def wish(action: str, **arguments: Any) -> dict[str, Any]:
    """What the model answers: one candidate."""
    return {"situation": "Tidying up.", "candidates": [{"action": action, "arguments": arguments}]}


ANSWERS = [
    wish("list_files"),  # nobody is asked
    wish("delete_file", name="draft.txt"),
    wish("delete_file", name="thesis.txt"),
    wish("respond", text="I have done what I was allowed to."),
]


async def main() -> None:
    """Has the agent tidy up, and shows what was left."""
    by_hand = sys.stdin.isatty() and "--auto" not in sys.argv
    approve = ConsoleApprover() if by_hand else ScriptedApprover([True, "we still need it"], "Ann")
    agent = CoagAgent(
        "janitor",
        ScriptedModel(scripted_answers(ANSWERS)),
        tools=[list_files, delete_file],
        depth="compact",
        proposal="json",
        approval=ApprovalPolicy(risk={"delete_*": "high"}, require={"high"}),
        approve=approve,
    )
    print((await agent.run(task="Tidy up.")).messages[-1].to_text(), "Left:", FILES)


if __name__ == "__main__":
    asyncio.run(main())
