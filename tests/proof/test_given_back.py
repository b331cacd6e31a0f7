"""Work comes back to a host that was rebuilt after its proofs, and not before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.proof.bench import Bench
from tests.proof.test_planted import CONVOLUTIONS, WRONG

HOST = "cpu04"
SETTINGS = "/etc/apt/apt.conf.d/52hostwright"  #: of the layer base
BACK = "/root/back-to-work"
HOOKS = {"hostwright_drain": "true", "hostwright_undrain": f"date >>{BACK}", "hostwright_drain_on": "host"}


@pytest.fixture
def damaged(hosts: Bench) -> Iterator[Bench]:
    """A host that is to be drained, and lacks a file of its stack."""
    with hosts.variables(HOST, **HOOKS), hosts.planted(HOST, f"rm -f {BACK} {SETTINGS}", f"rm -f {BACK}"):
        yield hosts


def rebuilt(hosts: Bench, status: int) -> dict[str, Any]:
    """The record of the host's rebuild with its quick proofs."""
    words = ("--hosts", HOST, "--prove", "quick", "--drain")
    (record,) = hosts.invoke.json("rebuild", *words, status=status)["rebuilds"]
    return dict(record)


def test_a_host_is_back_at_work_after_its_proofs_have_passed(damaged: Bench) -> None:
    record = rebuilt(damaged, status=0)
    assert (record["outcome"], record["ways"]) == ("rebuilt", ["repair"]), record
    assert [name for name, _ in record["phases"]][-3:] == ["verify", "prove", "undrain"]
    assert damaged.on(HOST, f"cat {SETTINGS}; wc -l <{BACK}").endswith("\n1\n")


def test_a_host_that_computes_wrongly_stays_drained_although_every_check_holds(damaged: Bench) -> None:
    plant = f"cp -p {CONVOLUTIONS} /root/right.py; python3 - <<'end'\n{WRONG}end\n"
    with damaged.planted(HOST, plant, f"mv /root/right.py {CONVOLUTIONS}"):
        record = rebuilt(damaged, status=1)
    assert record["outcome"] == "failed"
    assert "tensorflow.devices" in record["sentence"]
    assert "a convolution is wrong" in record["sentence"]
    assert [name for name, _ in record["phases"]][-2:] == ["verify", "prove"]
    assert damaged.on(HOST, f"cat {SETTINGS}; ls {BACK} 2>&1 || :").endswith("No such file or directory\n")
    assert rebuilt(damaged, status=0)["outcome"] == "as desired"
    assert damaged.on(HOST, f"wc -l <{BACK}") == "1\n"
