"""The reasons of a decision, and which records it depends on."""

from __future__ import annotations

from pathlib import Path

import pytest
from autogen_core import CancellationToken
from autogen_core.models import UserMessage
from autogen_ext.models.replay import ReplayChatCompletionClient
from kits.foragers import BITTER, calls, foraged

from coag.compat import ConstrainedWorkbench, Recorder, RecordingClient, ScriptedApprover
from coag.cycle import ApprovalPolicy, rule
from coag.errors import ConfigurationError
from coag.proof import Changes, counterfactuals, fork, why
from coag.proof.boundary import Choice
from coag.schema import PerceptKind
from coag.tracing import RunFolder, list_runs

OTHER = "Bears like honey."


async def test_an_explanation_holds_all_that_the_decision_depends_on(berries: RunFolder) -> None:
    run = berries
    decision = why(run, 3)
    assert [(p.kind, p.source) for p in decision.percepts] == [(PerceptKind.TOOL_RETURN, "pick")]
    assert [hit.record.text for hit in decision.recalled] == [BITTER]
    assert decision.state["held"] == 2
    assert decision.constraints == ("two_are_enough", "nothing_green")
    assert [used.name for used in decision.procedures] == ["reasoning", "proposal"]
    assert {(used.version, used.author) for used in decision.procedures} == {(1, "seed")}
    assert all(used.text for used in decision.procedures)
    rejected, chosen = decision.considered
    died = rejected.rejected_by
    assert died is not None
    assert (died.constraint, died.reason) == ("two_are_enough", "it holds 2")
    assert chosen.chosen
    assert (chosen.choice.action, decision.decided_by) == ("respond", "only_survivor")
    assert [verdict.constraint for verdict in chosen.verdicts][-2:] == list(decision.constraints)
    assert (decision.status, decision.result) == ("done", "I have 2.")
    assert decision.chosen == (chosen.choice,)


def test_the_first_percept_is_the_task_and_later_ones_are_since_the_last_action(
    berries: RunFolder,
) -> None:
    assert [p.source for p in why(berries, 1).percepts] == ["user"]
    assert [p.source for p in why(berries, 2).percepts] == ["pick"]
    assert [p.content for p in why(berries, 4).percepts] == ["Go on."]


@pytest.mark.parametrize("runs", ["berries", "compact_berries"])
async def test_a_fork_is_explained_like_its_parent(
    runs: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    run: RunFolder = request.getfixturevalue(runs)
    forked = await fork(run, "2.evaluation", logs=tmp_path)
    mine, theirs = why(forked.run, 2), why(run, 2)
    assert mine.considered == theirs.considered
    assert mine.recalled == theirs.recalled
    assert [p.id for p in mine.percepts] == [p.id for p in theirs.percepts]
    assert mine.goal == theirs.goal == "Fill the basket with berries."
    own = ["deliberation"] if runs == "compact_berries" else ["reasoning", "proposal"]
    assert [used.name for used in why(run, 1).procedures][:2] == own


async def test_a_plain_run_is_explained_as_far_as_it_goes(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "logs", agent="plain")
    client = RecordingClient(ReplayChatCompletionClient(["Yes."]), recorder)
    recorder.message("user", "Is it?")
    recorder.begin_turn()
    question = UserMessage(content="Is it?", source="user")
    await client.create([question], cancellation_token=CancellationToken())
    recorder.end_turn("respond", "Yes.")
    await client.close()
    recorder.close()
    (run,) = list_runs(tmp_path / "logs")
    decision = why(run, 1)
    assert (decision.kind, decision.situation, decision.result) == ("plain", "Yes.", "Yes.")
    assert [percept.content for percept in decision.percepts] == ["Is it?"]
    assert any("neither what was remembered" in note for note in decision.notes)
    with pytest.raises(ConfigurationError, match="turns up to 1: no 2"):
        why(run, 2)


async def test_a_plain_run_without_turns_says_how_to_get_some(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "logs", agent="clerk")
    client = RecordingClient(ReplayChatCompletionClient(["Yes."]), recorder)
    await client.create([UserMessage(content="Is it?", source="user")])
    await client.close()
    recorder.close()
    with pytest.raises(ConfigurationError, match=r"written down without turns.*RecordedAgent"):
        why(recorder.folder, 1)


@rule("pick")
def only_ripe(colour: str) -> str | None:
    """A rule for berries."""
    return None if colour == "blue" else f"{colour} berries are not ripe"


def pick(colour: str) -> str:
    """Picks a berry."""
    return f"a {colour} berry"


async def test_a_guards_run_tells_refusals_and_what_an_action_returned_from_its_causes(
    tmp_path: Path,
) -> None:
    ask = ApprovalPolicy(tools=["pick"])
    tools = ConstrainedWorkbench(
        [pick], constraints=[only_ripe], approval=ask, approve=ScriptedApprover([True, False]),
        logs=tmp_path,
    )  # fmt: skip
    async with tools:
        for colour in ("green", "blue", "blue"):
            await tools.call_tool("pick", {"colour": colour})
    (run,) = list_runs(tmp_path)
    refused, done, denied = (why(run, turn) for turn in (1, 2, 3))
    assert (refused.percepts, refused.chosen) == ((), ())
    (one,) = refused.considered
    assert one.choice == Choice(action="pick", arguments='{"colour": "green"}')
    assert one.rejected_by is not None
    assert (one.rejected_by.constraint, one.rejected_by.reason) == (
        "only_ripe", "green berries are not ripe",
    )  # fmt: skip
    assert [percept.kind for percept in done.percepts] == [PerceptKind.IMPASSE]
    assert done.result == "a blue berry"
    assert [percept.content for percept in denied.percepts] == ["a blue berry"]
    (one,) = denied.considered
    assert one.rejected_by is not None
    assert one.rejected_by.constraint == "approval"


# ---- counterfactuals ----


async def test_the_record_that_a_choice_depends_on_is_found_and_nothing_is_run(
    tmp_path: Path,
) -> None:
    run = await foraged(tmp_path, facts=(BITTER, f"{BITTER} {OTHER}"))
    assert {hit.record.text for hit in why(run, 1).recalled} == {BITTER, f"{BITTER} {OTHER}"}
    results = await counterfactuals(run, 1)
    assert [(one.changed, one.times) for one in results] == [(0, 1)] * 3
    assert [one.record is None for one in results] == [True, False, False]
    assert calls(tmp_path) == ["blue", "blue"]
    assert [path.name for path in (tmp_path / "logs").iterdir()] == [run.path.name]


async def test_without_the_record_the_other_choice_is_reported(
    berries: RunFolder, tmp_path: Path
) -> None:
    run = berries
    control, without = await counterfactuals(run, 2, repeats=2)
    assert (control.record, control.changed, control.others) == (None, 0, ())
    assert (without.changed, without.times) == (2, 2)
    assert without.others == ((Choice(action="pick", arguments='{"colour": "red"}'),),)
    changes = Changes(without_constraints=("two_are_enough",))
    forked = await fork(run, "3", changes, logs=tmp_path)  # a fork keeps its changes
    control, _ = await counterfactuals(forked.run, 3)
    assert control.changed == 0


async def test_a_cycle_that_is_not_there_is_neither_explained_nor_decided_again(
    berries: RunFolder,
) -> None:
    with pytest.raises(ConfigurationError, match="cycles up to 4: no cycle 9"):
        why(berries, 9)
    with pytest.raises(ConfigurationError, match="9"):
        await counterfactuals(berries, 9)
    with pytest.raises(ConfigurationError, match="repeats"):
        await counterfactuals(berries, 1, repeats=0)
