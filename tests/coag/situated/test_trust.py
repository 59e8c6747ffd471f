import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.situated import ActivityStore, OperationDescription, ToolDescription, ToolRefusedError
from coag.situated.catalogue import Pins, owned_tools, safe_description, safe_text


def tool(id: str = "bell", description: str = "Rings.") -> ToolDescription:
    return ToolDescription(id=id, description=description)


@given(st.text(alphabet=st.sampled_from("a<>/![]():\u202e\u200b\x1b\ufeff\n "), max_size=60))
def test_no_text_keeps_tags_links_or_what_nobody_sees(text: str) -> None:
    shown = safe_text(text)
    assert not re.search(r"<[A-Za-z/!?]|\]\(|\]\[|[\u202e\u200b\x1b\ufeff]", shown)
    assert safe_text(shown) == shown


def test_a_long_text_is_cut_and_says_how_much_is_missing() -> None:
    assert safe_text("x" * 20, 5) == "xxxxx [… 15 more]"


def test_texts_of_a_description_are_made_safe_and_its_schemas_stay() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": ["<b>"]}}}
    run = OperationDescription(name="run", behavior="<b>now</b>", parameters=schema)
    safe = safe_description(tool(description="[x](y)").model_copy(update={"operations": (run,)}))
    assert safe.description == "[x] (y)"
    assert safe.operations[0].behavior == "< b>now< /b>"
    assert safe.operations[0].parameters == schema


def test_the_first_description_and_manual_are_accepted_and_others_after_approval_only() -> None:
    store = ActivityStore()
    pins = Pins(store)
    pins.see_description("here", tool())
    pins.see_manual("here", "bell", "Ring.")
    pins.check("here", "bell")
    pins.see_manual("here", "bell", "Ring twice.")
    again = Pins(store)  # after a restart
    again.see_description("here", tool(description="Rings loudly."))
    again.see_manual("here", "bell", "Ring twice.")
    assert again.changed("here", "bell") == "description and manual"
    with pytest.raises(ToolRefusedError, match="until a person has read what changed"):
        again.check("here", "bell")
    again.approve("here", "bell")
    again.check("here", "bell")
    later = Pins(store)
    later.see_description("here", tool())
    later.see_manual("here", "bell", "Ring.")
    assert later.changed("here", "bell") == "description and manual"


def test_approval_of_one_server_says_nothing_of_another() -> None:
    pins = Pins(ActivityStore())
    pins.see_description("here", tool())
    pins.see_description("there", tool(description="Another."))
    pins.see_description("there", tool(description="Changed."))
    pins.approve("here", "bell")
    assert pins.changed("there", "bell") == "description"


def test_an_id_belongs_to_who_had_it_first_also_while_that_one_does_not_answer() -> None:
    pins = Pins(ActivityStore())
    owned, problems = owned_tools({"a": [tool()], "b": [tool(), tool("gong")]}, pins)
    assert {id: server for id, (server, _) in owned.items()} == {"bell": "a", "gong": "b"}
    assert len(problems) == 1
    pins.see_description("a", tool())
    owned, problems = owned_tools({"a": None, "b": [tool()]}, pins)
    assert (owned, len(problems)) == ({}, 1)
    owned, problems = owned_tools({"a": [], "b": [tool()]}, pins)  # it has given it up
    assert (owned["bell"][0], problems) == ("b", [])


def test_more_tools_than_anybody_reads_are_cut() -> None:
    offers = {"here": [tool(f"t{number}") for number in range(600)]}
    owned, problems = owned_tools(offers, Pins(ActivityStore()))
    assert (len(owned), problems) == (500, ["'here' offers 600 tools; 500 are used."])
