"""Import names, and values that come back from them."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits import importable
from pydantic import BaseModel, SecretStr

from coag.context import CoagContext
from coag.errors import ConfigurationError
from coag.schema import Imported, SteppingClock, from_import_name, import_name, provider_name


class Locked(BaseModel):
    key: SecretStr


@pytest.mark.parametrize(
    "value",
    [importable.triple, importable.Answer, importable.Outer.rule, importable.Outer.Inner, dict],
)
def test_a_value_of_a_module_comes_back_by_its_name(value: object) -> None:
    assert from_import_name(import_name(value)) is value


def test_a_class_method_comes_back_bound_and_what_a_package_shows_by_its_public_name() -> None:
    name = import_name(importable.Outer.made)
    assert isinstance(from_import_name(name)(), importable.Outer)
    assert import_name(CoagContext) == "coag.context:CoagContext"


def _nameless() -> list[tuple[object, str]]:
    def local() -> None: ...

    return [
        (lambda: 1, "lambda"),
        (local, "within a function"),
        (functools.partial(importable.triple, 1), "partial has no import name"),
        (importable.Counter(), "Counter has no import name"),
    ]


@pytest.mark.parametrize(("value", "message"), _nameless())
def test_what_cannot_be_imported_is_refused_with_what_to_do(value: object, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        import_name(value)


def test_a_name_that_leads_to_another_value_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importable.triple
    monkeypatch.setattr(importable, "triple", len)
    with pytest.raises(ConfigurationError, match=r"not found in kits\.importable"):
        import_name(real)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no name", "write 'module:name'"),
        ("kits.importable.triple", "write 'module:name'"),
        ("kits.nowhere:x", "cannot be imported"),
        ("kits.importable:nobody", "has no 'nobody'"),
        ("os:path:join", "write 'module:name'"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused(name: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        from_import_name(name)


@given(st.text(max_size=30))
def test_any_text_that_names_nothing_is_refused_and_shown(name: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        from_import_name(name)
    assert repr(name) in str(caught.value)


@given(limit=st.integers(), names=st.lists(st.text(), max_size=3))
def test_a_dataclass_comes_back_from_its_fields(limit: int, names: list[str]) -> None:
    rule = importable.AtMost(limit, tuple(names))
    described = Imported.of(rule)
    loaded = Imported.model_validate_json(described.model_dump_json(exclude_none=True))
    assert loaded.get() == rule
    assert Imported.of(loaded.get()) == described


def test_state_is_no_argument_and_an_object_that_holds_nothing_needs_none() -> None:
    module = importable.Observer(name="eye")
    module.seen.append("percept")
    loaded = Imported.of(module).get()
    assert (loaded.name, loaded.seen) == ("eye", [])
    assert isinstance(Imported.of(importable.Quiet()).get(), importable.Quiet)


@pytest.mark.parametrize(
    "value", [importable.Counter(), SteppingClock(), {1}, 1.5, Locked(key=SecretStr("x")), print]
)
def test_an_object_without_known_fields_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError):
        Imported.of(value)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("kits.importable:AtMost", {"limit": "many"}, "AtMost"),
        ("subprocess:Popen", {"args": ["false"]}, "Python's own"),
        ("autogen_core:CancellationToken", {}, "holds values"),
        ("kits.importable:Counter", {"size": 3}, "of classes, only pydantic models"),
        ("kits.importable:Counter", {}, "cannot be made"),
        ("kits.importable:triple", {"number": 1}, "no class"),
        ("os:system", None, "Python's own"),
        ("builtins:exec", None, "Python's own"),
        ("kits.importable:Path", None, "Python's own"),
        ("io:open", None, "Python's own"),
    ],
)
def test_only_objects_with_declared_fields_are_made_and_none_of_pythons_own(
    name: str, arguments: dict[str, Any] | None, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Imported(name=name, arguments=arguments).get()


def test_only_listed_packages_are_imported_where_a_list_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AUTOGEN_ALLOWED_PROVIDER_NAMESPACES", "other, kit")
    with pytest.raises(ConfigurationError, match=r"'kits\.importable' is not imported"):
        from_import_name("kits.importable:triple")
    assert from_import_name("coag.schema:Imported") is Imported
    monkeypatch.setenv("AUTOGEN_ALLOWED_PROVIDER_NAMESPACES", "other, kits")
    assert from_import_name("kits.importable:triple") is importable.triple


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (importable.Outer.Inner, "within another class"),
        (type("X", (), {}), "not found"),
        (type("X", (), {"component_provider_override": "pack._inner.X"}), "private path"),
    ],
)
def test_a_component_class_that_cannot_be_loaded_is_refused(kind: type, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        provider_name(kind)
