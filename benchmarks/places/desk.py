"""Network namespace of the controller, connected to the lab's bridge by one virtual cable.

All measured commands run in this namespace, so that the cable's counters count no other traffic.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring.command import PROJECT
from benchmarks.measuring.controlgroup import ControlGroup, control_group
from benchmarks.places import cable
from hostwright.common.errors import LabError
from lab import network
from lab.config import LAB_PREFIX, MAX_HOSTS, Lab, Machine
from lab.programs import attempt, run

#: maximum number of packets that netem delays at a time. The default of 1000 is too low.
NETEM_LIMIT = "100000"
_TRIES = 5
#: Python program that prints the seconds of the fastest of several TCP handshakes
_CONNECT = """
import socket, sys, time
def shake():
    began_s = time.perf_counter()
    socket.create_connection((sys.argv[1], int(sys.argv[3])), timeout=10).close()
    return time.perf_counter() - began_s
shake()
print(min(shake() for _ in range(int(sys.argv[2]))))
"""


@dataclass(frozen=True, slots=True)
class Desk:
    """Network namespace of the controller in a lab, and its virtual cable."""

    lab: Lab

    @property
    def place(self) -> Machine:
        """Controller as a lab machine, with the last address that the lab can assign."""
        return _Place(self.lab, "desk", MAX_HOSTS)

    @property
    def netns(self) -> Path:
        """File that names the network namespace."""
        return self.place.netns

    @property
    def cable(self) -> str:
        """Name of the network interface at this machine's end of the cable."""
        return self.place.link


class _Place(Machine):
    """Lab machine for the controller. Its directory is outside ``hosts``, where the lab removes incomplete hosts."""

    __slots__ = ()

    @property
    def directory(self) -> Path:
        return self.lab.state / "desk"


def set_up(lab: Lab) -> Desk:
    """Create the controller's network namespace, connected to ``lab`` by a cable without delay."""
    desk = Desk(lab)
    desk.place.directory.mkdir(exist_ok=True)
    network.ensure_bridge(lab)  # a lab without hosts has no bridge
    network.plug(desk.place)
    return desk


@contextmanager
def long_cable(desk: Desk, round_trip_s: float) -> Iterator[str]:
    """Delay the cable's traffic during the context; yield the name of the delaying program.

    The kernel's netem delays each direction by half of ``round_trip_s``. Without netem, ``benchmarks.places.cable``
    holds every Ethernet frame.
    """
    network.plug(desk.place)
    if _netem(desk, "add", round_trip_s):
        try:
            yield "netem of the kernel"
        finally:
            _netem(desk, "del", 0)
        return
    network.unplug(desk.place)
    with control_group("cable") as group, _held_back(desk, round_trip_s, group):
        yield "a program of the benchmark that holds back each frame, since this kernel has no netem"
    network.plug(desk.place)


def round_trip_s(desk: Desk, address: str, port: int = 22) -> float:
    """Return the seconds of a TCP handshake with ``address`` from the controller's network namespace."""
    ask = [sys.executable, "-I", "-S", "-c", _CONNECT, address, str(_TRIES), str(port)]
    return float(run(["nsenter", f"--net={desk.netns}", "--", *ask]))


def _netem(desk: Desk, what: str, round_trip_s: float) -> bool:
    """Add or remove a delay at both ends of the cable (``what``: ``add`` or ``del``). Return false if the kernel lacks
    netem.
    """
    delay = ["netem", "delay", f"{round_trip_s / 2 * 1000:g}ms", "limit", NETEM_LIMIT] if what == "add" else []
    outside = ["tc", "qdisc", what, "dev", desk.cable, "root", *delay]
    inside = ["nsenter", f"--net={desk.netns}", "tc", "qdisc", what, "dev", network.INSIDE, "root", *delay]
    if attempt(outside).returncode != 0:
        return False
    run(inside)
    return True


@contextmanager
def _held_back(desk: Desk, round_trip_s: float, group: ControlGroup) -> Iterator[None]:
    place = desk.place
    place.netns.touch()
    run(["unshare", f"--net={place.netns}", "true"])
    outer = cable.open_tap(place.link)
    inside = ["nsenter", f"--net={place.netns}", "--", sys.executable, "-I", "-S", cable.__file__]
    words = [*group.entering, *inside, str(outer), network.INSIDE, str(round_trip_s / 2)]
    process = subprocess.Popen(words, pass_fds=[outer], cwd=PROJECT, stdout=subprocess.PIPE)
    os.close(outer)
    try:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        if process.stdout.readline() != b"ready\n":
            raise LabError(f"the long cable of {place.link} ended with {process.wait()}; look at what it printed above")
        commands = (
            "link set lo up",
            f"link set {network.INSIDE} address {place.mac} mtu {network.MTU} up",
            f"address add {place.address}/{LAB_PREFIX} dev {network.INSIDE}",
            f"route add default via {place.lab.gateway.ip}",
        )
        run(["nsenter", f"--net={place.netns}", "ip", "-batch", "-"], stdin="\n".join(commands))
        run(["ip", "link", "set", place.link, "mtu", str(network.MTU), "master", place.lab.bridge, "up"])
        yield
    finally:
        process.terminate()
        process.wait()
        process.stdout and process.stdout.close()
        network.unplug(place)
