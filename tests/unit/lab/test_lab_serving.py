"""The stand-in for TensorFlow's model server answers as TensorFlow Serving's own tests and documents have it.

The requests and answers are facts from those: half plus two, and the tensors of its JSON tests. TensorFlow itself is
not needed: what computes is a function.
"""

from __future__ import annotations

import ast
import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lab import images
from lab.config import CHECKOUT
from lab.serving import rest
from lab.serving.config import Model, checked, read_config
from lab.serving.flags import read_flags
from lab.serving.status import Failed
from lab.serving.tensors import COLUMNAR, ROW, Tensor, parse, read_inputs, write_outputs
from lab.serving.versions import END, Versions


class HalfPlus:
    """Half of x, plus a number."""

    def __init__(self, more: float) -> None:
        self.more = more

    def inputs(self, signature: str) -> Mapping[str, str] | None:
        return {"x": "float"} if signature == "serving_default" else None

    def predict(self, signature: str, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        x = inputs["x"]
        return {"y": Tensor("float", x.shape, [value / 2 + self.more for value in x.values])}

    def metadata(self) -> dict[str, Any]:
        return {"signature_def": {"serving_default": {}}}


def load(path: str) -> HalfPlus:
    text = (Path(path) / "more").read_text() if (Path(path) / "more").exists() else ""
    if not text:
        message = f"Could not find SavedModel .pb or .pbtxt at supplied export directory path: {path}"
        raise Failed("NOT_FOUND", message)
    return HalfPlus(float(text))


def soon(there: Callable[[], Any]) -> Any:
    """What a condition gives, once it does: 20 s are for a machine under load."""
    for _ in range(2000):
        if found := there():
            return found
        time.sleep(0.01)
    pytest.fail("it did not come")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    for version, more in (("1", "2"), ("2", "3"), ("3", "")):
        (tmp_path / "half" / version).mkdir(parents=True)
        (tmp_path / "half" / version / "more").write_text(more)
    return tmp_path / "half"


def model(base: Path, *versions: int, **labels: int) -> Model:
    return Model("half", str(base), "tensorflow", "specific", 1, versions, labels)


@pytest.fixture
def versions() -> Iterator[Versions]:
    made = Versions(load, retries=0, poll_s=0.02, early_labels=True, log=lambda line: None)
    yield made
    made.stop()


def ask(versions: Versions, method: str, path: str, document: Any = None) -> tuple[int, Any]:
    body = b"" if document is None else document if isinstance(document, bytes) else json.dumps(document).encode()
    status, text = rest.answer(versions, method, path, body)
    return status, json.loads(text)


@pytest.fixture
def served(versions: Versions, base: Path) -> Versions:
    versions.reload((model(base, 1, 2, live=1),))
    versions.start()
    soon(lambda: states(versions) == {1: "AVAILABLE", 2: "AVAILABLE"})
    return versions


def states(versions: Versions) -> dict[int, str]:
    return {number: version.state for number, version in versions.states.get("half", {}).items()}


def test_predictions_of_a_version_a_label_and_the_newest(served: Versions) -> None:
    """As in TensorFlow Serving's tests of its REST interface."""
    for path, more in (("", 3), ("/versions/1", 2), ("/versions/2", 3), ("/labels/live", 2)):
        row = ask(served, "POST", f"/v1/models/half{path}:predict", {"instances": [1.0, 2.0, 5.0]})
        assert row == (200, {"predictions": [0.5 + more, 1 + more, 2.5 + more]})
        assert ask(served, "POST", f"/v1/models/half{path}:predict", {"inputs": [2.0]}) == (
            200,
            {"outputs": [1 + more]},
        )


def test_states_as_json_has_them(served: Versions) -> None:
    entry = {"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
    assert ask(served, "GET", "/v1/models/half/versions/1") == (200, {"model_version_status": [entry]})
    assert ask(served, "GET", "/v1/models/half") == (200, {"model_version_status": [{**entry, "version": "2"}, entry]})


@pytest.mark.parametrize(
    ("request_line", "body", "status", "sentence"),
    [
        ("GET /v1/foo", None, 400, "Malformed request: GET /v1/foo"),
        ("POST /v1/foo", None, 400, "Malformed request"),
        ("GET /v1/models", None, 400, "Missing model name in request."),
        ("GET /v1/models/debug/model_name", None, 400, "Malformed request"),
        ("POST /v1/models", None, 400, "Malformed request"),
        ("GET /v1/models/foo:predict", None, 400, "Malformed request"),
        ("GET /v1/models/foo/version/50:predict", None, 400, "Malformed request"),
        ("POST /v1/models/foo/version/50:regress", None, 400, "Malformed request"),
        ("POST /v1/models/foo/versions/HELLO:regress", None, 400, "Malformed request"),
        (f"POST /v1/models/foo/versions/{2**64 - 1}:regress", None, 400, "Failed to convert version"),
        ("POST /v1/models/foo/metadata", None, 400, "Malformed request"),
        ("POST /v1/models/foo/label/some_label:regress", None, 400, "Malformed request"),
        ("POST /v1/models/foo/versions/50/labels/some_label:regress", None, 400, "Malformed request"),
        ("POST /v1/models/half:predict", None, 400, "JSON Parse error: The document is empty"),
        ("POST /v1/models/half:predict", b"instances = [1, 2]", 400, "JSON Parse error: Invalid value"),
        ("POST /v1/models/half:predict", {"instances": ["x", "y"]}, 400, "not of expected type: float"),
        ("POST /v1/models/half/labels/nope:predict", {"instances": [1]}, 400, "Unrecognized servable version label"),
        (
            "POST /v1/models/half:predict",
            {"signature_name": 100},
            400,
            "'signature_name' key must be a string value.",
        ),
        ("POST /v1/models/half:predict", {"signature_name": "s", "instances": [1]}, 400, 'name: "s" not found in'),
        ("POST /v1/models/half/versions/9:predict", {"instances": [1]}, 404, "request: Specific(half, 9)"),
        ("POST /v1/models/other:predict", {"instances": [1]}, 404, "Servable not found for request: Latest(other)"),
        ("GET /v1/models/other", None, 404, "Could not find any versions of model other"),
        ("GET /v1/models/half/versions/9", None, 404, "Could not find version 9 of model half"),
    ],
)
def test_sentences_of_requests_that_are_wrong(
    served: Versions, request_line: str, body: Any, status: int, sentence: str
) -> None:
    got, document = ask(served, *request_line.split(" "), body)
    assert (got, list(document)) == (status, ["error"])
    assert sentence in document["error"]


def test_names_in_a_path_are_decoded(served: Versions) -> None:
    _, answer = ask(served, "GET", "/v1/models/modelname%21%23%24%25%26%27%28%29%2A%2B%2C%2F%3A%3B%3D%3F%40%5B%5D")
    assert answer["error"].endswith("of model modelname!#$%&'()*+,/:;=?@[]")


ONE = {"default": "int32"}


@pytest.mark.parametrize(
    ("dtypes", "body", "name", "shape", "values"),
    [
        (ONE, '{"instances": [[1,2],[3,4],[5,6]]}', "default", [3, 2], [1, 2, 3, 4, 5, 6]),
        (ONE, '{"signature_name": "predict_images", "instances": [[1,2]]}', "default", [1, 2], [1, 2]),
        ({"d": "double"}, '{"instances": [1.0, 2, 3, 4, 0.662, 0, 0.0]}', "d", [7], [1.0, 2, 3, 4, 0.662, 0, 0.0]),
        ({"f": "float"}, '{"instances": [1.7976931348623157e308]}', "f", [1], [math.inf]),
        ({"f": "float"}, '{"instances": [-1.7976931348623157e308]}', "f", [1], [-math.inf]),
        (
            {"s": "string"}, '{"instances": [{"b64": "aGVsbG8="}, {"b64": "d29ybGQ="}]}', "s", [2],
            [b"hello", b"world"],
        ),
        (
            {"s": "string"}, '{"instances": [{"s": [[{"b64": "aGVsbG8="}], [{"b64": "d29ybGQ="}]]}]}', "s", [1, 2, 1],
            [b"hello", b"world"],
        ),
        ({"i": "int32"}, '{"inputs": {"i": [[[1,2],[3,4],[5,6]]]}}', "i", [1, 3, 2], [1, 2, 3, 4, 5, 6]),
        ({"i": "int32"}, '{"inputs": [[[1,2],[3,4],[5,6]]]}', "i", [1, 3, 2], [1, 2, 3, 4, 5, 6]),
    ],
)  # fmt: skip
def test_tensors_of_json(dtypes: dict[str, str], body: str, name: str, shape: list[int], values: list[Any]) -> None:
    request = read_inputs(parse(body.encode()), dtypes)
    assert request.form == (ROW if "instances" in body else COLUMNAR)
    assert {name: (tensor.shape, tensor.values) for name, tensor in request.inputs.items()} == {name: (shape, values)}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("", "document is empty"),
        ('{"signature_name": 5, "instances": [[1,2],[3,4],[5,6,7]]}', "must be a string value"),
        ('{"instances": [[1,2]], "inputs": [[1,2]]}', "Not formatted correctly"),
        ('{"instances": [[1,2],[3,4],[5,6,7]]}', "Expecting tensor size"),
        ('{"instances": [[1,2],[3,4],[[5,6]]]}', "Expecting shape"),
        ('{"instances": [1, [1]]}', "Expecting shape"),
        ('{"instances": [[1,2],["a", "b"]]}', "not of expected type"),
        ('{"signature_name":' + "[" * 500000 + "]" * 500000 + "}", "key must be a string value"),
    ],
)
def test_json_that_is_no_tensor(body: str, sentence: str) -> None:
    with pytest.raises(Failed) as caught:
        read_inputs(parse(body.encode()), ONE)
    assert caught.value.code == "INVALID_ARGUMENT"
    assert sentence in caught.value.message


