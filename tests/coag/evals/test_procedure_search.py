"""Procedures are learned from traces, and kept only where held-out episodes say so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.messages import TextMessage

from coag import CoagAgent, ScriptedModel
from coag.errors import ConfigurationError
from coag.evals import PlayedEpisode, search_procedures
from coag.memory import GateSettings, PendingRewrite, ProceduralMemory, Procedure
from coag.models import ScriptedRequest, StructuredModel

RULE = "Look up the price first."
"""The scripted agent looks up where its procedure has this sentence."""
HELD_OUT = range(100, 108)


def deliberate(request: ScriptedRequest) -> dict[str, Any]:
    """A scripted agent that follows its procedure, and guesses without it."""
    seen = str(request.messages)
    knows = RULE in seen
    looks = knows and request.number == 1
    action, arguments = ("price", {}) if looks else ("respond", {"text": "57"[knows]})
    offer = {"action": action, "arguments": json.dumps(arguments), "score": 0.9}
    return {"situation": "A price is asked for.", "candidates": [offer]}


def price() -> str:
    """The price."""
    return "The price is seven euros today, says the shop."


async def play(seed: int, procedures: Mapping[str, Procedure], folder: Path) -> PlayedEpisode:
    agent = CoagAgent(
        "clerk",
        ScriptedModel(deliberate),
        tools=[price],
        procedures=procedures,
        logs=folder,
        depth="compact",
        proposal="json",
    )
    result = await agent.run(task=f"What is the price, customer {seed}?")
    await agent.close()
    last = result.messages[-1]
    right = isinstance(last, TextMessage) and last.content == "7"
    return PlayedEpisode(float(right), "" if right else "It guessed the price.")


def writing(*texts: str) -> StructuredModel:
    """A scripted model that writes these texts behind the procedure, one after the other."""
    seed = ProceduralMemory().get("deliberation").text
    count = iter(texts)

    def write(request: ScriptedRequest) -> dict[str, str]:
        return {"text": f"{seed}\n- {next(count, texts[-1])}"}

    return StructuredModel(ScriptedModel(write))


def search(memory: ProceduralMemory, folder: Path, model: StructuredModel, **changed: Any) -> Any:
    given: dict[str, Any] = {"train": [1, 2], "held_out": HELD_OUT, "most_episodes": 12}
    player = changed.pop("play", play)
    return search_procedures(
        player, memory, ["deliberation"], model=model, folder=folder, **{**given, **changed}
    )


def test_a_text_that_does_better_on_held_out_episodes_becomes_a_version(tmp_path: Path) -> None:
    memory = ProceduralMemory(gate=GateSettings(untrusted_requires_approval=False))
    found = search(memory, tmp_path, writing(RULE))
    assert found.kept, found.reason
    version = memory.get("deliberation")
    assert version.author == "gepa"
    assert RULE in version.text
    assert found.held_out.p < 0.05
    assert found.episodes >= 2 * len(HELD_OUT)


def test_a_text_written_after_untrusted_text_waits_for_approval(tmp_path: Path) -> None:
    memory = ProceduralMemory(gate=GateSettings(requires_approval=True))
    found = search(memory, tmp_path, writing(RULE))
    assert found.kept
    assert isinstance(found.written[0], PendingRewrite)
    assert RULE not in memory.get("deliberation").text
    memory.approve(found.written[0].id, by="Eve")
    assert RULE in memory.get("deliberation").text


def test_a_text_that_only_helps_in_training_is_not_kept(tmp_path: Path) -> None:
    async def only_in_training(
        seed: int, procedures: Mapping[str, Procedure], folder: Path
    ) -> PlayedEpisode:
        return await play(seed, procedures if seed < 100 else {}, folder)

    memory = ProceduralMemory()
    found = search(memory, tmp_path, writing(RULE), play=only_in_training)
    assert not found.kept
    assert "Not shown to be better" in found.reason
    assert len(memory.versions("deliberation")) == 1


def test_a_text_with_which_an_episode_goes_worse_is_not_kept(tmp_path: Path) -> None:
    played: list[str] = []

    async def worse_later(
        seed: int, procedures: Mapping[str, Procedure], folder: Path
    ) -> PlayedEpisode:
        better = RULE in procedures["deliberation"].text
        played.append("new" if better else "old")
        return PlayedEpisode(float(better and played.count("new") <= 4))

    memory = ProceduralMemory()
    found = search(memory, tmp_path, writing(RULE), play=worse_later)
    assert not found.kept
    assert found.lost or "Not shown" in found.reason
    assert len(memory.versions("deliberation")) == 1


def test_what_the_gate_refuses_is_never_played(tmp_path: Path) -> None:
    memory, texts = ProceduralMemory(gate=GateSettings(budget=320)), set[str]()

    async def watched(
        seed: int, procedures: Mapping[str, Procedure], folder: Path
    ) -> PlayedEpisode:
        texts.add(procedures["deliberation"].text)
        return PlayedEpisode(0.0)

    found = search(memory, tmp_path, writing("Think. " * 300), play=watched)
    assert not found.kept
    assert texts == {memory.get("deliberation").text}
    assert any("tokens long" in reason for reason in found.refused)


def test_the_model_is_shown_what_was_done_and_what_went_wrong(tmp_path: Path) -> None:
    prompts: list[str] = []

    def write(request: ScriptedRequest) -> dict[str, str]:
        prompts.append(str(request.messages))
        return {"text": "Think, and answer."}

    search(ProceduralMemory(), tmp_path, StructuredModel(ScriptedModel(write)))
    assert "What is the price, customer" in prompts[0]
    assert "respond" in prompts[0]
    assert "It guessed the price." in prompts[0]


def test_an_unusable_answer_of_the_model_leaves_the_text_as_it_is(tmp_path: Path) -> None:
    found = search(ProceduralMemory(), tmp_path, StructuredModel(ScriptedModel(lambda _: "no")))
    assert not found.kept
    assert "no usable text" in found.refused[0]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"held_out": [100]}, "fewer than 6"),
        ({"held_out": [1, *range(10, 16)]}, "train has, too: 1"),
        ({"most_episodes": 2}, "at least 4"),
        ({"train": []}, "a training episode"),
    ],
)
def test_what_cannot_show_anything_is_refused(
    tmp_path: Path, changed: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        search(ProceduralMemory(), tmp_path, writing(RULE), **changed)


def test_a_score_outside_its_range_is_refused(tmp_path: Path) -> None:
    async def beyond(seed: int, procedures: Any, folder: Path) -> PlayedEpisode:
        return PlayedEpisode(2.0)

    with pytest.raises(ConfigurationError, match=r"from 0 to 1, got 2\.0"):
        search(ProceduralMemory(), tmp_path, writing(RULE), play=beyond)


def test_a_search_inside_an_event_loop_runs_in_a_thread(tmp_path: Path) -> None:
    async def inside() -> Any:
        return await asyncio.to_thread(search, ProceduralMemory(), tmp_path, writing("Be kind."))

    assert not asyncio.run(inside()).kept
