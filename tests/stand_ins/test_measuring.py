"""What the benchmark measures with: control groups, the counters of a cable, and a cable that is long."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.measuring.command import Command
from benchmarks.measuring.measure import TIMED_OUT, measure
from benchmarks.places.desk import Desk, long_cable, round_trip_s, set_up
from lab import cgroups, network
from lab.programs import run
from tests.lab.ownlab import own_lab

MEGABYTES = "import time; text = b'x' * 80_000_000; time.sleep(0.3)"


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    """A controller on the bridge of a lab without hosts."""
    with own_lab("measure") as lab:
        yield set_up(lab)


def shell(script: str, **more: object) -> Command:
    return Command("sh", 1, ("sh", "-c", script), **more)  # type: ignore[arg-type]


def test_children_and_what_leaves_them_count() -> None:
    """A process in a session of its own is no child of anybody, and its time and memory are the command's."""
    done = measure(shell(f'setsid {sys.executable} -c "{MEGABYTES}" & wait'), 0)
    assert done.status == 0
    assert done.sample.rss_bytes and done.sample.rss_bytes > 80_000_000
    assert done.sample.processes and done.sample.processes >= 2
    assert done.sample.cpu_s > 0


def test_nothing_outlives_its_command() -> None:
    done = measure(shell("setsid sleep 1000 & echo $!"), 0)
    assert done.status == 0
    assert int(done.stdout) not in cgroups.processes("hostwright-bench")
    stat = Path(f"/proc/{int(done.stdout)}/stat")
    assert not stat.exists() or stat.read_text().split()[2] == "Z"  # until somebody asks how it ended


def test_a_command_that_takes_too_long_is_ended() -> None:
    done = measure(shell("echo begun; exec sleep 1000", timeout_s=0.5), 0)
    assert (done.status, done.stdout) == (TIMED_OUT, "begun\n")


def test_input_output_and_status_are_the_commands_own() -> None:
    done = measure(shell("cat; echo wrong >&2; exit 7", stdin=b"given"), 0)
    assert (done.status, done.stdout, done.stderr) == (7, "given", "wrong\n")


@pytest.fixture
def server(desk: Desk) -> Iterator[tuple[str, int]]:
    """A server on the lab's bridge that sends a million bytes to whoever connects."""
    address = str(desk.lab.gateway.ip)
    with socket.create_server((address, 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, suppress(OSError):  # a handshake alone was wanted
                    connection.sendall(b"x" * 1_000_000)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield address, listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


FETCH = """
import socket, sys
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=30)
while connection.recv(65536):
    pass
"""


def fetch(desk: Desk, server: tuple[str, int]) -> Command:
    words = (sys.executable, "-I", "-c", FETCH, server[0], str(server[1]))
    return Command("fetch", 1, words, netns=desk.netns, cable=desk.cable)


def test_the_traffic_is_that_of_the_controllers_own_cable(desk: Desk, server: tuple[str, int]) -> None:
    done = measure(fetch(desk, server), 0)
    assert done.status == 0, done.stderr
    assert done.sample.received_bytes and 1_000_000 < done.sample.received_bytes < 1_200_000
    assert done.sample.sent_bytes and done.sample.sent_bytes < 200_000


def test_a_long_cable_holds_every_frame_back_and_loses_none(desk: Desk, server: tuple[str, int]) -> None:
    """A round trip is at least as long as the cable makes it; more than that says only how busy the machine is."""
    port = server[1]
    with long_cable(desk, 0.08) as how:
        assert how
        assert round_trip_s(desk, server[0], port) >= 0.08
        done = measure(fetch(desk, server), 0)
        assert done.status == 0, done.stderr
        assert done.sample.received_bytes and done.sample.received_bytes > 1_000_000
        assert done.sample.wall_s > 0.16


def test_the_ordinary_cable_comes_back_after_a_long_one(desk: Desk) -> None:
    with long_cable(desk, 0.01):
        pass
    assert network.plugged(desk.place)
    assert "host0" in run(["nsenter", f"--net={desk.netns}", "ip", "-brief", "link"])
