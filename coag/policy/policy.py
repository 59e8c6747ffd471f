"""A policy: the rules of one file, read, checked as a whole, and ready to be given to an agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, overload

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from coag._util.text import cleaned, ellipsis
from coag.cycle import ApprovalPolicy, ApprovalRule

from .conditions import check_installed, nearest
from .files import PolicyError, PolicyProblem, YamlPart, as_mapping, parsed, read_text
from .rules import PolicyRule, taken_by

RULES = 200
"""Rules that a file may have."""
CASES = 500
"""Cases that a file may have."""
_KEYS = ("policy", "rules", "tests")
_SHOWN = 80

Expected = Literal["allow", "forbid", "ask"]


class PastCall(BaseModel):
    """A call that was made before the one of a case."""

    model_config = ConfigDict(extra="forbid")

    tool: str
    arguments: dict[str, Any] = {}


class PolicyCase(BaseModel):
    """A call, and what is to become of it."""

    model_config = ConfigDict(extra="forbid")

    tool: str
    arguments: dict[str, Any] = {}
    state: dict[str, Any] = {}
    """The perceptual state now."""
    after: dict[str, Any] | None = None
    """The state that is predicted; none by default."""
    done: list[PastCall] = []
    """The calls before, for the same goal and person."""
    said: str = ""
    """What the user said, for `only_trusted`."""
    unsettled: list[str] = []
    """Tools of calls of which it is not known whether they had their effect."""
    expect: Expected
    by: str | None = None
    """The rule that is expected to forbid or ask."""
    line: int = 0
    """Its line in the file."""


@dataclass(frozen=True)
class Policy(Sequence[PolicyRule]):
    """The rules of a policy file; a sequence of constraints, for `constraints=`.

    Rules that need approval ask the approver given as `approve=`; without one, no agent is made
    with them.
    """

    name: str
    rules: tuple[PolicyRule, ...]
    cases: tuple[PolicyCase, ...] = ()

    @overload
    def __getitem__(self, index: int) -> PolicyRule: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[PolicyRule]: ...
    def __getitem__(self, index: int | slice) -> PolicyRule | Sequence[PolicyRule]:
        """A rule, or some of them."""
        return self.rules[index]

    def __len__(self) -> int:
        """How many rules there are."""
        return len(self.rules)

    def __iter__(self) -> Iterator[PolicyRule]:
        """The rules in the order of the file."""
        return iter(self.rules)

    @property
    def approval(self) -> ApprovalPolicy | None:
        """The policy of approval that the rules make; None if nobody has to be asked."""
        asking: list[ApprovalRule] = [one.approval for one in self.rules if one.approval]
        return ApprovalPolicy(name=self.name, when=asking, require=frozenset()) if asking else None

    def explain(self, tool: str | None = None) -> tuple[str, ...]:
        """The rules as sentences; those that judge one tool, if one is named."""
        rules = (one for one in self.rules if tool is None or one.applies(tool))
        return tuple(f"{one.name}: {one.sentence}" for one in rules)


def load_policy(path: Path | str, *, cases: Path | str | None = None) -> Policy:
    """The policy of a file.

    Args:
        path: The file.
        cases: A file with the cases, if they are not in the same one.

    Example:
        `CoagAgent("desk", model, tools=tools, constraints=load_policy("refunds.yaml"))`

    Raises:
        PolicyError: All that is wrong with the file, each with line and column.
        ConfigurationError: The extra `policy` is not installed.
    """
    check_installed()
    path = Path(path)
    policy = read_policy(read_text(path), cleaned(str(path)), name=path.stem)
    if cases is None:
        return policy
    other, problems = Path(cases), list[PolicyProblem]()
    root = parsed(read_text(other), problems)
    known = {one.name: YamlPart(0, 0) for one in policy}
    found = [] if root is None else _cases(root, known, problems)
    if problems:
        raise PolicyError(cleaned(str(other)), problems)
    return replace(policy, cases=tuple(found))


def read_policy(text: str, file: str = "policy", *, name: str = "policy") -> Policy:
    """The policy of a text.

    Args:
        text: YAML, as in a file.
        file: How errors call it.
        name: What the policy is called where the text does not say.

    Raises:
        PolicyError: All that is wrong with it.
        ConfigurationError: The extra `policy` is not installed.
    """
    check_installed()
    problems: list[PolicyProblem] = []
    root = parsed(text, problems)
    if root is None and not problems:
        problems.append(PolicyProblem(0, 0, "it is empty: write rules: and a list of rules"))
    if root is None:
        raise PolicyError(file, problems)
    policy = _policy(root, name, problems)
    if problems:
        raise PolicyError(file, problems)
    return policy


def _policy(root: YamlPart, name: str, problems: list[PolicyProblem]) -> Policy:
    fields = as_mapping(root)
    if root.fields is None:
        problems.append(root.problem("write rules: and below it a list of rules"))
    for key, (written, _) in fields.items():
        if key not in _KEYS:
            problems.append(written.problem(_unknown_key(key, _KEYS)))
    given = fields.get("policy")
    if given is not None and given[1].text is None:
        problems.append(given[1].problem("the policy's name is one word or a few"))
    own = given[1].text if given is not None else None
    rules = _listed(root, "rules", RULES, problems)
    for key, (written, held) in (one for rule in rules for one in as_mapping(rule).items()):
        if held.plain and not held.text:
            problems.append(written.problem(f"{key}: is empty: give it a value, or delete it"))
    if not rules and not problems:
        problems.append(root.problem("there is no rule: write rules: and below it a list of rules"))
    read = [(one, _read(PolicyRule, one, one.value, problems)) for one in rules]
    made = [(part, rule) for part, rule in read if isinstance(rule, PolicyRule)]
    first = _named_once(made, problems)
    cases = _cases(root, first, problems)
    return Policy((own or name).strip()[:100], tuple(rule for _, rule in made), tuple(cases))


def _named_once(
    made: Sequence[tuple[YamlPart, PolicyRule]], problems: list[PolicyProblem]
) -> dict[str, YamlPart]:
    """The rules' parts by their names; two of one name are a problem."""
    first: dict[str, YamlPart] = {}
    for part, rule in made:
        if rule.name in first:
            text = f"{rule.name!r} is already the name of the rule in line {first[rule.name].line}"
            problems.append(part.found(["name"])[0].problem(f"{text}: give it another"))
        first.setdefault(rule.name, part)
    return first


