"""JSON to tensors and back, as TensorFlow Serving's REST interface has it, with its sentences. Without TensorFlow."""

from __future__ import annotations

import base64
import binascii
import json
import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lab.serving.jsontext import Raw, parser_says, written
from lab.serving.status import Failed, invalid

ROW, COLUMNAR = "row", "columnar"
_INTEGERS = {
    "int8": (-(2**31), 2**31 - 1), "int16": (-(2**31), 2**31 - 1), "int32": (-(2**31), 2**31 - 1),
    "uint8": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1), "uint32": (0, 2**32 - 1), "uint64": (0, 2**64 - 1),
}  # fmt: skip
_FLOATS = ("float", "double")


@dataclass
class Tensor:
    """Values in their order, with their shape. Strings are bytes."""

    dtype: str  #: as TensorFlow names it in sentences: ``float``, ``int32``, ``string``
    shape: list[int]
    values: list[Any]


@dataclass(frozen=True)
class Request:
    """The tensors of a request by their names, and the form in which they came and the answer goes."""

    signature: str
    inputs: dict[str, Tensor]
    form: str


def parse(body: bytes) -> dict[str, Any]:
    """The object of a request's body. Raises ``Failed``."""
    if not body:
        raise invalid("JSON Parse error: The document is empty")
    text = body.decode("utf-8", "replace")
    try:
        document = json.loads(text)
    except RecursionError as error:
        raise _deep(text) from error
    except json.JSONDecodeError as error:
        raise invalid("JSON Parse error: ", parser_says(error, text), " at offset: ", error.pos) from error
    except ValueError as error:
        raise invalid("JSON Parse error: Invalid value. at offset: 0") from error
    if not isinstance(document, dict):
        raise _form(document, "Is not object")
    return document


def _deep(text: str) -> Failed:
    """Python's parser gives up where the other goes on: only a wrong signature is then a sentence of its own."""
    if '"signature_name":[' in text.replace(" ", ""):
        return _form(text, "not formatted correctly. 'signature_name' key must be a string value.")
    return invalid("JSON Parse error: Invalid value. at offset: ", len(text))


def signature_of(document: Mapping[str, Any]) -> str:
    """The signature that a request names; empty for the default one."""
    name = document.get("signature_name", "")
    if not isinstance(name, str):
        raise _form(document, "not formatted correctly. 'signature_name' key must be a string value.")
    return name


def read_inputs(document: Mapping[str, Any], dtypes: Mapping[str, str]) -> Request:
    """The tensors of a request for a signature with these inputs. Raises ``Failed``."""
    signature = signature_of(document)
    if not dtypes:
        raise invalid("Failed to get input map for signature: ", signature or "DEFAULT")
    if "instances" in document and "inputs" in document:
        raise _form(document, "Not formatted correctly expecting only one of 'inputs' or 'instances' keys to exist ")
    if "instances" in document:
        instances = document["instances"]
        if not isinstance(instances, list):
            raise _form(document, "Expecting 'instances' to be an list/array")
        if not instances:
            raise _form(document, "No values in 'instances' array")
        return Request(signature, _rows(instances, dtypes), ROW)
    if "inputs" in document:
        return Request(signature, _columns(document["inputs"], dtypes), COLUMNAR)
    raise invalid("Missing 'inputs' or 'instances' key")


def _rows(instances: list[Any], dtypes: Mapping[str, str]) -> dict[str, Tensor]:
    if not isinstance(instances[0], dict) and len(dtypes) > 1:
        raise invalid(
            "instances is a plain list, but expecting list of objects as multiple input tensors required as per "
            "tensorinfo_map"
        )
    objects = _is_object(instances[0])
    items: dict[str, list[Tensor]] = {}
    for number, element in enumerate(instances):
        if objects and not _is_object(element):
            raise invalid("Expecting object but got list at item ", number, " of input list")
        if not objects and _is_object(element):
            raise invalid("Expecting value/list but got object at item ", number, " of input list")
        named = element if objects else {min(dtypes): element}
        for name, value in named.items():
            where = f" key: {name}" if objects else ""
            try:
                _add(items, name, value, dtypes)
            except Failed as error:
                raise invalid(
                    "Failed to process element: ", number, where, " of 'instances' list. Error: ",
                    f"INVALID_ARGUMENT: {error.message}",
                ) from error  # fmt: skip
        if objects and set(named) != set(dtypes):
            raise invalid(
                "Failed to process element: ", number, " of 'instances' list. JSON object: ", _shown(element),
                " keys must be equal to: ", ",".join(sorted(dtypes)),
            )  # fmt: skip
    return {
        name: Tensor(dtypes[name], [len(tensors), *tensors[0].shape], [v for tensor in tensors for v in tensor.values])
        for name, tensors in items.items()
    }


def _add(items: dict[str, list[Tensor]], name: str, value: Any, dtypes: Mapping[str, str]) -> None:
    if name not in dtypes:
        raise invalid("JSON object: does not have named input: ", name)
    tensor = dense(value, dtypes[name])
    first = items.setdefault(name, [tensor])[0]
    if tensor is not first:
        if len(tensor.values) != len(first.values):
            raise invalid("Expecting tensor size: ", len(first.values), " but got: ", len(tensor.values))
        if tensor.shape != first.shape:
            raise invalid("Expecting shape ", _brackets(first.shape), " but got: ", _brackets(tensor.shape))
        items[name].append(tensor)


