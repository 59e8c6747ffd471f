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

from .folder import (
    RunFolder,
    asked_in,
    find_run,
    first_asked,
    known_cycles,
    list_runs,
    open_trace,
    read_run,
)
from .hash_chain import (
    ProblemKind,
    TraceLine,
    TraceProblem,
    closing_hash,
    file_hash,
    info_fields,
    line_hash,
    read_lines,
    seal_of,
)
from .index import RecordKind, Stretch, TraceIndex
from .pages import PhasePages, PlainPages, page_text
from .reader import TraceTail, cycle_of, entry_of, phase_of, read_trace
from .run import Parent, Rebuild, Recipe, RunInfo, RunKind, Seal, installed_versions, log_schemas
from .signatures import (
    Statement,
    Witness,
    Witnessed,
    new_key,
    seal_problems,
    sign_run,
    witness_problems,
)
from .summary import (
    CandidateSummary,
    CycleSummary,
    refusal_of,
    situation_after,
    summarize_cycle,
    summarize_cycles,
)
from .tables import Row, TableName
from .trace import Trace
from .writer import MemoryTrace, TraceWriter

__all__ = [
    "Trace",
    "TableName",
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
    "CycleSummary",
    "CandidateSummary",
    "situation_after",
    "refusal_of",
    "summarize_cycle",
    "summarize_cycles",
    "TraceIndex",
    "Stretch",
    "RecordKind",
    "entry_of",
    "line_hash",
    "log_schemas",
    "seal_of",
    "closing_hash",
    "file_hash",
    "info_fields",
    "PhasePages",
    "PlainPages",
    "page_text",
    "sign_run",
    "seal_problems",
    "new_key",
    "Witness",
    "Witnessed",
    "witness_problems",
    "Statement",
    "cycle_of",
    "phase_of",
]
