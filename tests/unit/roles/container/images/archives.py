"""Archives of images as written by ``docker save``."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NAME = "house/tool:1.2"


def sha(data: bytes) -> str:
    """Return a checksum in lowercase hex."""
    return hashlib.sha256(data).hexdigest()


def layer(name: str = "etc/motd", text: bytes = b"hello\n") -> bytes:
    """Return a layer with one file."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
    return out.getvalue()


LAYERS = (layer(), layer("opt/tool", b"#!/bin/sh\n"))


def config(*diffs: bytes, **more: Any) -> bytes:
    """Return the configuration of an image with these unpacked layers."""
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
    """Return the files that Docker up to 24 writes."""
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


def packed(files: Mapping[str, Any]) -> bytes:
    """Return the files as a tar archive; a name that ends with ``/`` is a directory."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name.rstrip("/"))
            info.type, info.size = (tarfile.DIRTYPE, 0) if data is None else (tarfile.REGTYPE, len(data))
            tar.addfile(info, io.BytesIO(data or b""))
    return out.getvalue()


def put(folder: Path, data: bytes, name: str = "image.tar") -> Path:
    """Add a file with this content."""
    path = folder / name
    path.write_bytes(data)
    return path
