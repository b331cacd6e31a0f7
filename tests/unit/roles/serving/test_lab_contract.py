"""Responses of the stand-in compared with the sources of TensorFlow Serving 2.9.0, over HTTP, with made-up models.

`make workspaces` runs the same contract against TensorFlow.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator, Mapping
from ctypes import c_float
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, ClassVar

import pytest

from lab.serving import rest
from lab.serving.config import Model
from lab.serving.status import Failed
from lab.serving.tensors import Tensor
from lab.serving.versions import Versions
from tests.places import PROJECT
from tests.unit.lab.test_lab_serving import soon
from tests.workspaces.contract import differs

CONTRACT = json.loads((PROJECT / "tests/fixtures/serving/contract.json").read_text())


class Half:
    """The computation of the lab test's model, as far as the contract uses it."""

    INPUTS: ClassVar = {
        "serving_default": {"x": "float"}, "mean": {"x": "float"}, "dense": {"x": "float"},
        "many": {"numbers": "int32", "text": "string"},
    }  # fmt: skip

    def __init__(self, more: float) -> None:
        self.more = more

    def inputs(self, signature: str) -> Mapping[str, str] | None:
        return self.INPUTS.get(signature)

    def predict(self, signature: str, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        if signature == "many":
            numbers, text = inputs["numbers"], inputs["text"]
            rows = [numbers.values[place : place + 3] for place in range(0, len(numbers.values), 3)]
            return {
                "sums": Tensor("int32", [len(rows)], [sum(row) for row in rows]),
                "loud": Tensor("string", text.shape, [value.upper() for value in text.values]),
                "text_bytes": text,
                "positive": Tensor("bool", numbers.shape, [value > 0 for value in numbers.values]),
            }
        x = inputs["x"]
        if signature == "mean":
            return {"y": Tensor("float", [], [sum(x.values) / len(x.values)])}
        if signature == "dense":
            raise Failed("INVALID_ARGUMENT", "Matrix size-incompatible: In[0]: [1,3], In[1]: [2,1]")
        return {"y": Tensor("float", x.shape, [c_float(c_float(v / 2).value + self.more).value for v in x.values])}

    def metadata(self) -> dict[str, Any]:
        return {"signature_def": {"serving_default": {"method_name": "tensorflow/serving/predict"}}}


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    base = tmp_path_factory.mktemp("models") / "half"
    for version in ("1", "2"):
        (base / version).mkdir(parents=True)
    versions = Versions(
        lambda path: Half(1.0 + float(Path(path).name)), poll_s=0.02, early_labels=True, log=lambda line: None
    )
    versions.reload((Model("half", str(base), "tensorflow", "specific", 1, (1, 2), {"live": 1}),))
    versions.start()
    soon(lambda: [v.state for v in versions.states.get("half", {}).values()] == ["AVAILABLE"] * 2)
    server = rest.server_of(versions, ("127.0.0.1", 0))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield int(server.server_address[1])
    server.shutdown()
    server.server_close()
    versions.stop()


@pytest.mark.parametrize("case", CONTRACT, ids=lambda case: case["name"])
def test_an_answer_is_that_of_tensorflow_serving(port: int, case: dict[str, Any]) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    body = case["body"].encode() if case["body"] is not None else None
    headers = {"Content-Encoding": "gzip"} if case.get("gzip") else {}
    connection.request(
        case["method"], case["path"], gzip.compress(body) if body and case.get("gzip") else body, headers
    )
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    assert differs(case, reply.status, text) == ""
