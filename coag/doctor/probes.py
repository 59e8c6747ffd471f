"""The probes: what is asked of a model server, and how each answer is judged.

A probe is one question that a server can only get right by doing what it is asked. Most are a
`ProbeQuestion`: one request and a plain function that judges its reply. The others (the list of
models, streams, typed answers, long prompts) are functions of the `ProbeClient`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, count
from typing import Any, Literal, NamedTuple, cast

import httpx
from autogen_core import FunctionCall
from autogen_core.models import AssistantMessage, LLMMessage, SystemMessage, UserMessage
from autogen_core.tools import ParametersSchema, ToolSchema
from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError

from coag._util.text import ellipsis, in_a_line
from coag._util.validation import first_error
from coag.errors import ModelAnswerError, ModelCallError
from coag.models import (
    AskSettings,
    CallContext,
    StructuredModel,
    model_name_of,
    reason_of,
    strict_schema,
)
from coag.schema import ModelCall, OutputMode, PromptMessage, estimate_tokens

from .findings import Grade, Probe, ProbeFinding, finding
from .findings import ProbeOutcome as Found
from .probe_client import AGAIN, ProbeClient, Reply, ToolChoice, claiming, component_of

_SHOWN = 80
_REASON = 300
"""Characters of an error that are shown."""


def user(text: str) -> UserMessage:
    """A message of the user."""
    return UserMessage(content=text, source="user")


def shown(text: str) -> str:
    """The beginning of a foreign text, quoted, on one line."""
    return repr(ellipsis(in_a_line(text), _SHOWN))


# ---- Probes of one request ----


SAID = '{"fruit": "banana"}'
"""What the prompt asks for where the schema asks for something else."""
_TOOL = "note_weather"
_ONE = "Note the weather: it is 21 degrees Celsius and sunny in Lisbon."
_TWO = (
    "Note the weather of both cities, in one answer with two tool calls: it is 21 degrees "
    "Celsius and sunny in Lisbon, and 9 degrees Celsius and rainy in Oslo."
)
_JSON_ONLY = 'Set "function_calling": False and proposal="json".'
_ONE_BY_ONE = "Nothing to do: two actions take two cycles."
_NOT_RELIED_ON = "Nothing in coag relies on it; do not rely on it in agents of your own."
_ONE_SYSTEM = "Agents of coag send one, at the front; nothing to do for them."
_TWO_REQUESTS = "coag never sends both; where you do, ask in two requests."


class Judged(NamedTuple):
    """What was found, a sentence on it, and what to do, if anything."""

    found: Found
    text: str
    advice: str = ""


class Tint(BaseModel):
    """A tint for a door."""

    tint: Literal["teal", "ochre"]


class _Weather(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    city: str
    celsius: int
    sky: Literal["sunny", "rainy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeQuestion:
    """A probe of one request."""

    asks: str
    """What the user says."""
    before: Sequence[LLMMessage] = ()
    what: str
    """What is asked for, as the beginning of a sentence."""
    advice: str
    """What to do where the server refuses it."""
    judge: Callable[[Reply], Judged]
    """Judges a reply that is no error."""
    tool_choice: ToolChoice | None = None
    """How the weather tool is offered; None for not at all."""
    mode: OutputMode = OutputMode.TEXT
    claims: Mapping[str, bool] | None = None
    """What the client has to claim, so that it does not change the request."""

    async def ask(self, probe: Probe, client: ProbeClient) -> ProbeFinding:
        """Asks it and judges the reply."""
        other = claiming(client.client, **self.claims) if self.claims else None
        try:
            reply = await client.ask(
                [*self.before, user(self.asks)],
                tools=[_weather_tool()] if self.tool_choice else [],
                tool_choice=self.tool_choice or "auto",
                mode=self.mode,
                form=None if self.mode is OutputMode.TEXT else Tint,
                client=other,
            )
        finally:
            if other is not None:
                await other.close()
        if reply.error is not None:
            return reply.unanswered(probe, self.what, self.advice)
        return finding(probe, *self.judge(reply))


def _weather_tool() -> ToolSchema:
    return {
        "name": _TOOL,
        "description": "Writes the weather of a city into the notebook.",
        "parameters": cast("ParametersSchema", strict_schema(_Weather)),
        "strict": False,
    }


def _judge_system(reply: Reply) -> Judged:
    if "heron" in reply.text.lower():
        return Judged(Found.YES, "A system message reaches the model.")
    text = f"What a system message said was not known: {shown(reply.text)}."
    return Judged(Found.IGNORED, text, "Check the chat template: some drop system messages.")


def _judge_systems(reply: Reply) -> Judged:
    known = sum(name in reply.text.lower() for name in ("heron", "walnut"))
    if known == 2:
        return Judged(Found.YES, "Several system messages reach the model.")
    text = f"Of two system messages {known} had an effect: {shown(reply.text)}."
    return Judged(Found.IGNORED, text, _ONE_SYSTEM)


def _judge_schema(reply: Reply) -> Judged:
    if not _faults(Tint, reply.text):
        return Judged(Found.ENFORCED, "The server enforces a JSON schema, against the prompt.")
    if not reply.text.strip():
        text = f"With a schema the answer was empty (finish reason {reply.finish!r})."
        advice = 'Set "structured_output": False, or raise --max-tokens if the model thinks first.'
        return Judged(Found.NO, text, advice)
    text = f"The server takes a JSON schema and ignores it; it answered {shown(reply.text)}."
    advice = 'Set "structured_output": False: each schema would be tried in vain once an agent.'
    return Judged(Found.IGNORED, text, advice)


def _judge_json(reply: Reply) -> Judged:
    if isinstance(_json_of(reply.text), dict):
        return Judged(Found.ENFORCED, "In JSON mode the server gives JSON, against the prompt.")
    if reply.finish == "length" and reply.text.lstrip().startswith("{"):
        text = "In JSON mode the answer began as JSON and was cut off at its limit."
        return Judged(Found.UNCLEAR, text)
    text = f"JSON mode is taken and ignored; the server answered {shown(reply.text)}."
    return Judged(Found.IGNORED, text, 'Set "json_output": False.')


def _judge_tools(reply: Reply) -> Judged:
    wrong = [problem for call in reply.calls if (problem := _problem(call))]
    if wrong:
        text = f"A tool call came whose arguments do not fit its schema: {wrong[0]}."
        return Judged(Found.INVALID, text, _JSON_ONLY)
    if reply.calls:
        return Judged(Found.YES, "A tool call comes back as a tool call, with arguments that fit.")
    if _TOOL in reply.text:
        text = f"A tool call comes back as text: {shown(reply.text)}."
        unread = "Agents take it for the answer and run nothing: a text may quote a call. "
        return Judged(Found.AS_TEXT, text, f"{unread}{_JSON_ONLY}")
    return Judged(
        Found.IGNORED, f"The tool was not called; the answer was {shown(reply.text)}.", _JSON_ONLY
    )


def _judge_parallel(reply: Reply) -> Judged:
    if len(reply.calls) < 2:
        text = f"Asked for two calls, the model made {len(reply.calls)}."
        return Judged(Found.NO, text, _ONE_BY_ONE)
    if len({call.id for call in reply.calls}) < len(reply.calls):
        advice = "A stock AssistantAgent mixes up their results: allow it one call at a time."
        return Judged(Found.INVALID, "Two calls come in one answer, but they share an id.", advice)
    return Judged(Found.YES, f"{len(reply.calls)} calls come in one answer, each with its id.")


def _judge_required(reply: Reply) -> Judged:
    if reply.calls:
        return Judged(Found.ENFORCED, 'tool_choice="required" is honoured.')
    text = f'tool_choice="required" is ignored; the answer was {shown(reply.text)}.'
    return Judged(Found.IGNORED, text, _NOT_RELIED_ON)


def _judge_none(reply: Reply) -> Judged:
    if not reply.calls:
        return Judged(Found.ENFORCED, 'tool_choice="none" is honoured.')
    advice = "Send no tools where none may be called; coag does so."
    return Judged(Found.IGNORED, 'tool_choice="none" is ignored: a tool call came.', advice)


def _judge_both(reply: Reply) -> Judged:
    if reply.calls:
        text = "Tools and a schema may stand in one request; the model called the tool."
        return Judged(Found.YES, text)
    if set(_mapping(_json_of(reply.text))) == {"tint"}:
        text = "Beside a schema the tools are lost: the schema always wins."
        return Judged(Found.NO, text, _TWO_REQUESTS)
    text = f"Of tools and a schema neither came; the answer was {shown(reply.text)}."
    return Judged(Found.IGNORED, text, _TWO_REQUESTS)


def _problem(call: FunctionCall) -> str:
    """What is wrong with a call; empty if nothing is."""
    if call.name != _TOOL:
        return f"there is no tool {call.name!r}"
    faults = _faults(_Weather, call.arguments)
    return f"{faults} in {shown(call.arguments)}" if faults else ""


def _faults(form: type[BaseModel], text: str) -> str:
    try:
        form.model_validate_json(text)
    except ValidationError as error:
        return first_error(error, "the whole")
    return ""


def _json_of(text: str) -> object:
    with suppress(ValueError):
        return json.loads(text)
    return None


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


_SHIP = SystemMessage(content="The name of the ship is Heron.")
QUESTIONS: Mapping[Probe, ProbeQuestion] = {
    Probe.SYSTEM: ProbeQuestion(
        before=[_SHIP],
        asks="What is the name of the ship? Answer with the name only.",
        what="A system message",
        advice="Put instructions into the first message of the user.",
        judge=_judge_system,
    ),
    Probe.SYSTEMS: ProbeQuestion(
        before=[
            _SHIP,
            user("Hello."),
            AssistantMessage(content="Hello.", source="assistant"),
            SystemMessage(content="The name of the captain is Walnut."),
        ],
        asks="What are the names of ship and captain? Answer with both names only.",
        what="A second system message",
        advice=_ONE_SYSTEM,
        judge=_judge_systems,
        claims={"multiple_system_messages": True},
    ),
    Probe.SCHEMA: ProbeQuestion(
        asks=f"Answer with exactly this JSON object and nothing else: {SAID}",
        what="A JSON schema",
        advice='Set "structured_output": False.',
        judge=_judge_schema,
        mode=OutputMode.JSON_SCHEMA,
    ),
    Probe.JSON_MODE: ProbeQuestion(
        asks="First greet me in one sentence of prose. Then give this JSON object: "
        f"{SAID}\nBegin with the greeting.",
        what="JSON mode",
        advice='Set "json_output": False.',
        judge=_judge_json,
        mode=OutputMode.JSON_MODE,
    ),
    Probe.TOOLS: ProbeQuestion(
        asks=_ONE,
        what="A request with tools",
        advice=_JSON_ONLY,
        judge=_judge_tools,
        tool_choice="auto",
    ),
    Probe.PARALLEL: ProbeQuestion(
        asks=_TWO,
        what="A request for two calls",
        advice=_ONE_BY_ONE,
        judge=_judge_parallel,
        tool_choice="auto",
    ),
    Probe.REQUIRED: ProbeQuestion(
        asks="Hello! How are you today?",
        what='tool_choice="required"',
        advice=_NOT_RELIED_ON,
        judge=_judge_required,
        tool_choice="required",
    ),
    Probe.NONE: ProbeQuestion(
        asks=_ONE,
        what='tool_choice="none"',
        advice="Send no tools instead.",
        judge=_judge_none,
        tool_choice="none",
    ),
    Probe.TOOLS_WITH_SCHEMA: ProbeQuestion(
        asks=_ONE,
        what="A request with tools and a schema",
        advice=_TWO_REQUESTS,
        judge=_judge_both,
        tool_choice="auto",
        mode=OutputMode.JSON_SCHEMA,
    ),
}


# ---- Is the server there, and does it list the model? ----


_NAMED = 5
"""How many models of a list are named."""
_OLLAMA = "http://127.0.0.1:11434"


async def listed(client: ProbeClient) -> tuple[ProbeFinding, ...]:
    """Asks the server for its list of models, at the address that the client has."""
    directory, bad = _directory(client), Grade.BAD
    if directory is None:
        text = "The client has no address at which models are listed."
        return (finding(Probe.LISTED, Found.SKIPPED, text),)
    url, headers = directory
    started = time.monotonic()
    try:
        async with httpx.AsyncClient(timeout=client.limits.seconds) as http:
            response = await http.get(url, headers=headers)
    except httpx.HTTPError as error:
        text = f"The server cannot be reached: {reason_of(error)}."
        advice = "Start it, or check the address in the spec."
        return (finding(Probe.LISTED, Found.FAILED, text, advice, grade=bad),)
    if response.status_code in (401, 403):
        text = f"The server refuses the key (status {response.status_code})."
        advice = "Check the key in the environment."
        return (finding(Probe.LISTED, Found.REFUSED, text, advice, grade=bad),)
    figures = {"answer_seconds": time.monotonic() - started}
    judged = _judge_list(response, model_name_of(client.client))
    return (finding(Probe.LISTED, *judged, figures=figures),)


def _judge_list(response: httpx.Response, model: str) -> Judged:
    """Looks for the model in OpenAI's or Ollama's list."""
    body = _mapping(_json_of(response.text))
    entries = cast("Any", body.get("data") or body.get("models"))
    listed = map(_mapping, cast("list[object]", entries) if isinstance(entries, list) else ())
    names = [entry.get("id") or entry.get("name") for entry in listed]
    names = [name for name in names if isinstance(name, str)]
    if not names:
        text = f"The server is there, but lists no models (status {response.status_code})."
        return Judged(Found.UNCLEAR, text)
    if model in names or f"{model}:latest" in names:
        return Judged(Found.YES, f"The server lists {model!r}.")
    # A server may call a model by the path of its file, which is nobody's business.
    first = ", ".join(repr(name.rpartition("/")[2]) for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    advice = "Servers of one model answer to any name; of others ask by a listed name."
    return Judged(Found.NO, f"The server does not list {model!r}, but {first}{more}.", advice)


def _directory(client: ProbeClient) -> tuple[str, dict[str, str]] | None:
    """Where the server lists its models, and the headers to ask with; None if not known."""
    component = component_of(client.client)
    if component is None:
        return None
    config = component.config
    if component.provider.startswith("autogen_ext.models.ollama"):
        host = str(config.get("host") or os.environ.get("OLLAMA_HOST") or _OLLAMA)
        address = host if "://" in host else f"http://{host}"
        return f"{address.rstrip('/')}/api/tags", {}
    base = config.get("base_url")
    if not component.provider.startswith("autogen_ext.models.openai") or not base:
        return None
    key: object = config.get("api_key")
    secret = key.get_secret_value() if isinstance(key, SecretStr) else ""
    url = httpx.URL(str(base))
    headers = {"authorization": f"Bearer {secret}"} if secret else {}
    return str(url.copy_with(path=f"{url.path.rstrip('/')}/models")), headers


# ---- A plain answer, a stream, and a typed answer ----


_STREAM_TOKENS = 48
"""Token limit of the streamed answer: the question asks for far more."""
_TOLERANCE = 1.5
"""How far beyond its limit a completion may go before the limit counts as ignored."""
_SLOW = 5.0
"""Tokens a second below which a turn takes minutes."""


async def answer(client: ProbeClient) -> tuple[ProbeFinding, ...]:
    """Asks a plain question, without a system message."""
    reply = await client.ask([user("Say in one short sentence what water is.")])
    if reply.error is None and reply.text.strip():
        return (finding(Probe.ANSWER, *_judge_answer(reply)),)
    if reply.error is not None:
        found, text = reply.outcome, f"A plain question got no answer: {reply.error}."
        advice = "Check that the server runs, knows the model and is not overloaded; then again."
    else:
        thought = " It thought aloud, though." if reply.thought else ""
        found, text = Found.NO, f"The answer was empty (finish reason {reply.finish!r}).{thought}"
        advice = "Raise --max-tokens if the model thinks first; else the chat template is wrong."
    return (finding(Probe.ANSWER, found, text, advice, grade=Grade.BAD),)


def _judge_answer(reply: Reply) -> Judged:
    if reply.usage.prompt_tokens:
        text = f"A plain question is answered ({reply.usage.completion_tokens} tokens)."
        return Judged(Found.YES, text)
    advice = "Budgets in tokens are blind here: set budgets in calls or seconds."
    return Judged(Found.YES, "A plain question is answered; the server counts no tokens.", advice)


async def stream(client: ProbeClient) -> tuple[ProbeFinding, ...]:
    """Streams an answer that is longer than it may be."""
    limit = min(_STREAM_TOKENS, client.limits.max_tokens)
    question = "Count from one to three hundred in words, separated by commas."
    reply = await client.stream([user(question)], limit)
    return (
        _judge_stream(reply),
        finding(Probe.STREAM_USAGE, *_judge_stream_usage(reply)),
        finding(Probe.LIMIT, *_judge_limit(reply, limit)),
    )


def _judge_stream(reply: Reply) -> ProbeFinding:
    if reply.error is not None:
        what = f"Streaming, after {reply.pieces} piece(s),"
        return reply.unanswered(Probe.STREAM, what, "Leave model_client_stream off.")
    if reply.pieces <= 1:
        advice = "Streaming shows nothing earlier here: leave model_client_stream off."
        text = f"A stream comes in {reply.pieces} piece(s)."
        return finding(Probe.STREAM, Found.NO, text, advice)
    first = reply.first_piece or 0.0
    figures, rest = {"first_piece_seconds": first}, reply.seconds - first
    tokens = (reply.usage.completion_tokens or reply.pieces) - 1
    if rest > 0 and tokens > 0:
        figures["completion_tokens_per_second"] = tokens / rest
    text = f"Answers stream; the first of {reply.pieces} pieces after {first:.2f} s."
    return finding(Probe.STREAM, Found.YES, text, figures=figures)


def _judge_stream_usage(reply: Reply) -> Judged:
    if reply.error is not None or reply.endless:
        return Judged(Found.UNCLEAR, "No stream ended.")
    if reply.usage.prompt_tokens and reply.usage.completion_tokens:
        return Judged(Found.YES, "Tokens are counted in a stream, when they are asked for.")
    advice = "With model_client_stream=True, budgets in tokens are blind: use calls or seconds."
    return Judged(Found.NO, "No tokens are counted in a stream.", advice)


def _judge_limit(reply: Reply, limit: int) -> Judged:
    written = max(reply.usage.completion_tokens, reply.pieces)
    if reply.endless or (reply.error is None and written > limit * _TOLERANCE):
        text = f"A completion limited to {limit} tokens continued to {written} and more."
        advice = "Nothing but time bounds an answer here: set AskSettings(timeout=...) low."
        return Judged(Found.IGNORED, text, advice)
    if reply.error is not None or written < limit // 2:
        return Judged(Found.UNCLEAR, f"The answer ended before its limit of {limit} tokens.")
    return Judged(Found.ENFORCED, f"A completion ends at its limit of {limit} tokens.")


async def typed(client: ProbeClient) -> tuple[ProbeFinding, ...]:
    """Asks for a typed answer as agents do, from the strictest mode that was seen to work."""
    calls: list[ModelCall] = []
    settings = AskSettings(
        max_tokens=client.limits.max_tokens,
        timeout=client.limits.seconds,
        mode=strictest_mode(client.found(Probe.SCHEMA), client.found(Probe.JSON_MODE)),
    )
    question = 'Choose a tint for a door: "teal" or "ochre"? Answer as JSON: {"tint": ...}'
    prompt = (PromptMessage(role="user", content=question),)
    try:
        answer = await StructuredModel(client.client).ask(
            prompt, Tint, context=CallContext(on_call=calls.append), settings=settings
        )
    except (ModelAnswerError, ModelCallError) as error:
        late = isinstance(error.__cause__, TimeoutError)
        text = f"No typed answer came in any output mode: {in_a_line(str(error))[:_REASON]}"
        larger = "Agents cannot work with this model: take a larger one, or another server."
        found, advice = (Found.LATE, AGAIN) if late else (Found.NO, larger)
        return (finding(Probe.TYPED, found, text, advice, grade=Grade.BAD),)
    finally:
        for call in calls:
            client.usage += call.usage
    how = ", repaired" if answer.repaired else ""
    mode = answer.calls[-1].rung.value
    text = f"A typed answer came in output mode {mode!r} after {len(calls)} call(s){how}."
    grade = Grade.GOOD if len(calls) == 1 and not answer.repaired else Grade.POOR
    return (finding(Probe.TYPED, Found.YES, text, grade=grade),)


def strictest_mode(schema: Found, json_mode: Found) -> OutputMode:
    """The strictest output mode that works, by what two probes found."""
    if schema is Found.ENFORCED:
        return OutputMode.JSON_SCHEMA
    return OutputMode.JSON_MODE if json_mode is Found.ENFORCED else OutputMode.PROMPT


def speed(findings: Mapping[Probe, ProbeFinding]) -> ProbeFinding:
    """Puts together what the other probes measured; asks nothing."""
    figures = {
        name: figure
        for one in findings.values()
        for name, figure in one.figures.items()
        if "per_second" in name or name.startswith("first_")
    }
    writing = figures.get("completion_tokens_per_second")
    reading = figures.get("prompt_tokens_per_second")
    if writing is None and reading is None:
        return finding(Probe.SPEED, Found.UNCLEAR, "Nothing could be measured.")
    reads = f"reads {reading:,.0f} prompt tokens/s" if reading is not None else ""
    writes = f"writes {writing:,.1f} tokens/s" if writing is not None else ""
    text = f"The server {' and '.join(filter(None, (reads, writes)))}."
    if writing is not None and writing < _SLOW:
        advice = 'Turns take minutes: use depth="compact" and short answers.'
        return finding(Probe.SPEED, Found.NO, text, advice, figures=figures)
    return finding(Probe.SPEED, Found.YES, text, figures=figures)


# ---- Long prompts: is their beginning cut off silently, and is a repeated one cached? ----


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
class _LongPrompt:
    size: int
    """Tokens as we estimate them."""
    code: str
    """What is said at the beginning and asked for at the end."""
    reply: Reply

    @property
    def counted(self) -> int:
        """Tokens as the server counts them; 0 if it counts none."""
        return self.reply.usage.prompt_tokens

    def trouble(self, first: _LongPrompt) -> Found | None:
        """What is wrong, given the first and shortest prompt; None if nothing is."""
        if self.reply.error is not None:
            return self.reply.outcome
        if self.counted and first.counted:
            measure = first.counted / first.size
            if measure < _FEWEST or self.counted < self.size * measure * _SHORTFALL:
                return Found.CUT
        return None if self.code in self.reply.text else Found.NO


async def context(client: ProbeClient) -> tuple[ProbeFinding, ...]:
    """Sends longer and longer prompts, the first one twice, until one does not arrive whole."""
    limit = client.limits.context
    doubled = list(accumulate(range(20), lambda size, _: size * 2, initial=_FIRST))
    prompts: list[_LongPrompt] = []
    repeated: _LongPrompt | None = None
    for size in [*(size for size in doubled if size < limit), limit]:
        prompts.append(await _send(client, size))
        if len(prompts) == 1 and prompts[0].reply.error is None:
            repeated = await _send(client, size)
        if prompts[-1].trouble(prompts[0]) is not None:
            break
    return (_judge_context(prompts), _judge_cache(prompts[0], repeated))


async def _send(client: ProbeClient, size: int) -> _LongPrompt:
    """Sends a dialogue of about `size` tokens, with a code at its beginning."""
    # The code differs from size to size, so that no longer prompt is served from a cache.
    code = f"HX{size * 7_919 % 89_989 + 10_000}"
    beginning = f"The harbour code is {code}. Keep it in mind; here is the log of the harbour.\n"
    lines = list(_lines(size - estimate_tokens(beginning) - estimate_tokens(_QUESTION) - 10))
    half = len(lines) // 2
    messages: list[LLMMessage] = [
        user(beginning + "\n".join(lines[:half])),
        AssistantMessage(content="Noted.", source="assistant"),
        user("\n".join([*lines[half:], _QUESTION])),
    ]
    return _LongPrompt(size=size, code=code, reply=await client.ask(messages))


def _lines(room: int) -> Iterator[str]:
    for number in count(1):
        if room <= 0:
            return
        goods, shelf = _GOODS[number % len(_GOODS)], _SHELVES[number % len(_SHELVES)]
        line = f"Entry {number}: a crate of {goods} went to the {shelf} shelf in calm weather."
        room -= estimate_tokens(line)
        yield line


def _judge_context(prompts: Sequence[_LongPrompt]) -> ProbeFinding:
    last = prompts[-1]
    trouble = last.trouble(prompts[0])
    whole = last if trouble is None else prompts[-2] if len(prompts) > 1 else None
    below = "Keep prompts short"
    if whole:
        # The window that agents are given holds the answer too: three quarters are for a prompt.
        window = f"SPEC?window={whole.size * 4 // 3}"
        below = f"Keep prompts below {whole.size:,} tokens (agents: {window})"
    advice = f"{below}, or give the server a larger context (llama.cpp: -c, Ollama: num_ctx)."
    about, error = f"about {last.size:,} tokens", last.reply.error
    tokens = f"{about} (the server counted {last.counted:,})"
    grade = Grade.POOR
    match trouble:
        case None:
            trouble, advice, grade = Found.YES, "", Grade.GOOD
            text = f"The beginning of a prompt of {tokens} reaches the model."
        case Found.REFUSED if whole is not None:
            grade = Grade.GOOD
            text = f"A prompt of {about} is refused, not cut: {error}."
        case Found.CUT:
            text = f"A prompt of {tokens} was cut without a word."
        case Found.NO if not last.counted:
            text = f"At {tokens} the model did not know the beginning: {shown(last.reply.text)}."
        case Found.NO:
            text = f"At {tokens} nothing was cut, but the model did not find the beginning."
            advice = f"{below}: the model loses track in longer ones."
        case _:
            text = f"A prompt of {about} got no answer: {error}."
            advice = f"{below}, or raise --seconds: long prompts take long here."
    figures = {} if whole is None else _reading_figures(whole)
    return finding(Probe.CONTEXT, trouble, text, advice, grade=grade, figures=figures)


def _reading_figures(prompt: _LongPrompt) -> dict[str, float]:
    figures: dict[str, float] = {"estimated_tokens": prompt.size, "counted_tokens": prompt.counted}
    read = (prompt.counted or prompt.size) - prompt.reply.usage.cached_tokens
    if prompt.reply.seconds > 0 and read > 0:
        figures["prompt_tokens_per_second"] = read / prompt.reply.seconds
    return figures


def _judge_cache(first: _LongPrompt, repeated: _LongPrompt | None) -> ProbeFinding:
    if repeated is None or repeated.reply.error is not None:
        return finding(Probe.CACHE, Found.UNCLEAR, "No long prompt could be sent twice.")
    cached = repeated.reply.usage.cached_tokens
    times = f"{first.reply.seconds:.1f} s, then {repeated.reply.seconds:.1f} s"
    figures = {
        "cached_tokens": float(cached),
        "sent_first_seconds": first.reply.seconds,
        "sent_again_seconds": repeated.reply.seconds,
    }
    if cached:
        text = f"{cached:,} of {repeated.counted:,} tokens of a repeated prompt were cached"
        return finding(Probe.CACHE, Found.YES, f"{text} ({times}).", figures=figures)
    text = f"No cached tokens are counted for a repeated prompt ({times})."
    advice = "Costs are computed as if nothing was cached."
    return finding(Probe.CACHE, Found.NO, text, advice, figures=figures)
