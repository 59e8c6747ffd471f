"""Security labels of the Agent Framework as our trust, and back.

`agent_framework.security` labels messages and contents in
`additional_properties["security_label"]`: `integrity` is `trusted` or `untrusted`. Only that is
trust; `confidentiality` says who may see a text, and is kept as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from agent_framework import Content, Message

from coag.schema import Trust

LABEL = "security_label"
"""Where labels are kept."""
Confidentiality = Literal["public", "private", "user_identity"]
_UNTRUSTED, _TRUSTED = "untrusted", "trusted"


def trust_of(item: Message | Content, *, unlabelled: Trust = Trust.UNTRUSTED) -> Trust:
    """How far a message or content is trusted by its label.

    Of a message and its contents the lowest label counts. A label never raises trust: `trusted`
    is what `unlabelled` says. What is no label known here is untrusted.

    Args:
        item: The message or content.
        unlabelled: What it is without a label, as you know where it comes from.
    """
    items: list[Any] = [item]
    if isinstance(item, Message):
        items += item.contents
    labels = [label for one in items if (label := _label_in(one)) is not None]
    trusted = all(str(label.get("integrity")).lower() == _TRUSTED for label in labels)
    return unlabelled if trusted else Trust.UNTRUSTED


def label_of(trust: Trust, confidentiality: Confidentiality = "public") -> dict[str, str]:
    """The label that says how far a text of ours is trusted.

    A user's words are trusted there: by that framework's own terms, they are what steers.
    """
    integrity = _UNTRUSTED if trust is Trust.UNTRUSTED else _TRUSTED
    return {"integrity": integrity, "confidentiality": confidentiality}


def set_label(
    item: Message | Content, trust: Trust, confidentiality: Confidentiality | None = None
) -> None:
    """Labels a message or content.

    Where it has a label, its integrity is never raised, and its confidentiality stays unless one
    is given.
    """
    before = _label_in(item) or {}
    lowest = trust_of(item, unlabelled=trust)
    kept = confidentiality or before.get("confidentiality") or "public"
    properties: dict[str, Any] = dict(item.additional_properties or {})
    properties[LABEL] = {**before, **label_of(lowest), "confidentiality": kept}
    item.additional_properties = properties


def _label_in(item: Message | Content) -> Mapping[str, Any] | None:
    """The label; an empty one where there is something that is none."""
    properties: Mapping[str, Any] = item.additional_properties or {}
    if LABEL not in properties:
        return None
    label: object = properties[LABEL]
    return cast("Mapping[str, Any]", label) if isinstance(label, Mapping) else {}
