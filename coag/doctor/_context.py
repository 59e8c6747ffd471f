"""Long prompts: is their beginning cut off without a word, and is a repeated one cached?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from autogen_core.models import AssistantMessage, LLMMessage

from coag.schema import estimate_tokens

from ._findings import Finding, Found, Grade, Probe
from ._patient import Patient, Reply
from ._said import shown, user

_FIRST = 1_200
"""Tokens of the first prompt; some servers cache from 1,024 on."""
_SHORTFALL = 0.7
"""What share of the tokens that are to be expected a server must count."""
_FEWEST = 0.5
"""What share of our estimate the first count must be, before it can serve as a measure."""
_GOODS = ("apples", "candles", "copper", "lemons", "paper", "rope", "wool")
_SHELVES = ("northern", "southern", "upper", "lower", "narrow")
_QUESTION = "What is the harbour code that I told you at the very beginning? Answer with it only."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One long prompt and what came of it."""

    size: int
    """Tokens as we estimate them."""
    code: str
    """What stands at the beginning and is asked for at the end."""
    reply: Reply

    @property
    def counted(self) -> int:
        """Tokens as the server counts them; 0 if it tells none."""
        return self.reply.usage.prompt_tokens

    @property
    def known(self) -> bool:
        """True if the model told the code."""
        return self.code in self.reply.text


async def context(patient: Patient) -> tuple[Finding, ...]:
    """Sends longer and longer prompts, the first one twice, until one does not arrive whole."""
    steps: list[_Step] = []
    repeated: _Step | None = None
    for size in sizes(patient.limits.context):
        steps.append(await _step(patient, size))
        if len(steps) == 1 and steps[0].reply.error is None:
            repeated = await _step(patient, size)
        if _trouble(steps) is not None:
            break
    return (_judged_context(steps), _judged_cache(steps[0], repeated))


def sizes(limit: int) -> Iterator[int]:
    """Sizes of prompts to try: doubling up to the limit, which comes last."""
    size = _FIRST
    while size < limit:
        yield size
        size *= 2
    yield limit


def long_prompt(size: int) -> tuple[list[LLMMessage], str]:
    """A dialogue of about `size` tokens, and the code that is told at its beginning."""
    # The code differs from size to size, so that no longer prompt is served from a cache.
    code = f"HX{size * 7_919 % 89_989 + 10_000}"
    beginning = f"The harbour code is {code}. Keep it in mind; here is the log of the harbour.\n"
    room = size - estimate_tokens(beginning) - estimate_tokens(_QUESTION) - 10
    lines = list(_lines(room))
    half = len(lines) // 2
    messages: list[LLMMessage] = [
        user(beginning + "\n".join(lines[:half])),
        AssistantMessage(content="Noted.", source="assistant"),
        user("\n".join([*lines[half:], _QUESTION])),
    ]
    return messages, code


def _lines(room: int) -> Iterator[str]:
    used, number = 0, 0
    while used < room:
        number += 1
        goods, shelf = _GOODS[number % len(_GOODS)], _SHELVES[number % len(_SHELVES)]
        line = f"Entry {number}: a crate of {goods} went to the {shelf} shelf in calm weather."
        used += estimate_tokens(line)
        yield line


async def _step(patient: Patient, size: int) -> _Step:
    messages, code = long_prompt(size)
    return _Step(size=size, code=code, reply=await patient.ask(messages))


def _trouble(steps: list[_Step]) -> Found | None:
    """What is wrong with the last step; None if nothing is."""
    last = steps[-1]
    if last.reply.error is not None:
        return last.reply.trouble
    if _is_short(steps[0], last):
        return Found.CUT
    return None if last.known else Found.NO


def _is_short(first: _Step, last: _Step) -> bool:
    """True if the server counted far fewer tokens than it was sent."""
    if not last.counted or not first.counted:
        return False
    measure = first.counted / first.size
    if measure < _FEWEST:
        return True
    return last.counted < last.size * measure * _SHORTFALL


def _judged_context(steps: list[_Step]) -> Finding:
    last, trouble = steps[-1], _trouble(steps)
    whole = steps[-1] if trouble is None else steps[-2] if len(steps) > 1 else None
    figures = _figures(whole)
    tokens = f"about {last.size:,} tokens (the server counted {last.counted:,})"
    below = "Keep prompts short"
    if whole:
        # The window that agents are told holds the answer too: three quarters are for a prompt.
        window = f"SPEC?window={whole.size * 4 // 3}"
        below = f"Keep prompts below {whole.size:,} tokens (agents: {window})"
    larger = "or give the server a larger context (llama.cpp: -c, Ollama: num_ctx)."
    grade, advice = Grade.POOR, f"{below}, {larger}"
    if trouble is None:
        text = f"The beginning of a prompt of {tokens} reaches the model."
        grade, advice = Grade.GOOD, ""
    elif trouble is Found.CUT:
        text = f"A prompt of {tokens} was cut without a word."
    elif trouble is Found.NO and not last.counted:
        text = f"At {tokens} the model did not know the beginning: {shown(last.reply.text)}."
    elif trouble is Found.NO:
        text = f"At {tokens} nothing was cut, but the model did not find the beginning."
        advice = f"{below}: the model loses track in longer ones."
    elif trouble is Found.REFUSED and whole is not None:
        text = f"A prompt of about {last.size:,} tokens is refused, not cut: {last.reply.error}."
        grade = Grade.GOOD
    else:
        text = f"A prompt of about {last.size:,} tokens got no answer: {last.reply.error}."
        advice = f"{below}, or raise --seconds: long prompts take long here."
    return Finding(
        probe=Probe.CONTEXT,
        found=trouble or Found.YES,
        grade=grade,
        text=text,
        advice=advice,
        figures=figures,
    )


def _figures(whole: _Step | None) -> dict[str, float]:
    if whole is None:
        return {}
    figures = {"estimated_tokens": whole.size, "counted_tokens": whole.counted}
    read = (whole.counted or whole.size) - whole.reply.usage.cached_tokens
    if whole.reply.seconds > 0 and read > 0:
        return {**figures, "prompt_tokens_per_second": read / whole.reply.seconds}
    return dict(figures)


def _judged_cache(first: _Step, repeated: _Step | None) -> Finding:
    probe = Probe.CACHE
    if repeated is None or repeated.reply.error is not None:
        text = "No long prompt could be sent twice."
        return Finding(probe=probe, found=Found.UNCLEAR, grade=Grade.UNKNOWN, text=text)
    cached = repeated.reply.usage.cached_tokens
    times = f"{first.reply.seconds:.1f} s, then {repeated.reply.seconds:.1f} s"
    figures = {
        "cached_tokens": float(cached),
        "sent_first_seconds": first.reply.seconds,
        "sent_again_seconds": repeated.reply.seconds,
    }
    if cached:
        text = (
            f"{cached:,} of {repeated.counted:,} tokens of a repeated prompt were cached ({times})."
        )
        return Finding(probe=probe, found=Found.YES, grade=Grade.GOOD, text=text, figures=figures)
    text = f"No cached tokens are told for a repeated prompt ({times})."
    advice = "Costs are told as if nothing was cached."
    return Finding(
        probe=probe, found=Found.NO, grade=Grade.POOR, text=text, advice=advice, figures=figures
    )
