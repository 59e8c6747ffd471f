"""all-MiniLM-L6-v2 as a graph: word pieces in, the unit vector of their text out.

The weights are whole numbers of eight bits with a scale for each column. What flows between them
is brought to eight bits too, with a scale for each word piece: that is twice as near to the
full precision as one scale for all (see docs/embedders.md), and takes no longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._onnx import MICROSOFT, Graph

if TYPE_CHECKING:
    from numpy.typing import NDArray

DIMENSION = 384
LONGEST = 256
"""Word pieces of which a text is made up at most, with the marks of beginning and end."""
LAYERS = 6
_HEADS = 12
_EPSILON = 1e-12
_ZERO = 128
"""What stands for nothing in numbers of eight bits without a sign."""
_FLOAT = 1


def build_model(weights: Mapping[str, NDArray[Any]]) -> bytes:
    """The file of the model, with inputs `pieces` and `places` of one text and one output.

    Args:
        weights: All of the arrays by name, in the order of the file.
    """
    return _Builder(weights).build()


class _Builder:
    def __init__(self, weights: Mapping[str, NDArray[Any]]) -> None:
        import numpy as np

        self._weights = weights
        self._matrices = [
            name.removesuffix("_q")
            for name in weights
            if name.startswith("val_") and name.endswith("_q")
        ]
        self._graph = Graph()
        self._one = self._graph.constant(np.array(1.0, np.float32))
        self._step = self._graph.constant(np.array(1.0 / (_ZERO - 1), np.float32))
        self._zero = self._graph.constant(np.array(_ZERO, np.uint8))
        self._last = self._graph.constant(np.array([-1], np.int64))

    def build(self) -> bytes:
        import numpy as np

        graph = self._graph
        found = self._embedded()
        for layer in range(LAYERS):
            found = self._fed_forward(layer, self._attended(layer, found))
        among = graph.constant(np.array([1], np.int64))
        mean = graph.apply("ReduceMean", found, among, keepdims=0)
        vector = graph.apply("LpNormalization", mean, axis=-1, p=2)
        length = "length"
        inputs = {"pieces": (1, length), "places": (1, length)}
        return graph.model(inputs, vector, (1, DIMENSION))

    def _embedded(self) -> str:
        """The vectors of the word pieces and of their places."""
        graph, of = self._graph, "inner.embeddings."
        words = self._constant(f"{of}word_embeddings.weight_q")
        scales = self._constant(f"{of}word_embeddings.weight_scale")
        places = (
            self._weights[f"{of}position_embeddings.weight_q"][:LONGEST]
            * self._weights[f"{of}position_embeddings.weight_scale"][:LONGEST]
            + self._weights[f"{of}token_type_embeddings.weight"][0]
        )
        rows = graph.apply("Cast", graph.apply("Gather", words, "pieces"), to=_FLOAT)
        word = graph.apply("Mul", rows, graph.apply("Gather", scales, "pieces"))
        place = graph.apply("Gather", graph.constant(places), "places")
        return graph.apply(
            "LayerNormalization",
            graph.apply("Add", word, place),
            self._constant(f"{of}LayerNorm.weight"),
            self._constant(f"{of}LayerNorm.bias"),
            axis=-1,
            epsilon=_EPSILON,
        )

    def _attended(self, layer: int, given: str) -> str:
        import numpy as np

        graph, of = self._graph, f"inner.encoder.layer.{layer}.attention."
        parts = [f"{of}self.{part}.bias" for part in ("query", "key", "value")]
        bias = graph.constant(np.concatenate([self._weights[part] for part in parts]))
        asked = graph.apply("Add", self._product(given, *self._named(layer, 0, 1, 2)), bias)
        query, key, value = graph.apply_many(3, "Split", asked, axis=-1, num_outputs=3)
        heads = graph.apply(
            "MultiHeadAttention", query, key, value, domain=MICROSOFT, num_heads=_HEADS
        )
        return self._added(f"{of}output.", self._product(heads, *self._named(layer, 3)), given)

    def _fed_forward(self, layer: int, given: str) -> str:
        graph, of = self._graph, f"inner.encoder.layer.{layer}."
        bias = self._constant(f"{of}intermediate.dense.bias")
        wide = self._product(given, *self._named(layer, 4))
        bent = graph.apply("BiasGelu", wide, bias, domain=MICROSOFT)
        return self._added(f"{of}output.", self._product(bent, *self._named(layer, 5)), given)

    def _added(self, of: str, found: str, given: str) -> str:
        """What a part of a layer found, added to what it was given."""
        return self._graph.apply(
            "SkipLayerNormalization",
            found,
            given,
            self._constant(f"{of}LayerNorm.weight"),
            self._constant(f"{of}LayerNorm.bias"),
            self._constant(f"{of}dense.bias"),
            domain=MICROSOFT,
            epsilon=_EPSILON,
        )

    def _product(self, given: str, *matrices: str) -> str:
        """The product with matrices side by side, in whole numbers; a scale for each piece."""
        import numpy as np

        graph = self._graph
        largest = graph.apply("ReduceMax", graph.apply("Abs", given), self._last, keepdims=1)
        scale = graph.apply("Mul", largest, self._step)
        whole = graph.apply(
            "QuantizeLinear", graph.apply("Div", given, scale), self._one, self._zero
        )
        weights = np.concatenate([self._weights[f"{name}_q"] for name in matrices], axis=1)
        columns = np.concatenate([self._weights[f"{name}_scale"][0] for name in matrices])
        product = graph.apply(
            "MatMulIntegerToFloat",
            whole,
            graph.constant(weights),
            self._one,
            graph.constant(columns),
            self._zero,
            domain=MICROSOFT,
        )
        return graph.apply("Mul", product, scale)

    def _named(self, layer: int, *numbers: int) -> list[str]:
        """Matrices of a layer: query, key, value, output; wide, narrow."""
        return [self._matrices[layer * LAYERS + number] for number in numbers]

    def _constant(self, name: str) -> str:
        return self._graph.constant(self._weights[name])
