"""Writes coag/models/known_models.json from litellm's map of models: `model_table.py [FILE]`.

Of litellm only that map is read, out of its newest wheel, which is neither installed nor run; with
FILE, a copy of the map is read instead. Kept are chat models of a few providers: how much they
read, and whether they see images, call tools and keep to a schema. Names, sizes and abilities are
facts; the file names where they are from, of which day, and whose notice they are under.
"""

import json
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zipfile import ZipFile

TABLE = Path(__file__).parents[1] / "coag" / "models" / "known_models.json"
MAP = "litellm/model_prices_and_context_window_backup.json"
PROVIDERS = ("openai", "anthropic", "gemini", "mistral", "deepseek", "xai")
COLUMNS = ("window", "vision", "function_calling", "structured_output")
KEYS = ("supports_vision", "supports_function_calling", "supports_response_schema")
NOTICE = "Facts from litellm, MIT License, Copyright (c) 2023 Berri AI."


def newest() -> tuple[str, dict[str, Any]]:
    """The version of the newest wheel, and its map."""
    with tempfile.TemporaryDirectory() as folder:
        download = ["pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        command = [sys.executable, "-m", *download, "--dest", folder, "litellm"]
        subprocess.run(command, check=True)
        wheel = next(Path(folder).glob("litellm-*.whl"))
        with ZipFile(wheel) as opened:
            return wheel.name.split("-")[1], json.loads(opened.read(MAP))


def rows(known: dict[str, Any], provider: str) -> dict[str, list[int | bool]]:
    """The kept facts of a provider's chat models, by the names that its own server knows."""
    found: dict[str, list[int | bool]] = {}
    for key, facts in known.items():
        name = key.removeprefix(f"{provider}/")
        window = facts.get("max_input_tokens")
        if facts.get("litellm_provider") != provider or facts.get("mode") != "chat":
            continue
        if window and "/" not in name and not name.startswith("ft:"):
            found.setdefault(name, [int(window), *(bool(facts.get(one)) for one in KEYS)])
    return dict(sorted(found.items()))


def written(version: str, known: dict[str, Any]) -> str:
    """The table as JSON, a line for each model."""
    head = {
        "source": f"litellm {version}, {MAP}",
        "notice": NOTICE,
        "date": datetime.now(UTC).date().isoformat(),
        "columns": COLUMNS,
    }
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    parts: list[str] = []
    for provider in PROVIDERS:
        models = rows(known, provider)
        if not models:
            sys.exit(
                f"The map has no models of {provider!r} any more; the table was left as it is."
            )
        items = [f"      {json.dumps(name)}: {json.dumps(row)}" for name, row in models.items()]
        parts.append(f"    {json.dumps(provider)}: {{\n" + ",\n".join(items) + "\n    }")
    return "{\n" + "\n".join(lines) + '\n  "models": {\n' + ",\n".join(parts) + "\n  }\n}\n"


def main() -> None:
    """Writes the table, and says how many models it has."""
    if len(sys.argv) > 1:
        version, known = "of a file", json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    else:
        version, known = newest()
    TABLE.write_text(written(version, known), encoding="utf-8")
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    count = sum(len(models) for models in table["models"].values())
    sys.stdout.write(f"{TABLE}: {count} models, by litellm {version}\n")


if __name__ == "__main__":
    main()
