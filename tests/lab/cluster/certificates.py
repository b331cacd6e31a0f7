"""A temporary certificate authority, and Dask settings with one of its certificates."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

_EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def _openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True, stdin=subprocess.DEVNULL)


def make_authority(folder: Path) -> Path:
    """Create a CA's certificate and key, and one signed certificate for the whole cluster; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    ca, key = str(folder / "ca.pem"), str(folder / "ca.key")
    node, request = str(folder / "node.key"), str(folder / "node.csr")
    _openssl("req", "-x509", *_EC, "-keyout", key, "-out", ca, "-days", "2", "-subj", "/CN=throw-away")
    _openssl("req", *_EC, "-keyout", node, "-out", request, "-subj", "/CN=node")
    _openssl(
        *("x509", "-req", "-in", request, "-CA", ca, "-CAkey", key, "-CAcreateserial"),
        *("-out", str(folder / "node.pem"), "-days", "2"),
    )
    return folder


def settings(folder: Path) -> Mapping[str, str]:
    """Return Dask's settings by their names in its configuration."""
    tls = "distributed.comm.tls"
    roles = {
        f"{tls}.{role}.{what}": str(folder / f"node.{ending}")
        for role in ("scheduler", "worker", "client")
        for what, ending in (("cert", "pem"), ("key", "key"))
    }
    return {f"{tls}.ca-file": str(folder / "ca.pem"), **roles}


def environment(folder: Path) -> dict[str, str]:
    """Return the same settings as environment variables."""
    return {
        f"DASK_{name.replace('.', '__').replace('-', '_').upper()}": value for name, value in settings(folder).items()
    }
