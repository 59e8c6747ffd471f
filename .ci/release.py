"""What must be true of a release: `python .ci/release.py vX.Y.Z`, as the release workflow runs it.

The tag, the version in pyproject.toml and the newest dated heading of the changelog agree, and
nothing waits under `Unreleased`.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def faults(tag: str, version: str, changelog: str) -> list[str]:
    """What is wrong with releasing this version under this tag; empty if nothing is."""
    found: list[str] = []
    if tag != f"v{version}":
        found.append(f"The tag is {tag!r} and the version {version!r}: tag v{version}.")
    waiting, _, released = changelog.partition("\n## [Unreleased]\n")[2].partition("\n## ")
    if not re.match(rf"\[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n", released):
        found.append(f"Below `Unreleased` the changelog needs `## [{version}] - YYYY-MM-DD`.")
    if re.search(r"^- ", waiting, re.M):
        found.append(f"The changelog has lines under `Unreleased`: move them to {version}.")
    return found


def main() -> int:
    """Prints what is wrong; 0 if nothing is."""
    if len(sys.argv) != 2:
        print("Give the tag: python .ci/release.py vX.Y.Z")
        return 2
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = faults(sys.argv[1], declared["project"]["version"], changelog)
    print("\n".join(found) or "The tag, the version and the changelog agree.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
