"""A real sshd on a high port of 127.0.0.1, with its own configuration, keys and known_hosts.

Use the fixture by importing it in a test module or conftest: ``from tests.lab.sshd import sshd``.
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
#: for what ends at a limit of a second or two, on a machine that stands still for seconds: what waits for anything else
#: takes 10 s (paramiko's threads), 60 s (a login by these options), or for ever
PROMPT_S = 9.0
_START_S = 60.0  #: a machine under load takes its time


@dataclass(frozen=True, slots=True)
class Target:
    """A host as the transport wants it; everything but the address is empty unless a test says otherwise."""

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
    """One running sshd. ``folder`` is readable by every user, because sshd reads the keys as the user who logs in."""

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
        """Write the configuration: ``settings`` first, for sshd takes the first value."""
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
            # bash reads ~/.bashrc of a login by SSH, unless it is a shell within a shell; a developer's own start
            # files, which may take a minute when many log in at once, are no part of a test
            "Match User root",
            "SetEnv SHLVL=1",
        ]
        self.config.write_text("\n".join(lines) + "\n")

    def know(self) -> None:
        """Write the host key that sshd shows into ``known_hosts``."""
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {self.public_host_key}\n")

    @property
    def public_host_key(self) -> str:
        """Type and base64 of the host key."""
        return " ".join(self.host_key.with_suffix(".pub").read_text().split()[:2])

    def start(self) -> None:
        """Start it and wait until it answers."""
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
        """Stop it and every connection that it still serves."""
        if self.process is None:
            return
        self.process.terminate()
        self.process.wait()
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def pids(self) -> list[int]:
        """The processes that serve a connection of this sshd, found by its port."""
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
        """This sshd as a host."""
        values: dict[str, object] = {
            "port": self.port,
            "key_file": str(self.key),
            "known_hosts": str(self.known_hosts),
            **changes,
        }
        return Target(**values)  # type: ignore[arg-type]


def options(**changes: object) -> Options:
    """Options that read nothing of the user who runs the tests."""
    values: dict[str, object] = {
        "ssh_config": Path(os.devnull),
        "use_agent": False,
        "connect_timeout_s": 60.0,
        **changes,
    }
    return Options(**values)  # type: ignore[arg-type]


def make_key(path: Path, *arguments: str) -> Path:
    """A new key pair without a passphrase."""
    words = arguments or ("-t", "ed25519")
    subprocess.run(["ssh-keygen", "-q", "-N", "", "-f", str(path), *words], check=True, stdin=subprocess.DEVNULL)
    return path


def free_port(*addresses: str) -> int:
    """A port of these addresses, by default 127.0.0.1, on which nobody listens now, and which nobody is given meanwhile
    who asks for any port, as other tests do: the kernel gives those of ``ip_local_port_range`` alone."""
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
    """An sshd with these settings, gone at the end."""
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
    """A user of this machine for the time of a test. sshd's last process may outlive the connection: by force then."""
    subprocess.run(["useradd", "--no-create-home", "--home-dir", "/", "--shell", "/bin/sh", name], check=True)
    try:
        subprocess.run(["chpasswd"], input=f"{name}:{password}".encode(), check=True)
        yield name
    finally:
        subprocess.run(["userdel", "--force", name], check=True, capture_output=True)


@contextmanager
def frozen(pids: list[int]) -> Iterator[None]:
    """These processes hang."""
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
    """An sshd of its own for one test."""
    with running() as server:
        yield server
