"""What finds which way of tampering with a finished run; counted in `docs/verify.md`."""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from kits.tampering import TAMPERINGS, Tampering, honest_run

from coag.errors import TraceError
from coag.proof import examine
from coag.tracing import Witness, sign_run

pytestmark = pytest.mark.broken_trace("it tampers with runs")
NOW = datetime(2026, 11, 23, tzinfo=UTC)


@dataclass(frozen=True)
class Evidence:
    run: Path
    other: Path
    anchors: Mapping[str, Mapping[str, Any]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    place = tmp_path_factory.mktemp("tampering")
    run = await honest_run(place / "a", depth="compact")
    other = await honest_run(place / "b", depth="compact")
    key = Ed25519PrivateKey.generate()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COAG_SEAL_KEY", base64.b64encode(key.private_bytes_raw()).decode())
        for one in (run, other):
            sign_run(one, NOW)
    witness = Witness(place / "witness.jsonl")
    witness.append([run, other], NOW)
    public = base64.b64encode(key.public_key().public_bytes_raw()).decode()
    return Evidence(
        run,
        other,
        {
            "alone": {},
            "head": {"head": examine(run).head},
            "key": {"key": public},
            "witness": {"witness": witness.path},
        },
    )


def finds(run: Path, anchors: Mapping[str, Any]) -> bool:
    try:
        return not examine(run, **anchors).holds
    except TraceError:
        return True


def test_an_honest_run_holds_against_every_anchor(evidence: Evidence) -> None:
    for anchors in evidence.anchors.values():
        found = examine(evidence.run, **anchors)
        assert (found.violations, found.remarks) == ((), ())


HARMLESS = {"run.json: white space changed", "run.json: order of keys changed"}
"""The same content, written otherwise: what is hashed is the content."""


@pytest.mark.parametrize("way", TAMPERINGS, ids=lambda way: way.name)
def test_what_finds_a_way_of_tampering(way: Tampering, evidence: Evidence, tmp_path: Path) -> None:
    run = Path(shutil.copytree(evidence.run, tmp_path / evidence.run.name))
    way.change(run, evidence.other)
    found = {name: finds(run, anchors) for name, anchors in evidence.anchors.items()}
    head = way.found or way.name not in HARMLESS
    assert found == {"alone": way.found, "head": head, "key": True, "witness": True}


def test_the_page_counts_what_is_found_alone_and_names_the_rest() -> None:
    page = (Path(__file__).parents[3] / "docs" / "verify.md").read_text(encoding="utf-8")
    tried = re.search(r"try (\d+) changes .+? alone finds (\d+):", page, re.S)
    others = [way.name for way in TAMPERINGS if not way.found]
    assert tried is not None
    assert [int(n) for n in tried.groups()] == [len(TAMPERINGS), len(TAMPERINGS) - len(others)]
    named = page[tried.end() : page.index("## In your tests")]
    assert re.findall(r"^- (.+)$", named, re.M) == others
    assert {*others[:2]} == HARMLESS
