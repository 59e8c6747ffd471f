"""Where a run leaves what it did: a folder with a trace that a person and a program can read.

```text
logs/<run id>/
  run.json                     who ran, with what, from which recipe, and how it ended
  trace.jsonl                  every record of the run, one a line, in order: the truth
  cycles/0001/1-retrieval.json one page per phase, for reading; made from the trace's records
```

The trace is append-only and numbered without gaps, and each line holds a hash over its record and
the line before, so that a change is found (`read_lines`). It is handed to the operating system at
every phase boundary and around every external action, so that it survives the death of the
process (not of the machine), and an action is never run whose intent could not be written.
Secrets are replaced before anything is written. The format is described in
`docs/log-format.md`.
"""

from coag.schema import REDACTED, Redactor

from ._anchors import (
    Statement,
    Witness,
    new_key,
    seal_problems,
    sign_run,
    statement_of,
    witness_problems,
)
from ._asked import asked_in, first_asked
from ._binding import closing_hash, file_hash, info_fields, opening_hash, seal_of
from ._chain import line_hash
from ._columns import Column, Row, TableName
from ._files import replace_file, try_lock
from ._find import find_run, known_cycles, list_runs
from ._folder import RunFolder, open_trace, read_run
from ._heads import RecordKind
from ._index import TraceIndex
from ._kept_lines import KeptLines
from ._lines import ProblemKind, TraceLine, TraceProblem, read_lines
from ._memory import MemoryTrace
from ._pages import PageFiles, PhasePages, PlainPages, page_text
from ._reader import cycle_of, entry_of, read_trace
from ._run import Parent, Rebuild, Recipe, RunInfo, RunKind, Seal, installed_versions
from ._schemas import log_schemas
from ._stretch import Stretch
from ._tail import TraceTail
from ._trace import Trace
from ._writer import TraceWriter

__all__ = [
    "Trace",
    "TableName",
    "Column",
    "Row",
    "RunKind",
    "Recipe",
    "Rebuild",
    "Parent",
    "Seal",
    "RunInfo",
    "installed_versions",
    "RunFolder",
    "read_run",
    "find_run",
    "asked_in",
    "first_asked",
    "known_cycles",
    "list_runs",
    "TraceWriter",
    "open_trace",
    "MemoryTrace",
    "ProblemKind",
    "TraceProblem",
    "read_trace",
    "TraceLine",
    "read_lines",
    "TraceTail",
    "TraceIndex",
    "Stretch",
    "RecordKind",
    "entry_of",
    "line_hash",
    "log_schemas",
    "seal_of",
    "opening_hash",
    "closing_hash",
    "file_hash",
    "info_fields",
    "PageFiles",
    "PhasePages",
    "PlainPages",
    "page_text",
    "sign_run",
    "seal_problems",
    "new_key",
    "Witness",
    "witness_problems",
    "Statement",
    "statement_of",
    "cycle_of",
    "replace_file",
    "KeptLines",
    "try_lock",
    "REDACTED",
    "Redactor",
]
