"""Served models, as their clients meet them: versions that answer, the live one, and files that nobody changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from testinfra.backend.base import CommandResult

from hostwright.fleet import TargetHost
from hostwright.standard.roles.container.running import LOCAL_DOCKER
from hostwright.standard.roles.workspaces import Workspaces
from hostwright.standard.roles.workspaces.declared.workspace import Workspace, workspaces_of
from hostwright.standard.roles.workspaces.states.facts import PREFIX

Run = Callable[..., CommandResult]
#: a value of each type, of which a request is made
SAMPLES: dict[str, Any] = {"DT_STRING": "", "DT_BOOL": False, "DT_FLOAT": 0.0, "DT_DOUBLE": 0.0}
#: what TensorFlow says of an operation that the server does not have, whatever it is asked
LACKING = ("Op type not registered", "No OpKernel was registered", "No registered '")


@pytest.fixture(scope="module")
def servers(target: TargetHost) -> tuple[Workspace, ...]:
    """The workspaces of the host that serve a model."""
    v = target.variables["workspaces"]
    assert isinstance(v, Workspaces)
    declared = workspaces_of(v.containers, v.users, v.directory, v.ports)
    return tuple(space for space in declared if space.entry.kind == "serving")


def asked(root_run: Run, space: Workspace, part: str, document: Any = None) -> tuple[str, Any]:
    """The HTTP status and the answer."""
    address = f"http://127.0.0.1:{space.port}{space.path}{part}"
    body = () if document is None else ("-d", json.dumps(document))
    words = "curl -q -s -m 60 --noproxy '*' -w %s" + " %s" * (len(body) + 1)
    done = root_run(words, "\n%{http_code}", *body, address)
    text, _, status = done.stdout.rpartition("\n")
    try:
        return status, json.loads(text)
    except ValueError:
        return status, {"error": text.strip() or done.stderr.strip() or "no answer"}


def test_files_can_be_read_by_the_server(root_run, servers):
    """No file of a model is closed to its server, which is not root: what is loaded would not load again."""
    for space in servers:
        find = r"find %s \( -type d ! -perm -005 -o -type f ! -perm -004 \) -printf %s"
        done = root_run(find, f"{space.state}/models/{space.name}", "%p has mode %m\\n")
        assert not done.stdout, f"{space.name}: its server may not read these:\n{done.stdout}"


def test_each_version_answers(root_run, servers):
    """The server has loaded every version that is declared, and no other."""
    for space in servers:
        status, answer = asked(root_run, space, "")
        rows = answer.get("model_version_status", [])
        loaded = sorted(int(row["version"]) for row in rows if row["state"] == "AVAILABLE")
        assert (status, loaded) == ("200", sorted(space.entry.versions)), f"{space.name}: {answer}"


def test_the_live_version_is_the_declared_one(root_run, servers):
    """The label that clients ask leads to the version that is declared live."""
    for space in servers:
        status, answer = asked(root_run, space, "/labels/live/metadata")
        assert status == "200", f"{space.name}: {answer.get('error')}"
        assert answer["model_spec"]["version"] == str(space.entry.live), f"{space.name}: {answer['model_spec']}"


def sample(info: dict[str, Any]) -> Any:
    """A tensor of the least size that a signature takes."""
    value = SAMPLES.get(info["dtype"], 0)
    for dim in reversed(info["tensor_shape"].get("dim", [])):
        value = [value] * max(int(dim["size"]), 1)
    return value


def said_by_the_model(answer: dict[str, Any]) -> bool:
    """Whether an answer is the model's own error about what it was asked, not that of a server that lacks a part."""
    error = str(answer.get("error", ""))
    return bool(error) and not any(sign in error for sign in LACKING)


def test_predictions_are_computed(root_run, servers):
    """Each version computes an answer, or the model itself says why not: it may not take zeros."""
    for space in servers:
        for version in sorted(space.entry.versions):
            _, about = asked(root_run, space, f"/versions/{version}/metadata")
            signatures = about.get("metadata", {}).get("signature_def", {}).get("signature_def", {})
            names = [name for name in signatures if not name.startswith("__saved_model_")]
            assert names, f"{space.name} version {version}: {about.get('error', 'no signature')}"
            name = "serving_default" if "serving_default" in names else names[0]
            inputs = {tensor: sample(info) for tensor, info in signatures[name]["inputs"].items()}
            request = {"signature_name": name, "inputs": inputs}
            status, answer = asked(root_run, space, f"/versions/{version}:predict", request)
            assert status in {"200", "400", "500"}, f"{space.name} version {version}: {status} {answer}"
            assert "outputs" in answer or said_by_the_model(answer), f"{space.name} version {version}: {answer}"


def test_files_are_what_was_brought(root_run, servers):
    """Every file of each version has the checksum that it came with, and the server may only read it."""
    for space in servers:
        models = f"{space.state}/models"
        for version, digest in sorted(space.entry.versions.items()):
            listed = root_run("sha256sum %s", f"{models}/versions/{version}").stdout[:64]
            assert f"sha256:{listed}" == digest, f"{space.name} version {version} is sha256:{listed}"
            check = "cd %s && sha256sum --quiet -c %s"
            done = root_run(check, f"{models}/{space.name}/{version}", f"{models}/versions/{version}")
            assert done.rc == 0, f"{space.name} version {version}: {done.stdout}{done.stderr}"
        done = root_run(f"{LOCAL_DOCKER} exec %s touch /models/models.config", PREFIX + space.name)
        assert done.rc != 0, f"{space.name}: its server may write to the models"