MANY = {
    "int_tensor": Tensor("int32", [2, 3, 2], [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2]),
    "str_tensor": Tensor("string", [2, 2], [b"foo", b"bar", b"baz", b"bat"]),
    "double_scalar_tensor": Tensor("double", [2], [8.0, 9.0]),
    "str_tensor_bytes": Tensor("string", [2, 2], [b"hello", b"world", b"tf", b"serving"]),
}


def test_json_of_several_tensors() -> None:
    rows = json.loads(write_outputs(MANY, ROW))["predictions"]
    assert rows[1] == {
        "double_scalar_tensor": 9.0,
        "int_tensor": [[7, 8], [9, 0], [1, 2]],
        "str_tensor": ["baz", "bat"],
        "str_tensor_bytes": [{"b64": "dGY="}, {"b64": "c2VydmluZw=="}],
    }
    assert json.loads(write_outputs(MANY, COLUMNAR))["outputs"]["str_tensor"] == [["foo", "bar"], ["baz", "bat"]]


def test_json_of_one_tensor() -> None:
    one = {"int_tensor": MANY["int_tensor"]}
    nested = [[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 0], [1, 2]]]
    assert json.loads(write_outputs(one, ROW)) == {"predictions": nested}
    assert json.loads(write_outputs(one, COLUMNAR)) == {"outputs": nested}
    assert json.loads(write_outputs({"i": Tensor("int32", [0, 2], [])}, ROW)) == {"predictions": []}
    odd = write_outputs({"f": Tensor("float", [2, 2], [math.nan, math.inf, 3, -math.inf])}, ROW).decode()
    assert "".join(odd.split()) == '{"predictions":[[NaN,Infinity],[3.0,-Infinity]]}'
    uneven = {"i": Tensor("int32", [0, 2], []), "s": Tensor("string", [1, 2], [b"foo", b"bar"])}
    with pytest.raises(Failed, match="Failed to write JSON value for tensor type: complex64"):
        write_outputs({"c": Tensor("complex64", [1], [1j])}, ROW)
    with pytest.raises(Failed, match="inconsistent batch size"):
        write_outputs(uneven, ROW)


