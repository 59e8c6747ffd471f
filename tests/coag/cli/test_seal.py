"""`coag seal`, and what `coag verify` says by it."""

from __future__ import annotations

import base64
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from kits.tampering import honest_run

Say = Callable[..., Any]


async def test_a_run_that_ends_with_a_key_in_the_environment_is_signed(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "key.pem"
    assert say("seal", "--new-key", str(key)).code == 0
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert say("seal", "--new-key", str(key)).code == 2
    monkeypatch.setenv("COAG_SEAL_KEY", str(key))
    run = await honest_run(tmp_path / "logs", depth="compact")
    result = say("verify", str(run), "--key", f"{key}.pub")
    assert result.code == 0, result.out
    (run / "seal.json").unlink()
    result = say("verify", str(run), "--key", f"{key}.pub")
    assert (result.code, "was not signed" in result.out) == (1, True)
    assert say("seal", str(run)).code == 0
    assert say("verify", str(run), "--key", f"{key}.pub").code == 0
    assert say("verify", str(run), "--key", str(run / "run.json")).code == 2


async def test_a_key_that_is_none_is_refused_before_a_run_begins(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COAG_SEAL_KEY", "nothing of the kind")
    with pytest.raises(Exception, match="COAG_SEAL_KEY is neither"):
        await honest_run(tmp_path / "logs", depth="compact")
    assert "logs" not in os.listdir(tmp_path)


async def test_a_witness_is_appended_to_and_says_what_it_has_not_seen(
    say: Say, tmp_path: Path
) -> None:
    run = await honest_run(tmp_path / "logs", depth="compact")
    other = await honest_run(tmp_path / "logs", depth="compact")
    file = tmp_path / "witness.jsonl"
    for _ in range(2):
        assert say("seal", "--witness", str(file), str(run)).code == 0
    assert len(file.read_text().splitlines()) == 2
    assert say("verify", str(run), "--witness", str(file)).code == 0
    result = say("verify", str(other), "--witness", str(file))
    assert (result.code, "is not witnessed" in result.out) == (1, True)
    assert say("seal", "--witness", str(run / "w.jsonl"), str(run)).code == 2

    lines = file.read_text().splitlines(keepends=True)
    changed = json.loads(lines[0]) | {"records": 1}
    for text in ("hello\n", lines[1], json.dumps(changed) + "\n" + lines[1]):
        file.write_text(text)
        assert say("verify", str(run), "--witness", str(file)).code == 2
        assert say("seal", "--witness", str(file), str(run)).code == 2
        assert file.read_text() == text


@pytest.mark.broken_trace("its third line is missing")
async def test_sealing_a_trace_that_is_broken_says_so(say: Say, tmp_path: Path) -> None:
    run = await honest_run(tmp_path / "logs", depth="compact")
    trace = run / "trace.jsonl"
    lines = trace.read_bytes().splitlines(keepends=True)
    trace.write_bytes(b"".join([*lines[:2], *lines[3:]]))
    result = say("seal", "--witness", str(tmp_path / "witness.jsonl"), str(run))
    assert (result.code, "it is broken: " in result.err) == (0, True)


async def test_sealing_a_run_in_progress_warns(say: Say, tmp_path: Path) -> None:
    run = await honest_run(tmp_path / "logs", depth="compact")
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "ended_at": None, "seal": None}))
    result = say("seal", "--witness", str(tmp_path / "witness.jsonl"), str(run))
    assert result.code == 0
    assert "has not ended: what is added to it from now on does not fit this seal" in result.err


@pytest.mark.broken_trace("it tampers with runs")
async def test_a_signature_that_does_not_fit_the_run_or_the_key_is_named(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("key.pem", "other.pem"):
        assert say("seal", "--new-key", str(tmp_path / name)).code == 0
    run = await honest_run(tmp_path / "logs", depth="compact")
    monkeypatch.setenv("COAG_SEAL_KEY", str(tmp_path / "key.pem"))
    monkeypatch.setenv("COAG_SEAL_PUBLIC_KEY", str(tmp_path / "key.pem.pub"))
    assert say("seal", str(run)).code == 0
    assert say("verify", str(run)).code == 0
    seal = json.loads((run / "seal.json").read_text())

    for changes, text in (
        ({"records": 1}, "does not fit what it says"),
        ({"signature": "???"}, "holds no signature"),
        ({"records": "many"}, "holds no signature"),
    ):
        (run / "seal.json").write_text(json.dumps(seal | changes))
        result = say("verify", str(run))
        assert (result.code, text in result.out) == (1, True), result.out
    (run / "seal.json").write_text(json.dumps(seal))
    result = say("verify", str(run), "--key", str(tmp_path / "other.pem.pub"))
    assert (result.code, "was signed with the key" in result.out) == (1, True)

    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "agent": "another"}))
    result = say("verify", str(run))
    assert (result.code, "seal.json signs a run.json of" in result.out) == (1, True)


async def test_keys_that_cannot_be_used_are_refused_and_raw_ones_can_be(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await honest_run(tmp_path / "logs", depth="compact")
    result = say("seal", str(run))
    assert (result.code, "There is no key to sign with" in result.err) == (2, True)
    result = say("seal", "--new-key", str(tmp_path / "nowhere" / "key.pem"))
    assert (result.code, "No key can be written" in result.err) == (2, True)
    elliptic = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    (tmp_path / "elliptic.pem").write_bytes(elliptic)
    monkeypatch.setenv("COAG_SEAL_KEY", str(tmp_path / "elliptic.pem"))
    result = say("seal", str(run))
    assert (result.code, "is not of Ed25519" in result.err) == (2, True)

    own = Ed25519PrivateKey.generate()
    monkeypatch.setenv("COAG_SEAL_KEY", base64.b64encode(own.private_bytes_raw()).decode())
    assert say("seal", str(run)).code == 0
    public = base64.b64encode(own.public_key().public_bytes_raw()).decode()
    assert say("verify", str(run), "--key", public).code == 0


@pytest.mark.broken_trace("it tampers with runs")
async def test_what_cannot_be_sealed_is_named_and_no_seal_is_written(
    say: Say, tmp_path: Path
) -> None:
    run = await honest_run(tmp_path / "logs", depth="compact")
    witness = str(tmp_path / "witness.jsonl")
    trace = run / "trace.jsonl"
    trace.write_bytes(trace.read_bytes() + b'{"half')
    result = say("seal", "--witness", witness, str(run))
    assert (result.code, "does not end in a whole line" in result.err) == (2, True)
    (run / "run.json").unlink()
    assert say("seal", "--witness", witness, str(run)).code == 2
