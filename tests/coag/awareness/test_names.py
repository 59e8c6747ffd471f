"""When two names are one, by their form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.awareness import EngineSettings
from coag.awareness.names import forms_of, is_code

GENERIC = EngineSettings().generic_words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Python", "python"),
        ("  'Python'. ", "python"),
        ("Python\u2019s", "Python"),
        ("Café", "cafe\u0301"),
        ("café", "cafe"),
        ("web scraping", "Web-Scraping"),
        ("web scraper", "webscraper"),
        ("BeautifulSoup", "Beautiful Soup"),
        ("`src/a.py`", "src/A.py"),
        ("straße", "STRASSE"),
    ],
)
def test_spellings_of_one_name_have_one_normal_form(one: str, other: str) -> None:
    assert forms_of(one).normal == forms_of(other).normal


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("C", "C++"),
        ("C", "C#"),
        ("net", ".NET"),
        ("a.py", "b.py"),
        ("test.py", "tests.py"),
        ("get_item", "get_items"),
        ("src/a.py", "src_a.py"),
        ("test_config.py", "config.py"),
        ("ConnectionRefusedError", "ConnectionResetError"),
        ("room 1 1", "room 11"),
        ("か", "が"),
        ("класс", "класи"),
        ("bus", "bu"),
        ("glass", "glas"),
        ("!", "?"),
        ("🙂", "🙃"),
    ],
)
def test_different_names_stay_different_in_every_form(one: str, other: str) -> None:
    assert forms_of(one, GENERIC).normal != forms_of(other, GENERIC).normal
    assert forms_of(one, GENERIC).singular != forms_of(other, GENERIC).singular
    assert forms_of(one, GENERIC).core != forms_of(other, GENERIC).core


@pytest.mark.parametrize(
    ("one", "other"),
    [("list comprehensions", "list comprehension"), ("libraries", "library"), ("boxes", "box")],
)
def test_a_plural_has_the_singular_form_of_its_singular(one: str, other: str) -> None:
    assert forms_of(one).normal != forms_of(other).normal
    assert forms_of(one).singular == forms_of(other).singular


def test_words_that_say_nothing_of_their_own_do_not_count_in_the_core() -> None:
    assert forms_of("Python programming", GENERIC).core == forms_of("Python", GENERIC).core
    assert forms_of("the Python", GENERIC).core != forms_of("Python", GENERIC).core
    assert forms_of("pasta carbonara", GENERIC).core != forms_of("pasta", GENERIC).core
    assert forms_of("programming language", GENERIC).core == ""


@given(st.text(min_size=1).filter(str.strip))
def test_every_name_has_a_normal_form_that_depends_on_no_case(name: str) -> None:
    forms = forms_of(name)
    assert forms.normal
    assert forms.singular
    assert forms_of(f" {name} ").normal == forms.normal


@pytest.mark.parametrize(
    "name",
    ["17", "#17", "17.", "ORD-17", "17b", "10.0.0.1", "9f8c1e2abcde", "A", "DE", "2026-03-01"],
)
def test_numbers_ids_and_short_codes_are_codes(name: str) -> None:
    assert is_code(name)


@pytest.mark.parametrize(
    "name",
    ["Python", "Python 3", "app2.py", "room 12", "order:17", "Go", "go", "", "++", "水", "USA"],
)
def test_words_and_names_of_files_are_no_codes(name: str) -> None:
    assert not is_code(name)
