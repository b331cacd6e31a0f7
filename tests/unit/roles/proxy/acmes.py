"""Test support: Pebble, Let's Encrypt's small test authority, with a name server that resolves every name to this
machine, and the distribution's dehydrated, unpacked from its packages.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab.sshd import free_port
from tests.unit.roles.proxy.nginxes import ADDRESS


@dataclass(frozen=True)
class Authority:
    url: str
    trusted: Path  #: CA of its own HTTPS
    bin: Path  #: directory with dehydrated


def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with pebble, pebble-challtestsrv and dehydrated."""
    folder = tmp_path_factory.mktemp("acme")
    if not shutil.which("curl"):
        pytest.skip("dehydrated needs curl")
    subprocess.run(
        ("apt-get", "download", "pebble", "dehydrated"), cwd=folder, capture_output=True, check=False, timeout=120
    )
    for package in folder.glob("*.deb"):
        subprocess.run(("dpkg", "-x", package, folder), check=True)
    found = folder / "usr" / "bin"
    if not all((found / name).exists() for name in ("pebble", "pebble-challtestsrv", "dehydrated")):
        pytest.skip("there is no pebble or dehydrated, and none can be fetched")
    return found


@contextmanager
def authority(programs: Path, folder: Path, http_port: int) -> Iterator[Authority]:
    """Run Pebble, which requests challenges on this port of this machine."""
    made = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=pebble -addext"
    subprocess.run((*made.split(), f"subjectAltName=IP:{ADDRESS}"), cwd=folder, check=True, capture_output=True)
    api, management, names, steering = (free_port() for _ in range(4))
    config = {
        "listenAddress": f"{ADDRESS}:{api}", "managementListenAddress": f"{ADDRESS}:{management}",
        "certificate": str(folder / "cert.pem"), "privateKey": str(folder / "key.pem"), "httpPort": http_port,
        "tlsPort": 5001, "ocspResponderURL": "", "externalAccountBindingRequired": False,
    }  # fmt: skip
    (folder / "pebble.json").write_text(json.dumps({"pebble": config}))
    answering = (
        programs / "pebble-challtestsrv", "-defaultIPv4", ADDRESS, "-defaultIPv6", "", "-dns01", f"{ADDRESS}:{names}",
        "-http01", "", "-https01", "", "-tlsalpn01", "", "-management", f"{ADDRESS}:{steering}",
    )  # fmt: skip
    pebble = (programs / "pebble", "-config", folder / "pebble.json", "-dnsserver", f"{ADDRESS}:{names}")
    environment = {**os.environ, "PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0"}
    with (
        subprocess.Popen(answering, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as dns,
        (folder / "log").open("wb") as log,
        subprocess.Popen(pebble, env=environment, stdout=log, stderr=log) as server,
    ):
        try:
            _wait(api, server, folder / "log")
            yield Authority(f"https://{ADDRESS}:{api}/dir", folder / "cert.pem", programs)
        finally:
            for process in (server, dns):
                process.terminate()
                process.wait(60)


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection((ADDRESS, port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"pebble does not answer: {log.read_text(errors='replace')[-2000:]}")
