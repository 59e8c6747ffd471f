"""What browser tests are given; the fixtures are in `tests/browser/conftest.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol

from playwright.sync_api import Page

Scheme = Literal["light", "dark"]


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
