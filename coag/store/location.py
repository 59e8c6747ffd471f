"""Where a Chroma is: a folder, or the address of a server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from coag.errors import ConfigurationError, RecordStoreError

_CHROMA_PORT = 8000
RECORDS_FILE = "chroma.sqlite3"
"""Chroma's own file in the folder of a store."""
LTM_FOLDER = "long_term"
"""Where the store is within the folder that an agent was given."""


def holds_records(folder: Path) -> bool:
    """Whether a folder is a store itself; `RecordStoreError` where that cannot be seen."""
    try:
        return (folder.expanduser() / RECORDS_FILE).is_file()
    except OSError as error:  # e.g. no right to look into it
        raise RecordStoreError(f"The folder {str(folder)!r} cannot be read: {error}.") from error


def check_folder(location: Path | Server) -> None:
    """Refuses a folder that is no store, but an agent's, with its store one folder below."""
    if isinstance(location, Server) or holds_records(location):
        return
    if holds_records(location / LTM_FOLDER):
        below = str(location / LTM_FOLDER)
        raise ConfigurationError(
            f"{str(location)!r} is an agent's folder; its records are in {LTM_FOLDER!r}: "
            f"open_store({below!r}). Nothing was made."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The address of a Chroma server."""

    host: str
    port: int
    secure: bool

    def __str__(self) -> str:
        return f"{'https' if self.secure else 'http'}://{self.host}:{self.port}"


def parse_location(location: Path | str) -> Path | Server:
    """A folder as an absolute path, so that one folder has one name; or a server's address."""
    if isinstance(location, Path) or "://" not in location:
        return Path(location).expanduser().resolve()
    try:
        parts = urlsplit(location)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigurationError(f"{location!r} is no address: {error}.") from error
    if parts.scheme not in ("http", "https") or host is None or parts.path.strip("/"):
        raise ConfigurationError(
            f"A Chroma server is given as http://HOST:PORT or https://HOST:PORT, not {location!r}."
        )
    secure = parts.scheme == "https"
    return Server(host=host, port=port or (443 if secure else _CHROMA_PORT), secure=secure)


def public_location(location: Path | str) -> str:
    """A location as it was given, to be written down where others can read it.

    Raises:
        ConfigurationError: It is an address with a user, a password, a query or a fragment.
    """
    text = str(location)
    if isinstance(location, Path) or "://" not in text:
        return text
    parts = urlsplit(text)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigurationError(
            f"The address of {str(parse_location(location))!r} has a user, a password or a query, "
            "which may be secret and are not written down. Give it as http://HOST:PORT."
        )
    return text
