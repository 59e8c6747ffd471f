"""What a policy file may say, and how its problems are reported."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.policy import Policy, PolicyError, load_policy, read_policy, run_cases
from coag.policy.files import PolicyProblem

_DOCS = Path(__file__).parents[3] / "docs"


def problems(text: str) -> list[str]:
    """What is wrong with a file, each with its place."""
    with pytest.raises(PolicyError) as caught:
        read_policy(text, "p.yaml")
    return str(caught.value).splitlines()


def rule(*lines: str) -> str:
    return "\n".join(["rules:", "- name: a", "  tools: pay", *(f"  {line}" for line in lines)])


def test_everything_that_is_wrong_is_reported_at_once_with_its_place() -> None:
    text = """\
rules:
  - name: a
    tools: pay
    nevr: true
  - name: b
    tools: issue_r\u0435fund
    only_if: arguments.amount = 3
  - name: b2
    tools: pay
    never: amount > 3
    becaus: x
  - name: c
    name: d
    tools: pay
    never: true
  - {name: c, tools: pay, at_most: many, per: week}
testz: []
"""
    found = problems(text)
    assert [one.split(": ")[0] for one in found] == [
        "p.yaml:4:5",
        "p.yaml:6:12",
        "p.yaml:7:31",
        "p.yaml:10:12",
        "p.yaml:11:5",
        "p.yaml:13:5",
        "p.yaml:16:36",
        "p.yaml:16:47",
        "p.yaml:17:1",
    ]
    assert found[0].endswith("there is no key 'nevr' here; did you mean 'never'?")
    assert "U+0435" in found[1]
    assert "write == to compare" in found[2]
    assert "an argument is written arguments.amount" in found[3]
    assert "did you mean 'because'?" in found[4]
    assert "'name' is here for the second time, first in line 12" in found[5]
    assert "not 'many'" in found[6]
    assert "not 'week'" in found[7]
    assert "did you mean 'tests'?" in found[8]


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        ("arguments.a > 1 and true", "write && instead of and"),
        ("not arguments.a", "write ! instead of not"),
        ("arguments.a == null", "write has(arguments.NAME)"),
        ("argumets.a > 1", "did you mean 'arguments'?"),
        ("1 < arguments.a < 5", "write a < b && b < c"),
        ("arguments.a == True", "write true instead of True"),
        ("size(arguments) > 1", "say what of it: arguments.NAME"),
        ("arguments[tool] == 1", "say what of it"),
        ("arguments.a.sum() > 1", "there is no sum() here"),
        ("summ(arguments.a) > 1", "there is no function summ()"),
        ("arguments.a.all(i, i.all(j, j > 1))", "cannot stand within another loop"),
        ("arguments.a.all(state, true)", "write all(item, CONDITION ON item)"),
        ("arguments.a.map(i, i + 1) == []", "there is no map() here"),
        ("arguments.a.matches(arguments.b)", "takes a pattern in quotes"),
        ("arguments.a > 60EUR", "'EUR' cannot follow '60'"),
        ("arguments.a > 0x1F", "cannot follow '0'"),
        ("arguments.a > .5", "write 0.5"),
        ("arguments.a > 9007199254740993", "is larger than"),
        ("arguments.a // 2 > 1", "// would begin a comment"),
        ("arguments.a / arguments.b > 5", "write a > 5 * b"),
        ("arguments.a / 1e-400 > 5", "divide by a number that is not 0"),
        ("arguments.a / 0.0 > 5", "divide by a number that is not 0"),
        ("arguments.a % 2 == 0", "cannot stand here"),
        ("'abc", "a text has no end"),
        ("arguments.a >", "mismatched input"),
        ("(" * 200 + "true" + ")" * 200, "too many parentheses"),
        ("arguments.\u0430mount > 1", "U+0430"),
        ("1 + 1", "neither true nor false"),
        ("true " + "&& true " * 200, "at most 1,000 are read"),
        ("{1: 2} == {1: 2}", "cannot stand here"),
        ("", "the condition is empty"),
    ],
)
def test_a_condition_that_is_not_understood_is_reported_when_the_file_is_read(
    condition: str, problem: str
) -> None:
    quoted = condition.replace("'", "''")
    assert problem in problems(rule(f"never: '{quoted}'"))[0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is empty"),
        ("[", "this is no YAML"),
        ("rules: []", "there is no rule"),
        ("rules: pay", "rules is a list"),
        ("- rules", "write rules: and below it a list"),
        ("rules:\n- &a {name: a, tools: pay, never: true}\n- *a", "write it out"),
        ("rules: !!python/object/apply:os.system [ls]", "tags (!) are not used here"),
        ("rules:\n- a\n---\nrules: []", "a second document begins"),
        ("rules: " + "[" * 50 + "]" * 50, "more than 20 levels"),
        ("rules:\n- <<: {never: true}\n  name: a\n  tools: pay", "no key '<<'"),
        ("? [a]\n: b", "a key must be a word"),
        (rule("never: true", "only_if: true"), "it has never and only_if"),
        (rule("because: so"), "it has none"),
        (rule("at_most: 3"), "at_most needs per: goal"),
        (rule("at_most: 2.5", "per: run"), "give a whole number"),
        (rule("at_most: 3000", "per: run"), "give a whole number up to 400"),
        (rule("at_most: -1", "per: run"), "greater than or equal to 0"),
        (rule("at_most: 010", "per: run"), "without zeros before it"),
        (rule("at_most: 1_00", "per: run"), "write a number as 400"),
        (rule("at_most: \u0661\u0660", "per: run"), "write a number as 400"),
        (rule("at_most: 100", "sum:", "per: run"), "sum: is empty"),
        (rule("never:", "needs_approval: true"), "never: is empty"),
        (rule("at_most: .nan", "sum: a", "per: run"), "not '.nan'"),
        (rule("never: true", "sum: a"), "sum belongs to at_most"),
        (rule("once: []", "per: run"), "once"),
        (rule("only_trusted: []"), "only_trusted"),
        (rule("needs_approval: state.a > 1"), "looks at arguments and tool only"),
        ("rules:\n- {name: a, tools: respond, needs_approval: true}", "respond is the agent's"),
        ("rules:\n- {name: a, tools: [], never: true}", "tools"),
        ("rules:\n- {name: a, tools: 'pa[y]', never: true}", "has * and ? only"),
        ("rules:\n- name: a\n  tools: pay,refund\n  never: true", "has the sign ',', which no"),
        ("rules:\n- {name: a, tools: pay|refund, never: true}", "write a list, [a, b]"),
        (
            "rules:\n- {name: a, tools: pay, except: p*, never: true}",
            "leaves nothing of tools: pay",
        ),
        (
            "rules:\n- {name: a, tools: '*', except: '*', never: true}",
            ": except: * leaves nothing of tools: *",
        ),
        ("rules:\n- {name: a, tools: pay, never: {}}", "never: input should be a valid string"),
        ("rules:\n- a", "p.yaml:2:3: keys and values are meant here"),
        (rule("never: true") + "\ntests:\n- {tool: pay, expect: maybe}", "not 'maybe'"),
        (rule("never: true") + "\ntests:\n- {tool: pay, expect: ask, by: b}", "no rule named 'b'"),
        (rule("never: true") + "\ntests:\n- {expect: ask, line: 3}", "there is no key 'line'"),
        ("rules:\n- \x07", "cannot stand in a file"),
        ('a: "\\ud800\\udfff"', "p.yaml"),
    ],
)
def test_a_file_that_is_no_policy_says_why(text: str, problem: str) -> None:
    assert problem in "\n".join(problems(text))


def test_words_that_yaml_takes_for_values_stay_words() -> None:
    policy = read_policy("rules:\n- {name: no, tools: [on, off], never: true, because: 1_000}")
    assert (policy[0].name, policy[0].tools, policy[0].because) == ("no", ("on", "off"), "1_000")


def test_a_file_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"rules:\n- \xe9")
    (tmp_path / "large").write_bytes(b"#" * 300_000)
    for name, problem in (
        ("none", "No such file"),
        ("latin", "line 2 is no UTF-8"),
        ("large", "256"),
    ):
        with pytest.raises(PolicyError, match=problem):
            load_policy(tmp_path / name)


_PARTS = st.sampled_from(
    ["rules", "tests", "name", "tools", "never", "pay", "once", "all", "per", "run", "true", "~"]
)
_YAML = st.recursive(
    _PARTS | st.text(max_size=5) | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_PARTS, inner, max_size=4),
    max_leaves=12,
)


def _read(text: str) -> Policy | tuple[PolicyProblem, ...]:
    """The policy, or what is wrong."""
    try:
        return read_policy(text)
    except PolicyError as error:
        return error.problems


@given(st.text(max_size=80) | st.binary(max_size=60).map(lambda data: data.decode("latin-1")))
def test_any_text_is_a_policy_or_gets_a_list_of_problems(text: str) -> None:
    for whole in (text, f"rules:\n- {text}", rule(f"never: {text}"), rule(f"once: {text}")):
        assert _read(whole)


@given(_YAML)
def test_any_tree_is_a_policy_or_gets_a_list_of_problems(tree: object) -> None:
    for whole in (f"{tree!r}", f"rules: [{tree!r}]", f"{rule('never: true')}\ntests: [{tree!r}]"):
        assert _read(whole)


def test_the_files_of_the_documentation_hold_their_own_cases() -> None:
    page = (_DOCS / "policies.md").read_text(encoding="utf-8")
    policies = [read_policy(one) for one in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    policies.append(load_policy(_DOCS.parent / "examples" / "refund_desk" / "rules.yaml"))
    for policy in policies:
        results = run_cases(policy)
        assert results
        assert [one.text for one in results if not one.passed] == []


def test_a_case_that_is_not_as_expected_says_what_came_of_it() -> None:
    policy = read_policy(
        rule("never: arguments.amount > 5", "because: too much")
        + "\ntests:\n- {tool: pay, arguments: {amount: 6}, expect: allow}"
    )
    (result,) = run_cases(policy)
    assert not result.passed
    assert result.text.startswith("line 7: pay(amount=6): forbid, not allow by a: too much")


def test_the_rules_are_listed_as_sentences_all_or_those_of_one_tool() -> None:
    policy = read_policy(
        "rules:\n"
        "- {name: a, tools: 'send_*', except: send_draft, never: true, because: we do not write}\n"
        "- {name: b, tools: pay, once: [to, amount], per: person}\n"
        "- {name: c, tools: pay, at_most: 1, per: goal}\n"
    )
    assert policy.explain() == (
        "a: Never send_* (except send_draft), because we do not write.",
        "b: pay only once with the same to, amount, per person.",
        "c: At most 1 call of pay, per goal.",
    )
    assert policy.explain("send_draft") == ()
    assert len(policy.explain("send_mail")) == 1
