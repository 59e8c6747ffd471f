"""How deeply to deliberate is learned from what came of it, and a replay draws the same."""

from __future__ import annotations

from pathlib import Path

from kits.corridors import recipe_walker, step, walker
from kits.turns import proved, say, traced

from coag import CoagAgent
from coag.judgment import DepthModule, Judgment
from coag.proof import fork
from coag.schema import DepthAdvice, DepthEvidence, ReasoningOutcome
from coag.tracing import RunFolder, read_trace

TASK = "Walk to the end."
HERE = DepthEvidence(situation="here")


def advice(agent: CoagAgent) -> list[DepthAdvice]:
    chosen = [one.depth for one in traced(agent, ReasoningOutcome) if one.depth is not None]
    return [one.evidence.advice for one in chosen if one.evidence.advice is not None]


async def chance_of_full(module: DepthModule) -> float:
    one = await module.advise_depth(HERE)
    assert one is not None
    return one.probability if one.depth == "full" else 1 - one.probability


async def test_every_open_depth_is_drawn_and_reported_but_for_the_one_that_ends_the_turn() -> None:
    module = DepthModule()
    agent, _, _ = walker(modules=[module], reflex_gain=None)
    assert await say(agent, TASK) == "There."
    drawn = advice(agent)
    assert len(drawn) == 3
    assert all(one.source == "depth" and "never tried" in one.why for one in drawn[:2])
    choices = module.judgment.choices()
    assert [one.source for one in choices] == ["start", "after step"]
    assert [one.chosen for one in choices] == [one.depth for one in drawn[:2]]
    assert [one.probability for one in choices] == [one.probability for one in drawn[:2]]


async def test_one_call_is_likelier_until_full_has_paid_more(tmp_path: Path) -> None:
    module = DepthModule(tmp_path / "d.json")
    assert 0.1 < await chance_of_full(module) < 0.3
    module.judgment.discover({"one_call": "", "full": ""})
    for reward, depth in [(1.0, "full"), (0.0, "one_call")] * 6:
        module.judgment.report(depth, reward)
    assert await chance_of_full(module) < 0.3, "in a run, what it began with counts"
    assert await chance_of_full(DepthModule(tmp_path / "d.json")) > 0.9


async def test_an_impasse_is_worth_nothing_and_costs_its_calls() -> None:
    module = DepthModule()
    agent, _, _ = walker(
        lambda request: [step("nowhere")], modules=[module], reflex_gain=None,
        max_tool_iterations=2,
    )  # fmt: skip
    await say(agent, TASK)
    assert module.judgment.choices()[0].reward < 0


async def test_a_replay_and_a_fork_draw_the_same_though_the_file_has_changed(
    tmp_path: Path,
) -> None:
    depths, logs = str(tmp_path / "d.json"), str(tmp_path / "logs")
    first = recipe_walker(logs, depths=depths)
    assert await say(first, TASK) == "There."
    await first.close()
    agent = recipe_walker(logs, depths=depths)
    assert await say(agent, TASK) == "There."
    drawn = advice(agent)
    assert "never tried" not in drawn[0].why
    for _ in range(10):
        Judgment(depths).report("full", 1.0)
    reports = Judgment(depths).status()["advice"]["reports"]
    again = recipe_walker(logs, depths=depths)
    run = await proved(agent, lambda: again)
    report = await fork(run.path, "1.reasoning", logs=tmp_path / "forks")
    lines = read_trace(RunFolder(report.run).trace_path)
    reasoned = [one.body for one in lines if isinstance(one.body, ReasoningOutcome)]
    assert [one.depth and one.depth.evidence.advice for one in reasoned] == drawn[:1]
    assert Judgment(depths).status()["advice"]["reports"] == reports
