"""Exported workspaces beside the schemas of the systems that take them: of Kubernetes, and of Kubeflow.

They come from PyPI: kubernetes-validate (the schemas of every release since 1.14), kubeflow-training, and the Compose
specification's schema in docker-compose's wheel.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from hostwright.standard.roles.workspaces.declared.entries import WorkspaceEntry, WorkspaceUser
from hostwright.standard.roles.workspaces.declared.workspace import Workspace
from hostwright.standard.roles.workspaces.export.compose import compose, compose_runtime
from hostwright.standard.roles.workspaces.export.kubernetes import kubernetes

RELEASES = ("1.25", "1.30", "1.37")

#: prints whether the model takes the job, and gives it back as it was
MODEL = """
import json, sys
from types import SimpleNamespace
from kubeflow.training import ApiClient
job = json.load(sys.stdin)
model = ApiClient().deserialize(SimpleNamespace(data=json.dumps(job)), "KubeflowOrgV1TFJob")
print(ApiClient().sanitize_for_serialization(model) == job)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python that has both packages."""
    folder = tmp_path_factory.mktemp("validators")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    interpreter = str(folder / "bin" / "python")
    packages = ("kubernetes-validate", "kubeflow-training")
    subprocess.run([interpreter, "-m", "pip", "install", "-q", *packages], check=True)
    return interpreter


@pytest.fixture(scope="module")
def compose_schema(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The schema of the Compose specification."""
    folder = tmp_path_factory.mktemp("compose")
    download = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--dest", str(folder))
    subprocess.run([*download, "docker-compose==1.29.2"], check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return json.loads(archive.read("compose/config/compose_spec.json"))


def declared(kind: str) -> Workspace:
    work = {"command": ("python", "train.py")} if kind == "batch" else {}
    entry = WorkspaceEntry("alice", kind, ("0",), cpus=0.5, memory="64g", mounts=("/d:/d:ro",), image="a:1", **work)  # type: ignore[arg-type]
    return Workspace("alice-lab", entry, WorkspaceUser(uid=2001), 0 if kind == "batch" else 20001, "/srv")


def exported(kind: str, hosts: int = 1) -> str:
    return kubernetes(declared(kind), hosts)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("kind", ["jupyter", "tensorboard", "batch"])
def test_kubernetes_takes_each_manifest(python: str, tmp_path: Path, kind: str, release: str) -> None:
    file = tmp_path / "workspace.yml"
    file.write_text(exported(kind))
    command = [python, "-m", "kubernetes_validate", "--strict", "--kubernetes-version", release, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert said.count(" passed for resource ") == len(list(yaml.safe_load_all(file.read_text()))), said


def test_a_mistake_is_seen(python: str, tmp_path: Path) -> None:
    file = tmp_path / "workspace.yml"
    file.write_text(exported("batch").replace("backoffLimit: 0", "backoffLimits: 0"))
    command = [python, "-m", "kubernetes_validate", "--strict", str(file)]
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0


def test_kubeflow_takes_the_job_of_several_hosts(python: str) -> None:
    job = next(part for part in yaml.safe_load_all(exported("batch", hosts=3)) if part["kind"] == "TFJob")
    done = subprocess.run([python, "-c", MODEL], input=json.dumps(job), capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr


@pytest.mark.parametrize("form", [compose, compose_runtime])
@pytest.mark.parametrize("kind", ["jupyter", "tensorboard", "batch"])
def test_the_compose_specification_takes_each_file(compose_schema: Any, kind: str, form: Any) -> None:
    document = yaml.safe_load(form(declared(kind)))
    jsonschema.Draft7Validator(compose_schema).validate(document)
    document["services"]["alice-lab"]["mem_limits"] = "1g"
    with pytest.raises(jsonschema.ValidationError, match="mem_limits"):
        jsonschema.Draft7Validator(compose_schema).validate(document)
