"""Money is paid once: the refund desk is killed, and its bank gives no answer, at random instants.

`make test-kills` (COAG_KILLS=1000) does so a thousand times each.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from autogen_core import FunctionCall
from kits.banks import Account, AccountContext, Bank, Behaviour, ForeseeingContext

from coag import Bounds, CoagAgent, ScriptedModel, rule
from coag.models import ScriptedReply, ScriptedRequest
from coag.proof import examine

_ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("COAG_KILLS", "0"))


def killed(folder: Path, number: int, seed: int, *more: str) -> list[dict[str, Any]]:
    parts = (_ROOT, _ROOT / "tests", _ROOT / "examples" / "refund_desk")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, parts))}
    command = [sys.executable, "-m", "kits.killed_desk", str(folder), str(number), str(seed), *more]
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=7_200
    )
    return [json.loads(line) for line in ended.stdout.splitlines()]


def check_kills(results: list[dict[str, Any]], number: int) -> None:
    assert len(results) == number
    assert sum(bool(result["kills"]) for result in results) > number // 3
    for result in results:
        assert result["done"], result
        assert result["refunds"] == [80.0], result
        assert result["violations"] == [], result
        assert result["said"] == "You have your 80 back.", result


@pytest.mark.slow
def test_a_desk_that_is_killed_at_any_instant_pays_once(tmp_path: Path) -> None:
    check_kills(killed(tmp_path, 10, 1), 10)


@pytest.mark.long
@pytest.mark.timeout(7_300)
@pytest.mark.skipif(not KILLS, reason="COAG_KILLS says how many")
def test_desks_that_are_killed_very_often_pay_once(tmp_path: Path) -> None:
    check_kills(killed(tmp_path, KILLS, 2), KILLS)


def check_blind(results: list[dict[str, Any]], number: int) -> None:
    assert len(results) == number
    assert sum(bool(result["kills"]) for result in results) > number // 3
    for result in results:
        assert result["done"], result
        assert result["refunds"] in ([], [80.0]), result
        assert result["violations"] == [], result


@pytest.mark.slow
def test_a_killed_desk_that_cannot_find_out_what_became_pays_at_most_once(tmp_path: Path) -> None:
    check_blind(killed(tmp_path, 10, 3, "blind"), 10)


@pytest.mark.long
@pytest.mark.timeout(7_300)
@pytest.mark.skipif(not KILLS, reason="COAG_KILLS says how many")
def test_very_many_desks_that_cannot_find_out_pay_at_most_once(tmp_path: Path) -> None:
    check_blind(killed(tmp_path, KILLS, 4, "blind"), KILLS)


@rule("pay")
def unpaid(state: Account) -> str | None:
    """What is known to be paid is not paid again; of what is not known, the rule knows nothing."""
    return "it is paid" if state.balance < 100 else None


async def paid_with_time_outs(seed: int) -> None:
    """A bank that often gives no answer, before or after the payment, and a mind that insists."""
    source = random.Random(seed)
    how: tuple[Behaviour, ...] = ("works", "late", "lost")
    bank = Bank(balance=100, going=lambda: source.choice(how))
    knows = source.random() < 0.5
    pay = FunctionCall(id="1", name="pay", arguments='{"amount": 60}')

    def model(request: ScriptedRequest) -> ScriptedReply:
        paid = '"balance":40' in request.text or "settled: It happened" in request.text
        return "It is paid." if paid else [pay] * source.choice((1, 1, 2))

    agent = CoagAgent(
        "teller",
        ScriptedModel(model),
        tools=bank.tools(reconciles=knows),
        model_context=source.choice((AccountContext, ForeseeingContext))(),
        constraints=[unpaid],
        depth="compact",
        tool_timeout=0.005,
        bounds=Bounds(cycles=10),
    )
    result = await agent.run(task="Pay the 60.")
    answer = result.messages[-1].to_text()
    unsettled = agent.context.working_memory.unsettled
    assert len(bank.paid) <= 1, (seed, answer)
    assert bank.paid or "It is paid." not in answer, (seed, answer)
    assert not examine(agent.trace).violations
    if knows:
        assert unsettled == ()
    elif unsettled:
        assert "unsettled" in answer or "not known" in answer, (seed, answer)


@pytest.mark.parametrize("seed", range(40))
async def test_a_bank_that_gives_no_answer_is_paid_once(seed: int) -> None:
    await paid_with_time_outs(seed)


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.skipif(not KILLS, reason="COAG_KILLS says how many")
async def test_banks_that_give_no_answer_very_often_are_paid_once() -> None:
    for seed in range(1_000, 1_000 + KILLS):
        await paid_with_time_outs(seed)
