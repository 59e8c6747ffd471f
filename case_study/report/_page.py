"""The page: one file that opens anywhere and asks for nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, cast

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ._document import Section
from ._values import Summary
from ._wording import visible


def page(title: str, summary: Summary, sections: Sequence[Section]) -> str:
    """The whole document; every foreign text is escaped, and its policy allows no script."""
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    return (
        _templates()
        .get_template("report.html")
        .render(
            title=title,
            summary=summary,
            sections=sections,
            style=Markup(style),
            policy=policy,
        )
    )


@cache
def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader("case_study.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    filters = cast("dict[str, Any]", made.filters)
    filters |= {"v": visible, "drawing": Markup}
    return made


@cache
def _style() -> str:
    sheet = files("case_study.report").joinpath("static", "report.css")
    return sheet.read_text(encoding="utf-8").strip()
