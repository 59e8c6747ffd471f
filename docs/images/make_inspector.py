"""Takes the pictures of `docs/inspector.md`: `inspector-*.png`, of runs made for them.

Run it after a change of the pages: `python docs/images/make_inspector.py`. It needs a Chromium
(`COAG_CHROMIUM` names one), playwright and Pillow, and takes half a minute.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Literal, cast

import httpx
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from case_study.runner import CaseFolder, CaseRequest, run_case
from coag.inspector import Inspector
from coag.proof import Changes, fork
from coag.tracing import RunFolder, list_runs, read_run

PLACE = Path(__file__).parent
LOGS = Path("logs")
WIDE, PHONE, TALL = (1120, 700), (360, 700), (1120, 1560)
COLOURS = 256
"""Of the palette, which keeps the pictures small."""
LARGEST = 120_000
"""Bytes of a picture at most."""

Act = Callable[[Page], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One picture of one page."""

    name: str
    path: str
    scheme: Literal["light", "dark"] = "light"
    act: Act | None = None
    """What is done on the page before."""


def nothing(page: Page) -> None:
    """Shows the page as it opens."""


def at(spot: str, *opened: str) -> Act:
    """Opens details, and scrolls to an element."""

    def act(page: Page) -> None:
        for selector in opened:
            page.locator(selector).first.evaluate("one => { one.open = true; }")
        page.locator(spot).first.evaluate("one => one.scrollIntoView()")

    return act


async def case(agent: str, scenario: str, model: str, **settings: object) -> list[RunFolder]:
    """The runs of a case, in order."""
    asked = {"agent": agent, "scenario": scenario, "model": model, **settings}
    folder = CaseFolder.create(LOGS, CaseRequest.model_validate(asked))
    await run_case(folder)
    return sorted(list_runs(folder.path), key=lambda run: read_run(run.path).started_at)


async def planner() -> str:
    """Makes the run of the tests' agent that keeps where it stands; tells its key."""
    sys.path.append(str(PLACE.parents[1] / "tests"))
    made = importlib.import_module("kits.aware_runs")
    run: RunFolder = await made.aware_run(LOGS)
    return run.path.name


async def runs() -> list[Shot]:
    """Makes the runs; tells what to show of them."""
    rule = ("keep_charge_to_reach_charger",)
    await case("baseline", "energy-dilemma", "scripted:impulsive")
    await case("coag", "energy-dilemma", "scripted:impulsive")
    await case("baseline", "phantom-object", "scripted:sound")
    walled = (await case("coag", "sudden-wall", "scripted:sound"))[0].path.name
    taught = (await case("coag", "evolution", "scripted:sound", delivery="procedure"))[0].path.name
    (run,) = await case("coag", "energy-dilemma", "scripted:impulsive", without_constraints=rule)
    other = (await fork(run, "1.reasoning", Changes(model="scripted:sound"), logs=LOGS)).run.name
    stranded = run.path.name
    third = f"/runs/{stranded}/cycles/3"
    call = "#call-reasoning-1"
    return [
        Shot(name="runs", path="/"),
        Shot(name="run", path=f"/runs/{stranded}"),
        Shot(name="cycle", path=third, scheme="dark"),
        Shot(name="prompt", path=third, act=at(f"{call} .message + .message", call)),
        Shot(name="evaluation", path=third, act=at("#evaluation", ".verdict details")),
        Shot(name="why", path=f"/runs/{stranded}/cycles/1/why"),
        Shot(name="beliefs", path=f"/runs/{stranded}/beliefs", scheme="dark"),
        Shot(name="awareness", path=f"/runs/{await planner()}/cycles/7/awareness"),
        Shot(name="memory", path=f"/runs/{walled}/memory"),
        Shot(name="procedures", path=f"/runs/{taught}/procedures", scheme="dark"),
        Shot(name="findings", path=f"/runs/{stranded}/findings", act=at("main", ".evidence")),
        Shot(name="compare", path=f"/compare?a={stranded}&b={other}", scheme="dark"),
        Shot(name="phone", path=f"/runs/{stranded}"),
        Shot(name="phone", path=third, scheme="dark"),
        Shot(name="phone", path=f"/runs/{stranded}/beliefs"),
    ]


def taken(browser: Browser, url: str, shot: Shot) -> Image.Image:
    """What a browser shows of it."""
    width, height = {"phone": PHONE, "awareness": TALL}.get(shot.name, WIDE)
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=shot.scheme,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(url + shot.path)
    (shot.act or nothing)(page)
    picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
    context.close()
    return picture


def beside(pictures: list[Image.Image]) -> Image.Image:
    """Pictures in a row."""
    gap = 20
    width = sum(one.width + gap for one in pictures) - gap
    row = Image.new("RGB", (width, pictures[0].height), "white")
    left = 0
    for one in pictures:
        row.paste(one, (left, 0))
        left += one.width + gap
    return row


def commonest(picture: Image.Image) -> Image.Image:
    """A palette of its commonest colours, which are those of grounds and letters, exactly."""
    found = cast("list[tuple[int, tuple[int, int, int]]]", picture.getcolors(1 << 24))
    colours = [colour for _, colour in sorted(found, reverse=True)[:COLOURS]]
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for colour in colours for part in colour])
    return palette


def kept(name: str, pictures: list[Image.Image]) -> None:
    """Writes a picture with a small palette."""
    path = PLACE / f"inspector-{name}.png"
    whole = beside(pictures)
    whole = whole.quantize(palette=commonest(whole), dither=Image.Dither.NONE)
    whole.save(path, optimize=True)
    size = path.stat().st_size
    assert size < LARGEST, f"{path.name} has {size} bytes"


def main() -> None:
    """Makes the runs, opens the pages and takes the pictures."""
    chromium = os.environ.get("COAG_CHROMIUM") or shutil.which("chromium")
    with tempfile.TemporaryDirectory() as place, chdir(place):
        shots = asyncio.run(runs())
        taken_of: dict[str, list[Image.Image]] = {}
        with Inspector(LOGS) as inspector, sync_playwright() as driver:
            for key in {shot.path.split("/")[2] for shot in shots if "/runs/" in shot.path}:
                httpx.get(f"{inspector.url}/runs/{key}/events", timeout=60)  # until it is checked
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for shot in shots:
                taken_of.setdefault(shot.name, []).append(taken(browser, inspector.url, shot))
            browser.close()
    for name, pictures in taken_of.items():
        kept(name, pictures)


if __name__ == "__main__":
    main()
