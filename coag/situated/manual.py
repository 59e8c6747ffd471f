"""The manual of a tool: Markdown for who reads it, with front matter that programs check.

Written in the schema of the thesis (4.2, appendix A): 1 Functional Description, 2 Usage Interface
with properties, operations and signals, 3 Protocol & Safety. The first two, and the front matter,
are rendered from what the tool declares, so they cannot differ from it; the third is written by
hand. The front matter is JSON, which is YAML, too:

```text
---
{"manual": 1, "tool": {"id": "pump", ...}}
---
# Manual: pump
```
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError

from coag._util.text import in_a_line
from coag._util.validation import first_error
from coag.schema import Value

from .records import (
    OperationDescription,
    PropertyDescription,
    ToolDescription,
)

_FENCE = "---"
_VERSION = 1
_PROTOCOL = "## 3. Protocol & Safety"
_NO_PROTOCOL = "Nothing beyond the preconditions above."


class Manual(Value):
    """A manual that was read (thesis, 4.2): what its front matter declares, and its text."""

    tool: str
    """The tool's id; empty where the manual does not say it."""
    text: str
    """All of it, as it was received."""
    description: ToolDescription | None = None
    """What its front matter declares; None in a manual without front matter of ours."""
    protocol: str = ""
    """Section 3, where there is front matter of ours."""

    @property
    def body(self) -> str:
        """The text without front matter of ours: what a reader or a model needs."""
        return self.text if self.description is None else _split(self.text)[1]


def render_manual(description: ToolDescription, protocol: str = "") -> str:
    """The manual of a tool, Markdown (thesis, 4.2 and appendix A); section 3 is written by hand."""
    head = {"manual": _VERSION, "tool": description.model_dump(mode="json", by_alias=True)}
    identity = [f"**Tool ID:** `{description.id}`", f"**Version:** {description.version}"]
    if description.category:
        identity.append(f"**Category:** {description.category}")
    parts = [
        f"# Manual: {description.id}",
        "\n".join(f"{line}  " for line in identity),
        "## 1. Functional Description",
        in_a_line(description.description),
        "## 2. Usage Interface",
        "### 2.1 Observable Properties",
        _table(description.properties),
        "### 2.2 Operations",
        "\n\n".join(_operation(one) for one in description.operations) or "None.",
        "### 2.3 Signals",
        "\n\n".join(
            _item("Signal", one.name, {"Trigger": one.description}, one.payload)
            for one in description.signals
        )
        or "None.",
        _PROTOCOL,
        protocol.strip() or _NO_PROTOCOL,
    ]
    front = json.dumps(head, ensure_ascii=False, separators=(",", ":"))
    return f"{_FENCE}\n{front}\n{_FENCE}\n" + "\n\n".join(parts) + "\n"


def parse_manual(text: str, tool: str = "") -> Manual:
    """Reads a manual.

    One without front matter of ours is somebody else's: a text that declares nothing.

    Args:
        text: The manual.
        tool: The id under which such a text is known.

    Raises:
        ValueError: The front matter is of ours, but breaks its schema or has another version.
    """
    front, body = _split(text)
    if front is None:
        return Manual(tool=tool, text=text)
    if front.get("manual") != _VERSION:
        raise ValueError(
            f"The manual's front matter has version {front.get('manual')!r}, and this one reads "
            f"version {_VERSION}: update coag, or the server that the manual is from."
        )
    try:
        description = ToolDescription.model_validate(front["tool"])
    except ValidationError as error:
        raise ValueError(
            f"The manual's front matter breaks its schema: {first_error(error)}"
        ) from error
    protocol = body.partition(f"\n{_PROTOCOL}\n")[2].strip()
    return Manual(
        tool=description.id,
        text=text,
        description=description,
        protocol="" if protocol == _NO_PROTOCOL else protocol,
    )


def _split(text: str) -> tuple[dict[str, Any] | None, str]:
    """The front matter, where it is of ours, and what follows it."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != _FENCE or _FENCE not in (ends := [line.rstrip() for line in lines[1:]]):
        return None, text
    end = ends.index(_FENCE) + 1
    try:
        front: Any = json.loads("\n".join(lines[1:end]))
    except (ValueError, RecursionError):  # YAML, TOML: somebody else's
        return None, text
    if not (isinstance(front, dict) and "manual" in front and "tool" in front):
        return None, text
    return cast("dict[str, Any]", front), "\n".join(lines[end + 1 :])


# ---- Section 2 ----


def _table(properties: Sequence[PropertyDescription]) -> str:
    if not properties:
        return "None."
    rows = [
        (
            f"`{one.name}`",
            _type(one.value_schema),
            in_a_line(f"{_limits(one.value_schema)} {one.unit}"),
            one.description,
        )
        for one in properties
    ]
    head = "| Property | Type | Range | Description |\n| :--- | :--- | :--- | :--- |\n"
    return head + "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in rows)


def _operation(one: OperationDescription) -> str:
    says = {
        "Description": one.description,
        "Behavior": one.behavior or ("Immediate." if one.latency is None else ""),
        "Preconditions": one.preconditions or "none",
        "Effects": one.effects or ("none: it only reads" if one.read_only else ""),
        "Latency": "" if one.latency is None else f"usually complete within {one.latency:g} s",
        "Completed by": f"signal `{one.completed_by}`" if one.completed_by else "",
        "Critical": "a wrong use cannot be undone" if one.critical else "",
    }
    return _item("Operation", one.name, says, one.parameters)


def _item(what: str, name: str, says: Mapping[str, str], payload: Mapping[str, Any]) -> str:
    lines = [f"* **{what}:** `{name}`"]
    lines += [f"  * *{label}:* {in_a_line(text)}" for label, text in says.items() if text]
    fields = _fields(payload)
    lines.append(f"  * *Payload:*{'' if fields else ' none'}")
    return "\n".join([*lines, *fields])


# ---- JSON Schema in words ----


def _type(schema: Mapping[str, Any]) -> str:
    """The type that a schema asks for, as a reader calls it."""
    kinds = [part.get("type") for part in schema.get("anyOf") or [schema]]
    return " or ".join(kind.capitalize() for kind in kinds if isinstance(kind, str)) or "Any"


def _limits(schema: Mapping[str, Any]) -> str:
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"{low:g} - {high:g}"
    if low is not None or high is not None:
        return f"at least {low:g}" if high is None else f"at most {high:g}"
    return "true, false" if schema.get("type") == "boolean" else ""


def _fields(schema: Mapping[str, Any]) -> list[str]:
    """The fields of an object, each in a line with its type and what it means."""
    required = schema.get("required", ())
    lines: list[str] = []
    for name, part in schema.get("properties", {}).items():
        traits = [_type(part), "" if name in required else "optional", _limits(part)]
        means = part.get("description", "")
        line = f"* `{name}` ({', '.join(filter(None, traits))}){': ' if means else ''}{means}"
        lines.append(in_a_line(line))
    return [f"    {line}" for line in lines]


def _cell(text: str) -> str:
    return in_a_line(text).replace("|", "\\|") or "-"
