"""Hosts of one sshd with separate directories, and a site whose role has a step that ends on a test's command."""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.lab.liars.fleet import _directories
from tests.lab.sshd import Sshd, running

WAIT_S = 60.0  #: timeout of short waits, on a machine under load
GO, BEGAN, DONE, STEPS = "/mnt/go", "/mnt/began", "/mnt/done", "/mnt/steps"
ROLE = '''"""One step that takes as long as a test wants, and one after it."""

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.common.secret import Secret
from hostwright.plan.model import Change, Facts, Planned, Probe, Resource, Step
from hostwright.plan.roles.role import RoleContext, role


@dataclass(frozen=True)
class Done(Resource):
    """A step was taken."""

    name: str
    script: str
    file: str = ""

    def probes(self):
        return (Probe(f"cat /mnt/done-{self.name} 2>/dev/null"),)

    def plan(self, facts):
        if facts[self.probes()[0]].strip() == "done":
            return None
        script = f"echo {self.name} >>/mnt/steps; {self.script}; echo done >/mnt/done-{self.name}"
        files = (self.file,) if self.file else ()
        return Change(f"step {self.name}", "absent", "done", (Step(script),), artifacts=files)

    def removal(self):
        return ()


@dataclass(frozen=True)
class Slow:
    """What the step prints, and the file that it needs."""

    word: str = "hello"
    file: str = ""
    token: Secret = Secret("")


@role()
def slow(v: Slow, ctx: RoleContext) -> Iterator[Resource]:
    """Takes two steps."""
    yield Done("first", f"echo {v.word}; : >/mnt/began; until [ -e /mnt/go ]; do sleep 0.05; done", v.file)
    yield Done("second", "true")
'''


@dataclass(frozen=True)
class Hosts:
    """The site, its sshd, and the process with each host's directories."""

    root: Path
    sshd: Sshd
    kept: dict[str, int]

    def on(self, host: str, command: str) -> str:
        """Run a command on a host without SSH; return its output."""
        words = ["nsenter", "-m", "-t", str(self.kept[host]), "/bin/sh", "-c", command]
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout

    def bare(self) -> None:
        """Reset every host to its untouched state."""
        for host in self.kept:
            self.on(host, "rm -rf /mnt/* /var/lib/hostwright/* /run/hostwright/* /var/cache/hostwright/*")

    def go(self, *hosts: str) -> None:
        """Let the steps of these hosts end, by default of all."""
        for host in hosts or self.kept:
            self.on(host, f": >{GO}")

    def steps(self, host: str) -> list[str]:
        """Return the steps that began on a host, in order."""
        return self.on(host, f"cat {STEPS}").split()

    def jobs(self, host: str) -> list[str]:
        """Return the jobs that were started on a host."""
        return self.on(host, "ls /var/lib/hostwright/jobs").split()

    def once(self, *hosts: str) -> bool:
        """Return whether each step ran exactly once on these hosts, in one job."""
        return all(self.steps(host) == ["first", "second"] and len(self.jobs(host)) == 1 for host in hosts)

    def wait_until_begun(self, *hosts: str) -> None:
        """Wait until the first step runs on all of these hosts."""
        for host in hosts:
            assert until(lambda host=host: self.on(host, f"[ -e {BEGAN} ] && echo yes"))  # type: ignore[misc]

    def stack(self, **artifacts: object) -> None:
        """Write the stack with these files."""
        release = platform.freedesktop_os_release()
        stack = {"distributions": {release["ID"]: [release["VERSION_ID"]]}, "roles": ["slow"], "artifacts": artifacts}
        (self.root / "inventory/stacks/slow.yml").write_text(json.dumps(stack))

    def inventory(self, **variables: object) -> None:
        """Write the inventory with further variables for all hosts."""
        shared = {
            "stack": "slow",
            "hostwright_roles": ["slow"],
            "ansible_port": self.sshd.port,
            "ansible_user": "root",
            "ansible_timeout": 120,  # a login may take longer on a busy machine than on a healthy host
            "ansible_ssh_private_key_file": str(self.sshd.key),
            "hostwright_known_hosts": str(self.sshd.known_hosts),
            **variables,
        }
        hosts = {name: {"ansible_host": address(number)} for number, name in enumerate(self.kept)}
        (self.root / "inventory/hosts.yml").write_text(json.dumps({"all": {"hosts": hosts, "vars": shared}}))


def address(number: int) -> str:
    return f"127.0.78.{number + 1}"


def until(true: Callable[[], object], wait_s: float = WAIT_S) -> bool:
    """Wait for a condition; return whether it holds in time."""
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.05)  # polling, because other processes and hosts send no notification
    return False


@contextmanager
def slow_hosts(root: Path, names: Sequence[str]) -> Iterator[Hosts]:
    """These hosts, and the site in ``root``."""
    with ExitStack() as stack:
        kept = {name: stack.enter_context(_directories()) for name in names}
        sshd = stack.enter_context(running())
        sshd.stop()
        sshd.configure(*(f"ListenAddress {address(number)}" for number in range(len(names))))
        with sshd.config.open("a") as config:
            for number, (name, pid) in enumerate(kept.items()):
                program = sshd.folder / name
                program.write_text(f'#!/bin/sh\nexec nsenter -m -t {pid} /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n')
                program.chmod(0o755)
                config.write(f"Match LocalAddress {address(number)}\n  ForceCommand {program}\n")
        sshd.start()
        sshd.known_hosts.write_text(
            "".join(f"[{address(number)}]:{sshd.port} {sshd.public_host_key}\n" for number in range(len(names)))
        )
        for folder in ("inventory/stacks", "roles/slow", "templates"):
            (root / folder).mkdir(parents=True)
        (root / "tasks.py").write_text("from hostwright.cli.tasks import *  # noqa: F403\n")
        (root / "roles/slow/__init__.py").write_text(ROLE)
        hosts = Hosts(root, sshd, kept)
        hosts.stack()
        hosts.inventory()
        yield hosts