def _columns(value: Any, dtypes: Mapping[str, str]) -> dict[str, Tensor]:
    if not _is_object(value):
        if len(dtypes) > 1:
            raise invalid(
                "inputs is a plain value/list, but expecting an object as multiple input tensors required as per "
                "tensorinfo_map"
            )
        name = min(dtypes)
        return {name: dense(value, dtypes[name])}
    for name in dtypes:
        if name not in value:
            raise invalid("Missing named input: ", name, " in 'inputs' object.")
    return {name: dense(value[name], dtype) for name, dtype in dtypes.items()}


def dense(value: Any, dtype: str) -> Tensor:
    """A tensor of nested lists. Raises ``Failed``."""
    shape = []
    inner = value
    while isinstance(inner, list):
        shape.append(len(inner))
        if not inner:
            break
        inner = inner[0]
    return Tensor(dtype, shape, list(_filled(value, 0, shape, dtype)))


def _filled(value: Any, level: int, shape: list[int], dtype: str) -> Iterator[Any]:
    if not isinstance(value, list):
        if level != len(shape):
            raise invalid(
                "JSON Value: ", _shown(value), " found at incorrect level: ", level + 1,
                " in the JSON DOM. Expected at level: ", len(shape),
            )  # fmt: skip
        yield _decoded(value) if isinstance(value, dict) and dtype == "string" else _typed(value, dtype)
        return
    if level >= len(shape):
        raise invalid("Encountered list at unexpected level: ", level, " expected < ", len(shape))
    if len(value) != shape[level]:
        raise invalid(
            "Encountered list at unexpected size: ", len(value), " at level: ", level, " expected size: ", shape[level]
        )
    for item in value:
        yield from _filled(item, level + 1, shape, dtype)


def _typed(value: Any, dtype: str) -> Any:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if dtype in _FLOATS and number:
        return _float(value, dtype)
    if dtype in _INTEGERS and number and isinstance(value, int):
        least, most = _INTEGERS[dtype]
        if least <= value <= most:
            return value
    if dtype == "bool" and isinstance(value, bool):
        return value
    if dtype == "string" and isinstance(value, str):
        return value.encode()
    if dtype not in (*_FLOATS, *_INTEGERS, "bool", "string"):
        raise Failed("UNIMPLEMENTED", f"Conversion of JSON Value: {_shown(value)} to type: {dtype}")
    raise invalid("JSON Value: ", _shown(value), " Type: ", _type(value), " is not of expected type: ", dtype)


def _float(value: float, dtype: str) -> float:
    """The value as the type holds it: what is larger than its largest is infinite."""
    try:
        return struct.unpack("f", struct.pack("f", value))[0] if dtype == "float" else float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _decoded(value: dict[str, Any]) -> bytes:
    if not _is_base64(value):
        raise invalid("JSON Value: ", _shown(value), " not formatted correctly for base64 data")
    try:
        return base64.b64decode(value["b64"] + "=" * (-len(value["b64"]) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid("Unable to base64 decode") from error


def _is_base64(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get("b64"), str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and not _is_base64(value)


def write_outputs(outputs: Mapping[str, Tensor], form: str) -> bytes:
    """The answer to a request of that form. Raises ``Failed``."""
    if not outputs:
        raise invalid("Cannot convert empty tensor map to JSON")
    names = sorted(outputs)
    if form == COLUMNAR:
        whole = {name: _nested(name, outputs[name]) for name in names}
        return written({"outputs": whole if len(names) > 1 else whole[names[0]]})
    size = -1
    for name in names:
        shape = outputs[name].shape
        if not shape:
            raise invalid("Tensor name: ", name, " has no shape information ")
        if size >= 0 and shape[0] != size:
            raise invalid("Tensor name: ", name, " has inconsistent batch size: ", shape[0], " expecting: ", size)
        size = shape[0]
    columns = {name: _nested(name, outputs[name]) for name in names}
    if len(names) == 1:
        return written({"predictions": columns[names[0]]})
    return written({"predictions": [{name: columns[name][row] for name in names} for row in range(size)]})


def _nested(name: str, tensor: Tensor) -> Any:
    binary = tensor.dtype == "string" and name.endswith("_bytes")
    values = iter(tensor.values)

    def level(dimension: int) -> Any:
        if dimension == len(tensor.shape):
            return _plain(next(values), tensor.dtype, binary=binary)
        return [level(dimension + 1) for _ in range(tensor.shape[dimension])]

    return level(0)


def _plain(value: Any, dtype: str, *, binary: bool) -> Any:
    if dtype == "string":
        return {"b64": base64.b64encode(value).decode()} if binary else value.decode("utf-8", "surrogateescape")
    if dtype in _FLOATS:
        return _decimal(float(value), dtype)
    if dtype != "bool" and dtype not in _INTEGERS:
        raise invalid("Failed to write JSON value for tensor type: ", dtype)
    return value


def _decimal(value: float, dtype: str) -> Raw:
    """The shortest number of six digits that is the same in its type, else one of all its digits."""
    if not math.isfinite(value):
        return Raw(json.dumps(value))
    short = f"{value:.6g}"
    text = short if _float(float(short), dtype) == value else f"{value:.{9 if dtype == 'float' else 17}g}"
    return Raw(text if "." in text or "e" in text else f"{text}.0")


def error_text(message: str) -> bytes:
    """The body of an answer that is an error."""
    return _text({"error": message})


def _text(document: Any) -> bytes:
    return json.dumps(document, indent=4, ensure_ascii=False).encode("utf-8", "surrogateescape")


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _type(value: Any) -> str:
    if value is None:
        return "Null"
    if isinstance(value, bool):
        return str(value)
    kinds = ((dict, "Object"), (list, "Array"), (str, "String"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "Number")


def _brackets(shape: list[int]) -> str:
    return f"[{','.join(map(str, shape))}]"


def _form(value: Any, sentence: str) -> Failed:
    return invalid("JSON Value: ", _shown(value), " ", sentence)
