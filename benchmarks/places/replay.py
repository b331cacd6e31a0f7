"""A thousand hosts on the loopback of a network namespace: real sshds with replayed answers.

Every connection, key exchange, login and channel is real, so that the controller can be measured with more hosts than
the machine could boot.
"""

from __future__ import annotations

import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.measuring.controlgroup import ControlGroup, control_group
from benchmarks.places import answer, recorder
from benchmarks.places.hosts import STACK, Hosts, run_own
from hostwright.common.errors import LabError
from lab.mounts import unmount
from lab.programs import run
from tests.lab.sshd import SSHD, make_key
from tests.lab.sshd import running as running_sshd

SERVERS = 4  #: number of sshd processes. One process would not accept all connections.
#: first TCP ports of replaying sshds, of real sshds, and of the hung listener
REPLAY_PORT, REAL_PORT, HUNG_PORT = 2201, 2301, 2401
USER = "hwbench"
PYTHON = "/usr/bin/python3"  #: path of the distribution's Python, which other users can run
_HUNG = """
import signal, socket, sys
server = socket.create_server(("0.0.0.0", int(sys.argv[1])), backlog=128)
print(flush=True)
signal.pause()
"""
#: Python program that waits until a TCP port accepts connections
_ASK = """
import socket, sys, time
end_s = time.monotonic() + 20
while True:
    try:
        socket.create_connection(("127.1.0.2", int(sys.argv[1])), 1).close()
        break
    except OSError:
        if time.monotonic() > end_s:
            raise
        time.sleep(0.02)  # nothing tells when a port accepts but asking it
"""
_SETTINGS = """\
Port {port}
ListenAddress 0.0.0.0
HostKey {key}
PidFile {folder}/pid-{port}
AuthorizedKeysFile {authorized}
StrictModes no
UsePAM no
PasswordAuthentication no
MaxStartups 4000
LoginGraceTime 600
"""


@dataclass(frozen=True, slots=True)
class Replaying:
    """Network namespace of the loopback hosts, and access to the hosts."""

    folder: Path
    netns: Path
    key: Path
    host_key: str
    stacks: Path  #: directory of the stacks that the recorded host uses
    recording: Path
    group: ControlGroup  #: control group of the sshd processes

    @staticmethod
    def address(number: int) -> str:
        """Return the loopback address of the host ``number``, from 1."""
        return f"127.1.{number // 250}.{number % 250 + 1}"

    def inventory(self, name: str, count: int, port: int = REPLAY_PORT, hung: int = 0) -> Path:
        """Write an inventory of ``count`` hosts; return its directory. The host number ``hung`` does not respond."""
        hosts = {
            f"h{number:04}": {
                "ansible_host": self.address(number),
                "ansible_port": HUNG_PORT if number == hung else port + number % SERVERS,
            }
            for number in range(1, count + 1)
        }
        common = {
            "ansible_user": USER,
            "ansible_ssh_private_key_file": str(self.key),
            "hostwright_known_hosts": str(self.folder / "known_hosts"),
            "stack": STACK,
        }
        place = self.folder / name
        place.mkdir(exist_ok=True)
        (place / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts, "vars": common}}))
        if not (place / "stacks").exists():
            (place / "stacks").symlink_to(self.stacks)
        return place

    def ini(self, path: Path, count: int, port: int, hung: int = 0) -> Path:
        """Write an Ansible inventory of the hosts of ``inventory`` to ``path``. The method ``ssh_config`` writes the
        login settings.
        """
        lines = [
            f"h{number:04} ansible_host={self.address(number)} "
            f"ansible_port={HUNG_PORT if number == hung else port + number % SERVERS}\n"
            for number in range(1, count + 1)
        ]
        path.write_text("".join(lines))
        return path

    def known(self, count: int) -> list[str]:
        """Return lines of known_hosts for the first ``count`` hosts, valid for all ports."""
        ports = [first + server for first in (REPLAY_PORT, REAL_PORT, HUNG_PORT) for server in range(SERVERS)]
        return [
            f"{','.join(f'[{self.address(number)}]:{port}' for port in ports)} {self.host_key}\n"
            for number in range(1, count + 1)
        ]

    def ssh_config(self, port: int = REPLAY_PORT) -> Path:
        """Write an ssh_config for the loopback hosts at ``port``; return its path."""
        path = self.folder / f"ssh_config-{port}"
        path.write_text(
            f"Host *\n Port {port}\n User {USER}\n IdentityFile {self.key}\n IdentitiesOnly yes\n BatchMode yes\n"
            f" UserKnownHostsFile {self.folder}/known_hosts\n GlobalKnownHostsFile none\n StrictHostKeyChecking yes\n"
            " KexAlgorithms curve25519-sha256\n ConnectTimeout 60\n"
        )
        return path

    def unknown(self) -> str:
        """Return the requests without a recorded answer; empty if every request was answered."""
        place = Path(f"{self.recording}.unknown")
        return place.read_text(errors="replace")[:2000]


