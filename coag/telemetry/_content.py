"""What was said and done, as attributes; only where somebody asked for it.

The form of messages is OpenTelemetry's: a list of messages with a role and parts. Secrets are
taken out as a trace's writer does, and long texts are cut.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from coag.schema import ModelCall, well_formed
from coag.tracing import Redactor

LONGEST = 8_000
"""Characters of a text that are sent."""
_LOOKED_AT = 64_000
"""Characters of it that are looked through for secrets; a half one at their end is not sent."""
_MOST_MESSAGES = 100


class Content:
    """Makes texts fit to be sent.

    Args:
        redactor: Takes secrets out; None for the one that knows this process's environment.
    """

    def __init__(self, redactor: Redactor | None = None) -> None:
        self._redactor = redactor or Redactor.from_environment()

    def text(self, text: str) -> str:
        """A text without secrets, cut to its bound; what is missing is counted."""
        looked_at = well_formed(text[:_LOOKED_AT])
        clean = str(json.loads(self._redactor.clean(json.dumps(looked_at))))
        missing = len(text) - min(len(looked_at), LONGEST)
        return clean if len(clean) <= LONGEST else f"{clean[:LONGEST]} [… {missing} more]"

    def json(self, value: Any) -> str:
        """A value as JSON; where that is long, its beginning."""
        return self.text(json.dumps(value, ensure_ascii=False, default=str))

    def sent(self, call: ModelCall) -> str:
        """The messages of a request; of very many the last."""
        kept = call.messages[-_MOST_MESSAGES:]
        return json.dumps([self._message(message) for message in kept], ensure_ascii=False)

    def answered(self, call: ModelCall) -> str:
        """The answer to a request."""
        parts = [self._text_part(call.raw)] if call.raw else []
        parts += [self._call_part(one) for one in call.tool_calls[:_MOST_MESSAGES]]
        return self.message("assistant", parts, call.finish_reason)

    def said(self, text: str) -> str:
        """One answer of the agent."""
        return self.message("assistant", [self._text_part(text)], "stop")

    def message(self, role: str, parts: list[dict[str, Any]], reason: str | None) -> str:
        """A list of one message, as JSON."""
        one = {"role": role, "parts": parts, "finish_reason": self.text(reason or "")}
        return json.dumps([one], ensure_ascii=False)

    def _message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        content = message.get("content", "")
        text = content if isinstance(content, str) else json.dumps(content, default=str)
        return {"role": self.text(str(message.get("role", ""))), "parts": [self._text_part(text)]}

    def _text_part(self, text: str) -> dict[str, Any]:
        return {"type": "text", "content": self.text(text)}

    def _call_part(self, call: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "type": "tool_call",
            "id": self.text(str(call.get("id", ""))),
            "name": self.text(str(call.get("name", ""))),
            "arguments": self.text(str(call.get("arguments", ""))),
        }
