"""The embedder that a command line names."""

from __future__ import annotations

import importlib

from coag.store import Embedder


def embedder_named(name: str | None) -> Embedder | None:
    """What `package.module:callable` makes; None, the default, without a name."""
    if name is None:
        return None
    module, _, made = name.partition(":")
    return getattr(importlib.import_module(module), made)()