@contextmanager
def replaying(hosts: Hosts) -> Iterator[Replaying]:
    """Run the loopback hosts, which replay the recorded outputs of a plan and an audit."""
    folder = hosts.work / "replay"
    folder.mkdir()
    with ExitStack() as stack:
        recording = folder / "recording"
        kept = [file for verb in ("plan", "audit") for file in record(hosts, folder, verb)]
        unknown = Path(f"{recording}.unknown")
        unknown.touch()
        unknown.chmod(0o666)  # the loopback hosts run as another user and write to this file
        recording.write_bytes(recorder.recording(kept, answer.masked))
        stack.enter_context(_login())
        netns = stack.enter_context(_network(folder))
        key, host_key = make_key(folder / "id"), make_key(folder / "host_key")
        public = " ".join(host_key.with_suffix(".pub").read_text().split()[:2])
        group = stack.enter_context(control_group("replay"))
        made = Replaying(folder, netns, key, public, hosts.inventory / "stacks", recording, group)
        (folder / "known_hosts").write_text("".join(made.known(1000)))
        program = folder / "answer.py"  # the checkout may be unreadable for the user of the loopback hosts
        shutil.copyfile(answer.__file__, program)
        forced = f"ForceCommand {PYTHON} -I -S {program} {recording}\n"
        for server in range(SERVERS):
            stack.enter_context(_sshd(made, REPLAY_PORT + server, forced))
            stack.enter_context(_sshd(made, REAL_PORT + server, ""))
        stack.enter_context(_hung(made))
        yield made


def record(hosts: Hosts, folder: Path, verb: str) -> list[Path]:
    """Run a Hostwright verb on a provisioned host; return one recorded file per command, in order."""
    (name,) = hosts.clones(1)
    kept, place = folder / f"kept-{verb}", folder / f"recorded-{verb}"
    kept.mkdir()
    place.mkdir()
    command = f"{sys.executable} -I {recorder.__file__} {kept} {hosts.ssh_config([name])} {name}"
    with running_sshd(f"ForceCommand {command}") as server:
        variables = {
            "ansible_host": "127.0.0.1",
            "ansible_port": server.port,
            "ansible_user": pwd.getpwuid(0).pw_name,
            "ansible_ssh_private_key_file": str(server.key),
            "hostwright_known_hosts": str(server.known_hosts),
            "stack": STACK,
        }
        (place / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": {name: variables}}}))
        (place / "stacks").symlink_to(hosts.inventory / "stacks")
        run_own([verb, "--inventory", str(place), "--hosts", "all", "--json"], hosts.environment)
    return sorted(kept.iterdir())


def channels(hosts: Hosts, folder: Path) -> list[tuple[bytes, bytes]]:
    """Return the commands that a plan runs on a host, each with its input."""
    kept = map(recorder.read, record(hosts, folder, "plan"))
    return [(one["command"], b"".join(one["inputs"])) for one in kept]


@contextmanager
def _network(folder: Path) -> Iterator[Path]:
    netns = folder / "netns"
    netns.touch()
    run(["unshare", f"--net={netns}", "true"])
    try:
        run(["nsenter", f"--net={netns}", "ip", "link", "set", "lo", "up"])
        yield netns
    finally:
        unmount(netns)


@contextmanager
def _login() -> Iterator[None]:
    with suppress(KeyError):
        pwd.getpwnam(USER)  # an interrupted run may have left this user
        run(["userdel", "--force", USER])
    run(["useradd", "--system", "--no-create-home", "--home-dir", "/", "--shell", "/bin/sh", USER])
    try:
        # unlike "!", the password "*" does not lock the user; sshd refuses locked users
        run(["usermod", "--password", "*", USER])
        yield
    finally:
        run(["userdel", "--force", USER])


@contextmanager
def _sshd(made: Replaying, port: int, more: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run an sshd on ``port`` at all addresses. ``more``: additional lines of the sshd's configuration."""
    authorized, config = made.folder / "id.pub", made.folder / f"sshd_config-{port}"
    host_key = made.folder / "host_key"
    config.write_text(_SETTINGS.format(port=port, key=host_key, folder=made.folder, authorized=authorized) + more)
    words = [*made.group.entering, "nsenter", f"--net={made.netns}", "--", SSHD, "-D", "-e", "-f", str(config)]
    with (made.folder / f"sshd-{port}.log").open("ab") as log:
        process = subprocess.Popen(words, stderr=log, stdin=subprocess.DEVNULL)
    try:
        _answers(made, port)
        yield process
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _hung(made: Replaying) -> Iterator[None]:
    enter = [*made.group.entering, "nsenter", f"--net={made.netns}", "--"]
    words = [*enter, sys.executable, "-I", "-S", "-c", _HUNG, str(HUNG_PORT)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        if process.stdout and not process.stdout.readline():
            raise LabError("the host that hangs does not begin")
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout and process.stdout.close()


def _answers(made: Replaying, port: int) -> None:
    run(["nsenter", f"--net={made.netns}", "--", sys.executable, "-I", "-S", "-c", _ASK, str(port)])
