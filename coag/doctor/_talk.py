"""Plain answers, system messages and streams."""

from __future__ import annotations

from autogen_core.models import AssistantMessage, LLMMessage, SystemMessage

from ._findings import Finding, Found, Grade, Probe
from ._patient import Patient, Reply, claiming
from ._said import shown, user

_STREAM_TOKENS = 48
"""Token limit of the streamed answer: the question asks for far more."""
_TOLERANCE = 1.5
"""How far beyond its limit a completion may go before the limit counts as ignored."""
_SLOW = 5.0
"""Tokens a second below which a turn takes minutes."""


async def answer(patient: Patient) -> tuple[Finding, ...]:
    """Asks a plain question, without a system message."""
    reply = await patient.ask([user("Say in one short sentence what water is.")])
    return (_judged_answer(reply),)


def _judged_answer(reply: Reply) -> Finding:
    probe = Probe.ANSWER
    if reply.error is not None:
        advice = "Check that the server runs, knows the model and is not overloaded; then again."
        text = f"A plain question got no answer: {reply.error}."
        return Finding(probe=probe, found=reply.trouble, grade=Grade.BAD, text=text, advice=advice)
    if not reply.text.strip():
        thought = " It thought aloud, though." if reply.thought else ""
        text = f"The answer was empty (finish reason {reply.finish!r}).{thought}"
        advice = "Raise --max-tokens if the model thinks first; else the chat template is wrong."
        return Finding(probe=probe, found=Found.NO, grade=Grade.BAD, text=text, advice=advice)
    if not reply.usage.prompt_tokens:
        text = "A plain question is answered; the server counts no tokens."
        advice = "Budgets in tokens are blind here: set budgets in calls or seconds."
        return Finding(probe=probe, found=Found.YES, grade=Grade.POOR, text=text, advice=advice)
    text = f"A plain question is answered ({reply.usage.completion_tokens} tokens)."
    return Finding(probe=probe, found=Found.YES, grade=Grade.GOOD, text=text)


async def system(patient: Patient) -> tuple[Finding, ...]:
    """Tells something in a system message and asks for it."""
    said: list[LLMMessage] = [
        SystemMessage(content="The name of the ship is Heron."),
        user("What is the name of the ship? Answer with the name only."),
    ]
    reply = await patient.ask(said)
    probe = Probe.SYSTEM
    if reply.error is not None:
        advice = "Put instructions into the first message of the user."
        return (reply.unanswered(probe, "A system message", advice),)
    if "heron" in reply.text.lower():
        text = "A system message reaches the model."
        return (Finding(probe=probe, found=Found.YES, grade=Grade.GOOD, text=text),)
    text = f"What a system message said was not known: {shown(reply.text)}."
    advice = "Check the chat template: some drop system messages."
    return (Finding(probe=probe, found=Found.IGNORED, grade=Grade.POOR, text=text, advice=advice),)


async def systems(patient: Patient) -> tuple[Finding, ...]:
    """Tells two things in two system messages that stand apart, and asks for both."""
    said: list[LLMMessage] = [
        SystemMessage(content="The name of the ship is Heron."),
        user("Hello."),
        AssistantMessage(content="Hello.", source="assistant"),
        SystemMessage(content="The name of the captain is Walnut."),
        user("What are the names of ship and captain? Answer with both names only."),
    ]
    frank = claiming(patient.client, multiple_system_messages=True)
    try:
        reply = await patient.ask(said, client=frank)
    finally:
        if frank is not None:
            await frank.close()
    probe, safe = Probe.SYSTEMS, "Agents of coag send one, at the front; nothing to do for them."
    if reply.error is not None:
        return (reply.unanswered(probe, "A second system message", safe),)
    heard = [name for name in ("heron", "walnut") if name in reply.text.lower()]
    if len(heard) == 2:
        text = "Several system messages reach the model."
        return (Finding(probe=probe, found=Found.YES, grade=Grade.GOOD, text=text),)
    text = f"Of two system messages {len(heard)} had an effect: {shown(reply.text)}."
    return (Finding(probe=probe, found=Found.IGNORED, grade=Grade.POOR, text=text, advice=safe),)


async def stream(patient: Patient) -> tuple[Finding, ...]:
    """Streams an answer that is longer than it may be."""
    limit = min(_STREAM_TOKENS, patient.limits.max_tokens)
    question = "Count from one to three hundred in words, separated by commas."
    reply = await patient.stream([user(question)], limit)
    return (_judged_stream(reply), _judged_usage(reply), _judged_limit(reply, limit))


