"""Perception by rules: no model, no network, the same answer each time."""

from __future__ import annotations

from collections.abc import Mapping

from coag.awareness.state import AwarenessState

from ._coding_rules import coding_by_rules
from ._conversation_rules import conversation_by_rules
from ._protocol import Domain


class RulePerception:
    """Reads English text by plain rules, for offline use and as a base line.

    Both domains: a sentence that ends in `?` is a question. `I want to ...`, `I need to ...`,
    `I'd like to ...`, `I'm trying to ...`, `my goal is to ...`, `let's ...` and, outside of
    questions, `help me ...` and `we also need ...` state goals, up to the end of the clause; a
    list with `and` is several where a verb follows. `I have finished ...` and `never mind ...`
    complete and abandon the open goals whose words they name, or else those that have theirs.

    Conversation: topics are known names that the text has, other names (`Python`,
    `BeautifulSoup`), and what follows `about`, `learn`, `make`, `going back to` and the like;
    four at most. Moods are told by words that are not negated, the worst first. `Going back to`,
    `as I said`, `earlier` and the like refer to something previous, unless nothing was.

    Coding: file names, `GET /path`, `name()`, `CONSTANT_NAMES` and known services are parts by
    their form; what is imported, installed or written in camel case is a library. Errors are
    names that end in `Error` or `Exception`, and names after `raises`; `fixed`, `works now` and
    the like say that an unresolved error of the state is gone which the sentence names, or the
    only one. `I tried ... but ...` is a failure.

    Args:
        domain: Which adapter's analysis to give.
    """

    def __init__(self, domain: Domain = Domain.CONVERSATION) -> None:
        self._domain = Domain(domain)

    async def perceive(self, text: str, state: AwarenessState) -> Mapping[str, object]:
        """What a text says by the rules, where things stand so."""
        if self._domain is Domain.CODING:
            return coding_by_rules(text, state).model_dump(mode="json")
        return conversation_by_rules(text, state).model_dump(mode="json")
