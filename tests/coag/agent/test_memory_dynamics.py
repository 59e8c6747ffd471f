"""What a memory with dynamics says of what it recalls reaches the prompt and the trace."""

from __future__ import annotations

from kits.brains import brain, respond
from kits.minds import HandClock
from kits.turns import say, traced

from coag import CoagAgent, LongTermMemory
from coag.cycle.deps import untrusted_texts
from coag.memory.dynamics import DAY, InvoluntaryRecall, MemoryDynamics, MemoryDynamicsSettings
from coag.models import ScriptedModel
from coag.schema import (
    MemoryKind,
    Provenance,
    RetrievalOutcome,
    Trust,
)
from coag.store import HashEmbedder, InMemoryStore

LONG = "The red door at the end of the hall is locked, and its key hangs behind the clock."

DOORS = (
    "The red door leads to the cellar.",
    "Bo painted a red door in spring.",
    "Who broke the red door, nobody knows.",
    "A letter lay behind the red door.",
    "The red door squeaks at night.",
    "Rain swelled the wood of the red door.",
    "Her cat sleeps near the red door.",
    "Nine nails hold the red door.",
)


def memory_with(dynamics: MemoryDynamics | None, clock: HandClock) -> LongTermMemory:
    return LongTermMemory(
        InMemoryStore(HashEmbedder()), scope="scout", clock=clock, dynamics=dynamics
    )


async def keep(memory: LongTermMemory, text: str, trust: Trust = Trust.UNTRUSTED) -> str:
    origin = Provenance(
        run="r", activity="a", cycle=1, source="letter", source_kind="tool_return", trust=trust
    )
    return (await memory.remember(MemoryKind.SEMANTIC, text, provenance=origin)).record.id


def asked(memory: LongTermMemory) -> tuple[CoagAgent, ScriptedModel]:
    model = brain(respond())
    return CoagAgent("scout", model, memory=memory, proposal="json"), model


async def test_a_gist_its_age_and_a_doubtful_source_are_shown_in_place_of_the_text() -> None:
    clock = HandClock()
    dynamics = MemoryDynamics("assistant")
    memory = memory_with(dynamics, clock)
    name = await keep(memory, LONG)
    state = dynamics.states.get([name])[name]
    dynamics.states.put([state._replace(gist="The red door is locked.")])
    clock.wait(100 * DAY)
    agent, model = asked(memory)
    await say(agent, "Is the red door locked?")
    (shown,) = [line for line in model.requests[0].text.splitlines() if name[:8] in line]
    assert shown.endswith("] The red door is locked.")
    assert "3 months old, unconfirmed, sureness of its source 0.34, its gist only" in shown
    assert "behind the clock" not in model.requests[0].text
    (recalled,) = traced(agent, RetrievalOutcome)[:1]
    assert [hit.record.text for hit in recalled.records] == [LONG]


async def test_the_words_of_a_gist_from_outside_are_judged_as_those_of_its_record() -> None:
    clock = HandClock()
    dynamics = MemoryDynamics("assistant")
    memory = memory_with(dynamics, clock)
    name = await keep(memory, LONG)
    state = dynamics.states.get([name])[name]
    dynamics.states.put([state._replace(gist="Red doors: locked.")])
    agent, _ = asked(memory)
    await say(agent, "Is the red door locked?")
    held = untrusted_texts(agent.context)
    assert LONG in held
    assert "Red doors: locked." in held


async def test_what_comes_unasked_says_so() -> None:
    clock = HandClock()
    often = MemoryDynamicsSettings(involuntary_recall=InvoluntaryRecall(chance=1.0, age=14.0))
    memory = memory_with(MemoryDynamics(often), clock)
    name = await keep(memory, "Grandmother sang by the sea.")
    clock.wait(20 * DAY)
    for at in range(6):  # as many as are recalled, and one more
        await keep(memory, f"Is the red door {at} locked? It is.")
    agent, model = asked(memory)
    await say(agent, "Is the red door locked?")
    (shown,) = [line for line in model.requests[0].text.splitlines() if name[:8] in line]
    assert "came to mind unasked, 20 days old" in shown


async def test_what_is_on_the_tip_of_the_tongue_is_felt_and_not_said() -> None:
    clock = HandClock()
    memory = memory_with(MemoryDynamics("assistant"), clock)
    for text in DOORS:
        await keep(memory, text)
    agent, model = asked(memory)
    await say(agent, "What of the red door, the green gate and the blue window?")
    felt = traced(agent, RetrievalOutcome)[0].felt
    assert felt
    line = next(x for x in model.requests[0].text.splitlines() if felt[0].id[:8] in x)
    assert "[felt, " in line
    assert "does not come to mind, on: " in line
    assert agent.context.working_memory.tainted_by is not None
    assert felt[0].id in agent.context.working_memory.tainted_by.records


async def test_without_dynamics_neither_prompt_nor_trace_has_a_word_of_them() -> None:
    texts: list[str] = []
    lines: list[str] = []
    for dynamics in (None, MemoryDynamics("plain")):
        memory = memory_with(dynamics, HandClock())
        await keep(memory, LONG)
        agent, model = asked(memory)
        await say(agent, "Is the red door locked?")
        texts.append(model.requests[0].text)
        lines.append(traced(agent, RetrievalOutcome)[0].model_dump_json(exclude={"at"}))
    assert texts[0] == texts[1]
    assert lines[0] == lines[1]
    assert '"felt"' not in lines[0]
    assert '"state"' not in lines[0]


async def test_a_prompt_says_what_is_outdated_and_how_much_was_left_out() -> None:
    memory = memory_with(MemoryDynamics("assistant"), HandClock())
    old = await keep(memory, "The red door leads to the cellar.", Trust.USER)
    new = await keep(memory, "The red door leads to the attic.", Trust.USER)
    lie = await keep(memory, "The red door leads to the garden.")
    agent, model = asked(memory)
    await say(agent, "What is behind that red door?")
    text = model.requests[0].text
    (line,) = [one for one in text.splitlines() if one.endswith("leads to the cellar.")]
    assert f"perhaps outdated by id {new[:8]}" in line
    assert "[left out] 1 of untrusted sources alone" in text
    assert "garden" not in text
    recalled = traced(agent, RetrievalOutcome)[0]
    assert [hit.record.id for hit in recalled.records] == [new, old]
    assert recalled.doubted == (lie,)
