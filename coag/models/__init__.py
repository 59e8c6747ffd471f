"""Asking a model: the one way in which a phase gets a typed answer from any AutoGen client.

A model is asked on the strictest *rung* that holds: a JSON schema that the server enforces, JSON
mode, or the schema in the prompt. What comes back is parsed strictly, else repaired, else asked
for once more with the error, else a `ModelAnswerError` that keeps the raw text. Every request,
failed ones included, is a `ModelCall` record with its usage.

`Asker` (or `ask`, for a single question) is that caller; `ModelSpec` and `open_model` make a
client from one word such as `openai:gpt-5-mini`; `ScriptedModel` is a client over a function.
The providers' packages are imported only when a spec of theirs is opened.
"""

from ._answers import ScriptedAnswers, scripted_answers
from ._ask import Asker, ask
from ._clients import (
    WrapsClient,
    form_arguments,
    has_own_limit,
    innermost,
    is_openai_like,
    limit_arguments,
    limit_name_of,
    model_name_of,
)
from ._dialogue import continued, merged_system, sent_messages
from ._listen import Heard, listening, tell_usage
from ._messages import one_system_message, to_autogen
from ._native import Offered, ToolRequest, offer_tools
from ._parse import Parsed, Problem, parse_answer
from ._prices import Price, price_call
from ._refusals import is_refusal, reason_of
from ._repair import repaired_object
from ._requests import Script, ScriptedReply, ScriptedRequest, message_text
from ._schema import response_format, strict_schema
from ._scripted import ScriptedModel
from ._settings import Answer, AskSettings, CallContext, usage_of
from ._specs import ModelSpec, SchemeFactory, open_model
from ._streamed import ANSWER_CHARACTERS, EMPTY_PIECES
from ._tool_text import calls_in_text, repeats
from ._unformed import UnformedCall
from ._window import asked_window, can_be_asked, window_of, with_window
from ._wording import correction

__all__ = [
    "ask",
    "Asker",
    "window_of",
    "with_window",
    "asked_window",
    "can_be_asked",
    "AskSettings",
    "CallContext",
    "Answer",
    "usage_of",
    "Price",
    "price_call",
    "offer_tools",
    "Offered",
    "ToolRequest",
    "ModelSpec",
    "SchemeFactory",
    "open_model",
    "ScriptedModel",
    "ScriptedRequest",
    "ScriptedReply",
    "Script",
    "scripted_answers",
    "ScriptedAnswers",
    "message_text",
    "strict_schema",
    "response_format",
    "one_system_message",
    "to_autogen",
    "form_arguments",
    "limit_name_of",
    "limit_arguments",
    "has_own_limit",
    "model_name_of",
    "listening",
    "tell_usage",
    "Heard",
    "is_refusal",
    "reason_of",
    "WrapsClient",
    "innermost",
    "is_openai_like",
    "continued",
    "merged_system",
    "sent_messages",
    "UnformedCall",
    "ANSWER_CHARACTERS",
    "EMPTY_PIECES",
    "parse_answer",
    "repaired_object",
    "Parsed",
    "Problem",
    "calls_in_text",
    "repeats",
    "correction",
]
