from __future__ import annotations

import re
from importlib.resources import files

import httpx
import pytest

from vacuum_world.server import WorldServer

_FOLDER = files("vacuum_world.server").joinpath("page")
PARTS = sorted(f.name for f in _FOLDER.iterdir() if f.name.endswith(".js") and f.name != "page.js")
FILES = [
    ("/", "text/html"),
    ("/page.css", "text/css"),
    ("/page.js", "text/javascript"),
    *((f"/page/{name}", "text/javascript") for name in PARTS),
]


@pytest.fixture(scope="module")
def http(shared: tuple[WorldServer, httpx.Client]) -> httpx.Client:
    return shared[1]


@pytest.mark.parametrize(("path", "media"), FILES)
def test_the_page_is_served_under_a_strict_policy(
    http: httpx.Client, path: str, media: str
) -> None:
    response = http.get(path)
    assert response.headers["content-type"] == f"{media}; charset=utf-8"
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'")
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("name", ["index.html", "page.css", "nothing.js", "..%2f__init__.py"])
def test_only_modules_of_the_page_are_served_as_its_parts(http: httpx.Client, name: str) -> None:
    response = http.get(f"/page/{name}")
    assert (response.status_code, response.json()["error"]) == (404, "not_found")


def test_the_page_takes_nothing_from_elsewhere_and_has_no_inline_code(http: httpx.Client) -> None:
    page = http.get("/").text
    links = re.findall(r'(?:src|href)="([^"]+)"', page)
    loaded = {link for link in links if not link.startswith(("#", "data:image/svg+xml,"))}
    assert loaded == {"/page.css", "/page.js"}
    assert not re.search(r"<style|style=|\son\w+=|<script(?![^>]*src)", page)


@pytest.mark.parametrize("path", [path for path, _ in FILES if path != "/"])
def test_no_part_of_the_page_names_another_host_or_makes_markup_of_text(
    http: httpx.Client, path: str
) -> None:
    text = http.get(path).text.replace("http://www.w3.org/2000/svg", "")
    assert "://" not in text
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
    imported = re.findall(r'from "([^"]+)"', text)
    assert {name.rpartition("/")[2] for name in imported} <= set(PARTS)


def test_the_page_follows_light_and_dark_and_marks_the_focus(http: httpx.Client) -> None:
    style = http.get("/page.css").text
    assert "prefers-color-scheme: dark" in style
    assert "prefers-reduced-motion: reduce" in style
    assert ":focus-visible" in style
