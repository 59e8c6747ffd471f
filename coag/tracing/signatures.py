"""Proofs about a run that those who can only write its folder cannot forge.

A signature needs a private key; a witness is a file that is kept elsewhere. Both say the same of a
run: how many records its trace has, the hash of the last, and the SHA-256 of the files beside it.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import ValidationError

from coag._util.files import flush_to_disk, private, replace_file
from coag._util.locks import try_lock
from coag.errors import ConfigurationError, TraceError
from coag.schema import Value

from .files import regular, trace_errors
from .hash_chain import canonical, file_hash, info_fields, seal_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )


PRIVATE, PUBLIC = "COAG_SEAL_KEY", "COAG_SEAL_PUBLIC_KEY"
"""Environment variables: each the path of a PEM file, or 32 bytes in base64."""
_SEAL = "seal.json"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_TRIES, _PAUSE = 100, 0.05
"""How often and after how many seconds a witness file that another process holds is asked for."""


class Statement(Value):
    """What is signed or witnessed of a run."""

    v: int = 1
    run: str
    records: int
    head: str
    """The hash of the trace's last line; empty for an empty trace."""
    run_json: str
    """SHA-256 of `run.json`, byte for byte."""
    remembered: str = ""
    """SHA-256 of `remembered.jsonl`; empty where there is none."""
    ended: bool
    at: datetime


class Signed(Statement):
    """What `seal.json` holds."""

    key: str
    """Names the public key: the first 16 digits of its SHA-256."""
    signature: str
    """Ed25519, in base64, over the canonical JSON of all but this field."""


class Witnessed(Statement):
    """A line of a witness file."""

    hash: str
    """SHA-256 over the hash of the line before and the canonical JSON of all but this field."""


def statement_of(run: Path, at: datetime) -> Statement:
    """The state of a run now.

    Raises:
        TraceError: It cannot be read, or its trace does not end in a whole line.
    """
    fields = info_fields(run / "run.json")
    if fields is None:
        raise TraceError(run, "is no run's folder: it holds no run.json that can be read")
    trace = run / "trace.jsonl"
    seal = seal_of(trace)
    if seal is None and trace.exists():
        raise TraceError(trace, "does not end in a whole line of this version: it is not sealed")
    with trace_errors(run, "cannot be read"):
        return Statement(
            run=str(fields.get("id")),
            records=seal.records if seal else 0,
            head=seal.hash if seal else "",
            run_json=file_hash(run / "run.json"),
            remembered=file_hash(run / "remembered.jsonl"),
            ended=fields.get("ended_at") is not None,
            at=at,
        )


# ---- signatures ----


def new_key(path: Path) -> Path:
    """Makes a pair of keys: the private one for its owner alone, the public one in `PATH.pub`.

    Returns:
        The public key's path.

    Raises:
        ConfigurationError: One of the files is there already, or cannot be written.
    """
    from cryptography.hazmat.primitives import serialization as form

    key = _ed25519().Ed25519PrivateKey.generate()
    public = path.with_name(f"{path.name}.pub")
    secret = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    pem = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    if public.exists():
        raise ConfigurationError(f"{str(public)!r} is there already; name another file.")
    for place, text in ((path, secret), (public, pem)):
        try:
            file = private(str(place), _NEW)
        except OSError as error:
            raise ConfigurationError(
                f"No key can be written to {str(place)!r}: {error.strerror}. Name another file."
            ) from error
        with os.fdopen(file, "wb") as out:
            out.write(text)
    return public


def check_environment() -> None:
    """Makes sure before a run begins that it can be signed at its end, where that is wanted."""
    if os.environ.get(PRIVATE):
        _private_key()


def seal_by_environment(run: Path, at: datetime) -> None:
    """Signs a run where the environment has a key, and its trace is a whole one."""
    if os.environ.get(PRIVATE) and (seal_of(run / "trace.jsonl") is not None):
        sign_run(run, at)


