"""A real Chromium for tests of pages; `make test-browser` runs them.

Browser tests are plain functions, not async ones: the synchronous driver holds the event loop of
its thread from its first use to the end of the session.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from kits.browsing import Axe, PageAt, Scheme, Shot
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"
AXE = ROOT / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HERE = frozenset({"127.0.0.1", "localhost", "::1"})
INSIDE = frozenset({"data", "blob", "about", "file"})
PATIENCE = 50_000
"""Milliseconds within which what is expected has to come, also on a busy machine."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests come last: after them no other test of the process has a loop of its own."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One Chromium for the session; without one, tests are skipped and say so."""
    path = os.environ.get("COAG_CHROMIUM") or shutil.which("chromium")
    if path is None:
        pytest.skip("no Chromium here: install chromium, or name one in COAG_CHROMIUM")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        expect.set_options(timeout=PATIENCE)
        yield browser
        browser.close()


def _watched(page: Page, expected: tuple[str, ...], faults: list[str]) -> Page:
    """The page, with all that goes wrong in it noted; breaches of its policy are among these."""

    def note(text: str) -> None:
        if not any(part in text for part in expected):
            faults.append(text)

    def said(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            note(f"console {message.type}: {message.text}")

    def asked(url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in INSIDE and parts.hostname not in HERE:
            note(f"request to another host: {url}")

    page.on("console", said)
    page.on("pageerror", lambda error: note(f"page error: {error}"))
    page.on("request", lambda request: asked(request.url))
    return page


@pytest.fixture
def page_at(chromium: Browser) -> Iterator[PageAt]:
    """Opens pages of a size and a colour scheme.

    A test fails at its end where a page of its own had an error or a warning on its console, an
    uncaught error, a breach of its content security policy or a request to another host;
    `expected` names parts of messages that are no fault. `scripts` False is a browser without
    scripts; `calm` False does not ask for reduced motion.
    """
    contexts: list[BrowserContext] = []
    faults: list[str] = []

    def opened(
        width: int = 1280,
        height: int = 800,
        scheme: Scheme = "light",
        *,
        expected: tuple[str, ...] = (),
        scripts: bool = True,
        calm: bool = True,
    ) -> Page:
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            reduced_motion="reduce" if calm else "no-preference",
            java_script_enabled=scripts,
            service_workers="block",
        )
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        return _watched(context.new_page(), expected, faults)

    yield opened
    for context in contexts:
        context.close()
    assert not faults, "\n".join(faults)


@pytest.fixture(scope="session")
def screenshot() -> Shot:
    """Writes what a page shows to `build/screenshots/NAME.png`."""

    def shot(page: Page, name: str) -> Path:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        page.screenshot(path=path)
        return path

    return shot


@pytest.fixture(scope="session")
def axe() -> Axe:
    """Serious and critical findings of axe-core on a page, one line each."""
    path = Path(os.environ.get("COAG_AXE") or AXE)
    if not path.is_file():
        pytest.skip(f"no axe-core at {path}: run make test-browser, or name it in COAG_AXE")
    source = path.read_text(encoding="utf-8")

    def findings(page: Page) -> list[str]:
        # The driver evaluates beside the page's policy, so that the page is judged as served.
        page.evaluate(f"{source};undefined")
        found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{one['impact']} {one['id']}: {one['help']}: "
            + "; ".join(str(node["target"]) + " " + node["failureSummary"] for node in one["nodes"])
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
        ]

    return findings
