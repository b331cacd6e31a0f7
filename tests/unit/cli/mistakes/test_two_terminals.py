"""Two terminals at once: one sentence names the run that works on a host, and how to wait. Other hosts are done."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.unit.cli.mistakes.desk import Desk
from tests.unit.cli.mistakes.rack import GO, HELLO, Rack, rack
from tests.unit.support.sshsite import until

SLOWLY = "--var hello_slowly=true"


@contextmanager
def first_run(desk: Desk, hosts: Rack) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a run, wait until it is in the middle of its work on gpu01, and return its id."""
    with desk.at_work(f"provision gpu01 {SLOWLY}") as first:
        assert first.stdout is not None
        found = re.search(r"run (\S+): 1 host", first.stdout.readline())
        assert found
        assert until(lambda: hosts.on("gpu01", f"cat {HELLO}"))
        yield first, found[1]


@pytest.mark.parametrize(("verb", "status"), [("provision", 3), ("remove --yes", 3), ("rebuild --yes", 1)])
def test_a_host_on_which_another_run_works(desk: Desk, verb: str, status: int) -> None:
    with rack(desk, "gpu01", "gpu02") as hosts, first_run(desk, hosts) as (first, run):
        said = desk.types(f"{verb} --hosts gpu01,gpu02")
        assert said.status == status, said
        (sentence,) = [line for line in said.err.splitlines() if "gpu01" in line]
        for part in ("gpu01: ", f"(run {run})", "`hostwright runs.follow --hosts gpu01`", f"process {first.pid} on "):
            assert part in sentence
        assert re.search(r"gpu02  (done|rebuilt|as desired)", said.out), said
        assert desk.types(f"plan gpu01 {SLOWLY}").status == 3, "who only looks is let in"


def test_who_follows_the_other_run_may_go_on_when_it_has_ended(desk: Desk) -> None:
    with rack(desk, "gpu01") as hosts, first_run(desk, hosts) as (first, run):
        with desk.at_work("runs.follow --hosts gpu01") as following:
            assert following.stdout is not None
            assert run in following.stdout.readline()
            hosts.on("gpu01", f"touch {GO}")
            following.communicate()
            assert following.returncode == 0
        first.communicate()
        assert first.returncode == 0
        assert desk.types(f"provision gpu01 {SLOWLY}").status == 0
