"""Foreign text within a page."""

from __future__ import annotations

import re
from dataclasses import replace

from kits import views as kit

from coag.inspector.pages import Pages, WebAddresses, visible
from coag.inspector.views import RunCard


def test_a_text_that_cannot_be_seen_is_named_character_by_character() -> None:
    told = visible.visible("a\x1b<b>\u202e" * 1000)

    assert told.count("ESC") == told.count("RLO") == 1000
    assert told.count("&lt;b&gt;") == 1000


def test_a_name_is_cut_before_its_characters_are_named() -> None:
    assert visible.named("\x1b" * 500) == "[U+001B]" * 80 + "\u2026"
    assert visible.named("x" * 80) == "x" * 80
    assert visible.named("x" * 9, limit=3) == "xxx\u2026"


def test_the_title_of_a_page_is_short_whatever_the_agent_is_called() -> None:
    view = kit.run_view()
    info = view.info.model_copy(update={"agent": "<&>" * 100_000})
    card: RunCard = replace(view.card, info=info, scenario="s" * 100_000)

    page = Pages(WebAddresses()).run_page(
        replace(view, card=card, info=info), findings=kit.findings(), cost=""
    )

    title = re.search("<title>(.*?)</title>", page)
    assert title is not None
    assert len(title[1]) < 1_000
    assert len(page) < 400_000
