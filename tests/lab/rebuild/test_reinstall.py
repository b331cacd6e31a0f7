"""A new operating system over Redfish: with a key that was known before the host had it, or an install without end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.bmc.faults import Faults, set_faults
from lab.config import USER
from lab.machine import power_off
from tests.lab.conftest import on
from tests.lab.rebuild.bench import Bench, Told, untouched

FINE, ENDLESS, BYSTANDER = "fine", "endless", "bystander"


def seed(bench: Bench, host: str, timeout_s: int) -> dict[str, object]:
    """The inventory's settings for an installation; the lab's PXE leads hosts to this port and their names."""
    return {
        "hostwright_install": {
            "serve": f"{bench.lab.gateway.ip}:8098",
            "path": host,
            "allow_from": "any",
            "os": "debian",
            "release": "11",
            "disk": "/dev/sda",
            "user": USER,
            "ssh_keys": [bench.lab.private_key.with_suffix(".pub").read_text().strip()],
            "timeout": timeout_s,
        }
    }


@pytest.fixture(scope="module")
def told(bench: Bench) -> Iterator[Told]:
    """Two hosts reinstalled by one command, of which one never ends."""
    with bench.clones(dict.fromkeys((FINE, ENDLESS, BYSTANDER))):
        bench.say(FINE, **seed(bench, FINE, 300))
        bench.say(ENDLESS, **seed(bench, ENDLESS, 60))
        set_faults(bench.lab, ENDLESS, Faults(install_never_ends=True))
        on(bench.machine(FINE), "echo old >/root/old; sync")
        power_off(bench.machine(FINE))
        before = untouched(bench.machine(BYSTANDER)), keys(bench)
        told = bench.rebuild((FINE, ENDLESS), "--from", "reinstall")
        assert (untouched(bench.machine(BYSTANDER)), keys(bench)) == before
        yield told


def keys(bench: Bench) -> list[str]:
    """The known keys of all hosts but that which is reinstalled; a key may stand under its name as well."""
    own = {str(bench.machine(FINE).address), FINE}
    lines = bench.lab.known_hosts.read_text().splitlines()
    return [line for line in lines if not own & set(line.split()[0].split(","))]


def known_key(bench: Bench, host: str) -> list[str]:
    """What known_hosts says of a host."""
    lines = [line.split() for line in bench.lab.known_hosts.read_text().splitlines()]
    return [words[2] for words in lines if str(bench.machine(host).address) in words[0].split(",")]


def test_a_host_gets_a_new_system_and_all_layers(bench: Bench, told: Told) -> None:
    bench.tell("off; --from reinstall", FINE, told)
    assert told.rebuilds[FINE]["outcome"] == "rebuilt", told.rebuilds[FINE]["sentence"]
    assert told.way(FINE) == "reinstall"
    assert tuple(told.phases(FINE)) == ("diagnose", "power", "install", "provision", "verify")
    assert on(bench.machine(FINE), "ls -A /root").find("old") == -1
    found = bench.audit([FINE])[FINE]
    assert (found["deviations"], found["findings"]) == ([], [])


def test_its_key_was_made_by_us_and_is_the_known_one(bench: Bench, told: Told) -> None:
    assert told.rebuilds[FINE]["outcome"] == "rebuilt"
    public, private = "/etc/ssh/ssh_host_ed25519_key.pub", "/etc/ssh/ssh_host_ed25519_key"
    assert known_key(bench, FINE) == [on(bench.machine(FINE), f"cat {public}").split()[1]]
    assert on(bench.machine(FINE), f"stat -c %a {private}") == "600\n"
    assert on(bench.machine(FINE), f"ssh-keygen -y -f {private}").split()[1] == known_key(bench, FINE)[0]


def test_an_installation_without_end_leaves_the_host_locked(bench: Bench, told: Told) -> None:
    bench.tell("an installation that never ends", ENDLESS, told)
    assert (told.status, told.rebuilds[ENDLESS]["outcome"]) == (1, "failed")
    assert told.way(ENDLESS) == "reinstall"
    assert "did not end within 60 s" in told.rebuilds[ENDLESS]["sentence"]
    locks = bench.locks([FINE, ENDLESS])
    assert "did not end within 60 s" in locks[ENDLESS]
    assert locks[FINE] == ""


def test_the_old_key_of_a_host_that_shows_no_new_one_stays_known(bench: Bench, told: Told) -> None:
    assert told.rebuilds[ENDLESS]["outcome"] == "failed"
    kept = (bench.machine(ENDLESS).directory / "identity" / "ssh_host_ed25519_key.pub").read_text().split()[1]
    assert known_key(bench, ENDLESS) == [kept]
