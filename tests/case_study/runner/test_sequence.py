"""Sequences of episodes: what each begins with, and going on with one that was broken off."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from case_study.measures import CaseResult
from case_study.runner import (
    Between,
    CaseFolder,
    CaseRequest,
    Place,
    Progress,
    checked,
    memory_of,
    run_case,
)
from coag.errors import ConfigurationError, ResumeError


class PulledPlugError(ConfigurationError):
    """The process is gone."""


def _request(between: Between, *, place: Place = "local", episodes: int = 2) -> CaseRequest:
    return checked(
        CaseRequest(
            scenario="sudden-wall",
            agent="coag-compact",
            model="scripted:sound",
            seed=1,
            place=place,
            between=between,
            episodes=episodes,
        )
    )


def _bumps(folder: CaseFolder) -> list[int]:
    return [each.truth.bumps for each in folder.episodes()]


def _until(episode: int, actions: int) -> Callable[[Progress], None]:
    def watch(progress: Progress) -> None:
        if (progress.episode, progress.actions) == (episode, actions):
            raise PulledPlugError("The plug was pulled.")

    return watch


async def _played(folder: CaseFolder) -> CaseResult:
    return await run_case(folder)


async def test_a_memory_that_is_kept_spares_later_episodes_the_bump_and_an_emptied_one_does_not(
    tmp_path: Path,
) -> None:
    kept = CaseFolder.create(tmp_path / "kept", _request("kept"))
    emptied = CaseFolder.create(tmp_path / "emptied", _request("emptied"))
    assert (await _played(kept)).success
    assert (await _played(emptied)).success
    assert _bumps(kept) == [1, 0]
    assert _bumps(emptied) == [1, 1]
    assert kept.episodes()[0].figures.prompt_tokens == emptied.episodes()[0].figures.prompt_tokens


@pytest.mark.parametrize("place", ["local", pytest.param("served", marks=pytest.mark.long)])
async def test_a_sequence_that_was_broken_off_goes_on_at_its_episode_with_its_memory(
    tmp_path: Path, place: Place
) -> None:
    folder = CaseFolder.create(tmp_path, _request("kept", place=place))
    with pytest.raises(PulledPlugError):
        await run_case(folder, on_progress=_until(2, 2))
    assert folder.episode(1) is not None
    assert folder.episode(2) is None
    before = folder.path.joinpath("episode-1.json").read_bytes()
    assert (await _played(folder)).success
    assert folder.path.joinpath("episode-1.json").read_bytes() == before
    assert _bumps(folder) == [1, 0]


async def test_an_episode_whose_memory_of_the_one_before_is_missing_is_not_played(
    tmp_path: Path,
) -> None:
    folder = CaseFolder.create(tmp_path, _request("kept"))
    with pytest.raises(PulledPlugError):
        await run_case(folder, on_progress=_until(2, 1))
    shutil.rmtree(memory_of(folder.path, 1))
    with pytest.raises(ResumeError, match="memory of episode 1 is missing"):
        await _played(folder)
    memory_of(folder.path, 1).mkdir()
    with pytest.raises(ResumeError, match="memory of episode 1 is missing"):
        await _played(folder)
    assert folder.episode(2) is None


def test_chance_differs_from_episode_to_episode_and_is_alike_in_both_arms() -> None:
    kept, emptied = _request("kept"), _request("emptied")
    draws = [kept.chance(number) for number in range(1, 6)]
    assert draws == [emptied.chance(number) for number in range(1, 6)]
    assert len(set(draws)) == 5
    assert kept.model_copy(update={"between": None}).chance(3) == 1


@pytest.mark.parametrize("agent", ["rules", "plain", "coag-without-retrieval"])
def test_an_agent_without_long_term_memory_plays_no_sequence(agent: str) -> None:
    with pytest.raises(ConfigurationError, match="without one"):
        checked(
            CaseRequest(scenario="sudden-wall", agent=agent, model="scripted:sound", between="kept")
        )
