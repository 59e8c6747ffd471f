"""The templates, and what they may call."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from coag.inspector.views import PromptPart
from coag.schema import PHASES

from . import _marks, _visible, _wording
from ._addresses import Addresses, Place, Target


def environment(addresses: Addresses) -> Environment:
    """What renders the templates with these addresses."""
    made = Environment(
        loader=PackageLoader("coag.inspector.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    made.filters |= {
        "v": _visible.visible,
        "named": _visible.named,
        "count": _wording.count,
        "amount": _wording.amount,
        "duration": _wording.duration,
        "moment": _wording.moment,
        "clock": _wording.clock,
        "stamp": _wording.stamp,
        "words": _wording.words,
        "pretty": _wording.pretty,
        "inline": _wording.inline,
        "cycle_mark": _marks.cycle_mark,
        "run_mark": _marks.run_mark,
        "phase_states": _marks.phase_states,
        "part_class": _marks.part_class,
        "part_label": _marks.part_label,
        "halves": halves,
    }
    made.globals |= {
        "to": _caller(addresses.to),
        "anchor": _caller(addresses.anchor),
        "static": addresses.static,
        "PHASES": [phase.value for phase in PHASES],
    }
    return made


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


def halves(part: PromptPart, limit: int) -> tuple[str, str, int]:
    """What is the same as in the request before, what is new, and how much is left out."""
    kept = part.text[:limit]
    same = min(part.same, len(kept))
    return kept[:same], kept[same:], len(part.text) - len(kept)
