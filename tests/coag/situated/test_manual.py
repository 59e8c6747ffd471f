import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.pump import Pump

from coag.situated import (
    EnhancedTool,
    OperationDescription,
    PropertyDescription,
    SignalDescription,
    ToolDescription,
)
from coag.situated.manual import parse_manual, render_manual


def test_a_manual_has_the_sections_of_the_schema_and_says_what_the_tool_declares() -> None:
    body = parse_manual(Pump().manual()).body

    headings = [line for line in body.splitlines() if line.startswith("#")]
    assert headings == [
        *("# Manual: pump", "## 1. Functional Description", "## 2. Usage Interface"),
        *("### 2.1 Observable Properties", "### 2.2 Operations", "### 2.3 Signals"),
        "## 3. Protocol & Safety",
    ]
    for line in (
        "**Version:** 4.0.0  ",
        "Pumps coolant into the circuit.",
        "| `status` | String | `OFF`, `RAMPING`, `NOMINAL` | Its state. |",
        "| `pressure` | Integer | 0 - 3000 psi | Pressure. |",
        r"| `valves` | Array | - | Open \| closed. |",
        "* **Operation:** `power_on`",
        "  * *Preconditions:* `status` is `OFF`",
        "  * *Latency:* usually complete within 5 s",
        "  * *Completed by:* signal `pump.pressure_nominal`",
        "    * `step` (Integer, optional): Psi that are added in a second, at most 3000.",
        "  * *Critical:* a wrong use cannot be undone",
        "* **Signal:** `pump.pressure_nominal`",
        "    * `psi` (Integer)",
        "2. **Never** open the valve while `status` is `RAMPING`.",
    ):
        assert line in body.splitlines()


def test_a_tool_that_only_documents_has_a_manual() -> None:
    class EmployeeHandbook(EnhancedTool):
        """The rules of the house."""

        protocol = "Badges are worn."

    body = parse_manual(EmployeeHandbook().manual()).body

    assert body.count("None.") == 3
    assert body.endswith("Badges are worn.\n")


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=40)
SCHEMA = st.sampled_from(
    [
        {},
        {"type": "integer", "minimum": 1},
        {"type": "number", "maximum": 2.5},
        {"enum": ["a", 1, None]},
        {"const": "x"},
        {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "a\n## 3. b"},
        {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]},
    ]
)
DESCRIPTIONS = st.builds(
    ToolDescription,
    id=st.sampled_from(["pump", "main_valve"]),
    description=TEXT,
    category=TEXT,
    version=TEXT,
    properties=st.lists(
        st.builds(
            PropertyDescription,
            name=st.sampled_from(["a", "b_c"]),
            description=TEXT,
            value_schema=SCHEMA,
            unit=TEXT,
        ),
        max_size=3,
    ).map(tuple),
    signals=st.lists(
        st.builds(SignalDescription, name=TEXT, description=TEXT, payload=SCHEMA), max_size=2
    ).map(tuple),
    operations=st.lists(
        st.builds(
            OperationDescription,
            name=TEXT,
            description=TEXT,
            behavior=TEXT,
            preconditions=TEXT,
            effects=TEXT,
            parameters=SCHEMA,
            latency=st.none() | st.floats(0.1, 1e6),
            completed_by=st.none() | TEXT,
            critical=st.booleans(),
            read_only=st.booleans(),
        ),
        max_size=2,
    ).map(tuple),
)


@given(DESCRIPTIONS, TEXT)
def test_reading_what_was_rendered_gives_what_was_declared(
    described: ToolDescription, protocol: str
) -> None:
    manual = parse_manual(render_manual(described, protocol))

    assert manual.description == described
    assert manual.protocol == protocol.strip()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# A manual\n\nPress the button.",
        "---\nname: pump\n---\n# A skill",
        '---\n{"name": "pump"}\n---\n# A skill',
        '---\n["manual", "tool"]\n---\ntext',
        "---\nnever closed",
        "---\n" + "[" * 100_000 + "\n---\ntext",
    ],
)
def test_a_manual_of_somebody_else_is_a_text(text: str) -> None:
    manual = parse_manual(text, tool="pump")

    assert (manual.tool, manual.text, manual.body) == ("pump", text, text)
    assert manual.description is None


def test_front_matter_of_ours_that_breaks_its_schema_is_refused_with_the_place() -> None:
    text = Pump().manual()

    with pytest.raises(ValueError, match="operations"):
        parse_manual(text.replace('"operations":[', '"operations":[7,'))
    with pytest.raises(ValueError, match="version 2"):
        parse_manual(text.replace('{"manual":1', '{"manual":2'))


def test_the_front_matter_is_json_between_two_fences() -> None:
    first, front, second, *_ = Pump().manual().splitlines()

    assert first == second == "---"
    assert json.loads(front)["tool"]["operations"][0]["completedBy"] == "pump.pressure_nominal"
