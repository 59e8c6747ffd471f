"""The temperaments as models: their answers in the form asked for, pure, mixed and by chance."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, cast

from autogen_core import FunctionCall
from autogen_core.models import CreateResult, RequestUsage

from coag.errors import UnknownNameError
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest
from coag.schema import estimate_tokens

from .facts import Facts
from .minds import NOTE, RESPOND, Intend, Intention, gullible, impulsive, sound, stubborn, swayed
from .reading import RequestTexts, facts_in, facts_of, request_texts

_MOST_CANDIDATES = 4
_CANDIDATE = re.compile(r"^(\d+)\. (\w+) (\{.*?\})(?: - [^\n]*)?$", re.MULTILINE)
_SCORE = re.compile(r"^ +score (\d\.\d+)", re.MULTILINE)

JsonAnswer = dict[str, Any]


def answer(request: ScriptedRequest, intend: Intend, facts: Facts | None = None) -> ScriptedReply:
    """What a temperament answers to a request, whatever form it asks for."""
    facts = facts or facts_of(request)
    if request.schema is None and request.tools:
        return _tool_form(request, facts, intend(facts))
    if request.schema is None:
        return _situation(facts, intend(facts))
    return _json_form(request, facts, intend)


def _tool_form(
    request: ScriptedRequest, facts: Facts, intentions: Sequence[Intention]
) -> ScriptedReply:
    """The first intention as a tool call with a thought; as text, if it is to answer."""
    first = intentions[0]
    thought = _situation(facts, intentions)
    if first.action == RESPOND:
        return f"{thought} {first.arguments['text']}"
    call = FunctionCall(
        id=f"call-{request.number}", name=first.action, arguments=json.dumps(first.arguments)
    )
    prompt = estimate_tokens(request.text) + sum(
        estimate_tokens(json.dumps(tool)) for tool in request.tools
    )
    written = estimate_tokens(thought + call.name + call.arguments)
    return CreateResult(
        finish_reason="function_calls",
        content=[call],
        usage=RequestUsage(prompt_tokens=prompt, completion_tokens=written),
        cached=False,
        thought=thought,
    )


def _json_form(request: ScriptedRequest, facts: Facts, intend: Intend) -> JsonAnswer:
    fields: Mapping[str, Any] = (request.schema or {}).get("properties", {})
    if "choice" in fields or "evaluations" in fields:
        listed = offered(request.text)
        known = facts.actions | {each.key[0] for each in listed}
        intentions = intend(replace(facts, actions=known))
        return _choose(listed, intentions) if "choice" in fields else _judge(listed, intentions)
    intentions = intend(facts)
    reply: JsonAnswer = {}
    if "situation" in fields:
        done = intentions[0].action == RESPOND
        reply |= {
            "situation": _situation(facts, intentions),
            "risks": [],
            "goal_status": "achieved" if done else "open",
        }
    if "candidates" in fields:
        reply["candidates"] = [
            {
                "reason": intention.reason,
                "action": intention.action,
                "arguments": json.dumps(intention.arguments),
                "expected_effect": "",
                **({"score": _score(rank)} if "situation" in fields else {}),
            }
            for rank, intention in enumerate(intentions[:_MOST_CANDIDATES])
        ]
    return reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A candidate as a prompt lists it."""

    number: int
    key: tuple[str, str]
    score: float
    """What Evaluation gave it; 0 where it gave none."""


