"""The domain that a person names for a command."""

from __future__ import annotations

from coag.errors import ConfigurationError
from coag.proof import Domain
from coag.schema import Imported


def domain_of(name: str | None) -> Domain | None:
    """The domain under an import name.

    Raises:
        ConfigurationError: There is none.
    """
    if name is None:
        return None
    if ":" not in name:
        raise ConfigurationError(
            f"--domain takes an import name, module:Class, not {name!r}; "
            "e.g. case_study.faults:VacuumDomain."
        )
    found: object = Imported(name=name).get()
    if isinstance(found, type) and issubclass(found, Domain):
        return found()
    if not isinstance(found, Domain):
        raise ConfigurationError(f"{name!r} is no coag.proof.Domain.")
    return found
