"""The templates, and what they may call."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from jinja2 import Environment, PackageLoader, StrictUndefined

from coag.inspector.views import CallView, PromptPart
from coag.schema import PHASES

from . import aware as _aware
from . import marks as _marks
from . import visible as _visible
from . import wording as _wording
from .addresses import Addresses, Place, Target


@cache
def _templates() -> Environment:
    """The templates; one for all, so that each is compiled once a process."""
    made = Environment(
        loader=PackageLoader("coag.inspector.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        cache_size=-1,
    )
    filters = cast("dict[str, Any]", made.filters)
    filters |= {
        "v": _visible.visible,
        "named": _visible.named,
        "count": _wording.count,
        "amount": _wording.amount,
        "decimal": _wording.decimal,
        "percent": _wording.percent,
        "duration": _wording.duration,
        "moment": _wording.moment,
        "clock": _wording.clock,
        "stamp": _wording.stamp,
        "words": _wording.words,
        "cycles": _wording.cycles,
        "pretty": _wording.pretty,
        "inline": _wording.inline,
        "named_values": _wording.named_values,
        "returned": _marks.returned,
        "names": _marks.names,
        "beginning": _wording.beginning,
        "cycle_mark": _marks.cycle_mark,
        "run_mark": _marks.run_mark,
        "phase_states": _marks.phase_states,
        "part_class": _marks.part_class,
        "part_label": _marks.part_label,
        "attention_mark": _aware.attention_mark,
        "move_word": _aware.move_word,
        "goal_names": _aware.goal_names,
        "step_cells": _aware.step_cells,
        "brief": _wording.brief,
        "halves": halves,
        "last_same": last_same,
    }
    return made


def prepare() -> None:
    """Compiles every template, so that the first page takes no longer than those after it."""
    made = _templates()
    for name in made.list_templates(extensions=["html"]):
        made.get_template(name)


class Templates:
    """Renders templates for one document.

    Args:
        addresses: Where links lead.
        whole: Whether a page is a document of its own, or an article with headings one level
            lower.
    """

    def __init__(self, addresses: Addresses, *, whole: bool = True) -> None:
        first = 1 if whole else 2
        self._values: Mapping[str, Any] = {
            "to": _caller(addresses.to),
            "anchor": _caller(addresses.anchor),
            "static": addresses.static,
            "PHASES": [phase.value for phase in PHASES],
            "layout": "document.html" if whole else "part.html",
            "whole": whole,
            **{f"h{level}": f"h{first + level - 1}" for level in (1, 2, 3)},
        }

    def render(self, name: str, **values: Any) -> str:
        """The template of a name, filled with these values."""
        return _templates().get_template(f"{name}.html").render({**self._values, **values})


def _caller(of: Any) -> Any:
    """`Addresses.to` or `.anchor` as a template calls it: with a place's fields."""

    def called(
        target: str,
        run: str = "",
        number: int | None = None,
        spot: str = "",
        other: str = "",
        **query: str | int,
    ) -> str:
        place = Place(
            target=Target(target), run=run, number=number, spot=spot, other=other, query=query
        )
        return of(place)

    return called


def last_same(call: CallView) -> tuple[int, int] | None:
    """Message and piece with which the prefix ends that the request before had too."""
    ends = [
        (at, position)
        for at, message in enumerate(call.messages)
        for position, part in enumerate(message.parts)
        if part.same
    ]
    return ends[-1] if ends else None


def halves(part: PromptPart, limit: int) -> tuple[str, str, int]:
    """What is the same as in the request before, what is new, and how much is left out."""
    kept = part.text[:limit]
    same = min(part.same, len(kept))
    return kept[:same], kept[same:], len(part.text) - len(kept)
