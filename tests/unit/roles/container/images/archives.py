"""Archives of images, made as Docker, skopeo and buildx make them, and as somebody would who means harm."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NAME = "house/tool:1.2"
ATTESTATION = {"vnd.docker.reference.type": "attestation-manifest"}  #: what buildx says of a manifest that is no image


def sha(data: bytes) -> str:
    """A checksum in lower-case hex."""
    return hashlib.sha256(data).hexdigest()


def layer(name: str = "etc/motd", text: bytes = b"hello\n") -> bytes:
    """A layer of one file."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
    return out.getvalue()


LAYERS = (layer(), layer("opt/tool", b"#!/bin/sh\n"))


def config(*diffs: bytes, **more: Any) -> bytes:
    """The configuration of an image with these layers, unpacked."""
    document = {
        "architecture": "amd64",
        "os": "linux",
        "created": "2026-01-02T03:04:05Z",
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha(diff)}" for diff in diffs]},
    }
    return json.dumps({**document, **more}).encode()


CONFIG = config(*LAYERS)
ID = f"sha256:{sha(CONFIG)}"


def saved(layers: tuple[bytes, ...] = LAYERS, text: bytes = CONFIG, names: list[str] | None = None) -> dict[str, Any]:
    """The files that Docker up to 24 writes."""
    digest = sha(text)
    folders = [sha(b"%d" % number + part) for number, part in enumerate(layers)]
    manifest = {
        "Config": f"{digest}.json",
        "RepoTags": [NAME] if names is None else names,
        "Layers": [f"{folder}/layer.tar" for folder in folders],
    }
    files: dict[str, Any] = {f"{digest}.json": text}
    for folder, part in zip(folders, layers, strict=True):
        files |= {f"{folder}/": None, f"{folder}/VERSION": b"1.0", f"{folder}/json": b"{}", f"{folder}/layer.tar": part}
    return {**files, "manifest.json": json.dumps([manifest]).encode()}


def described(blobs: dict[str, Any], data: bytes, **more: Any) -> dict[str, Any]:
    """Put a blob into a layout; its descriptor."""
    blobs[f"blobs/sha256/{sha(data)}"] = data
    return {"digest": f"sha256:{sha(data)}", "size": len(data), **more}


def layout(*, packed: bool = True, nested: bool = False, name: str = NAME, key: str = "") -> dict[str, Any]:
    """The files of an OCI layout; ``nested`` as buildx writes it, with another platform and an attestation."""
    files: dict[str, Any] = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}
    parts = [gzip.compress(part, mtime=0) if packed else part for part in LAYERS]
    whole = {
        "schemaVersion": 2,
        "config": described(files, CONFIG),
        "layers": [described(files, part) for part in parts],
    }
    ours = described(files, json.dumps(whole).encode(), platform={"os": "linux", "architecture": "amd64"})
    if nested:
        theirs = {"digest": f"sha256:{sha(b'arm')}", "size": 3, "platform": {"os": "linux", "architecture": "arm64"}}
        other = {"digest": f"sha256:{sha(b'att')}", "size": 3, "platform": {"os": "unknown", "architecture": "unknown"}}
        ours = described(files, json.dumps({"manifests": [theirs, ours, other]}).encode())
    ours["annotations"] = {key or "org.opencontainers.image.ref.name": name}
    return {**files, "index.json": json.dumps({"schemaVersion": 2, "manifests": [ours]}).encode()}


def platform(system: str, architecture: str) -> dict[str, str]:
    """A platform as an index says it."""
    return {"os": system, "architecture": architecture}


def laid_out(files: dict[str, Any], *described: dict[str, Any]) -> dict[str, Any]:
    """The files of a layout whose index lists these."""
    index = json.dumps({"schemaVersion": 2, "manifests": described}).encode()
    return {**files, "oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": index}


def packed(files: Mapping[str, Any], links: Mapping[str, str] | None = None, prefix: str = "") -> bytes:
    """The files as a tar archive; a name that ends with ``/`` is a directory."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(prefix + name.rstrip("/"))
            info.type, info.size = (tarfile.DIRTYPE, 0) if data is None else (tarfile.REGTYPE, len(data))
            tar.addfile(info, io.BytesIO(data or b""))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return out.getvalue()


def put(folder: Path, data: bytes, name: str = "image.tar") -> Path:
    """A file with this content."""
    path = folder / name
    path.write_bytes(data)
    return path
