"""A site whose hosts are the tests' sshd, without roles, for tests of commands that operators run on hosts."""

from __future__ import annotations

import json
import os
import pwd
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.liars.quietsite import write_site
from tests.lab.sshd import Sshd, free_port, running

#: makes a login as root, who runs the tests, a login without privileges
NOBODY = ('ForceCommand exec setpriv --reuid=65534 --regid=65534 --clear-groups /bin/sh -c "$SSH_ORIGINAL_COMMAND"',)
SOON_S = 120.0  #: on a loaded machine, a command needs 20 s to its first output


@contextmanager
def ssh_site(root: Path, *names: str, gone: tuple[str, ...] = (), login: tuple[str, ...] = NOBODY) -> Iterator[Sshd]:
    """Write a site to ``root`` with these hosts, all on one sshd, and with unreachable hosts."""
    with running(*(login if os.getuid() == 0 else ())) as sshd:
        write_site(root, sshd.port, sshd.known_hosts, sshd.key, timeout_s=120)
        file = root / "inventory/hosts.yml"
        host = json.loads(file.read_text())["all"]["hosts"]["liar"] | {
            "ansible_user": pwd.getpwuid(os.getuid()).pw_name
        }
        hosts = dict.fromkeys(names, host) | dict.fromkeys(gone, host | {"ansible_port": free_port()})
        file.write_text(json.dumps({"all": {"hosts": hosts}}))
        yield sshd


def processes(mark: str) -> list[int]:
    """The processes with this word in their command line, except this process."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if mark.encode() in words and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found


def until(true: Callable[[], object]) -> bool:
    """Return whether the condition becomes true soon."""
    deadline = time.monotonic() + SOON_S
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.05)
    return False
