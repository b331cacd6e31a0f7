"""``hostwright`` on hosts that replay: everything of the controller is real, what a host does is a recording.

    python -m tests.pictures.replay ORDERS

reads orders from that pipe, a JSON object a line (``words``, ``env``, ``width`` of the terminal, ``status``, and
``into`` for a file that standard output goes to), and carries each out in a process forked from this one, since most of
what a verb takes is imports; its exit status goes to the file ``status``.

Replaced is what talks to one host, and no more (``tests.pictures.replayed``): plans are made by the real planner from
the facts of a bare host, runs are rolled out, journalled and shown as ever. A host that is unreachable is a real
connection to a closed port, and ``run``, ``ssh`` and ``trust`` are real logins. With ``PICTURES_HOLD`` hosts that are
being changed stop in the middle until that file exists.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.pictures.hosts import KINDS
from tests.pictures.replayed import call, changing, fleets, looking, people
from tests.places import PROJECT

REAL = {"run", "ssh", "trust"}  #: verbs that log in
RESIZED_S = 10.0  #: until a terminal has the size that it was given
ROOMS = ("apply", "audit", "cli", "plan", "prove", "rebuild", "stack", "transport", "verify")


def stand_in() -> None:
    """Put the recordings in the place of the hosts."""
    from hostwright import fleet
    from hostwright.apply.host.applying import HostApply
    from hostwright.apply.host.connection import Patience
    from hostwright.apply.rollout import following
    from hostwright.apply.rollout.connections import Connections
    from hostwright.audit import auditing, auditor
    from hostwright.plan.targets import TargetHost
    from hostwright.prove.host import HostProve
    from hostwright.rebuild.host.hostrebuild import HostRebuild
    from hostwright.standard.roles.container.images import verbs as images
    from hostwright.standard.roles.workspaces.verbs import listing, rebuilding
    from hostwright.verify.checking import Checks

    connect = TargetHost.connect

    def shell(self: Any, *more: Any) -> Any:
        return connect(self, *more) if KINDS[self.name] == "unreachable" else people.Shell(self.name)

    TargetHost.connect = shell  # type: ignore[method-assign]
    Patience.__init__.__defaults__ = (0.0, 0.0)  # type: ignore[misc]  # nobody waits for a closed port to open
    HostApply.apply = changing.play  # type: ignore[method-assign]
    Connections.plan = changing.planned  # type: ignore[method-assign]
    Checks.of = looking.checks  # type: ignore[method-assign]
    Checks._start = Checks._stop = lambda *_, **__: None  # type: ignore[method-assign]
    auditing.audit_host = auditor.audit_host = looking.audited
    fleet._Knowledge.examine = lambda *_, **__: changing.examination()  # type: ignore[method-assign]
    HostProve.prove = looking.proved  # type: ignore[method-assign]
    HostRebuild.diagnose, HostRebuild.run = changing.decided, changing.rebuilt  # type: ignore[method-assign]
    following._Following.to_the_end = looking.followed  # type: ignore[method-assign]
    for module in (images, listing, rebuilding):
        module.ask = people.ask
    for name in ("power", "locks", "lock", "unlock", "removal", "ways_back"):
        setattr(fleet.Fleet, name, getattr(fleets, name))


def main(words: Sequence[str]) -> None:
    """The verb, as it is typed."""
    from hostwright.cli import program

    os.environ[call.VERB] = next((word for word in words if not word.startswith("-")), "")
    if call.verb() not in REAL:
        stand_in()
    sys.argv = ["hostwright", *words]
    program.main()


def carry_out(order: Mapping[str, Any]) -> None:
    """One order, in a process of its own."""
    child = os.fork()
    if not child:
        status = 1
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.environ.update(order["env"])
            await_size(order["width"])
            if order["into"]:
                os.dup2(os.open(order["into"], os.O_WRONLY | os.O_CREAT, 0o644), 1)
            main(order["words"])
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:  # noqa: BLE001 - a picture shows it
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    file = Path(order["status"])
    file.with_suffix(".new").write_text(str(os.waitstatus_to_exitcode(ended)))
    file.with_suffix(".new").rename(file)


def await_size(columns: int) -> None:
    """Wait until the terminal is so wide: tmux tells it some time after it was told."""
    deadline = time.monotonic() + RESIZED_S
    while os.get_terminal_size(0).columns != columns and time.monotonic() < deadline:
        time.sleep(0.01)


def import_all() -> None:
    """What verbs import when they begin."""
    for root in ROOMS:
        for module in pkgutil.walk_packages([str(PROJECT / "hostwright" / root)], f"hostwright.{root}."):
            if ".skeleton" not in module.name and ".shells" not in module.name:
                importlib.import_module(module.name)
    importlib.import_module("tests.unit.support.audits")
    importlib.import_module("tests.unit.support.planned")


if __name__ == "__main__":
    import_all()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the order that is carried out
    with Path(sys.argv[1]).open(encoding="utf-8") as orders:
        for line in orders:
            carry_out(json.loads(line))
