"""What can be a constraint at all."""

from __future__ import annotations

import inspect

from coag.errors import ConfigurationError


def check_rule(rule: object) -> None:
    """Refuses what cannot be called as a constraint is: it would forbid every action.

    Raises:
        ConfigurationError: It is no function of three arguments, nor an object that is called so.
    """
    if isinstance(rule, type) or not callable(rule):
        raise _no_constraint(rule)
    try:
        inspect.signature(rule).bind(None, None, None)
    except TypeError as error:
        raise _no_constraint(rule) from error
    except ValueError:  # a function that Python cannot look into; whoever calls it will see
        pass


def _no_constraint(rule: object) -> ConfigurationError:
    return ConfigurationError(
        f"{_shown(rule)} is no constraint. Write a function (candidate, state, projection) that "
        "returns Verdict.allow() or Verdict.forbid(reason), or an object that is called so."
    )


def _shown(value: object) -> str:
    name = getattr(value, "__qualname__", None)
    return repr(value)[:80] if name is None else repr(name)
