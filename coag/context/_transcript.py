"""The dialogue as AutoGen's messages: as they were added, tool calls and images included."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import dropwhile

from autogen_core.models import FunctionExecutionResultMessage, LLMMessage

from ._messages import dialogue_messages
from ._working_memory import DIALOGUE_KEPT, Utterance


class Transcript:
    """What whoever uses a context as AutoGen does gets back from it, the newest messages.

    Working memory keeps what was said as text. A stock agent needs its tool calls, their results
    and system messages again as they were.
    """

    def __init__(self) -> None:
        self._messages: deque[LLMMessage] = deque(maxlen=DIALOGUE_KEPT)

    def add(self, message: LLMMessage) -> None:
        """A message was added."""
        self._messages.append(message)

    def hear(self, said: Utterance, name: str = "", thought: str = "") -> None:
        """Something was said to an agent of ours, or by it, with a thought."""
        self._messages.extend(dialogue_messages((said,), name, thought))

    def load(self, messages: Iterable[LLMMessage]) -> None:
        """Goes on from these messages."""
        self._messages.clear()
        self._messages.extend(messages)

    def messages(self) -> list[LLMMessage]:
        """The messages; results whose calls are not kept any more are left out."""
        return list(dropwhile(_is_result, self._messages))


def _is_result(message: LLMMessage) -> bool:
    return isinstance(message, FunctionExecutionResultMessage)
