"""Texts that were cut, kept whole for a while, and the action that reads on in them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from coag.schema import ActionCall, ActionResult, ActionSpec, Failure

from ._allotment import READ_MORE, name_of
from ._earlier import DIALOGUE

TEXTS = 20
"""Texts that are kept, the last ones that were cut."""
CHARACTERS = 20_000_000
"""Characters that they have together at most."""
_SPEC = ActionSpec(
    name=READ_MORE,
    description="Show more of a text that was cut.",
    parameters={
        "type": "object",
        "properties": {
            "of": {"type": "string", "description": "Its name, as the note in the text says."},
            "start": {"type": "integer", "minimum": 0, "default": 0},
        },
        "required": ["of"],
        "additionalProperties": False,
    },
    internal=True,
    repeatable=True,
)


class Originals:
    """The last texts that were cut, by name."""

    def __init__(self) -> None:
        self._texts: OrderedDict[str, str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._texts)

    def keep(self, text: str) -> str:
        """Keeps a text and gives its name; the same text has the same name."""
        name = name_of(text)
        self._texts[name] = text
        self._texts.move_to_end(name)
        while len(self._texts) > TEXTS or (self._size() > CHARACTERS and len(self._texts) > 1):
            self._texts.popitem(last=False)
        return name

    def get(self, name: str) -> str | None:
        """The text of this name, if it is kept still."""
        return self._texts.get(name)

    def clear(self) -> None:
        """Forgets all."""
        self._texts.clear()

    def _size(self) -> int:
        return sum(map(len, self._texts.values()))


class ReadMore:
    """The action `read_more`, an `ActionSource`: offered while there is something to read on in.

    Args:
        originals: The texts that were cut.
        dialogue: All that was said before the dialogue that is kept.
        offered: Whether something was cut, or is about to be.
        characters: How much is shown at once.
    """

    def __init__(
        self,
        originals: Originals,
        dialogue: Callable[[], str],
        offered: Callable[[], bool],
        characters: Callable[[], int],
    ) -> None:
        self._originals = originals
        self._dialogue = dialogue
        self._offered = offered
        self._characters = characters

    def action_specs(self) -> Sequence[ActionSpec]:
        """The action, where it can show something."""
        return (_SPEC,) if self._offered() else ()

    async def run_action(self, call: ActionCall) -> ActionResult:
        """Shows the next part of a text."""
        name, start = str(call.arguments.get("of", "")), int(call.arguments.get("start", 0))
        text = self._dialogue() if name == DIALOGUE else self._originals.get(name)
        if not text:
            told = f"No text {name!r} is kept (any more). Ask for it where it came from."
            return ActionResult(content=told, is_error=True, failure=Failure.DETERMINISTIC)
        if start >= len(text):
            told = f"{name!r} has {len(text):,} characters; start={start} is behind its end."
            return ActionResult(content=told, is_error=True, failure=Failure.DETERMINISTIC)
        end = min(len(text), start + self._characters())
        rest = f', {READ_MORE}(of="{name}", start={end}) shows more' if end < len(text) else ""
        head = f"[characters {start:,} to {end:,} of {len(text):,}{rest}]"
        return ActionResult(content=f"{head}\n{text[start:end]}")