def sign_run(run: Path, at: datetime) -> Statement:
    """Writes `seal.json`: the state of the run now, signed with the key of the environment.

    Raises:
        ConfigurationError: There is no key, or it is none.
        TraceError: The run cannot be read, or `seal.json` cannot be written.
    """
    key = _private_key()
    fields = statement_of(run, at).model_dump(mode="json") | {"key": _named(key.public_key())}
    signature = base64.b64encode(key.sign(canonical(fields))).decode()
    with trace_errors(run / _SEAL, "cannot be written"):
        replace_file(run / _SEAL, json.dumps({**fields, "signature": signature}, indent=2) + "\n")
    return Signed.model_validate(fields | {"signature": signature})


def seal_problems(run: Path, key: str | Path | None) -> Iterator[str]:
    """What is wrong with a run's signature, as sentences; nothing where it is valid.

    Args:
        run: The run's folder.
        key: The public key, as a path or in base64; None for that of the environment. Where there
            is none either, nothing is checked.

    Raises:
        ConfigurationError: The public key is none.
    """
    from_environment = os.environ.get(PUBLIC)
    if key is None and not from_environment:
        return
    given = str(from_environment if key is None else key)
    public = cast("Ed25519PublicKey", _loaded("Public", given, repr(given[:200])))
    path = run / _SEAL
    fields = info_fields(path)
    if fields is None:
        yield "There is no seal.json that can be read: the run was not signed, or that was removed."
        return
    try:
        signed = Signed.model_validate(fields)
        signature = base64.b64decode(signed.signature, validate=True)
    except (ValidationError, binascii.Error):
        yield "seal.json holds no signature."
        return
    unsigned = {name: value for name, value in fields.items() if name != "signature"}
    if signed.key != _named(public):
        yield f"seal.json was signed with the key {signed.key!r}, not with {_named(public)!r}."
    elif not _is_signed(public, signature, canonical(unsigned)):
        yield "The signature in seal.json does not fit what it says: it was changed."
    else:
        now = statement_of(run, signed.at)
        yield from (f"seal.json signs {one}" for one in _differences(signed, now))


def _is_signed(key: Ed25519PublicKey, signature: bytes, text: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, text)
    except InvalidSignature:
        return False
    return True


def _differences(stated: Statement, now: Statement) -> Iterator[str]:
    for name in ("run", "records", "head", "run_json", "remembered"):
        one, other = getattr(stated, name), getattr(now, name)
        if one != other:
            what = {"run_json": "a run.json", "remembered": "a remembered.jsonl"}.get(name, name)
            yield f"{what} of {one!r}; it is {other!r} now."


def _private_key() -> Ed25519PrivateKey:
    from_text = os.environ.get(PRIVATE, "")
    if not from_text:
        raise ConfigurationError(
            f"There is no key to sign with: set {PRIVATE} to the file of one "
            "(`coag seal --new-key FILE` makes it)."
        )
    return cast("Ed25519PrivateKey", _loaded("Private", from_text, PRIVATE))


def _loaded(half: Literal["Private", "Public"], given: str, name: str) -> object:
    """One half of a pair of keys: from 32 bytes in base64, or from a PEM file."""
    kind = getattr(_ed25519(), f"Ed25519{half}Key")
    from cryptography.hazmat.primitives import serialization as form

    try:
        raw = _raw(given)
        if len(raw) == 32:
            key = getattr(kind, f"from_{half.lower()}_bytes")(raw)
        else:
            private = half == "Private"
            key = form.load_pem_private_key(raw, None) if private else form.load_pem_public_key(raw)
    except (OSError, ValueError, TypeError) as error:
        raise ConfigurationError(
            f"{name} is neither the path of such a key in PEM without a password nor 32 bytes "
            f"in base64 ({type(error).__name__})."
        ) from error
    if not isinstance(key, kind):
        raise ConfigurationError(f"{name} holds a key that is not of Ed25519.")
    return key


