"""The procedures that stand beside a memory's records."""

from __future__ import annotations

from coag.memory import PROCEDURES_FILE, ProceduralMemory, Procedure, seed_procedures

from ._place import Place


def procedures_of(place: Place) -> ProceduralMemory | None:
    """The procedures beside the records, as they stand in their file; None without one.

    The developer's own texts are taken from the file, so that none of them is changed.
    """
    path = None if place.folder is None else place.folder / PROCEDURES_FILE
    if path is None or not path.is_file():
        return None
    stored = ProceduralMemory({}, path=path).save_state()["procedures"]
    return ProceduralMemory(
        {name: _as_stored(name, versions) for name, versions in stored.items()}, path=path
    )


def _as_stored(name: str, versions: list[dict[str, str]]) -> Procedure:
    """A procedure whose developer's text is the one in the file.

    Of the placeholders that coag's own one has, those count that stand in the text that holds.
    """
    seeds = [version["text"] for version in versions if version["author"] == "seed"]
    text = seeds[-1] if seeds else versions[0]["text"]
    ours = seed_procedures().get(name)
    used = (one for one in (ours.placeholders if ours is not None else ()))
    placeholders = (
        one for one in used if all(f"{{{one}}}" in t for t in (text, versions[-1]["text"]))
    )
    return Procedure(name=name, text=text, placeholders=tuple(placeholders))
