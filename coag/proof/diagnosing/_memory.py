"""Rules about recall: a record that fits did not come, or what came is not so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coag.schema import Phase, Record, RetrievalOutcome, record_id

from ._causes import Cause, Diagnosis, Evidence
from ._domain import Claim
from ._progress import makes_sense_unruled, misled, wasted
from ._rejection import harm_of_rejection, rejected
from ._scene import Scene
from ._story import Story
from ._words import ended, quoted, short


def changed_record(scene: Scene, story: Story) -> Diagnosis | None:
    """A recalled record has another content than the one that was written under its id."""
    for record in _recalled(scene):
        known = story.records.get(record.id)
        before = known[2].text if known else None
        own = record_id(record.kind, record.scope, record.text) == record.id
        foreign = not record.provenance.run or "[redacted]" in record.text
        if before == record.text or foreign or (before is None and own):
            continue
        evidence = [
            scene.at(
                Phase.RETRIEVAL, ended(f"Record {record.id[:8]} came as {quoted(record.text)}")
            )
        ]
        if known is not None:
            evidence.insert(0, _existing(known))
        return Diagnosis(
            cycle=scene.cycle,
            failure=f"Recall brought record {record.id[:8]} with a content that is not its own.",
            cause=Cause.WRONG_FACT,
            reason="A record's id stands for its text, and this text is another one.",
            evidence=tuple(evidence),
        )
    return None


def untrue_record(scene: Scene, story: Story) -> Diagnosis | None:
    """A recalled record says what is not so, and the agent followed it."""
    said = [
        (record, claim)
        for record in _recalled(scene)
        for claim in story.domain.record_claims(record)
    ]
    now = story.circumstances(scene, scene.state)
    refuted = [
        (record, claim)
        for record, claim in said
        if story.domain.holds(claim, now, remembered=True) is False
    ]
    claims = [claim for _, claim in said]
    for suspects, why in (
        (refuted, "What was perceived, asked for or ruled contradicts it."),
        (said, "Without it there is a way to the goal, and no percept confirms it."),
    ):
        wrong = [claim for _, claim in suspects]
        vetoed = (
            suspects is refuted
            and any(_vetoed(claim, scene, story) for claim in wrong)
            and bool(harm_of_rejection(scene, story, _without(claims, wrong)))
        )
        if vetoed or (wrong and misled(scene, story, claims, wrong, gave_up=suspects is said)):
            record = suspects[0][0]
            return Diagnosis(
                cycle=scene.cycle,
                failure=_what_it_did(scene),
                cause=Cause.WRONG_FACT,
                reason=f"It followed record {record.id[:8]}. {why}",
                evidence=(
                    scene.at(Phase.RETRIEVAL, ended(f"Recalled: {quoted(record.text)}")),
                    scene.at(Phase.EXECUTION, _what_it_did(scene)),
                ),
            )
    return None


def missed_record(scene: Scene, story: Story) -> Diagnosis | None:
    """A record exists that would have prevented what happened, and it was not recalled."""
    retrieval = scene.retrieval
    if retrieval is None:
        return None
    came = {record.id for record in _recalled(scene)}
    for name, known in story.records.items():
        if name in came or known[2].superseded_by is not None:
            continue
        for claim in story.domain.record_claims(known[2]):
            failure = _for_want_of(claim, scene, story)
            if failure:
                return _missed(scene, retrieval, known, failure)
    return None


def _missed(
    scene: Scene, retrieval: RetrievalOutcome, known: tuple[int, int, Record], failure: str
) -> Diagnosis:
    record = known[2]
    problem = next((note.text for _, note in scene.notes if note.about == "memory"), "")
    why = f" {problem}" if problem else ""
    return Diagnosis(
        cycle=scene.cycle,
        failure=failure,
        cause=Cause.MISSED_RETRIEVAL,
        reason=f"Record {record.id[:8]} tells of it, and it was not recalled.{why}",
        evidence=(
            _existing(known),
            scene.at(
                Phase.RETRIEVAL,
                f"{len(retrieval.records)} records came, not this one; the query was "
                f"{quoted(retrieval.query, 80)}.",
            ),
        ),
    )


def _for_want_of(claim: Claim, scene: Scene, story: Story) -> str:
    """What went wrong because nobody remembered a claim; empty if nothing did."""
    now = story.circumstances(scene, scene.state, ())
    if story.domain.holds(claim, now, remembered=True) is False:
        return ""
    recalled = story.recalled_claims(scene)
    vetoed = _vetoed(claim, scene, story)
    if vetoed and harm_of_rejection(scene, story, [*recalled, claim]):
        return ended(f"A candidate was rejected: {short(vetoed, 240)}")
    for returned in scene.returns:
        after = story.domain.facts(returned.after)
        if returned.percept.is_error and after.get(claim.fact) == claim.value:
            return f"{returned.percept.source} failed."
    if wasted(scene, story, [*recalled, claim]) and makes_sense_unruled(scene, story, recalled):
        return f"{_what_it_did(scene)} That leads away from the goal."
    return ""


def _vetoed(claim: Claim, scene: Scene, story: Story) -> str:
    """Why a candidate was rejected, if for what a claim says; else empty."""
    for judged in rejected(scene):
        died = judged.died_of
        told = story.domain.claims(died.reason) if died else ()
        if died and any((one.fact, one.value) == (claim.fact, claim.value) for one in told):
            return died.reason
    return ""


def _recalled(scene: Scene) -> Iterator[Record]:
    retrieval = scene.retrieval
    yield from (hit.record for hit in retrieval.records) if retrieval else ()


def _without(claims: Sequence[Claim], wrong: Sequence[Claim]) -> Sequence[Claim]:
    return [claim for claim in claims if claim not in wrong]


def _existing(known: tuple[int, int, Record]) -> Evidence:
    record = known[2]
    text = ended(f"Record {record.id[:8]} says {quoted(record.text)}")
    return Evidence(seq=known[0], cycle=known[1], phase=Phase.RETRIEVAL, text=text)


def _what_it_did(scene: Scene) -> str:
    done = scene.executed
    if scene.execution is not None and scene.execution.response is not None:
        return f"It answered {quoted(scene.execution.response, 80)} and ended the turn."
    return (
        ended(f"It did {done[0].action} {done[0].arguments or ''}".rstrip())
        if done
        else "It did nothing."
    )
