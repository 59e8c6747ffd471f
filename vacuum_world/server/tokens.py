"""Bearer tokens, of which only hashes are kept."""

from __future__ import annotations

import hashlib
import secrets

from vacuum_world.errors import ControlTokenError
from vacuum_world.world import Value

_SHORTEST = 8


def new_token() -> str:
    """A fresh token that nobody can guess."""
    return secrets.token_urlsafe(24)


def digest(token: str) -> str:
    """The SHA-256 hash by which a token is known."""
    return hashlib.sha256(token.encode()).hexdigest()


def checked_control_token(token: str) -> str:
    """The token, if it can be one.

    Raises:
        ControlTokenError: It is too short or not visible ASCII.
    """
    if len(token) < _SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise ControlTokenError(
            f"a control token has at least {_SHORTEST} visible ASCII characters and no spaces; "
            f"the one given has {len(token)} characters"
        )
    return token


class RobotToken(Value):
    """The one token that drives a robot."""

    robot: str
    """The robot's id."""
    name: str
    """The robot's name."""
    digest: str
    """Hash of the token."""


class Tokens(Value):
    """Who may do what, by hashes."""

    control: str
    """Hash of the experimenter's token."""
    robots: tuple[RobotToken, ...] = ()
    """One per robot."""

    def is_control(self, token: str) -> bool:
        """Whether this is the experimenter's token."""
        return secrets.compare_digest(digest(token), self.control)

    def robot_of(self, token: str) -> str | None:
        """The id of the robot that this token drives, if there is one."""
        known = digest(token)
        return next((entry.robot for entry in self.robots if entry.digest == known), None)

    def granted(self, robot: str, name: str, token: str) -> Tokens:
        """The tokens after this one took the place of any older one of the robot."""
        entry = RobotToken(robot=robot, name=name, digest=digest(token))
        others = self.revoked(robot).robots
        return Tokens(control=self.control, robots=(*others, entry))

    def revoked(self, robot: str) -> Tokens:
        """The tokens without those of this robot."""
        others = tuple(entry for entry in self.robots if entry.robot != robot)
        return Tokens(control=self.control, robots=others)

    def limited_to(self, robots: set[tuple[str, str]]) -> Tokens:
        """The tokens of robots that are among these ids with names."""
        entries = tuple(entry for entry in self.robots if (entry.robot, entry.name) in robots)
        return Tokens(control=self.control, robots=entries)
