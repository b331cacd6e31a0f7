"""Whether ``ssh`` and Hostwright accept a server's key, given the same files."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hostwright.common.errors import HostError
from hostwright.inventory import Host
from hostwright.transport import Options, connect
from tests.lab.sshd import free_port
from tests.unit.transport.beside.case import Case
from tests.unit.transport.beside.world import HOST, SSHD, World

_DEFAULTS = """
Host *
  UserKnownHostsFile <dir>/known
  GlobalKnownHostsFile <dir>/system
  IdentityFile /nonexistent
  PreferredAuthentications none
  BatchMode yes
  User nobody
  KexAlgorithms curve25519-sha256
  {way}
"""
_SCRIPTS = {
    "print": "cat '<dir>/more'",
    "fail": "cat '<dir>/more'; exit 1",
    "echo": 'echo "$@"',
    "only": '[ "$1" != "$2" ] || { shift 2; echo "$@"; }',
}


@dataclass(frozen=True)
class Answer:
    accepted: bool
    sentence: str
    known: str  #: content of the user's file afterwards


def prepared(world: World, case: Case, folder: Path, port: int) -> Path:
    """Write the case's files to a new folder; return its ``ssh_config``."""
    folder.mkdir()

    def write(name: str, text: str) -> Path:
        path = folder / name
        path.write_bytes(world.filled(text.replace("<port>", str(port)), folder).encode())
        return path

    write("known", case.known if case.raw or not case.known else f"{case.known}\n")
    write("system", f"{case.system}\n")
    for name in ("more", "with space", f"of-{HOST}", "of-g1"):
        write(name, f"{case.more}\n")
    write("included", "UserKnownHostsFile <dir>/more\n")
    write("stanza", "Host gpu02\n  HostKeyAlias rack2\n")
    write("broken.krl", "SSHKRL\n\0\0\0\0\1 damaged")
    write("mixed", "# ours\n\nnonsense\nssh-ed25519 AAAA\n  <ed> root@gpu01\n")
    for name, script in _SCRIPTS.items():
        write(name, f"#!/bin/sh\n{script}\n").chmod(0o755)
    way = f"Port {port}" if case.direct else f"ProxyCommand {world.proxy(case.server)}"
    return write("config", f"{case.config}\n{_DEFAULTS.format(way=way)}")


def by_ssh(config: Path, case: Case) -> Answer:
    """The result of ``ssh``; after accepting a key, it fails at the login."""
    command = ["ssh", "-F", str(config), *(["-o", "StrictHostKeyChecking=accept-new"] if case.new else [])]
    command += [*(["-p", str(case.port)] if case.port else []), "--", case.host, "true"]
    ran = subprocess.run(
        command,
        env={**os.environ, "BESIDE": str(config.parent)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=60,
    )
    return Answer("Permission denied (" in ran.stderr, ran.stderr, _known(config))


def by_us(config: Path, case: Case) -> Answer:
    """The result of a Hostwright session with the same configuration."""
    host = Host("gpu01", address=case.host, port=case.port or None, host_keys="accept-new" if case.new else None)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(HostError) as caught:
        patch.setenv("BESIDE", str(config.parent))
        connect(host, Options(ssh_config=config, use_agent=False, connect_timeout_s=30))
    return Answer("the login at" in str(caught.value), str(caught.value), _known(config))


def _known(config: Path) -> str:
    return (config.parent / "known").read_text(errors="replace")


@contextmanager
def sshd(world: World) -> Iterator[int]:
    """Run an sshd on 127.0.1.1 and 127.0.0.1 with two host keys; yield its port."""
    port = free_port("127.0.0.1", "127.0.1.1")
    addresses = [f"ListenAddress=127.0.{third}.1:{port}" for third in (0, 1)]
    options = [part for address in addresses for part in ("-o", address)]
    log = world.folder / "sshd.log"
    process = subprocess.Popen([SSHD, "-D", "-E", str(log), "-f", str(world.folder / "ed+ec.conf"), *options])
    try:
        _await(port, process)
        yield port
    finally:
        process.terminate()
        process.wait()


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.1.1", port), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise RuntimeError("sshd did not start")


def keys_of(known: str) -> list[str]:
    """The keys of a file without their names."""
    return sorted(re.findall(r"\S+ (\S+ AAAA\S+)", known))
