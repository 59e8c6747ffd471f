"""What a person does with a memory: take it elsewhere, correct it, and see how it is.

An export is a file of JSON lines: a header, then every record with every field, superseded ones
included, but for the vectors, which are made anew where it is imported. `import_records` brings
them back as they were; it can be broken off and repeated. `corrected` changes a record as a person
does: another text is another record in the old one's place, with that person as its origin.
`examine_memory` tells what there is, and whether records, links and the index of words agree.
"""

from .correcting import Correction, Family, amended, corrected, family_of, mend_chains, resting_on
from .export import Exported, export_lines, export_records, header_of
from .health import Finding, Health, IndexHealth, examine_memory
from .importing import OnConflict, check_import, import_records
from .lines import FORMAT, Header, Imported, Refused, TransferError

__all__ = [
    "export_records",
    "export_lines",
    "header_of",
    "Exported",
    "import_records",
    "check_import",
    "Imported",
    "Refused",
    "OnConflict",
    "TransferError",
    "Header",
    "FORMAT",
    "corrected",
    "Correction",
    "amended",
    "family_of",
    "Family",
    "resting_on",
    "examine_memory",
    "mend_chains",
    "Health",
    "IndexHealth",
    "Finding",
]
