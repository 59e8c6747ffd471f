"""A purse of ten, and the rule that no more is spent."""

from pydantic import BaseModel

from coag import Candidate, CoagContext, Percept, Verdict


class Purse(BaseModel):
    spent: int = 0


class PurseContext(CoagContext[Purse]):
    def _update_state_from_function_result(self, state: Purse, percept: Percept) -> Purse:
        return state if percept.is_error else Purse(spent=state.spent + percept.data["price"])


def within_ten(candidate: Candidate, state: Purse, projection: Purse | None) -> Verdict:
    if state.spent + (candidate.arguments or {}).get("price", 0) > 10:
        return Verdict.forbid(f"{state.spent} of 10 are spent already")
    return Verdict.allow()
