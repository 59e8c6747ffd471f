"""The probes: long prompts, forms of answers, talk, and tools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from autogen_core import FunctionCall
from autogen_core.models import AssistantMessage, LLMMessage, SystemMessage, UserMessage
from autogen_core.tools import ToolSchema
from pydantic import BaseModel, ConfigDict, ValidationError

from coag.errors import ModelAnswerError, ModelCallError
from coag.models import Asker, AskSettings, CallContext
from coag.schema import ModelCall, PromptMessage, Rung, estimate_tokens

from .findings import Finding, Found, Grade, Probe
from .probe_client import AGAIN, Patient, Reply, claiming

# ---- What is said to a model, and what it said as it is shown ----


_SHOWN = 80


def user(text: str) -> UserMessage:
    """A message of the user."""
    return UserMessage(content=text, source="user")


def shown(text: str) -> str:
    """The beginning of a foreign text, quoted, on one line."""
    line = " ".join(text.split())
    return repr(line if len(line) <= _SHOWN else line[:_SHOWN] + "…")


# ---- Long prompts: is their beginning cut off without a word, and is a repeated one cached? ----


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


# ---- Answers of a form: schema, JSON mode, and the ladder that agents go by ----


SAID = '{"fruit": "banana"}'
"""What the prompt asks for where the schema asks for something else."""

_REASON = 300
"""Characters of an error that are shown."""


class Tint(BaseModel):
    """A tint for a door."""

    tint: Literal["teal", "ochre"]


async def schema(patient: Patient) -> tuple[Finding, ...]:
    """Asks for one object in the prompt and for another in the schema, and sees which one comes."""
    question = f"Answer with exactly this JSON object and nothing else: {SAID}"
    reply = await patient.ask([user(question)], rung=Rung.JSON_SCHEMA, form=Tint)
    return (_judged_schema(reply),)


def _judged_schema(reply: Reply) -> Finding:
    probe = Probe.SCHEMA
    if reply.error is not None:
        return reply.unanswered(probe, "A JSON schema", 'Set "structured_output": False.')
    try:
        Tint.model_validate_json(reply.text)
    except ValidationError:
        pass
    else:
        text = "The server enforces a JSON schema, against the prompt."
        return Finding(probe=probe, found=Found.ENFORCED, grade=Grade.GOOD, text=text)
    if not reply.text.strip():
        text = f"With a schema the answer was empty (finish reason {reply.finish!r})."
        advice = 'Set "structured_output": False, or raise --max-tokens if the model thinks first.'
        return Finding(probe=probe, found=Found.NO, grade=Grade.POOR, text=text, advice=advice)
    text = f"The server takes a JSON schema and ignores it; it answered {shown(reply.text)}."
    advice = 'Set "structured_output": False: each schema would be tried in vain once an agent.'
    return Finding(probe=probe, found=Found.IGNORED, grade=Grade.POOR, text=text, advice=advice)


async def json_mode(patient: Patient) -> tuple[Finding, ...]:
    """Asks for prose before a JSON object, in JSON mode."""
    question = (
        f"First greet me in one sentence of prose. Then give this JSON object: {SAID}\n"
        "Begin with the greeting."
    )
    reply = await patient.ask([user(question)], rung=Rung.JSON_MODE, form=Tint)
    return (_judged_json(reply),)


def _judged_json(reply: Reply) -> Finding:
    probe = Probe.JSON_MODE
    if reply.error is not None:
        return reply.unanswered(probe, "JSON mode", 'Set "json_output": False.')
    if _is_json(reply.text):
        text = "In JSON mode the server gives JSON, against the prompt."
        return Finding(probe=probe, found=Found.ENFORCED, grade=Grade.GOOD, text=text)
    if reply.finish == "length" and reply.text.lstrip().startswith("{"):
        text = "In JSON mode the answer began as JSON and was cut off at its limit."
        return Finding(probe=probe, found=Found.UNCLEAR, grade=Grade.UNKNOWN, text=text)
    text = f"JSON mode is taken and ignored; the server answered {shown(reply.text)}."
    advice = 'Set "json_output": False.'
    return Finding(probe=probe, found=Found.IGNORED, grade=Grade.POOR, text=text, advice=advice)


async def typed(patient: Patient) -> tuple[Finding, ...]:
    """Asks for a typed answer by the ladder, from the strictest rung that was seen to hold."""
    calls: list[ModelCall] = []
    settings = AskSettings(
        max_tokens=patient.limits.max_tokens,
        timeout=patient.limits.seconds,
        rung=strictest_rung(patient.found(Probe.SCHEMA), patient.found(Probe.JSON_MODE)),
    )
    question = 'Choose a tint for a door: "teal" or "ochre"? Answer as JSON: {"tint": ...}'
    prompt = (PromptMessage(role="user", content=question),)
    try:
        answer = await Asker(patient.client).ask(
            prompt, Tint, context=CallContext(on_call=calls.append), settings=settings
        )
    except (ModelAnswerError, ModelCallError) as error:
        text = f"No typed answer came by the ladder: {' '.join(str(error).split())[:_REASON]}"
        if isinstance(error.__cause__, TimeoutError):
            return (_typed(Found.LATE, Grade.BAD, text, AGAIN),)
        advice = "Agents cannot work with this model: take a larger one, or another server."
        return (_typed(Found.NO, Grade.BAD, text, advice),)
    finally:
        for call in calls:
            patient.usage += call.usage
    rung = answer.calls[-1].rung
    how = ", repaired" if answer.repaired else ""
    text = f"A typed answer came on the rung {rung.value!r} after {len(calls)} call(s){how}."
    sound = len(calls) == 1 and not answer.repaired
    return (_typed(Found.YES, Grade.GOOD if sound else Grade.POOR, text),)


def strictest_rung(schema: Found, json_mode: Found) -> Rung:
    """The strictest rung that holds, by what two probes found."""
    if schema is Found.ENFORCED:
        return Rung.JSON_SCHEMA
    return Rung.JSON_MODE if json_mode is Found.ENFORCED else Rung.PROMPT


def _typed(found: Found, grade: Grade, text: str, advice: str = "") -> Finding:
    return Finding(probe=Probe.TYPED, found=found, grade=grade, text=text, advice=advice)


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


# ---- Plain answers, system messages and streams ----


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


# ---- Tool calls: as such or as text, several, required, forbidden, beside a schema ----


TOOL = "note_weather"
_ONE = "Note the weather: it is 21 degrees Celsius and sunny in Lisbon."
_TWO = (
    "Note the weather of both cities, in one answer with two tool calls: it is 21 degrees "
    "Celsius and sunny in Lisbon, and 9 degrees Celsius and rainy in Oslo."
)
_JSON_ONLY = 'Set "function_calling": False and proposal="json".'
_UNREAD = "Agents take it for the answer and run nothing: a text may quote a call. "


class Weather(BaseModel):
    """The arguments of the tool."""

    model_config = ConfigDict(extra="forbid", strict=True)

    city: str
    celsius: int
    sky: Literal["sunny", "rainy"]


def weather_tool() -> ToolSchema:
    """The tool that is offered."""
    return {
        "name": TOOL,
        "description": "Writes the weather of a city into the notebook.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "celsius": {"type": "integer"},
                "sky": {"type": "string", "enum": ["sunny", "rainy"]},
            },
            "required": ["city", "celsius", "sky"],
            "additionalProperties": False,
        },
        "strict": False,
    }


async def tools(patient: Patient) -> tuple[Finding, ...]:
    """Offers a tool and asks for what only the tool can do."""
    return (_judged_tools(await patient.ask([user(_ONE)], tools=[weather_tool()])),)


def _judged_tools(reply: Reply) -> Finding:
    probe = Probe.TOOLS
    if reply.error is not None:
        return reply.unanswered(probe, "A request with tools", _JSON_ONLY)
    wrong = [problem for call in reply.calls if (problem := _problem(call))]
    if wrong:
        text = f"A tool call came whose arguments do not fit its schema: {wrong[0]}."
        return _finding(probe, Found.INVALID, Grade.POOR, text, _JSON_ONLY)
    if reply.calls:
        text = "A tool call comes back as a tool call, with arguments that fit."
        return _finding(probe, Found.YES, Grade.GOOD, text)
    if TOOL in reply.text:
        text = f"A tool call comes back as text: {shown(reply.text)}."
        advice = f"{_UNREAD}{_JSON_ONLY}"
        return _finding(probe, Found.AS_TEXT, Grade.POOR, text, advice)
    text = f"The tool was not called; the answer was {shown(reply.text)}."
    return _finding(probe, Found.IGNORED, Grade.POOR, text, _JSON_ONLY)


def _problem(call: FunctionCall) -> str:
    """What is wrong with a call; empty if nothing is."""
    if call.name != TOOL:
        return f"there is no tool {call.name!r}"
    try:
        Weather.model_validate_json(call.arguments)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole"
        return f"{place}: {first['msg']} in {shown(call.arguments)}"
    return ""


async def parallel(patient: Patient) -> tuple[Finding, ...]:
    """Asks for two calls in one answer."""
    reply = await patient.ask([user(_TWO)], tools=[weather_tool()])
    return (_judged_parallel(reply),)


def _judged_parallel(reply: Reply) -> Finding:
    probe, one = Probe.PARALLEL, "Nothing to do: two actions take two cycles."
    if reply.error is not None:
        return reply.unanswered(probe, "A request for two calls", one)
    if len(reply.calls) < 2:
        text = f"Asked for two calls, the model made {len(reply.calls)}."
        return _finding(probe, Found.NO, Grade.POOR, text, one)
    if len({call.id for call in reply.calls}) < len(reply.calls):
        text = "Two calls come in one answer, but they share an id."
        advice = "A stock AssistantAgent mixes up their results: allow it one call at a time."
        return _finding(probe, Found.INVALID, Grade.POOR, text, advice)
    text = f"{len(reply.calls)} calls come in one answer, each with its id."
    return _finding(probe, Found.YES, Grade.GOOD, text)


async def required(patient: Patient) -> tuple[Finding, ...]:
    """Greets, but demands a tool call."""
    greeting = [user("Hello! How are you today?")]
    reply = await patient.ask(greeting, tools=[weather_tool()], tool_choice="required")
    probe = Probe.REQUIRED
    advice = "Nothing in coag relies on it; do not rely on it in agents of your own."
    if reply.error is not None:
        return (reply.unanswered(probe, 'tool_choice="required"', advice),)
    if reply.calls:
        text = 'tool_choice="required" is honoured.'
        return (_finding(probe, Found.ENFORCED, Grade.GOOD, text),)
    text = f'tool_choice="required" is ignored; the answer was {shown(reply.text)}.'
    return (_finding(probe, Found.IGNORED, Grade.POOR, text, advice),)


async def none(patient: Patient) -> tuple[Finding, ...]:
    """Asks for what the tool does, but forbids tool calls."""
    reply = await patient.ask([user(_ONE)], tools=[weather_tool()], tool_choice="none")
    probe = Probe.NONE
    if reply.error is not None:
        return (reply.unanswered(probe, 'tool_choice="none"', "Send no tools instead."),)
    if reply.calls:
        text = 'tool_choice="none" is ignored: a tool call came.'
        advice = "Send no tools where none may be called; coag does so."
        return (_finding(probe, Found.IGNORED, Grade.POOR, text, advice),)
    text = 'tool_choice="none" is honoured.'
    return (_finding(probe, Found.ENFORCED, Grade.GOOD, text),)


async def tools_with_schema(patient: Patient) -> tuple[Finding, ...]:
    """Offers a tool and asks for a schema in one request."""
    reply = await patient.ask(
        [user(_ONE)], tools=[weather_tool()], rung=Rung.JSON_SCHEMA, form=Tint
    )
    probe = Probe.TOOLS_WITH_SCHEMA
    advice = "coag never sends both; where you do, ask in two requests."
    if reply.error is not None:
        return (reply.unanswered(probe, "A request with tools and a schema", advice),)
    if reply.calls:
        text = "Tools and a schema may stand in one request; the model called the tool."
        return (_finding(probe, Found.YES, Grade.GOOD, text),)
    if _is_tint(reply.text):
        text = "Beside a schema the tools are lost: the schema always wins."
        return (_finding(probe, Found.NO, Grade.POOR, text, advice),)
    text = f"Of tools and a schema neither came; the answer was {shown(reply.text)}."
    return (_finding(probe, Found.IGNORED, Grade.POOR, text, advice),)


def _is_tint(text: str) -> bool:
    try:
        return set(json.loads(text)) == {"tint"}
    except (ValueError, TypeError):
        return False


def _finding(probe: Probe, found: Found, grade: Grade, text: str, advice: str = "") -> Finding:
    return Finding(probe=probe, found=found, grade=grade, text=text, advice=advice)
