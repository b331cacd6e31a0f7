"""Work comes back to a host that was rebuilt after its proofs, and not before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.proof.bench import Bench
from tests.proof.test_planted import PRELOAD

HOST = "cpu04"
SETTINGS = "/etc/apt/apt.conf.d/52hostwright"  #: of the layer base
BACK = "/root/back-to-work"
HOOKS = {"hostwright_drain": "true", "hostwright_undrain": f"date >>{BACK}", "hostwright_drain_on": "host"}


@pytest.fixture
def damaged(hosts: Bench) -> Iterator[Bench]:
    """A host of one layer that is to be drained, and lacks a file of it."""
    with (
        hosts.variables(HOST, hostwright_roles=["base"], **HOOKS),
        hosts.planted(HOST, f"rm -f {BACK} {SETTINGS}", f"rm -f {BACK}"),
    ):
        yield hosts


def rebuilt(hosts: Bench, status: int) -> dict[str, Any]:
    """The record of the host's rebuild with all of its proofs."""
    words = ("--hosts", HOST, "--prove", "full", "--drain")
    (record,) = hosts.invoke.json("rebuild", *words, status=status)["rebuilds"]
    return dict(record)


def test_a_host_is_back_at_work_after_its_proofs_have_passed(damaged: Bench) -> None:
    record = rebuilt(damaged, status=0)
    assert (record["outcome"], record["ways"]) == ("rebuilt", ["repair"]), record
    assert [name for name, _ in record["phases"]][-3:] == ["verify", "prove", "undrain"]
    assert damaged.on(HOST, f"ls {SETTINGS}; wc -l <{BACK}") == f"{SETTINGS}\n1\n"


def test_a_host_whose_disk_gives_wrong_words_stays_drained_although_every_check_holds(damaged: Bench) -> None:
    source = (Path(__file__).with_name("flip.c")).read_text()
    (damaged.machine(HOST).merged / "root/flip.c").write_text(source)
    with damaged.planted(HOST, PRELOAD, "rm /etc/ld.so.preload"):
        record = rebuilt(damaged, status=1)
    assert record["outcome"] == "failed", record
    assert "base.disk" in record["sentence"]
    assert "the disk returned data that differs from the data written" in record["sentence"]
    assert [name for name, _ in record["phases"]][-2:] == ["verify", "prove"]
    assert damaged.on(HOST, f"ls {SETTINGS}; [ ! -e {BACK} ]") == f"{SETTINGS}\n"
    assert rebuilt(damaged, status=0)["outcome"] == "as desired"
    assert damaged.on(HOST, f"wc -l <{BACK}") == "1\n"
