"""The proof of the network: its program run as several hosts of this machine, and what its figures show."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hostwright.prove.model import Expected, Measurement, Measurements
from hostwright.prove.reading import Printed, read
from hostwright.standard.roles.base import Base
from hostwright.standard.roles.base.proofs import judges, proofs
from tests.lab.sshd import free_port

EXPECTED = Expected("gpu01")
NETWORK = {proof.name: proof for proof in proofs(Base(), None)}["network"]  # type: ignore[arg-type]  # it asks nothing
DEVICE = "network eth0 (10000 Mb/s)"


def ring(folder: Path, hosts: Sequence[bool], start_limit_s: float = 60) -> list[Printed]:
    """Run the program as all hosts at once; those that are ``False`` are switched off."""
    ports: set[int] = set()
    while len(ports) < len(hosts):
        ports.add(free_port())
    peers = [f"127.0.0.1:{port}" for port in ports]
    (folder / "network.py").write_text(NETWORK.program.source)
    running = []
    for index, there in enumerate(hosts):
        arguments = {**NETWORK.program.arguments, "seconds": 0.5, "start_limit_s": start_limit_s}
        (folder / f"{index}.json").write_text(json.dumps({**arguments, "peers": peers, "index": index}))
        command = [sys.executable, str(folder / "network.py"), str(folder / f"{index}.json")]
        if there:
            running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    return [read(each.communicate(timeout=120)[0]) for each in running]


@pytest.mark.parametrize("hosts", [2, 3])
def test_each_host_sends_to_the_next_one_and_both_say_how_much(tmp_path: Path, hosts: int) -> None:
    printed = ring(tmp_path, [True] * hosts)
    assert [(one.ended, one.errors, one.broken) for one in printed] == [(True, (), "")] * hosts
    sent = [one.measurements.number("sent") or 0 for one in printed]
    received = [one.measurements.number("received") or 0 for one in printed]
    assert min(sent) > 0
    assert sent == pytest.approx(received[1:] + received[:1])  # what one sends is what the next one receives
    for one in printed:
        assert one.measurements.number("hosts") == hosts
        assert {row.unit for row in one.measurements.named("sent")} == {"MB/s"}
        assert {row.device.partition(" ")[0] for row in one.measurements} == {"network"}


def test_a_host_that_is_off_is_named_and_nobody_hangs(tmp_path: Path) -> None:
    printed = ring(tmp_path, [True, False, True], start_limit_s=10)
    assert [one.ended for one in printed] == [False, False]
    assert printed[0].errors[0].startswith("no answer from 127.0.0.1: ") or "has not connected" in printed[0].errors[0]
    assert printed[1].errors == ("127.0.0.1 has not connected",)


def rows(sent: float, received: float, device: str = DEVICE) -> Measurements:
    figures = [Measurement("sent", sent, "MB/s", device), Measurement("received", received, "MB/s", device)]
    names = [("sent to", "10.0.0.3"), ("received from", "10.0.0.1")]
    return Measurements((*figures, *(Measurement(name, value, "", device) for name, value in names)))


def test_what_the_inventory_asks_is_asked_of_both_ways() -> None:
    judge = judges.network(1000)
    assert judge(rows(1100, 1050), EXPECTED) == ()
    (finding,) = judge(rows(1100, 35), EXPECTED)
    assert finding.severity == "failed"
    assert finding.sentence == (
        "receiving from 10.0.0.1: 35 MB/s, less than the inventory requires (base_network_mb_per_s)"
    )
    assert [one.severity for one in judge(rows(900, 35), EXPECTED)] == ["failed", "failed"]


def test_where_the_inventory_asks_nothing_there_are_notes_only() -> None:
    judge = judges.network(0)
    assert judge(rows(1100, 700), EXPECTED) == ()
    (finding,) = judge(rows(1100, 112), EXPECTED)
    assert finding.severity == "note"
    assert finding.sentence.endswith("112 MB/s, less than half of the link rate (1250 MB/s)")
    assert judge(rows(1, 1, "network eth0 (of an unknown speed)"), EXPECTED) == ()


def test_the_figure_is_the_roles_variable() -> None:
    asked = {proof.name: proof for proof in proofs(Base(network_mb_per_s=1000), None)}["network"]  # type: ignore[arg-type]
    assert [one.severity for one in asked.judge(rows(1100, 35), EXPECTED)] == ["failed"]
    assert (asked.hosts, asked.needs_gpu, asked.level) == (2, False, "full")