def _judged_stream(reply: Reply) -> Finding:
    probe, figures = Probe.STREAM, _rates(reply)
    if reply.error is not None:
        what = f"Streaming, after {reply.pieces} piece(s),"
        return reply.unanswered(probe, what, "Leave model_client_stream off.")
    if reply.pieces <= 1:
        text = f"A stream comes in {reply.pieces} piece(s)."
        advice = "Streaming shows nothing earlier here: leave model_client_stream off."
        return Finding(probe=probe, found=Found.NO, grade=Grade.POOR, text=text, advice=advice)
    first = reply.first_piece or 0.0
    text = f"Answers stream; the first of {reply.pieces} pieces after {first:.2f} s."
    return Finding(probe=probe, found=Found.YES, grade=Grade.GOOD, text=text, figures=figures)


def _rates(reply: Reply) -> dict[str, float]:
    """Time to the first piece, and tokens a second after it; pieces where none are counted."""
    if reply.first_piece is None:
        return {}
    figures = {"first_piece_seconds": reply.first_piece}
    rest = reply.seconds - reply.first_piece
    tokens = (reply.usage.completion_tokens or reply.pieces) - 1
    if rest > 0 and tokens > 0:
        figures["completion_tokens_per_second"] = tokens / rest
    return figures


def _judged_usage(reply: Reply) -> Finding:
    probe = Probe.STREAM_USAGE
    if reply.error is not None or reply.endless:
        text = "No stream came to its end."
        return Finding(probe=probe, found=Found.UNCLEAR, grade=Grade.UNKNOWN, text=text)
    counted = reply.usage
    if counted.prompt_tokens and counted.completion_tokens:
        text = "Tokens are counted in a stream, when they are asked for."
        return Finding(probe=probe, found=Found.YES, grade=Grade.GOOD, text=text)
    text = "No tokens are counted in a stream."
    advice = "With model_client_stream=True, budgets in tokens are blind: use calls or seconds."
    return Finding(probe=probe, found=Found.NO, grade=Grade.POOR, text=text, advice=advice)


def _judged_limit(reply: Reply, limit: int) -> Finding:
    probe = Probe.LIMIT
    written = max(reply.usage.completion_tokens, reply.pieces)
    if reply.endless or (reply.error is None and written > limit * _TOLERANCE):
        text = f"A completion limited to {limit} tokens went on to {written} and more."
        advice = "Nothing but time bounds an answer here: set AskSettings(timeout=...) low."
        return Finding(probe=probe, found=Found.IGNORED, grade=Grade.POOR, text=text, advice=advice)
    if reply.error is not None or written < limit // 2:
        text = f"The answer ended before its limit of {limit} tokens."
        return Finding(probe=probe, found=Found.UNCLEAR, grade=Grade.UNKNOWN, text=text)
    text = f"A completion ends at its limit of {limit} tokens."
    return Finding(probe=probe, found=Found.ENFORCED, grade=Grade.GOOD, text=text)


def speed(patient: Patient) -> Finding:
    """Puts together what the other probes measured; asks nothing."""
    figures: dict[str, float] = {}
    for finding in patient.findings.values():
        figures |= {name: n for name, n in finding.figures.items() if "per_second" in name}
        figures |= {name: n for name, n in finding.figures.items() if name.startswith("first_")}
    writing = figures.get("completion_tokens_per_second")
    reading = figures.get("prompt_tokens_per_second")
    if writing is None and reading is None:
        text = "Nothing could be measured."
        return Finding(probe=Probe.SPEED, found=Found.UNCLEAR, grade=Grade.UNKNOWN, text=text)
    reads = f"reads {reading:,.0f} prompt tokens/s" if reading is not None else ""
    writes = f"writes {writing:,.1f} tokens/s" if writing is not None else ""
    text = f"The server {' and '.join(part for part in (reads, writes) if part)}."
    slow = writing is not None and writing < _SLOW
    return Finding(
        probe=Probe.SPEED,
        found=Found.NO if slow else Found.YES,
        grade=Grade.POOR if slow else Grade.GOOD,
        text=text,
        advice='Turns take minutes: use depth="compact" and short answers.' if slow else "",
        figures=figures,
    )
