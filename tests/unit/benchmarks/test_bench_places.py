"""What replays, records and delays: the parts of places that decide something."""

from __future__ import annotations

import os
import time

import pytest

from benchmarks.places import cable
from benchmarks.places.cable import Way

OLD, NEW, OWN = b"0" * 24, b"f" * 24, b"a" * 24


def test_a_frame_goes_on_when_its_time_has_come() -> None:
    source, feed = os.pipe()
    read, sink = os.pipe()
    os.set_blocking(source, False)
    os.set_blocking(read, False)
    way = Way(source, sink, 0.04)
    os.write(feed, b"frame")
    way.take(10.0)
    way.pass_on(10.039)
    with pytest.raises(BlockingIOError):
        os.read(read, 100)
    assert way.due_s() == 10.04
    way.pass_on(10.04)
    assert (os.read(read, 100), way.due_s()) == (b"frame", float("inf"))
    for descriptor in (source, feed, read, sink):
        os.close(descriptor)


def test_nothing_is_due_on_a_quiet_cable() -> None:
    assert cable.Way(0, 1, 0.1).due_s() == float("inf")
    assert time.monotonic() < float("inf")