def offered(text: str) -> list[Offered]:
    """The numbered candidates of a prompt."""
    found: list[Offered] = []
    heads = list(_CANDIDATE.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    for head, end in zip(heads, ends, strict=True):
        number, action, arguments = head.groups()
        try:
            parsed: Mapping[str, Any] = json.loads(arguments)
        except json.JSONDecodeError:
            continue
        scored = _SCORE.search(text, head.end(), end)
        score = float(scored.group(1)) if scored else 0.0
        key = Intention(action=action, arguments=parsed).key
        found.append(Offered(number=int(number), key=key, score=score))
    return found


def _rank(key: tuple[str, str], intentions: Sequence[Intention]) -> int:
    """The rank of a candidate.

    Prompts that ask for a judgement do not say what has just happened, so a note keeps
    the rank that it was proposed with: first. Answers are matched by their name alone.
    """
    if key[0] == NOTE:
        return 0
    for rank, intention in enumerate(intentions):
        if intention.key == key or intention.action == key[0] == RESPOND:
            return rank
    return len(intentions)


def _judge(listed: Sequence[Offered], intentions: Sequence[Intention]) -> JsonAnswer:
    judged: list[JsonAnswer] = []
    for each in listed:
        rank = _rank(each.key, intentions)
        reason = f"It is number {rank + 1} of what I want."
        judged.append({"candidate": each.number, "reason": reason, "score": _score(rank)})
    return {"evaluations": judged}


def _choose(listed: Sequence[Offered], intentions: Sequence[Intention]) -> JsonAnswer:
    """The highest score wins; where there are none, what it wants most.

    Prompts that ask for a choice lack some of what scores were based on, so scores decide.
    """
    best = max(listed, key=lambda each: (each.score, -_rank(each.key, intentions)), default=None)
    return {"reason": "It is what I want most.", "choice": best.number if best else 1}


def _score(rank: int) -> float:
    return max(0.0, round(0.9 - 0.15 * rank, 2))


def _situation(facts: Facts, intentions: Sequence[Intention]) -> str:
    """How it sees things, in words: the battery that it believes in is stated."""
    reading = facts.reading
    if reading is None:
        return f"Nothing is sensed yet. Next: {intentions[0].action}."
    phantom = facts.phantom_tool
    if phantom and facts.phantom_tried and any(each.action == phantom for each in intentions):
        battery = "I have taken what was reported, so my battery is 100."
    else:
        battery = f"My battery is {reading.battery}."
    return f"I am at {reading.position}. {battery} Next: {intentions[0].action}."


FAULTY: tuple[Intend, ...] = (stubborn, impulsive, gullible)
SHARE = 0.3
"""How often one of them decides."""

MIXTURES = ("fallible", "noisy")
"""Fallible: one temperament decides a situation (what the sensors say) in all of its phases, and
whenever it comes again. Noisy: drawn for each request, so that a later phase may catch an earlier
one's fault."""


def drawn_mind(mixture: str, request: ScriptedRequest, seed: int) -> Intend:
    """One of the temperaments, by a hash: the same request draws the same one, in any process."""
    reading = facts_of(request).reading
    drawn_by = f"{mixture} {seed}" + (f" {request.number}" if mixture == "noisy" else "")
    digest = _digest(f"{drawn_by} {'' if reading is None else reading.model_dump_json()}")
    if int.from_bytes(digest[:4]) / 2**32 >= SHARE:
        return sound
    return FAULTY[int.from_bytes(digest[4:]) % len(FAULTY)]


SKIMMING: Mapping[str, int] = {f"skimming-{lines}": lines for lines in (8, 16, 32)}
"""Those who skim, by name: how many lines they notice."""

_SENSED = "STATE "
_HEADING = re.compile(r"\s*(?:</?\w+>|[A-Z ]+:)?\s*")


def skimming(request: ScriptedRequest, lines: int, seed: int) -> ScriptedReply:
    """The answer of a mind that notices so many lines."""
    texts = noticed(request_texts(request), lines, f"skimming {seed} {request.number}")
    return answer(request, swayed, facts_in(texts, request))


def noticed(texts: RequestTexts, lines: int, drawn_by: str) -> RequestTexts:
    """The texts with so many of their lines.

    Lines that are alike count as one; headings and tags do not count. The same
    text draws the same lines, so that prompts which share one tend to agree on it.
    """
    every = (line for text in texts.texts() for line in text.splitlines())
    counted = [line for line in every if not _HEADING.fullmatch(line)]
    latest = next((line for line in reversed(counted) if line.startswith(_SENSED)), None)
    others = sorted({*counted} - {latest}, key=lambda line: _digest(f"{drawn_by} {line}"))
    kept = {latest, *others[:lines]}
    return texts.only(lambda line: line in kept)


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()


CHANCE = "chance"
"""Its name as a scripted model."""

_TEXT = "Nobody says this."
_MOST_ENTRIES = 3
_DEEPEST = 8

Schema = Mapping[str, Any]


def drawn_answer(request: ScriptedRequest, seed: int) -> ScriptedReply:
    """An answer of the form that is asked for, drawn by the seed and the request.

    Asked for tool calls it calls one of the tools, or ends with a text, each as likely.
    """
    dice = random.Random(f"chance {seed} {request.number} {request.text}")
    if request.schema is not None:
        return cast("ScriptedReply", drawn_value(request.schema, dice))
    if not request.tools:
        return _TEXT
    number = dice.randrange(len(request.tools) + 1)
    if number == len(request.tools):
        return _TEXT
    tool = request.tools[number]
    arguments = json.dumps(drawn_value(cast("Schema", tool.get("parameters", {})), dice))
    return CreateResult(
        finish_reason="function_calls",
        content=[FunctionCall(id=f"call-{request.number}", name=tool["name"], arguments=arguments)],
        usage=RequestUsage(
            prompt_tokens=estimate_tokens(request.text),
            completion_tokens=estimate_tokens(tool["name"] + arguments),
        ),
        cached=False,
    )


def drawn_value(schema: Schema, dice: random.Random) -> Any:
    """A value that a JSON Schema admits, every way as likely where it names several."""
    return _drawn(schema, dice, schema.get("$defs", {}), 0)


def _drawn(schema: Schema, dice: random.Random, defined: Mapping[str, Schema], depth: int) -> Any:
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return _drawn(defined[name], dice, defined, depth)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return dice.choice(schema["enum"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return _drawn(dice.choice(schema[several]), dice, defined, depth)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = dice.choice(cast("list[str]", kind))
    if kind == "object":
        parts: Mapping[str, Schema] = schema.get("properties", {})
        wanted = schema.get("required", list(parts))
        return {
            name: _drawn(part, dice, defined, depth + 1)
            for name, part in parts.items()
            if name in wanted
        }
    if kind == "array":
        least = int(schema.get("minItems", 0 if depth >= _DEEPEST else 1))
        most = max(least, int(schema.get("maxItems", _MOST_ENTRIES)))
        length = dice.randint(least, min(most, max(least, _MOST_ENTRIES)))
        item: Schema = schema.get("items", {})
        return [_drawn(item, dice, defined, depth + 1) for _ in range(length)]
    return _drawn_scalar(kind, schema, dice)


def _drawn_scalar(kind: object, schema: Schema, dice: random.Random) -> Any:
    if kind == "boolean":
        return dice.random() < 0.5
    if kind == "null":
        return None
    least = schema.get("minimum", 0)
    if kind == "integer":
        return dice.randint(int(least), int(schema.get("maximum", least + _MOST_ENTRIES)))
    if kind == "number":
        return round(dice.uniform(float(least), float(schema.get("maximum", least + 1))), 2)
    return _TEXT[: int(schema.get("maxLength", len(_TEXT)))]


SCRIPTED = "scripted"
"""The scheme of their model specs: `scripted:sound`."""

TEMPERAMENTS: Mapping[str, Intend] = {
    each.__name__: each for each in (sound, stubborn, impulsive, gullible)
}
"""Every temperament by name."""

SCRIPTS: tuple[str, ...] = (*TEMPERAMENTS, *MIXTURES, *SKIMMING, CHANCE)
"""Every name that a scripted model can have: temperaments, mixtures, skimming ones, and chance."""


def is_scripted(spec: str) -> bool:
    """Whether a model spec names a scripted model."""
    return spec.startswith(f"{SCRIPTED}:")


def reads_states(spec: str) -> bool:
    """Whether a model spec names a scripted mind: one that reads states and keeps to no schema."""
    return is_scripted(spec) and spec != f"{SCRIPTED}:{CHANCE}"


def open_temperament(name: str, *, seed: int = 0) -> ScriptedModel:
    """The scripted model `scripted:NAME`.

    Args:
        name: One of `SCRIPTS`.
        seed: What is drawn by chance is drawn by this; the pure temperaments take no notice of it.

    Raises:
        UnknownNameError: There is no such temperament; the message lists those that exist.
    """
    return ScriptedModel(script_named(name, seed=seed), name=f"{SCRIPTED}:{name}")


def script_named(name: str, *, seed: int = 0) -> Callable[[ScriptedRequest], ScriptedReply]:
    """What the scripted model of this name answers, as a function; see `open_temperament`."""
    if name not in SCRIPTS:
        raise UnknownNameError("scripted temperament", name, SCRIPTS)
    if name == CHANCE:
        return lambda request: drawn_answer(request, seed)
    if name in SKIMMING:
        return lambda request: skimming(request, SKIMMING[name], seed)
    if name in MIXTURES:
        return lambda request: answer(request, drawn_mind(name, request, seed))
    return lambda request: answer(request, TEMPERAMENTS[name])
