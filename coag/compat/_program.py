"""Whether a function's source stands alone."""

from __future__ import annotations

import builtins
import dis
from collections.abc import Callable, Iterator, Mapping
from types import CodeType
from typing import Any, cast

from coag.errors import ConfigurationError


def check_program(name: str, function: Callable[..., Any], config: Mapping[str, Any]) -> None:
    """Refuses a function whose source uses names that a loaded one would not find.

    Args:
        name: The tool's name, for the error.
        function: The function.
        config: The config of AutoGen's `FunctionTool`: its `global_imports` are found.

    Raises:
        ConfigurationError: Names what it closes over or uses of its module.
    """
    code = cast("CodeType", getattr(function, "__code__"))  # noqa: B009 - a Callable has none
    if code.co_freevars:
        raise ConfigurationError(
            f"Tool {name!r} closes over {', '.join(code.co_freevars)}, which its source does not "
            "bring along. Move the function to the top level of a module, or make a BaseTool "
            "that is a component and keeps them in its config."
        )
    found = {*dir(builtins), code.co_name, *_imported(config.get("global_imports", []))}
    missing = sorted(set(_globals(code)) - found)
    if missing:
        raise ConfigurationError(
            f"Tool {name!r} uses {', '.join(missing)} of its module, which its source does not "
            "bring along. Move the function to the top level of a module that can be imported, "
            "or list them in the FunctionTool's global_imports."
        )


def _globals(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals(constant)


def _imported(imports: list[Any]) -> Iterator[str]:
    """The names that AutoGen's import statements bind."""
    for one in imports:
        if isinstance(one, str):
            yield one.split(".")[0]
            continue
        given = cast("Mapping[str, Any]", one)
        yield from [given["alias"]] if "alias" in given else _imported(given["imports"])