def test_a_version_goes_only_when_another_answers(served: Versions, base: Path) -> None:
    """The order of AvailabilityPreservingPolicy: load, then unload; a version that does not load takes none away."""
    served.reload((model(base, 3),))
    soon(lambda: states(served).get(3) == END)
    for _ in range(30):
        assert states(served)[2] == "AVAILABLE"
        time.sleep(0.01)
    assert ask(served, "GET", "/v1/models/half/versions/3")[1]["model_version_status"][0]["status"] == {
        "error_code": "NOT_FOUND",
        "error_message": f"Could not find SavedModel .pb or .pbtxt at supplied export directory path: {base}/3",
    }
    served.reload((model(base, 1),))
    soon(lambda: states(served)[2] == END)
    assert states(served)[1] == "AVAILABLE"


def test_a_label_moves_only_to_a_version_that_is_loaded(served: Versions, base: Path) -> None:
    with pytest.raises(Failed, match="Request to assign label to version 3 of model half, which is not currently"):
        served.reload((model(base, 1, 2, 3, live=3),))
    assert ask(served, "POST", "/v1/models/half/labels/live:predict", {"instances": [2]}) == (200, {"predictions": [3]})
    served.reload((model(base, 1, 2, live=2),))
    assert ask(served, "POST", "/v1/models/half/labels/live:predict", {"instances": [2]}) == (200, {"predictions": [4]})


def test_a_new_label_may_come_first_only_where_the_flag_allows_it(base: Path) -> None:
    strict = Versions(load, early_labels=False, log=lambda line: None)
    with pytest.raises(Failed, match="not currently available"):
        strict.reload((model(base, 1, live=1),))
    Versions(load, early_labels=True, log=lambda line: None).reload((model(base, 1, live=1),))


