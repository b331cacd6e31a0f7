"""Useless BMCs: each host stays locked with a clear reason, and nothing else changes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from lab.bmc.faults import Faults, set_faults
from lab.machine import power_off, running, wait_for_ssh
from tests.lab.conftest import on
from tests.lab.rebuild.bench import BOOT_ID, Bench, Told, untouched

pytestmark = pytest.mark.long

PASSWORD, CLOSED, LIAR = "wrongpw", "nobmc", "liar"
HOSTS = (PASSWORD, CLOSED, LIAR)
BYSTANDER = "bystander"
#: host → (method, required part of the message)
EXPECTED = {
    PASSWORD: ("hand over", "refuses the user"),
    CLOSED: ("hand over", "refuses the connection: is its web server on"),
    LIAR: ("power cycle + hand over", "tried without success: power cycle"),
}
STATES = {
    PASSWORD: "off, and its BMC takes no password",
    CLOSED: "off, and its BMC does not answer",
    LIAR: "off, and its BMC says on",
}


@pytest.fixture(scope="module")
def told(bench: Bench) -> Iterator[Told]:
    """All three hosts dead and rebuilt with one command; the environment stays unchanged."""
    with bench.clones(dict.fromkeys((*HOSTS, BYSTANDER))):
        bench.say(PASSWORD, hostwright_bmc_password_command="echo wrong")
        bench.say(CLOSED, hostwright_bmc=f"https://{bench.lab.gateway.ip}:1")  # a closed port
        bench.say(LIAR, hostwright_reboot_timeout=15)
        set_faults(bench.lab, LIAR, Faults(lies_on=True))
        for host in HOSTS:
            power_off(bench.machine(host))
        before = beside(bench)
        told = bench.rebuild(HOSTS)
        assert beside(bench) == before
        yield told


def beside(bench: Bench) -> tuple[object, ...]:
    """Return the state of everything that these rebuilds must not change."""
    return untouched(bench.machine(BYSTANDER)), bench.lab.known_hosts.read_bytes(), bench.lab.inventory.read_bytes()


@pytest.mark.parametrize("host", HOSTS)
def test_a_sentence_says_why_and_the_host_is_locked_with_it(bench: Bench, told: Told, host: str) -> None:
    bench.tell(STATES[host], host, told)
    way, sentence = EXPECTED[host]
    assert told.rebuilds[host]["outcome"] == "handed over"
    assert told.way(host) == way
    assert sentence in told.rebuilds[host]["sentence"]
    assert "locked on this machine" in told.rebuilds[host]["sentence"]
    assert sentence in bench.locks([host])[host]


def test_no_host_was_switched_on(bench: Bench, told: Told) -> None:
    assert told.status == 1
    assert [running(bench.machine(host)) for host in HOSTS] == [False] * 3


def test_what_is_locked_is_not_rebuilt_before_somebody_takes_the_lock_off(bench: Bench, told: Told) -> None:
    assert told.rebuilds
    bench.say(PASSWORD)  # the password has been corrected
    again = bench.rebuild([PASSWORD])
    assert again.status == 1
    assert "set aside on this machine" in again.errors[PASSWORD]
    assert not running(bench.machine(PASSWORD))
    assert bench.invoke("unlock", "--hosts", PASSWORD).returncode == 0
    last = bench.rebuild([PASSWORD])
    assert last.status == 0
    bench.tell("the same, once the BMC is mended", PASSWORD, last)
    assert last.way(PASSWORD) == "power on + nothing"
    assert running(bench.machine(PASSWORD))


def test_the_power_of_a_host_is_told_and_cycled_by_command(bench: Bench, told: Told) -> None:
    assert told.rebuilds
    machine = bench.machine(BYSTANDER)
    before = on(machine, f"cat {BOOT_ID}")
    status = bench.invoke("power", "status", "--hosts", BYSTANDER)
    assert status.returncode == 0, status.stderr
    assert re.search(rf"^{BYSTANDER} +on ", status.stdout, re.MULTILINE), status.stdout
    cycled = bench.invoke("power", "cycle", "--hosts", BYSTANDER)
    assert cycled.returncode == 0, cycled.stderr
    wait_for_ssh(machine)
    assert on(machine, f"cat {BOOT_ID}") != before
