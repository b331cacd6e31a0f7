"""A SavedModel, loaded and run by TensorFlow itself. The only module that needs it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.json_format import MessageToDict
from tensorflow.core.protobuf import saved_model_pb2

from lab.serving.status import Failed
from lab.serving.tensors import Tensor

VERSION = tf.__version__
_TAG = "serve"
_LOADING = threading.Lock()


class SavedModel:
    """A version of a model, whose signatures compute."""

    def __init__(self, path: str) -> None:
        """Load it. Raises ``Failed`` with TensorFlow's own sentence."""
        self._definitions = _definitions(path)
        try:
            with _LOADING:
                self._loaded = tf.saved_model.load(path, tags=[_TAG])
        except tf.errors.OpError as error:
            code = next((name for name, number in _CODES.items() if number == error.error_code), "UNKNOWN")
            raise Failed(code, str(error.message)) from error
        except Exception as error:
            raise Failed("UNKNOWN", f"{type(error).__name__}: {error}") from error

    def inputs(self, signature: str) -> Mapping[str, str] | None:
        """The types of a signature's inputs."""
        definition = self._definitions.get(signature)
        if definition is None:
            return None
        return {name: _name_of(info.dtype) for name, info in definition.inputs.items()}

    def predict(self, signature: str, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What a signature computes of these inputs."""
        function = self._loaded.signatures[signature]
        definition = self._definitions[signature]
        try:
            given = {
                name: tf.constant(tensor.values, tf.dtypes.as_dtype(definition.inputs[name].dtype), tensor.shape)
                for name, tensor in inputs.items()
            }
            outputs = function(**given)
        except tf.errors.OpError as error:
            code = next((name for name, number in _CODES.items() if number == error.error_code), "UNKNOWN")
            raise Failed(code, str(error.message)) from error
        except (TypeError, ValueError) as error:  # a shape that the signature does not take
            raise Failed("INVALID_ARGUMENT", str(error)) from error
        return {name: _tensor(value) for name, value in outputs.items() if name in definition.outputs}

    def metadata(self) -> dict[str, Any]:
        """The signatures, in the form that protocol buffers have as JSON."""
        return {
            "signature_def": {
                name: MessageToDict(definition, including_default_value_fields=True, preserving_proto_field_name=True)
                for name, definition in self._definitions.items()
            }
        }


_CODES = {
    "CANCELLED": 1, "UNKNOWN": 2, "INVALID_ARGUMENT": 3, "DEADLINE_EXCEEDED": 4, "NOT_FOUND": 5, "ALREADY_EXISTS": 6,
    "PERMISSION_DENIED": 7, "RESOURCE_EXHAUSTED": 8, "FAILED_PRECONDITION": 9, "ABORTED": 10, "OUT_OF_RANGE": 11,
    "UNIMPLEMENTED": 12, "INTERNAL": 13, "UNAVAILABLE": 14, "DATA_LOSS": 15,
}  # fmt: skip


def _definitions(path: str) -> dict[str, Any]:
    """The signatures of the graph for serving."""
    file = Path(path) / "saved_model.pb"
    try:
        data = file.read_bytes()
    except OSError as error:
        raise Failed(
            "NOT_FOUND", f"Could not find SavedModel .pb or .pbtxt at supplied export directory path: {path}"
        ) from error
    model = saved_model_pb2.SavedModel()
    try:
        model.ParseFromString(data)
    except Exception as error:
        raise Failed("DATA_LOSS", f"Can't parse {file} as binary proto") from error
    for graph in model.meta_graphs:
        if set(graph.meta_info_def.tags) == {_TAG}:
            return dict(graph.signature_def)
    raise Failed(
        "NOT_FOUND",
        f"Could not find meta graph def matching supplied tags: {{ {_TAG} }}. To inspect available tag-sets in the "
        "SavedModel, please use the SavedModel CLI: `saved_model_cli`",
    )


def _tensor(value: Any) -> Tensor:
    array = value.numpy()
    flat = np.asarray(array).reshape(-1)
    return Tensor(_name_of(value.dtype.as_datatype_enum), list(np.shape(array)), flat.tolist())


def _name_of(number: int) -> str:
    """A type as TensorFlow names it in C++: ``float`` and not ``float32``."""
    name = str(tf.dtypes.as_dtype(number).name)
    return {"float32": "float", "float64": "double"}.get(name, name)
