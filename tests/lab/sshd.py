"""A real sshd on a high port of 127.0.0.1, with its own configuration, keys and known_hosts.

To use the fixture, import it in a test module or conftest: ``from tests.lab.sshd import sshd``.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from hostwright.common.secret import Secret
from hostwright.transport import Options

SSHD = "/usr/sbin/sshd"
#: Upper bound for operations with a limit of one or two seconds, on a machine that stalls for seconds. Any other wait
#: takes at least 10 s (paramiko's threads) or 60 s (a login with these options).
PROMPT_S = 9.0
_START_S = 60.0  #: long, for machines under load


@dataclass(frozen=True, slots=True)
class Target:
    """A host for the transport; every field except the address is empty by default."""

    name: str = "gpu01"
    connection: str = "ssh"
    address: str | None = "127.0.0.1"
    port: int | None = None
    user: str | None = "root"
    key_file: str | None = None
    proxy_jump: str | None = None
    password: Secret | None = None
    known_hosts: str | None = None
    host_keys: str | None = None
    connect_timeout: float | None = None


class Sshd:
    """One running sshd. ``folder`` is world-readable, because sshd reads the keys as the user who logs in."""

    def __init__(self, folder: Path, *settings: str):
        self.folder = folder
        self.port = free_port()
        self.key = make_key(folder / "id")
        self.host_key = make_key(folder / "host_key")
        self.known_hosts = folder / "known_hosts"
        self.config = folder / "sshd_config"
        (folder / "authorized_keys").write_text((folder / "id.pub").read_text())
        self.know()
        self.configure(*settings)
        self.process: subprocess.Popen[bytes] | None = None

    def configure(self, *settings: str) -> None:
        """Write the configuration. ``settings`` come first, because sshd uses the first value of an option."""
        Path("/run/sshd").mkdir(exist_ok=True)
        lines = [
            *settings,
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            f"HostKey {self.host_key}",
            f"PidFile {self.folder}/pid",
            f"AuthorizedKeysFile {self.folder}/authorized_keys",
            "StrictModes no",
            "UsePAM no",
            "PermitRootLogin yes",
            "PasswordAuthentication yes",
            "MaxStartups 500",
            "MaxSessions 20",
            # bash reads ~/.bashrc in SSH sessions, except in a nested shell. The developer's start files must not
            # affect a test: they can take a minute with many logins at once.
            "Match User root",
            "SetEnv SHLVL=1",
        ]
        self.config.write_text("\n".join(lines) + "\n")

    def know(self) -> None:
        """Write sshd's host key into ``known_hosts``."""
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {self.public_host_key}\n")

    @property
    def public_host_key(self) -> str:
        """Type and base64 of the host key."""
        return " ".join(self.host_key.with_suffix(".pub").read_text().split()[:2])

    def start(self) -> None:
        """Start sshd and wait until it accepts connections."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [SSHD, "-D", "-e", "-f", str(self.config)], stderr=log, stdin=subprocess.DEVNULL
            )
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        raise RuntimeError(f"sshd did not start: {(self.folder / 'log').read_text()}")

    def stop(self) -> None:
        """Stop sshd and all its connections."""
        if self.process is None:
            return
        self.process.terminate()
        self.process.wait()
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def pids(self) -> list[int]:
        """Return the processes that serve a connection of this sshd, found by its port."""
        ours = []
        for line in _lines("/proc/net/tcp"):
            fields = line.split()
            if fields[1] == f"0100007F:{self.port:04X}" and fields[3] == "01":
                ours.append(f"socket:[{fields[9]}]")
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                for descriptor in (folder / "fd").iterdir():
                    with suppress(OSError):
                        if str(descriptor.readlink()) in ours:
                            found.append(int(folder.name))
                            break
        return [pid for pid in found if pid != os.getpid()]

    def target(self, **changes: object) -> Target:
        """Return this sshd as a target host."""
        values: dict[str, object] = {
            "port": self.port,
            "key_file": str(self.key),
            "known_hosts": str(self.known_hosts),
            **changes,
        }
        return Target(**values)  # type: ignore[arg-type]


def options(**changes: object) -> Options:
    """Return options that ignore the SSH settings of the user who runs the tests."""
    values: dict[str, object] = {
        "ssh_config": Path(os.devnull),
        "use_agent": False,
        "connect_timeout_s": 60.0,
        **changes,
    }
    return Options(**values)  # type: ignore[arg-type]


def make_key(path: Path, *arguments: str) -> Path:
    """Create a key pair without a passphrase; return the private key's path."""
    words = arguments or ("-t", "ed25519")
    subprocess.run(["ssh-keygen", "-q", "-N", "", "-f", str(path), *words], check=True, stdin=subprocess.DEVNULL)
    return path


def free_port(*addresses: str) -> int:
    """Return a free port of the given addresses, by default 127.0.0.1.

    The port is below ``ip_local_port_range``, so the kernel never assigns it to another socket.
    """
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = lowest // 2 + secrets.randbelow(lowest // 2)
        with suppress(OSError), ExitStack() as stack:
            for address in addresses or ("127.0.0.1",):
                stack.enter_context(socket.create_server((address, port)))
            return port


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()[1:]


@contextmanager
def running(*settings: str) -> Iterator[Sshd]:
    """Run an sshd with these settings during the body."""
    folder = Path(tempfile.mkdtemp(prefix="hwsshd-"))
    folder.chmod(0o755)
    server = Sshd(folder, *settings)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def user(name: str, password: str) -> Iterator[str]:
    """Create a user of this machine for the body.

    ``userdel --force`` is needed, because sshd's last process may outlive the connection.
    """
    subprocess.run(["useradd", "--no-create-home", "--home-dir", "/", "--shell", "/bin/sh", name], check=True)
    try:
        subprocess.run(["chpasswd"], input=f"{name}:{password}".encode(), check=True)
        yield name
    finally:
        subprocess.run(["userdel", "--force", name], check=True, capture_output=True)


@contextmanager
def frozen(pids: list[int]) -> Iterator[None]:
    """Stop (SIGSTOP) these processes during the body."""
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.fixture
def sshd() -> Iterator[Sshd]:
    """A separate sshd for one test."""
    with running() as server:
        yield server
