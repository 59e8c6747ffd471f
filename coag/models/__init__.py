"""Asking a model: the one way in which a phase gets a typed answer from any AutoGen client.

A model is asked in the strictest *output mode* that works: a JSON schema that the server enforces,
JSON mode, or the schema in the prompt. What comes back is parsed strictly, else repaired, else
asked for once more with the error, else a `ModelAnswerError` that keeps the raw text. Every
request, failed ones included, is a `ModelCall` record with its usage.

`StructuredModel` (or `ask`, for a single question) is that caller; `ModelSpec` and `open_model`
make a client from one word such as `openai:gpt-5-mini`; `ScriptedModel` is a client over a
function. The providers' packages are imported only when a spec of theirs is opened.
"""

from coag._util.deprecation import renamed

from .call_record import CallContext, CallRecord, is_refusal, reason_of
from .client import (
    ModelClient,
    ModelRequest,
    WrappedClient,
    cancellable,
    capable_info,
    estimated_tokens,
    message_text,
    request_usage,
    token_usage,
)
from .messages import continued, merged_system, sent_messages
from .native import ANSWER_CHARACTERS, EMPTY_PIECES, ToolAnswer, offer_tools
from .parsing import Parsed, parse_answer, repaired_object, repeats
from .providers import (
    ModelSpec,
    SchemeFactory,
    asked_window,
    can_be_asked,
    form_arguments,
    has_own_limit,
    innermost,
    is_openai_like,
    limit_arguments,
    limit_name_of,
    model_name_of,
    open_model,
    window_of,
)
from .request import Answer, AskSettings, StructuredModel, ask, correction
from .response_format import response_format, strict_schema
from .scripted import Script, ScriptedModel, ScriptedReply, ScriptedRequest, scripted_answers
from .usage import Price, UsageCapture, capture_usage, price_call, publish_usage, usage_of

__all__ = [
    "ask",
    "StructuredModel",
    "window_of",
    "asked_window",
    "can_be_asked",
    "AskSettings",
    "CallContext",
    "Answer",
    "usage_of",
    "Price",
    "price_call",
    "offer_tools",
    "ToolAnswer",
    "ModelSpec",
    "SchemeFactory",
    "open_model",
    "ScriptedModel",
    "ScriptedRequest",
    "ScriptedReply",
    "Script",
    "scripted_answers",
    "message_text",
    "ModelClient",
    "ModelRequest",
    "WrappedClient",
    "cancellable",
    "estimated_tokens",
    "request_usage",
    "token_usage",
    "capable_info",
    "strict_schema",
    "response_format",
    "form_arguments",
    "limit_name_of",
    "limit_arguments",
    "has_own_limit",
    "model_name_of",
    "capture_usage",
    "publish_usage",
    "UsageCapture",
    "is_refusal",
    "reason_of",
    "innermost",
    "is_openai_like",
    "continued",
    "merged_system",
    "sent_messages",
    "CallRecord",
    "ANSWER_CHARACTERS",
    "EMPTY_PIECES",
    "parse_answer",
    "repaired_object",
    "Parsed",
    "repeats",
    "correction",
]

__getattr__ = renamed(
    __name__,
    {
        "Asker": "StructuredModel",
        "Offered": "ToolAnswer",
        "UnformedCall": "CallRecord",
        "Heard": "UsageCapture",
        "listening": "capture_usage",
        "tell_usage": "publish_usage",
    },
)
