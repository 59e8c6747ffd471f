"""The sentences that `ask` itself adds to a prompt; everything else is the caller's."""

from __future__ import annotations

from coag.schema import cut_to_tokens

ECHO_TOKENS = 400
"""How much of an unusable answer is shown to the model again."""


def form_of_answer(schema: str) -> str:
    """Tells the form of the answer, where the server is not told or cannot be relied on."""
    return (
        "Answer with one JSON object and nothing else: no prose, no code fence. "
        f"It must follow this JSON Schema:\n{schema}"
    )


def correction(problem: str, schema: str | None) -> str:
    """Asks once more, saying what was wrong; with the schema, if it was not in the prompt."""
    again = f"That answer could not be used. {problem}\nAnswer the same question again, corrected."
    return again if schema is None else f"{again}\n{form_of_answer(schema)}"


def echo(raw: str) -> str:
    """The unusable answer as it is shown again, within its bound."""
    return cut_to_tokens(raw, ECHO_TOKENS)


EMPTY_ANSWER = "Your answer was empty. Call a tool, or answer in text."
"""Asks once more where tools were offered and nothing came."""
