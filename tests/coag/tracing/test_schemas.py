"""The published JSON Schemas say what is in the code, and real logs fit them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast, get_args

import pytest
from autogen_core.tools import FunctionTool
from jsonschema import Draft202012Validator
from kits.brains import brain, respond

from coag import CoagAgent
from coag.compat import ConstrainedWorkbench
from coag.schema import PHASES, Candidate, TraceRecord, Verdict
from coag.tracing import log_schemas

PUBLISHED = Path(__file__).parents[3] / "docs" / "schemas"


def pay(amount: int) -> str:
    """Pays."""
    return f"{amount} paid"


def at_most_ten(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
    arguments = candidate.arguments or {}
    return Verdict.forbid("too much") if arguments.get("amount", 0) > 10 else Verdict.allow()


def published(name: str) -> dict[str, Any]:
    return json.loads((PUBLISHED / f"{name}.json").read_text(encoding="utf-8"))


def faults(name: str, value: object) -> list[str]:
    """What of a value does not fit a published schema."""
    validator = cast("Any", Draft202012Validator(published(name)))
    return [f"{name}: {e.json_path}: {e.message}" for e in validator.iter_errors(value)]


def record_schema(body: dict[str, Any]) -> str:
    """Name of the schema of a record."""
    words = [body["record"], body.get("phase") if body["record"] == "outcome" else None]
    return "-".join(["record", *(word.replace("_", "-") for word in words if word)])


def check_run(logs: Path) -> set[str]:
    """Checks all that the only run in a folder left; which schemas its records are of."""
    (folder,) = logs.iterdir()
    found = faults("run", json.loads((folder / "run.json").read_text(encoding="utf-8")))
    used: set[str] = set()
    for text in (folder / "trace.jsonl").read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        name = record_schema(line["body"])
        found += [*faults("trace-line", line), *faults(name, line["body"])]
        used.add(name)
    assert found == []
    return used


@pytest.mark.parametrize("name", log_schemas())
def test_a_published_schema_is_that_of_the_code(name: str) -> None:
    assert published(name) == log_schemas()[name], "Remake them: python docs/schemas/make.py"


def test_there_is_a_schema_for_each_record_and_no_other_file() -> None:
    (union, *_) = get_args(TraceRecord)
    records = 0
    for member in get_args(union):
        records += len(get_args(get_args(member)[0])) if get_args(member) else 1
    files = {path.stem for path in PUBLISHED.glob("*.json")}
    assert files == set(log_schemas())
    assert len(files) == records + 2
    assert {f"record-outcome-{phase}" for phase in PHASES} <= files


async def test_the_log_of_an_agent_fits_the_schemas(tmp_path: Path) -> None:
    agent = CoagAgent(
        "teller",
        brain(("pay", '{"amount": 5}'), ("pay", '{"amount": 50}'), respond()),
        tools=[pay],
        constraints=[at_most_ten],
        logs=tmp_path,
        proposal="json",
        seed=7,
    )
    await agent.run(task="Pay.")
    await agent.load_state(await agent.save_state())
    await agent.run(task="Once more.")
    await agent.close()
    used = check_run(tmp_path)
    assert {f"record-outcome-{phase}" for phase in PHASES} <= used
    assert {"record-intent", "record-receipt", "record-snapshot", "record-model-call"} <= used


async def test_the_log_of_a_plain_run_fits_the_schemas(tmp_path: Path) -> None:
    async with ConstrainedWorkbench(
        [FunctionTool(pay, "Pays.")], constraints=[at_most_ten], logs=tmp_path, name="till"
    ) as till:
        await till.call_tool("pay", {"amount": 1})
        await till.call_tool("pay", {"amount": 20})
    assert {"record-intent", "record-receipt", "record-percept"} <= check_run(tmp_path)


def test_a_schema_refuses_what_a_reader_would_refuse() -> None:
    note = {"record": "note", "at": "2026-11-21T12:00:00Z", "cycle": 1, "about": "x", "text": "y"}
    assert faults("record-note", {**note, "details": {}}) == []
    assert faults("record-note", {**note, "details": {}, "mood": "good"}) != []
    assert faults("record-note", {**note, "details": {}, "cycle": "one"}) != []
