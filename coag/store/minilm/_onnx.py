"""A graph of ONNX, put together node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._wire import field, message

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