def _raw(given: str) -> bytes:
    """A key's bytes: 32 that were given in base64, or those of a file."""
    try:
        raw = base64.b64decode(given, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) == 32:
        return raw
    with open(given, "rb", opener=regular) as file:
        return file.read(1 << 16)


def _named(key: Ed25519PublicKey) -> str:
    return sha256(key.public_bytes_raw()).hexdigest()[:16]


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise ConfigurationError("Signing needs the extra `seal`: install coag[seal].") from error
    return ed25519


# ---- witnesses ----


class Witness:
    """A file, kept elsewhere, of the states of runs; each line binds the one before.

    Args:
        path: The file; `append` makes it where it is not there.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, runs: list[Path], at: datetime) -> list[Statement]:
        """Appends the state of each run, all of them or none, and waits until the disk has them.

        Raises:
            TraceError: A run or the file cannot be read or written, or the file is no witness.
        """
        for run in runs:
            if self.path.absolute().resolve().is_relative_to(run.resolve()):
                raise TraceError(self.path, "is in the folder of a run: keep it elsewhere")
        problem = trace_errors(self.path, "cannot be written to")
        with problem, open(self.path, "ab+", opener=private) as file:
            _wait_for(file, self.path)
            file.seek(0)
            known = self._read(file.read())
            statements = [statement_of(run, at) for run in runs]
            before = known[-1].hash if known else ""
            for one in statements:
                fields = one.model_dump(mode="json")
                before = _line_hash(before, fields)
                file.write(canonical({**fields, "hash": before}) + b"\n")
            flush_to_disk(file)
            return statements

    def entries(self) -> list[Witnessed]:
        """All lines, checked.

        Raises:
            TraceError: The file cannot be read, or is no witness file, or was changed.
        """
        problem = trace_errors(self.path, "cannot be read")
        with problem, open(self.path, "rb", opener=regular) as file:
            return self._read(file.read())

    def _read(self, text: bytes) -> list[Witnessed]:
        entries: list[Witnessed] = []
        before = ""
        for number, line in enumerate(text.splitlines(keepends=True), 1):
            try:
                fields = json.loads(line)
                one = Witnessed.model_validate(fields)
            except ValueError as error:
                raise TraceError(
                    self.path, f"is no witness file, or was damaged: line {number} is no entry"
                ) from error
            before = _line_hash(before, fields)
            if before != one.hash or canonical(fields) + b"\n" != line:
                raise TraceError(self.path, f"was changed: the hash of line {number} does not fit")
            entries.append(one)
        return entries


def _line_hash(before: str, fields: Mapping[str, Any]) -> str:
    unhashed = {name: value for name, value in fields.items() if name != "hash"}
    return sha256(before.encode() + b"\n" + canonical(unhashed)).hexdigest()


def witness_problems(
    run: Path, entries: list[Witnessed], heads: Mapping[int, str]
) -> tuple[list[str], list[str]]:
    """What the witness's entries say against a run: violations, and remarks.

    Args:
        run: The run's folder.
        entries: Those of this run, oldest first; at least one.
        heads: Hashes of the trace's lines, by how many records end with them.
    """
    newest = entries[-1]
    now = statement_of(run, newest.at)
    wrong = [
        f"The witness saw {one.records} records that end with {one.head!r}; the trace has "
        f"{now.records}, and that place has {heads.get(one.records, '')!r}."
        for one in entries
        if heads.get(one.records, "") != one.head
    ]
    if newest.ended or (now.records == newest.records and not _ended(run)):
        problems = (f"The witness saw {one}" for one in _differences(newest, now))
        return [*wrong, *problems], []
    more = now.records - newest.records
    return wrong, [f"The last {more} records were not witnessed: the run continued since."]


def _ended(run: Path) -> bool:
    return (info_fields(run / "run.json") or {}).get("ended_at") is not None


def _wait_for(file: Any, path: Path) -> None:
    for _ in range(_TRIES):
        if try_lock(file):
            return
        time.sleep(_PAUSE)
    raise TraceError(path, "is held by another process: try again when that is done")
