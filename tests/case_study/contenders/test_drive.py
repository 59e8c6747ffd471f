from __future__ import annotations

from collections.abc import Sequence

from case_study.contenders import Change, Drive, Message, Turn, drive


class Puppet:
    """A player whose turns are given in advance; the last one comes again and again."""

    def __init__(self, *turns: Turn, tokens: int = 0) -> None:
        self._coming = list(turns)
        self._each = tokens
        self.heard: list[str] = []
        self.allowed: list[int | None] = []
        self.turns = 0
        self.tokens = 0
        self.folder = None

    async def say(
        self, text: str, messages: Sequence[Message] = (), *, allowance: int | None = None
    ) -> Turn:
        self.heard += [*(each.text for each in messages), text]
        self.allowed.append(allowance)
        self.turns += 1
        self.tokens += self._each
        return self._coming.pop(0) if len(self._coming) > 1 else self._coming[0]

    async def change(self, change: Change) -> None: ...

    async def close(self) -> None: ...


ACTED = Turn(results=("done",))
IDLE = Turn()
REFUSED = Turn(refused=1)


async def test_task_comes_first_and_then_continue() -> None:
    player = Puppet(ACTED)
    assert await drive(player, "Do it.", Drive(bound=3)) == 3
    assert player.heard == ["Do it.", "Continue.", "Continue."]
    assert player.allowed == [3, 2, 1]


async def test_two_idle_turns_in_a_row_end_it() -> None:
    player = Puppet(IDLE, ACTED, IDLE, IDLE, ACTED)
    assert await drive(player, "Do it.", Drive(bound=9)) == 1
    assert player.turns == 4


async def test_refused_calls_are_no_actions_and_end_it_as_impasses_would() -> None:
    player = Puppet(REFUSED)
    assert await drive(player, "Do it.", Drive(bound=9)) == 0
    assert player.turns == 6


async def test_it_ends_when_the_tokens_are_used_up() -> None:
    player = Puppet(ACTED, tokens=40)
    assert await drive(player, "Do it.", Drive(bound=9, token_budget=100)) == 3


async def test_what_others_say_comes_before_what_the_user_says() -> None:
    async def said(actions: int) -> Sequence[Message]:
        return [Message(source="dock", text="Stop!")] if actions == 1 else []

    player = Puppet(ACTED)
    await drive(player, "Do it.", Drive(bound=3, before_turn=said))
    assert player.heard == ["Do it.", "Stop!", "Continue.", "Continue."]


async def test_actions_before_a_crash_count() -> None:
    player = Puppet(Turn(results=("a", "b")))
    assert await drive(player, "Do it.", Drive(bound=5, done=3)) == 5
