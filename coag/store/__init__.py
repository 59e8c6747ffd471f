"""Stores of the records of long-term memory.

A `RecordStore` keeps records and finds them again by similarity. `InMemoryStore` is exact and
gone with the process; `ChromaStore` is a real Chroma, a folder or a server. Both pass the same
contract tests: adding is idempotent by id, the text of a record never changes, filters mean the
same, and scores are cosines clamped to 0..1 with a minimum that belongs to the
embedder. What `add` acknowledged on disk survives the death of the process.

`open_store(location)` gives the store for a location. An `Embedder` turns texts into vectors:
`WordLlamaEmbedder` by default, `MiniLmEmbedder` with `coag[minilm]`, `HashEmbedder` for tests,
`chroma_embedder(...)` for any of Chroma's embedding functions. `reembed(location, embedder)` gives
the records of a Chroma the vectors of another one. Importing this package imports neither chromadb
nor wordllama nor numpy; they come with the first use.
"""

from .chroma_store import ChromaStore
from .config import StoreConfig, open_store
from .embedders import Embedder, HashEmbedder, WordLlamaEmbedder, row_products, text_vectors
from .embedders_by_name import EmbeddingFunction, chroma_embedder, embedder_of
from .filters import parse_where
from .in_memory import InMemoryStore
from .lexical import Lexicon, LexiconError, query_words, throw_away
from .location import LTM_FOLDER, RECORDS_FILE, holds_records, public_location
from .minilm import MiniLmEmbedder
from .protocol import RecordStore, WrappedStore, embedder_within, found_by_id, innermost
from .records import (
    FIXED_FIELDS,
    SHORT_ID_LENGTH,
    check_metadata,
    flat_fields,
    short_id,
    slices,
    superseded_pair,
)
from .reembedding import (
    ReembedPlan,
    ReembedProgress,
    abandon_reembedding,
    plan_reembedding,
    reembed,
    unfinished_reembedding,
)
from .search import DEFAULT_RANKING, LinkSource, Ranking, Search, condition_of, ranked

__all__ = [
    "open_store",
    "StoreConfig",
    "embedder_of",
    "public_location",
    "holds_records",
    "RECORDS_FILE",
    "LTM_FOLDER",
    "RecordStore",
    "Lexicon",
    "LexiconError",
    "throw_away",
    "query_words",
    "WrappedStore",
    "innermost",
    "embedder_within",
    "found_by_id",
    "Search",
    "LinkSource",
    "superseded_pair",
    "Ranking",
    "DEFAULT_RANKING",
    "parse_where",
    "FIXED_FIELDS",
    "check_metadata",
    "flat_fields",
    "condition_of",
    "SHORT_ID_LENGTH",
    "short_id",
    "slices",
    "ranked",
    "InMemoryStore",
    "ChromaStore",
    "Embedder",
    "WordLlamaEmbedder",
    "MiniLmEmbedder",
    "HashEmbedder",
    "text_vectors",
    "row_products",
    "EmbeddingFunction",
    "reembed",
    "plan_reembedding",
    "unfinished_reembedding",
    "abandon_reembedding",
    "ReembedPlan",
    "ReembedProgress",
    "chroma_embedder",
]
