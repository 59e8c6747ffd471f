"""Writes the JSON Schemas of the log format beside itself: `python docs/schemas/make.py`."""

import json
from pathlib import Path

from coag.tracing import log_schemas

if __name__ == "__main__":
    for name, schema in log_schemas().items():
        path = Path(__file__).with_name(f"{name}.json")
        path.write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
