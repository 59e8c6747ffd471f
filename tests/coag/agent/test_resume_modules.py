"""Going on after a crash around an action of a module."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from kits.ringers import ringer

from coag.agent import CoagAgent
from coag.schema import ExecutionOutcome, Intent, Percept, PerceptKind, Receipt
from coag.tracing import read_trace


async def ask(agent: CoagAgent, *texts: str) -> str:
    messages = [TextMessage(content=text, source="user") for text in texts]
    response = await agent.on_messages(messages, CancellationToken())
    return response.chat_message.to_text()


async def gone_on(whole: Path, kept: int, where: Path) -> tuple[CoagAgent, Path]:
    """The agent of a run that broke off after `kept` lines, and the file of its new rings."""
    folder, log = where / whole.name, where / "again.txt"
    shutil.copytree(whole, folder, ignore=shutil.ignore_patterns("cycles"))
    lines = (whole / "trace.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "trace.jsonl").write_bytes(b"".join(lines[:kept]))
    info = json.loads((folder / "run.json").read_text())
    info["recipe"]["arguments"]["log"] = str(log)
    (folder / "run.json").write_text(json.dumps(info))
    agent = await CoagAgent.resume(folder)
    assert await ask(agent, *(() if agent.in_turn else ("Ring.",))) == "Done."
    await agent.close()
    return agent, log


async def test_a_modules_action_that_was_begun_is_never_run_again(tmp_path: Path) -> None:
    log = tmp_path / "rings.txt"
    agent = ringer(log=str(log), logs=str(tmp_path / "logs"))
    assert await ask(agent, "Ring.") == "Done."
    assert agent.run_folder is not None
    whole = agent.run_folder.path
    await agent.close()
    records = [entry.body for entry in read_trace(whole / "trace.jsonl")]
    begun = next(n for n, record in enumerate(records) if isinstance(record, Intent))
    ended = next(n for n, record in enumerate(records) if isinstance(record, Receipt))
    assert len(log.read_text().split()) == 1
    for kept in range(2, len(records)):
        resumed, again = await gone_on(whole, kept, tmp_path / f"cut-{kept}")
        assert again.exists() is (kept <= begun)
        seen = [record for record in resumed.trace if isinstance(record, Percept)]
        unknown = [one for one in seen if one.kind is PerceptKind.UNKNOWN_OUTCOME]
        assert len(unknown) == (begun < kept <= ended)
        assert not any(one.kind is PerceptKind.TOOL_RETURN for one in seen)
        done = [one for one in resumed.trace if isinstance(one, ExecutionOutcome)]
        assert all(one.internal and one.intent_id is None for one in done)
