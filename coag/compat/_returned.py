"""A tool's result on its way into a receipt, and out of it again."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from autogen_core import Image
from autogen_core.tools import ImageResultContent, TextResultContent, ToolResult
from pydantic import BaseModel

from coag.errors import ConfigurationError
from coag.schema import (
    Intent,
    Receipt,
    ReceiptStatus,
    Returned,
    from_import_name,
    well_formed,
)

from ._plain_json import plain_json
from ._results import read_result

_OURS = frozenset({"coag", "autogen_core", "autogen_agentchat", "autogen_ext"})
"""Packages whose modules are imported for the classes of recorded results."""
_PLAIN = frozenset(ToolResult.model_fields)
_ModelT = TypeVar("_ModelT", bound=BaseModel)


def status_of(result: ToolResult) -> ReceiptStatus:
    """What a result says of how its call ended."""
    if getattr(result, "may_have_happened", False):
        return ReceiptStatus.UNKNOWN
    failed = read_result(text_of(result), is_error=result.is_error).is_error
    return ReceiptStatus.FAILED if failed else ReceiptStatus.DONE


def text_of(result: ToolResult) -> str:
    """The result as the text of its receipt; an image is `[image]` there."""
    return well_formed(result.to_text(replace_image="[image]"))


def returned_of(
    result: ToolResult, action: str, status: ReceiptStatus, shown: Sequence[object] = ()
) -> Returned | None:
    """What a receipt must hold beside the text and the status; None if that is nothing.

    Args:
        result: What the tool gave back.
        action: The action that was called.
        status: The status of the receipt.
        shown: What it had shown before.
    """
    kind = type(result)
    parts = result.result
    alone = len(parts) == 1 and isinstance(parts[0], TextResultContent)
    returned = Returned(
        type=None if kind is ToolResult else _name_of(kind),
        name=None if result.name == action else well_formed(result.name),
        is_error=result.is_error,
        parts=None if alone else tuple(map(_part, parts)),
        fields=plain_json(result.model_dump(mode="json", exclude=set(_PLAIN))),
        shown=tuple(map(_item, shown)),
    )
    told = Returned(is_error=status is not ReceiptStatus.DONE)
    return None if returned == told else returned


def result_of(intent: Intent, receipt: Receipt) -> ToolResult:
    """The result of a recorded call.

    Raises:
        ConfigurationError: It is of a class that cannot be found.
    """
    failed = receipt.status is not ReceiptStatus.DONE
    returned = receipt.returned or Returned(is_error=failed)
    parts = ({"text": receipt.content},) if returned.parts is None else returned.parts
    return _class_of(returned.type, ToolResult).model_validate(
        {
            **returned.fields,
            "name": returned.name or intent.action,
            "result": [_content(part) for part in parts],
            "is_error": returned.is_error,
        }
    )


def shown_of(receipt: Receipt) -> list[Any]:
    """What a recorded call had shown while it ran, in order.

    Raises:
        ConfigurationError: Something of it is of a class that cannot be found.
    """
    items = receipt.returned.shown if receipt.returned else ()
    return [_shown(item) for item in items]


def _shown(item: Mapping[str, Any]) -> Any:
    if "type" not in item:
        return item["value"]
    return _class_of(item["type"], BaseModel).model_validate(item["value"])


def _part(part: TextResultContent | ImageResultContent) -> dict[str, Any]:
    if isinstance(part, TextResultContent):
        return {"text": well_formed(part.content)}
    return {"image": part.content.data_uri}


def _content(part: Mapping[str, Any]) -> TextResultContent | ImageResultContent:
    if "image" in part:
        return ImageResultContent(content=Image.from_uri(part["image"]))
    return TextResultContent(content=part["text"])


def _item(item: object) -> dict[str, Any]:
    if isinstance(item, BaseModel):
        return {"type": _name_of(type(item)), "value": plain_json(item)}
    return {"value": plain_json(item)}


def _name_of(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _class_of(name: str | None, base: type[_ModelT]) -> type[_ModelT]:
    """The class of that name; of packages that are not ours only if they are imported already."""
    if name is None:
        return base
    module = name.partition(":")[0]
    if module.partition(".")[0] not in _OURS and module not in sys.modules:
        raise ConfigurationError(
            f"A recorded result is a {name!r}. Import {module!r} before the run is replayed."
        )
    found = from_import_name(name)
    if not isinstance(found, type) or not issubclass(found, base):
        raise ConfigurationError(f"A recorded result is a {name!r}, which is no {base.__name__}.")
    return found
