"""The controller's own network: a namespace with one cable to the lab's bridge, as a host has it.

Everything that is measured runs in there, so that the counters of its cable are its traffic and nobody else's, and so
that the cable can be made long.
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

NETEM_LIMIT = "100000"  #: packets; the default of 1000 drops those of a fleet
_TRIES = 5
#: Seconds of the quickest of some TCP handshakes; the first finds neighbours and is not counted.
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
    """The controller's place in a lab. Its cable is one of the lab's, and goes with the lab."""

    lab: Lab

    @property
    def place(self) -> Machine:
        """Its address and cable: those of the last host that a lab can have."""
        return _Place(self.lab, "desk", MAX_HOSTS)

    @property
    def netns(self) -> Path:
        """The file of its network namespace."""
        return self.place.netns

    @property
    def cable(self) -> str:
        """The machine's end of its cable."""
        return self.place.link


class _Place(Machine):
    """Beside the lab's hosts and not among them: what lies there without a record is removed by the lab."""

    __slots__ = ()

    @property
    def directory(self) -> Path:
        return self.lab.state / "desk"


def set_up(lab: Lab) -> Desk:
    """The desk of a lab, with its ordinary cable."""
    desk = Desk(lab)
    desk.place.directory.mkdir(exist_ok=True)
    network.ensure_bridge(lab)  # a lab without a host has none
    network.plug(desk.place)
    return desk


@contextmanager
def long_cable(desk: Desk, round_trip_s: float) -> Iterator[str]:
    """A cable that adds this much to each round trip, for the body; yields what makes it so.

    That is the kernel's netem, half of it at each end. Where the kernel has none, it is ``benchmarks.places.cable``: a
    program that holds back every Ethernet frame, which costs the machine some processor time for each (and counts
    to no contender).
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
    """How long a TCP handshake with a host takes from the desk: one round trip."""
    ask = [sys.executable, "-I", "-S", "-c", _CONNECT, address, str(_TRIES), str(port)]
    return float(run(["nsenter", f"--net={desk.netns}", "--", *ask]))


def _netem(desk: Desk, what: str, round_trip_s: float) -> bool:
    """Put a delay on both ends of the cable, or take it away; false if the kernel cannot."""
    delay = ["netem", "delay", f"{round_trip_s / 2 * 1000:g}ms", "limit", NETEM_LIMIT] if what == "add" else []
    outside = ["tc", "qdisc", what, "dev", desk.cable, "root", *delay]
    inside = ["nsenter", f"--net={desk.netns}", "tc", "qdisc", what, "dev", network.INSIDE, "root", *delay]
    if attempt(outside).returncode != 0:
        return False
    run(inside)
    return True


@contextmanager
def _held_back(desk: Desk, round_trip_s: float, group: ControlGroup) -> Iterator[None]:
    """The desk's namespace with a cable whose both ends are held by a program."""
    place = desk.place
    place.netns.touch()
    run(["unshare", f"--net={place.netns}", "true"])
    outer = cable.open_tap(place.link)
    inside = ["nsenter", f"--net={place.netns}", "--", sys.executable, "-I", "-S", cable.__file__]
    words = [*group.entering, *inside, str(outer), network.INSIDE, str(round_trip_s / 2)]
    process = subprocess.Popen(words, pass_fds=[outer], cwd=PROJECT, stdout=subprocess.PIPE)
    os.close(outer)  # the cable's own end from now on
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
