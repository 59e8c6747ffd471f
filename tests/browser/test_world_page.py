"""The vacuum world's live page in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from kits.browsing import SIZES, Axe, PageAt, Scheme, Shot, fits
from playwright.sync_api import Locator, Page, expect

from coag._util.sockets import reserved_port
from vacuum_world.server import WorldServer
from vacuum_world.world import STILL, Obstacle, TickMode, WorldState, seeded_streams

pytestmark = pytest.mark.browser

PHASES = ("Retrieval", "Reasoning", "Proposal", "Evaluation", "Selection", "Execution")
REPORT: dict[str, Any] = {
    "phase": "Evaluation",
    "phases": PHASES,
    "about": "2 of 3 candidates survive: the charge is enough for the way to the charger.",
    "options": [
        {"text": "move east", "state": "chosen", "note": "0.86, nears the dirt at (3, 1)"},
        {"text": "move south", "note": "0.41"},
        {"text": "clean", "state": "rejected", "note": "keep_charge_to_reach_charger"},
    ],
    "cycle": 5,
    "belief": {
        "position": [2, 2],
        "battery": 85,
        "dirty": [[0, 2], [1, 1]],
        "clean": [[1, 0], [0, 0], [2, 2], [2, 1], [3, 1]],
        "obstacles": [[2, 0], [4, 2]],
    },
}


class Stage:
    """A served world, and those who act in it."""

    def __init__(self, server: WorldServer) -> None:
        self.server = server
        self.http = httpx.Client(base_url=server.url, trust_env=False, timeout=60)
        self.control = {"Authorization": f"Bearer {server.control_token}"}

    def join(self, name: str) -> dict[str, str]:
        token = self.http.post("/api/agents", json={"name": name}).json()["token"]
        return {"Authorization": f"Bearer {token}"}

    def move(self, robot: dict[str, str], *ways: str) -> None:
        for way in ways:
            self.http.post("/api/agent/move", json={"direction": way}, headers=robot)

    def walker(self) -> dict[str, str]:
        """ann, who has gone to (2, 2) and reports."""
        ann = self.join("ann")
        self.move(ann, "east", "south", "east", "south")
        self.report(ann, REPORT)
        return ann

    def report(self, robot: dict[str, str], report: dict[str, Any], number: int = 1) -> None:
        path = f"/api/agents/r{number}/report"
        self.http.put(path, json=report, headers=robot).raise_for_status()

    def intervene(self, **what: Any) -> None:
        self.http.post("/api/world/interventions", json=what, headers=self.control)

    def pace(self, **wish: Any) -> None:
        self.http.put("/api/pace", json=wish, headers=self.control).raise_for_status()


def still_world(ticks: TickMode = "action") -> WorldState:
    return WorldState(
        seed=0,
        dynamics=STILL,
        ticks=ticks,
        dirty=((0, 2), (1, 3), (3, 1), (4, 4)),
        obstacles=(
            Obstacle(cell=(2, 0)),
            Obstacle(cell=(3, 3)),
            Obstacle(cell=(1, 2), visible=False),
        ),
        forbidden=((4, 4),),
        streams=seeded_streams(0),
    )


@pytest.fixture
def stage() -> Iterator[Stage]:
    with reserved_port() as port, WorldServer(still_world(), port=port) as server:
        made = Stage(server)
        yield made
        made.http.close()


def opened(page: Page, stage: Stage, *, unlocked: bool = False) -> Page:
    page.goto(stage.server.url)
    expect(page.locator("#connection")).to_have_text("live")
    if unlocked:
        page.get_by_label("Control token").fill(stage.server.control_token)
        page.get_by_role("button", name="Unlock").click()
        expect(page.locator("#hand")).to_be_visible()
    return page


def cell(page: Page, board: str, x: int, y: int) -> Locator:
    return page.locator(f"#{board} [data-cell='{x},{y}']")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_every_state_of_the_page_is_readable(
    page_at: PageAt, stage: Stage, axe: Axe, screenshot: Shot, size: str, scheme: Scheme
) -> None:
    page = opened(page_at(*SIZES[size], scheme), stage)
    expect(page.get_by_text("No robot has joined yet.")).to_be_visible()
    screenshot(page, f"world-empty-{size}-{scheme}")
    assert axe(page) == []
    stage.walker()
    expect(page.locator("#unequal-count")).to_have_text("≠ 4 differences")
    screenshot(page, f"world-{size}-{scheme}")
    assert fits(page)
    assert axe(page) == []
    stage.move(stage.join("bob"), "south", "south", "east")
    stage.join("Zoë-7")
    stage.pace(paused=True)
    opened(page, stage, unlocked=True)
    expect(page.locator("#paused")).to_be_visible()
    screenshot(page, f"world-paused-{size}-{scheme}")
    assert fits(page)
    assert axe(page) == []


def test_at_four_hundred_per_cent_nothing_is_cut_off(
    page_at: PageAt, stage: Stage, screenshot: Shot
) -> None:
    stage.walker()
    page = opened(page_at(320, 256), stage, unlocked=True)
    assert fits(page)
    screenshot(page, "world-400-per-cent")


def test_belief_stands_beside_truth_and_differences_are_told_in_words(
    page_at: PageAt, stage: Stage
) -> None:
    stage.walker()
    page = opened(page_at(), stage)
    expect(cell(page, "truth", 3, 1)).to_have_attribute("aria-label", "3, 1: dirty")
    expect(cell(page, "belief", 3, 1)).to_have_attribute(
        "aria-label", "3, 1: differs: believed clean, is dirty"
    )
    expect(cell(page, "belief", 4, 4)).to_have_attribute("aria-label", "4, 4: not known")
    expect(page.locator("#belief .differs")).to_have_count(3)
    expect(page.locator("#differences")).to_contain_text("believes its battery at 85, it is at 80")
    expect(page.locator("#steps [aria-current=step]")).to_have_text("Evaluation")
    expect(page.locator(".option.chosen")).to_contain_text("move east")
    expect(page.locator(".trail")).to_have_count(1)


def test_the_grid_is_walked_by_keys_and_told_in_words(page_at: PageAt, stage: Stage) -> None:
    stage.walker()
    page = opened(page_at(), stage)
    expect(page.get_by_role("grid", name="The grid as it is", exact=True)).to_be_visible()
    cell(page, "truth", 0, 0).focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    here = page.locator(":focus")
    expect(here).to_have_attribute("aria-label", "2, 2: robot ann")
    expect(cell(page, "belief", 2, 2)).to_have_class("cell twin")
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")
    expect(here).to_have_attribute("data-cell", "4,2")
    page.keyboard.press("Tab")
    expect(here).to_have_attribute("data-cell", "0,0")


def test_only_the_experimenter_has_tools_and_a_click_changes_the_world(
    page_at: PageAt, stage: Stage
) -> None:
    stage.walker()
    page = opened(page_at(expected=("status of 409",)), stage)
    expect(page.get_by_role("button", name="Pause")).to_be_disabled()
    cell(page, "truth", 4, 0).click()
    assert len(stage.server.world.obstacles) == 3
    opened(page, stage, unlocked=True)
    expect(cell(page, "truth", 1, 2)).to_have_attribute("aria-label", "1, 2: hidden obstacle")
    for tool, x, y, told in (
        ("put obstacle", 4, 0, "an obstacle was put on (4, 0)"),
        ("put hidden one", 4, 1, "an obstacle was put on (4, 1)"),
        ("remove obstacle", 4, 0, "the obstacle on (4, 0) was removed"),
        ("make dirty", 0, 4, "(0, 4) was made dirty"),
        ("make clean", 0, 4, "(0, 4) was made clean"),
        ("forbid cleaning", 0, 4, "cleaning (0, 4) is forbidden now"),
        ("allow cleaning", 0, 4, "cleaning (0, 4) is allowed again"),
        ("place robot", 3, 4, "ann was put on (3, 4)"),
        ("put obstacle", 0, 0, "(0, 0) is the charger"),
        ("arm obstacle", 3, 1, "armed:"),
        ("forbid later", 3, 1, "armed:"),
    ):
        page.locator("#tools label", has_text=tool).click()
        cell(page, "truth", x, y).click()
        expect(page.locator("#said")).to_contain_text(told)
    expect(page.locator("#armed li")).to_have_count(2)
    world = stage.server.world
    assert [trigger.kind for trigger in world.triggers] == [
        "wall_on_approach",
        "forbid_after_actions",
    ]
    page.get_by_label("Battery of ann").fill("7")
    page.locator("#battery-form button").click()
    expect(page.locator("#said")).to_contain_text("battery was set to 7")
    page.get_by_text("What changes by itself").click()
    page.get_by_label("Dirt returns").fill("0.5")
    page.locator("#dynamics-form button").click()
    expect(page.locator("#said")).to_contain_text("dirt_entropy=0.5")
    page.get_by_role("button", name="Lock", exact=True).click()
    expect(page.get_by_role("button", name="Unlock")).to_be_visible()
    expect(page.locator("#truth .wall.hidden")).to_have_count(0)


def test_pause_and_step_by_keys_let_actions_through_one_by_one(
    page_at: PageAt, stage: Stage
) -> None:
    ann = stage.walker()
    page = opened(page_at(), stage, unlocked=True)
    page.keyboard.press("p")
    expect(page.locator("#paused-text")).to_contain_text("no action waits")
    with ThreadPoolExecutor() as pool:
        moving = pool.submit(stage.move, ann, "east", "north")
        expect(page.locator("#paused-text")).to_contain_text("waiting to act: ann")
        assert len(stage.server.world.log) == 4
        page.keyboard.press("s")
        expect(page.locator("#time")).to_contain_text("tick 5")
        expect(page.locator("#paused-text")).to_contain_text("waiting to act: ann")
        page.get_by_role("button", name="Resume").click()
        expect(page.locator("#paused")).to_be_hidden()
        moving.result(timeout=60)
    assert stage.server.world.robots[0].position == (3, 1)
    page.locator("#shortcuts").uncheck()
    page.keyboard.press("p")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()


def test_a_clock_is_made_slower_and_faster(page_at: PageAt) -> None:
    with WorldServer(still_world("clock"), interval=1) as server:
        page = opened(page_at(), Stage(server), unlocked=True)
        page.keyboard.press(".")
        expect(page.locator("#speed")).to_have_text("a tick every 0.5 s")
        expect(page.locator("#time")).to_contain_text(re.compile(r"tick ([2-9]|\d\d)"))
        page.get_by_role("button", name="Slower").click()
        expect(page.locator("#speed")).to_have_text("a tick every 1 s")


def test_several_robots_have_shapes_of_their_own_and_can_be_chosen(
    page_at: PageAt, stage: Stage
) -> None:
    stage.walker()
    bob = stage.join("bob")
    page = opened(page_at(), stage)
    expect(page.locator("#truth circle.body")).to_have_count(1)
    expect(page.locator("#truth rect.body")).to_have_count(1)
    expect(page.locator("#belief-title")).to_have_text("As ann believes it")
    page.get_by_role("button", name="bob").press("Enter")
    expect(page.locator("#belief-title")).to_have_text("As bob believes it")
    expect(page.get_by_text("reports no belief")).to_be_visible()
    stage.report(bob, {"phase": "looks", "belief": {"battery": 100}}, 2)
    expect(page.locator("#unequal-count")).to_have_text("as it is")
    page.keyboard.press("r")
    expect(page.locator("#belief-title")).to_have_text("As ann believes it")


def test_what_has_just_changed_is_marked(page_at: PageAt, stage: Stage) -> None:
    stage.walker()
    page = opened(page_at(), stage)
    expect(page.locator("#truth .news")).to_have_count(0)
    stage.intervene(kind="add_dirt", cell=(4, 2))
    expect(cell(page, "truth", 4, 2)).to_have_attribute("aria-label", "4, 2: dirty, just changed")


def test_hostile_names_and_reports_are_text_and_nothing_else(
    page_at: PageAt, stage: Stage, axe: Axe
) -> None:
    evil = "<img src=x onerror=alert(1)>\u202e\u0007"
    robot = stage.join("<img src=x onerror=alert(1)>")
    options = [{"text": evil, "note": evil * 3, "state": "chosen"}] * 12
    stage.report(
        robot,
        {
            "phase": "<script>alert(1)</script>",
            "phases": ["<b>" * 13] * 12,
            "about": "x" * 600,
            "options": options,
        },
    )
    page = opened(page_at(390, 844), stage)
    expect(page.locator("#mind-title")).to_contain_text("<img src=x onerror=alert(1)>")
    expect(page.locator("#mind")).to_contain_text("\\u202e\\u0007")
    assert page.locator("img").count() == 0
    assert page.locator("#mind script").count() == 0
    assert fits(page)
    assert axe(page) == []


def test_a_world_that_stops_is_told_and_followed_again(
    page_at: PageAt, stage: Stage, screenshot: Shot
) -> None:
    stage.walker()
    page = opened(page_at(expected=("ERR_", "net::")), stage)
    stage.server.stop()
    expect(page.get_by_role("alert")).to_contain_text("The world does not answer")
    expect(page.locator("#truth .robot")).to_have_count(1)
    screenshot(page, "world-lost")
    stage.server.start()
    expect(page.locator("#connection")).to_have_text("live")
    expect(page.locator("#lost")).to_be_hidden()


def test_a_wrong_token_is_told_and_the_page_goes_on(page_at: PageAt, stage: Stage) -> None:
    page = opened(page_at(expected=("status of 401",)), stage)
    page.get_by_label("Control token").fill("wrong-token")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_contain_text("not the experimenter's")
    stage.join("ann")
    expect(page.get_by_role("button", name="ann")).to_be_visible()
