"""The graph of what an agent can do takes no nonsense, and learns of what nobody expected."""

from __future__ import annotations

from typing import Any

import pytest

from coag.errors import ConfigurationError
from coag.judgment import START, Capability, CapabilityEdge, CapabilityGraph


def graph() -> CapabilityGraph:
    return CapabilityGraph(
        [
            Capability(name="web_fetch", summary="Reads pages for research", utility=0.6),
            Capability(name="write", summary="Writes files", keywords=("build",)),
        ]
    )


def test_every_capability_follows_the_start_and_every_other() -> None:
    keys = {edge.key for edge in graph().edges()}
    assert keys == {
        (START, "web_fetch"),
        (START, "write"),
        ("web_fetch", "write"),
        ("write", "web_fetch"),
    }


def test_a_graph_comes_back_from_its_manifest_with_what_was_learned() -> None:
    made = graph()
    made.edge("write", "web_fetch").weight = 1.5
    again = CapabilityGraph.from_manifest(made.to_json())
    assert again.to_json() == made.to_json()


def test_a_list_of_capabilities_is_a_manifest() -> None:
    assert list(CapabilityGraph.from_manifest([{"name": "write"}]).capabilities) == ["write"]


def test_the_words_of_a_task_speak_for_capabilities() -> None:
    found = graph().relevance("Research: read these pages, then build")
    assert found["web_fetch"] == 1.0
    assert 0 < found["write"] < 1


def test_an_edge_that_was_not_expected_is_made() -> None:
    made = CapabilityGraph([Capability(name="a"), Capability(name="b", utility=0.9)], edges=[])
    assert made.edge("a", "b").utility == 0.9
    assert made.edge("a", "a").key == ("a", "a")


def test_a_capability_that_is_found_later_is_joined_with_all() -> None:
    made = graph()
    made.add(Capability(name="mcp_search"))
    assert {edge.target for edge in made.leaving("mcp_search")} == {"web_fetch", "write"}
    assert "mcp_search" in {edge.target for edge in made.leaving(START)}


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        ({"capabilities": [{"name": "a"}, {"name": "a"}]}, "there twice"),
        ({"capabilities": [{"name": "start"}]}, "cannot be named"),
        ({"capabilities": [{"name": "a", "utility": float("nan")}]}, "from 0 to 1, got nan"),
        ({"capabilities": [{"name": "a", "cost": True}]}, "got True"),
        ({"capabilities": [{"name": "a", "colour": "red"}]}, "colour"),
        ({"capabilities": [{"summary": "x"}]}, "not complete"),
        ({"capabilities": [{"name": 3}]}, "must be a text"),
        ({"capabilities": "a"}, "list of objects"),
        ({"capabilities": [{"name": "a", "keywords": "web"}]}, "list of texts, got 'web'"),
        (
            {
                "capabilities": [{"name": "a"}, {"name": "b"}],
                "edges": [{"source": "a", "target": "b", "tries": -1}],
            },
            "whole number from 0, got -1",
        ),
        ({"nodes": []}, "nodes"),
        ({"capabilities": [{"name": "a"}], "edges": [{"source": "a", "target": "b"}]}, "'b'"),
        ({"capabilities": [{"name": "a"}], "edges": [{"source": "a", "target": "a"}]}, "cannot"),
        (
            {
                "capabilities": [{"name": "a"}, {"name": "b"}],
                "edges": [{"source": "a", "target": "b"}] * 2,
            },
            "there twice",
        ),
        (
            {
                "capabilities": [{"name": "a"}, {"name": "b"}],
                "edges": [{"source": "a", "target": "b", "weight": 9}],
            },
            "got 9",
        ),
    ],
)
def test_nonsense_in_a_manifest_is_named(manifest: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        CapabilityGraph.from_manifest(manifest)


def test_an_unknown_capability_is_named() -> None:
    with pytest.raises(ConfigurationError, match="'nobody'"):
        graph().leaving("nobody")
    with pytest.raises(ConfigurationError, match="'nobody'"):
        graph().edge("write", "nobody")
    with pytest.raises(ConfigurationError, match="'start'"):
        graph().edge("write", START)


def test_an_edge_knows_its_ends() -> None:
    assert CapabilityEdge(source="a", target="b").key == ("a", "b")


def test_edges_may_lead_in_a_circle() -> None:
    edges = [{"source": a, "target": b} for a, b in ("ab", "bc", "ca")]
    made = CapabilityGraph.from_manifest(
        {"capabilities": [{"name": one} for one in "abc"], "edges": edges}
    )
    assert [one.target for one in made.leaving("c")] == ["a"]