def _cases(
    root: YamlPart, rules: Mapping[str, YamlPart], problems: list[PolicyProblem]
) -> list[PolicyCase]:
    cases: list[PolicyCase] = []
    for part in _listed(root, "tests", CASES, problems):
        case = _read(PolicyCase, part, _case_value(part), problems)
        if isinstance(case, PolicyCase):
            if case.by is not None and case.by not in rules:
                text = f"there is no rule named {case.by!r}{nearest(case.by, rules)}"
                problems.append(part.found(["by"])[0].problem(text))
            cases.append(case.model_copy(update={"line": part.line}))
    return cases


def _listed(root: YamlPart, key: str, most: int, problems: list[PolicyProblem]) -> list[YamlPart]:
    """The parts of a list in a mapping."""
    if key not in as_mapping(root):
        return []
    _, held = as_mapping(root)[key]
    if held.text is not None or held.fields is not None:
        problems.append(held.problem(f"{key} is a list: begin each with - in a line of its own"))
        return []
    if len(held.items) > most:
        problems.append(
            held.problem(f"{key} has {len(held.items)} entries; at most {most} are read")
        )
    return held.items[:most]


def _case_value(part: YamlPart) -> Any:
    """A case: what it is called is text, the values of calls and states are JSON."""
    value, words = part.json, as_mapping(part)
    for key in ("tool", "said", "expect", "by"):
        if key in words and words[key][1].text:
            value[key] = words[key][1].text
    return value


def _read(
    kind: type[BaseModel], part: YamlPart, value: Any, problems: list[PolicyProblem]
) -> BaseModel | None:
    """What a part of the file says, or None, and what is wrong with it."""
    if "line" in as_mapping(part):
        problems.append(part.found(["line"])[0].problem("there is no key 'line' here"))
        return None
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        problems += [_told(kind, part, one) for one in error.errors(include_url=False)]
        return None


def _told(kind: type[BaseModel], part: YamlPart, error: ErrorDetails) -> PolicyProblem:
    """A finding of pydantic in words of the file, at its place."""
    context: dict[str, Any] = error.get("ctx", {})
    path = [*error["loc"]]
    if "at" in context:
        path = [*path, context["at"]]
    found, key = part.found(path)
    what, text = error["type"], error["msg"]
    if what == "extra_forbidden":
        text = _unknown_key(str(path[-1]), _fields_at(kind, path))
        return (key or found).problem(text)
    if what == "missing":
        return found.problem(f"it has no {path[-1]}: write {path[-1]}: ...")
    if what in ("condition", "kind", "belongs", "per", "most", "respond", "approval", "tool"):
        return found.problem(text, int(context.get("column", 0)))
    given = error["input"]
    shown = ellipsis(repr(given), _SHOWN) if isinstance(given, str | int | float) else ""
    if what in ("model_type", "model_attributes_type", "dict_type"):
        return found.problem(
            f"keys and values are meant here, such as name: ..., not {given!r:.80}"
        )
    named = next((step for step in reversed(path) if isinstance(step, str)), "")
    where = f"{named}: " if named else ""
    said = text[:1].lower() + text[1:]
    return found.problem(f"{where}{said}{f', not {shown}' if shown else ''}")


def _fields_at(kind: type[BaseModel], path: Sequence[int | str]) -> list[str]:
    if "done" in path:
        return list(PastCall.model_fields)
    names = {name: field.alias or name for name, field in kind.model_fields.items()}
    return [name for name in names.values() if name != "line"]


def _unknown_key(key: str, known: Sequence[str]) -> str:
    hint = nearest(key, known)
    return f"there is no key {key!r} here{hint}" + ("" if hint else f": {', '.join(known)}")


def problems_with_tools(policy: Policy, schemas: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What is wrong with a policy for tools of these schemas, by name; one sentence each."""
    problems: list[str] = []
    for rule in policy:
        problems += [f"rule {rule.name!r} {one}" for one in rule.problems_with(schemas)]
        judged = [one for name, one in schemas.items() if rule.applies(name)]
        takes = taken_by(judged)
        if judged and takes is not None and not rule.actions:  # of named tools it is said above
            problems += [
                f"rule {rule.name!r} asks for {name!r}, which no tool of "
                f"{', '.join(rule.tools)} takes{nearest(name, takes)}"
                for name in sorted(rule.arguments - takes)
            ]
        known = {*schemas, "respond"}
        for name in (*rule.tools, *rule.without):
            if not any(fnmatchcase(tool, name) for tool in known):
                problems.append(
                    f"rule {rule.name!r} names {name!r}, which no tool is{nearest(name, known)}"
                )
    return problems
