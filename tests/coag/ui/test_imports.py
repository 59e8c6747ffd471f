"""What needs textual says so where it is not installed."""

from __future__ import annotations

import importlib
import sys

import pytest

from coag.errors import ConfigurationError


def test_without_textual_the_live_view_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "textual.app", None)
    monkeypatch.delitem(sys.modules, "coag.ui.top", raising=False)
    with pytest.raises(ConfigurationError, match=r"pip install 'coag\[ui\]'"):
        importlib.import_module("coag.ui.top")
