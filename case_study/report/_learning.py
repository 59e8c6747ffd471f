"""What a memory that lasts brings, by episode: pairs of sequences that differ in it alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from case_study.assess.episodes import arms_of, in_episode
from case_study.statistics import Comparison, compare, with_holm

from ._learning_values import Learning, LearningPoint, Recalled
from ._sample import Pair, Sample, mean

LEARNT = ("success", "actions", "bumps", "violations", "energy", "tokens")
"""Measures that are compared, each by a test of its own."""
_OF_MEMORY = ("noted", "recalled", "beside", "refused")
_FIRST = 1
"""The episode in which both arms are alike: nothing can have been remembered."""

KeyT = TypeVar("KeyT")
_Row = tuple[str, str, str]
"""Contender, scenario and measure."""


def learning(sample: Sample) -> tuple[Learning, ...]:
    """Each contender, scenario and measure: kept against emptied, by episode and over the later.

    Holm's correction is over all tests of the later episodes together, and over all tests of single
    ones; the first episode is no test but a check that the pairs are pairs.
    """
    episodes = episodes_of(sample)
    if not episodes:
        return ()
    rows = [
        (contender, scenario, measure)
        for contender in arms_of(sample.contenders)
        for scenario in sample.scenarios
        for measure in LEARNT
    ]
    single = {
        (row, number): _compared(sample, row, number)
        for row in rows
        for number in range(_FIRST, episodes + 1)
    }
    tested = {key: one for key, one in single.items() if key[1] > _FIRST}
    single |= with_holm(tested)
    later = with_holm({row: _later(sample, row, episodes) for row in rows})
    return tuple(
        Learning(
            contender=row[0],
            scenario=row[1],
            measure=row[2],
            points=tuple(
                LearningPoint(episode=number, result=single[row, number])
                for number in range(_FIRST, episodes + 1)
            ),
            later=later[row],
        )
        for row in rows
        if single[row, _FIRST].pairs
    )


def recalled(sample: Sample) -> tuple[Recalled, ...]:
    """What the agents whose memory lasts noted and recalled, on average, episode by episode."""
    episodes = range(_FIRST, episodes_of(sample) + 1)
    found = (
        Recalled(
            contender=contender,
            scenario=scenario,
            means={
                measure: tuple(
                    mean(list(_values(sample, arms["kept"], scenario, measure, number).values()))
                    for number in episodes
                )
                for measure in _OF_MEMORY
            },
        )
        for contender, arms in arms_of(sample.contenders).items()
        for scenario in sample.scenarios
    )
    return tuple(one for one in found if any(v is not None for v in one.means["recalled"]))


def episodes_of(sample: Sample) -> int:
    """How many episodes the sequences of a sample have; 0 where it holds none."""
    measures = {
        name for name in sample.contenders for one in sample.of(name) for name in one.measures
    }
    number = 0
    while in_episode("success", number + 1) in measures:
        number += 1
    return number


def _values(
    sample: Sample, arm: str, scenario: str, measure: str, episode: int
) -> dict[Pair, float]:
    found = sample.values(arm, in_episode(measure, episode))
    return {pair: value for pair, value in found.items() if pair[0] == scenario}


def _both(
    sample: Sample, row: _Row, episode: int
) -> tuple[Mapping[Pair, bool | float], Mapping[Pair, bool | float]]:
    """The values of the emptied arm and of the kept one; success as yes and no."""
    contender, scenario, measure = row
    arms = arms_of(sample.contenders)[contender]
    emptied = _values(sample, arms["emptied"], scenario, measure, episode)
    kept = _values(sample, arms["kept"], scenario, measure, episode)
    if measure == "success":
        return _as_rates(emptied), _as_rates(kept)
    return emptied, kept


def _as_rates(values: Mapping[KeyT, float]) -> dict[KeyT, bool]:
    return {key: value > 0 for key, value in values.items()}


def _compared(sample: Sample, row: _Row, episode: int) -> Comparison:
    emptied, kept = _both(sample, row, episode)
    return compare(emptied, kept)


def _later(sample: Sample, row: _Row, episodes: int) -> Comparison:
    """The mean of all episodes but the first, of the pairs that have them all."""
    numbers = range(_FIRST + 1, episodes + 1)
    sides = [_both(sample, row, number) for number in numbers]
    emptied, kept = ([side[place] for side in sides] for place in (0, 1))
    return compare(_means(emptied), _means(kept))


def _means(episodes: list[Mapping[Pair, bool | float]]) -> dict[Pair, float]:
    whole = [pair for pair in (episodes[0] if episodes else ()) if all(pair in e for e in episodes)]
    return {pair: sum(float(e[pair]) for e in episodes) / len(episodes) for pair in whole}