def test_a_version_ends_with_its_last_request(served: Versions, base: Path) -> None:
    with served.handle("half", 1, None):
        served.reload((model(base, 2, live=2),))
        soon(lambda: states(served)[1] == "UNLOADING")
        time.sleep(0.1)
        assert states(served)[1] == "UNLOADING"
    soon(lambda: states(served)[1] == END)


def test_a_start_fails_where_the_newest_version_does_not_load(versions: Versions, base: Path) -> None:
    versions.reload((model(base, 1, 3),))
    versions.start()
    with pytest.raises(Failed, match=r"did not become available: \{\{name: half version: 3\} due to error: Not found"):
        versions.await_first()


def test_it_speaks_http(served: Versions) -> None:
    from http.client import HTTPConnection

    server = rest.server_of(served, ("127.0.0.1", 0))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    connection = HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    for path, status, kind in (("/v1/models/half", 200, "application/json"), ("/other", 404, "text/html")):
        connection.request("GET", path)
        reply = connection.getresponse()
        reply.read()
        assert (reply.status, reply.getheader("Content-Type")) == (status, kind)
    server.shutdown()
    server.server_close()


CONFIG = """
# as TensorFlow Serving's page about its configuration has it
model_config_list {
  config {
    name: 'my_first_model'
    base_path: '/tmp/my_first_model/'
    model_platform: 'tensorflow'
    model_version_policy { specific { versions: 42 versions: 43 } }
    version_labels { key: 'stable' value: 42 }
    version_labels { key: 'canary' value: 43 }
  }
  config: { name: "other", base_path: "/tmp/other", model_platform: "tensorflow" }
}
"""


def test_configurations_are_read(tmp_path: Path) -> None:
    file = tmp_path / "models.config"
    file.write_text(CONFIG)
    first, other = checked(read_config(str(file)))
    assert (first.name, first.policy, first.versions, first.labels) == (
        "my_first_model", "specific", (42, 43), {"stable": 42, "canary": 43},
    )  # fmt: skip
    assert (other.name, other.policy, other.number) == ("other", "latest", 1)
    for empty in ("model_config_list {}", "model_config_list: < >", ""):
        file.write_text(empty)
        assert read_config(str(file)) == ()


@pytest.mark.parametrize(
    "text",
    [
        "model_config_list {",
        "model_config_list { config { nme: 'x' } }",
        "{}",
        "model_config_list { config { name 'x' } }",
    ],
)
def test_files_that_are_no_configuration(tmp_path: Path, text: str) -> None:
    file = tmp_path / "models.config"
    file.write_text(text)
    with pytest.raises(Failed, match="Invalid protobuf file"):
        read_config(str(file))


@pytest.mark.parametrize(
    ("models", "sentence"),
    [
        ((Model("a", "/a", "tensorflow"), Model("a", "/b", "tensorflow")), "Illegal to list model a multiple times"),
        ((Model("a", "a", "tensorflow"),), "to have an absolute path"),
        ((Model("a", "/a", ""),), "Illegal setting neither"),
        ((Model("a", "/a", "torch"),), "requests unsupported platform torch"),
    ],
)
def test_configurations_that_no_server_takes(models: tuple[Model, ...], sentence: str) -> None:
    with pytest.raises(Failed, match=sentence):
        checked(models)


def test_flags() -> None:
    flags = read_flags(["--rest_api_port=8501", "--allow_version_labels_for_unavailable_models", "--port=0"])
    assert (flags["rest_api_port"], flags["allow_version_labels_for_unavailable_models"]) == (8501, True)
    for wrong in ("--no_such_flag=1", "rest_api_port=1", "--rest_api_port=x"):
        with pytest.raises(ValueError, match=r"unknown argument|Couldn't interpret"):
            read_flags([wrong])


def test_the_image_has_all_that_its_server_imports() -> None:
    """Hostwright itself is not in it, and the lab's own package asks for that."""
    inside = {path.removesuffix(".py") for path, _ in images.SERVING.files if path.endswith(".py")}
    wanted = set()
    for _, source in images.SERVING.files:
        for node in ast.walk(ast.parse((CHECKOUT / source).read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            wanted |= {name for name in names if name.partition(".")[0] in {"lab", "hostwright"}}
            if isinstance(node, ast.ImportFrom) and node.module == "lab.serving":
                wanted |= {f"lab.serving.{alias.name}" for alias in node.names}
    modules = {path.removeprefix("usr/local/lib/hostwright-lab/").replace("/", ".") for path in inside}
    assert wanted - {"lab.serving"} <= modules
    assert "lab.serving.server" in wanted
