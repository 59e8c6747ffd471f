"""Hooks of the documentation site: links that leave `docs` are checked, and shown as plain text.

Pages are read on a forge, too, where `../examples/own_domain.py` leads to a file. The site holds no
such file, so that the link's text stays, with the path behind it.
"""

import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>(?:\.\./)+[^)\s#]+)(?:#[^)\s]*)?\)")
_ROOT = Path(__file__).parent.parent


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Replaces links to files outside `docs` by their text; a missing file ends the build."""
    folder = Path(page.file.abs_src_path).parent

    def replaced(found: re.Match[str]) -> str:
        path = (folder / found["target"]).resolve()
        if path.is_relative_to(_ROOT / "docs"):
            return found[0]
        if not path.exists():
            raise FileNotFoundError(
                f"{page.file.src_uri} links to {found['target']!r}: no such file."
            )
        return f"{found['text']} (`{path.relative_to(_ROOT)}`)"

    return _LINK.sub(replaced, markdown)
