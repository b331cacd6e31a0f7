"""Export of a workspace as Kubernetes manifests: a Deployment, a Job, or a TFJob for several hosts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from hostwright.roles import InputError, short
from hostwright.standard.roles.workspaces.declared.forms import HOME, bytes_of
from hostwright.standard.roles.workspaces.declared.workspace import Workspace
from hostwright.standard.roles.workspaces.export.inside import PORTS, cards_checked, command_inside, hosts_checked
from hostwright.standard.roles.workspaces.export.yamltext import yaml_text

Manifest = dict[str, Any]
MIB = 2**20
_LABEL_LENGTH = 63  #: maximum length of a DNS label (RFC 1123)
_SHM = "shm"
_QUANTITY = re.compile(r"[1-9][0-9]{0,7}(Mi|Gi|Ti|Pi|M|G|T|P)")


def kubernetes(workspace: Workspace, hosts: int = 1, storage: str = "50Gi") -> str:
    """Return the manifests of ``workspace`` as one YAML text, for ``kubectl apply -f``.

    ``hosts``: number of pods of a distributed training, which becomes a TFJob. ``storage``: size of the volume claim
    for the workspace's files. Each mounted directory becomes a separate claim, which must exist.

    Raises ``InputError`` for the SSH container of a user, because the host builds the container's image, and for a
    ``storage`` that Kubernetes would refuse or misread.
    """
    if not _QUANTITY.fullmatch(storage):
        expected = (
            "expected a whole number with Mi, Gi, Ti or Pi, such as 50Gi, or with M, G, T or P for powers of 1000"
        )
        raise InputError(f"found {short(storage)!r}, {expected}", "--storage")
    if workspace.entry.kind == "ssh":
        raise InputError(
            f"{workspace.name} is an SSH box, whose image is built on its host; in a cluster, use `kubectl exec`"
        )
    hosts_checked(workspace, hosts)
    cards_checked(workspace)
    pod = _pod(workspace)
    if workspace.entry.kind == "batch":
        work = [_job(workspace, pod)] if hosts == 1 else [_tf_job(workspace, pod, hosts)]
    else:
        work = [_deployment(workspace, pod), _service(workspace)]
    claim = _named("v1", "PersistentVolumeClaim", workspace, _files(workspace))
    mode = "ReadWriteOnce" if hosts == 1 else "ReadWriteMany"
    claim["spec"] = {"accessModes": [mode], "resources": {"requests": {"storage": storage}}}
    return yaml_text([claim, *work], explicit_start=True)


def _named(version: str, kind: str, workspace: Workspace, name: str) -> Manifest:
    labels = {"app.kubernetes.io/name": dns_name(workspace.name), "app.kubernetes.io/part-of": "workspaces"}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": labels}}


def dns_name(name: str) -> str:
    """Return ``name`` as a DNS label, which starts with a letter and does not end with a hyphen (RFC 1035).

    A changed name gets a hash, so that the name stays unique.

    >>> dns_name("alice-lab"), dns_name("2022-lab")
    ('alice-lab', 'w-2022-lab-b4d824')
    """
    plain = name.strip("-")
    plain = plain if plain[0].isalpha() else f"w-{plain}"
    return plain if plain == name else f"{plain}-{_sum(name)[:6]}"


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _files(workspace: Workspace) -> str:
    return f"{dns_name(workspace.name)}-files"


def _job(workspace: Workspace, pod: Manifest) -> Manifest:
    template = {"spec": {**pod, "restartPolicy": "Never"}}
    spec = {"backoffLimit": 0, "template": template}
    return {**_named("batch/v1", "Job", workspace, dns_name(workspace.name)), "spec": spec}


def _tf_job(workspace: Workspace, pod: Manifest, hosts: int) -> Manifest:
    """Name the container ``tensorflow``, as the operator of TFJobs requires."""
    worker = {"replicas": hosts, "restartPolicy": "Never", "template": {"spec": pod}}
    spec = {"runPolicy": {"cleanPodPolicy": "None"}, "tfReplicaSpecs": {"Worker": worker}}
    return {**_named("kubeflow.org/v1", "TFJob", workspace, dns_name(workspace.name)), "spec": spec}


def _deployment(workspace: Workspace, pod: Manifest) -> Manifest:
    """Stop the old pod before a new one starts."""
    labels = {"app.kubernetes.io/name": dns_name(workspace.name)}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 1, "strategy": {"type": "Recreate"}, "selector": {"matchLabels": labels}, "template": template}
    return {**_named("apps/v1", "Deployment", workspace, dns_name(workspace.name)), "spec": spec}


def _service(workspace: Workspace) -> Manifest:
    port = PORTS[workspace.entry.kind]
    spec = {
        "selector": {"app.kubernetes.io/name": dns_name(workspace.name)},
        "ports": [{"name": "http", "port": port, "targetPort": port}],
    }
    return {**_named("v1", "Service", workspace, dns_name(workspace.name)), "spec": spec}


def _pod(workspace: Workspace) -> Manifest:
    entry = workspace.entry
    claims = [(_files(workspace), HOME, False), *_claims(entry.mounts)]
    container: Manifest = {
        "name": "tensorflow",
        "image": entry.image,
        "command": [_plain(word) for word in command_inside(workspace)],
        "workingDir": HOME,
        "resources": {"limits": _limits(workspace)},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [
            *({"name": name, "mountPath": path, "readOnly": read_only} for name, path, read_only in claims),
            {"name": _SHM, "mountPath": "/dev/shm"},  # noqa: S108  # the pod's own shared memory
        ],
    }
    if variables := entry.variables:
        container["env"] = [{"name": name, "value": _plain(value)} for name, value in variables.items()]
    if entry.kind in PORTS:
        container["ports"] = [{"name": "http", "containerPort": PORTS[entry.kind]}]
    volumes: Sequence[Mapping[str, Any]] = [
        *(
            {"name": name, "persistentVolumeClaim": {"claimName": name}}
            for name in dict.fromkeys(each[0] for each in claims)
        ),
        {"name": _SHM, "emptyDir": {"medium": "Memory", "sizeLimit": _mebibytes(entry.shm)}},
    ]
    # Jupyter would read a Service's variables as settings, such as JUPYTER_PORT=tcp://… for a Service named jupyter.
    pod: Manifest = {"enableServiceLinks": False, "containers": [container], "volumes": list(volumes)}
    uid, gid = workspace.user.uid, workspace.user.gid
    if uid is not None:
        group = uid if gid is None else gid
        pod["securityContext"] = {"runAsUser": uid, "runAsGroup": group, "fsGroup": group}
        if workspace.user.groups:
            pod["securityContext"]["supplementalGroups"] = list(workspace.user.groups)
    return pod


def _limits(workspace: Workspace) -> dict[str, str]:
    entry = workspace.entry
    limits = {}
    if entry.cpus:
        limits["cpu"] = f"{entry.cpus:g}"
    if entry.memory:
        limits["memory"] = _mebibytes(entry.memory)
    if entry.gpus:
        limits["nvidia.com/gpu"] = str(len(entry.gpus))
    return limits


def _mebibytes(size: str) -> str:
    return f"{max(1, bytes_of(size) // MIB)}Mi"


def _plain(text: str) -> str:
    """Double each dollar sign, because Kubernetes expands ``$(NAME)``, and ``$$`` is one dollar sign."""
    return text.replace("$", "$$")


def _claims(mounts: Sequence[str]) -> list[tuple[str, str, bool]]:
    """Return, for each of ``mounts``, the volume claim for the host's directory, the mount point, and whether it is
    read-only.

    >>> _claims(["/data/imagenet:/data:ro"])
    [('data-imagenet', '/data', True)]
    """
    return [
        (_claim(source), target, mode == ["ro"]) for source, target, *mode in (mount.split(":") for mount in mounts)
    ]


def _claim(source: str) -> str:
    """Return the name of the volume claim for the host directory ``source``. The name is the same in all workspaces.

    >>> _claim("/data/Set_A"), _claim("/data/set-a")
    ('data-set-a-c1fdbe4e', 'data-set-a-09c64145')
    """
    plain = source[1:].replace("/", "-")
    named = re.fullmatch(r"/[a-z0-9]+(/[a-z0-9]+)*", source) and len(plain) <= _LABEL_LENGTH
    # `_SHM` and names with "-files" are names of other volumes
    if named and plain != _SHM and not plain.endswith("-files"):
        return plain
    letters = re.sub("[^a-z0-9]", "-", plain.lower()).strip("-")[:50].rstrip("-")
    return f"{letters or 'data'}-{_sum(source)[:8]}"
