from __future__ import annotations

import re

import httpx
import pytest


@pytest.mark.parametrize(
    ("path", "media"),
    [("/", "text/html"), ("/page.css", "text/css"), ("/page.js", "text/javascript")],
)
def test_the_page_is_served_under_a_strict_policy(
    http: httpx.Client, path: str, media: str
) -> None:
    response = http.get(path)
    assert response.headers["content-type"] == f"{media}; charset=utf-8"
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'")
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"


def test_the_page_takes_nothing_from_elsewhere_and_has_no_inline_code(http: httpx.Client) -> None:
    page = http.get("/").text
    links = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert set(links) == {"/page.css", "/page.js"}
    assert not re.search(r"<style|style=|\son\w+=|<script(?![^>]*src)", page)
    for path in links:
        assert "://" not in http.get(path).text


def test_the_page_follows_light_and_dark_and_marks_the_focus(http: httpx.Client) -> None:
    style = http.get("/page.css").text
    assert "prefers-color-scheme: dark" in style
    assert ":focus-visible" in style
