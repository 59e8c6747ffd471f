"""What counts as an entity of a record."""

from __future__ import annotations

import pytest

from coag.memory.network import entities_of, entity_named
from coag.schema import Event, Fact
from tests.kits.remembered import remembered


@pytest.mark.parametrize(
    ("name", "entity"),
    [
        ("Boat 418", "boat 418"),
        ("  Nils   HARTL's ", "nils hartl"),
        ("blue-heron", "blue heron"),
        ("Straße", "strasse"),
        ("418", ""),
        ("", ""),
        ("\u202e \x07", ""),
        ("a whole sentence of seven words in all", ""),
    ],
)
def test_a_name_has_one_form_and_numbers_have_none(name: str, entity: str) -> None:
    assert entity_named(name) == entity


def test_fields_come_before_names_in_the_text() -> None:
    record = remembered(
        "Boat 418 belongs to Nils Hartl.",
        fact=Fact(subject="The Gull", attribute="owner", value="Nils Hartl"),
        event=Event(place="Old Harbour"),
    )
    assert entities_of(record, 24) == ("the gull", "nils hartl", "old harbour", "boat 418")


def test_of_a_long_text_the_first_entities_count() -> None:
    names = ", ".join(f"N{letter * 3}" for letter in "abcdefgh")
    assert entities_of(remembered(f"There were {names}."), 3) == ("naaa", "nbbb", "nccc")


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("The Blue Heron sails.", ("blue heron",)),
        ("Dario Moss's manager is Wanda Zander.", ("dario moss", "wanda zander")),
        ("Wanda's Aunt Vera came. Then Kai left", ("wanda", "aunt vera", "kai")),
        ("nothing is written large here", ()),
        ("In 2025 it was 12.", ()),
    ],
)
def test_names_are_words_with_capitals(text: str, entities: tuple[str, ...]) -> None:
    assert entities_of(remembered(text), 24) == entities


def test_who_said_it_is_no_entity() -> None:
    assert entities_of(remembered("it rains", source="Alice"), 24) == ()
