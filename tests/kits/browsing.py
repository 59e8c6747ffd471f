"""What browser tests are given; the fixtures are in `tests/browser/conftest.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol

from playwright.sync_api import Page, expect

Scheme = Literal["light", "dark"]
SIZES = {"wide": (1440, 900), "phone": (390, 844)}


class PageAt(Protocol):
    """Opens a page of a size and a colour scheme; see the fixture `page_at`."""

    def __call__(
        self,
        width: int = 1280,
        height: int = 800,
        scheme: Scheme = "light",
        *,
        expected: tuple[str, ...] = (),
        scripts: bool = True,
        calm: bool = True,
    ) -> Page: ...


Shot = Callable[[Page, str], Path]
"""Writes what a page shows to `build/screenshots/NAME.png`."""

Axe = Callable[[Page], list[str]]
"""Serious and critical findings of axe-core on a page, one line each."""


def opened(page: Page, url: str) -> Page:
    """The page at an address, which is there."""
    answer = page.goto(url)
    assert answer is not None
    assert answer.ok, url
    expect(page.locator("h1").first).to_be_visible()
    return page


def fits(page: Page) -> bool:
    """Whether nothing makes the page as a whole scroll sideways."""
    return page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )


def harmed(page: Page) -> bool:
    """Whether anything that a log says has run, or has become an element."""
    ran = page.evaluate("'harmed' in window")
    made = page.locator("img, iframe, object, embed, [onclick], [onload], [onerror]").count()
    foreign = page.locator("a[href^='javascript:'], a[href*='example.org']").count()
    return bool(ran or made or foreign)
