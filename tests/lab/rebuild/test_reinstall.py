"""A new operating system over Redfish, with a host key that was known in advance, and three installations that fail.

The failures: an installation without end, an installer without a seed, another release than requested.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.bmc.faults import Faults, set_faults
from lab.config import USER
from lab.machine import power_off, wait_for_ssh
from tests.lab.conftest import on
from tests.lab.rebuild.bench import Bench, Told, untouched

pytestmark = pytest.mark.long
FINE, ENDLESS, SEEDLESS, OTHER, BYSTANDER = "fine", "endless", "seedless", "other", "bystander"
ALL = (FINE, ENDLESS, SEEDLESS, OTHER)


def seed(bench: Bench, host: str, timeout_s: int, **more: str) -> dict[str, object]:
    """Set the inventory's variables for an installation; the lab's PXE directs hosts to this port and their names."""
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
            **more,
        }
    }


@pytest.fixture(scope="module")
def told(bench: Bench) -> Iterator[Told]:
    """Four hosts reinstalled with one command, of which one succeeds."""
    with bench.clones(dict.fromkeys((*ALL, BYSTANDER))):
        bench.say(FINE, **seed(bench, FINE, 300))
        bench.say(ENDLESS, **seed(bench, ENDLESS, 60))
        set_faults(bench.lab, ENDLESS, Faults(install_never_ends=True))
        media = {"boot": "media", "image": "http://192.0.2.1/installer.iso", "allow_from": "192.0.2.1"}
        bench.say(SEEDLESS, **seed(bench, SEEDLESS, 60, **media))
        bench.say(OTHER, **seed(bench, OTHER, 300, release="12"))
        on(bench.machine(FINE), "echo old >/root/old; sync")
        on(bench.machine(SEEDLESS), "echo kept >/root/kept; sync")
        power_off(bench.machine(FINE))
        before = untouched(bench.machine(BYSTANDER)), keys(bench)
        told = bench.rebuild(ALL, "--from", "reinstall")
        assert (untouched(bench.machine(BYSTANDER)), keys(bench)) == before
        yield told


def keys(bench: Bench) -> list[str]:
    """Return the known keys of all hosts except for the reinstalled ones; a key may also be under its name."""
    own = {word for host in (FINE, OTHER) for word in (str(bench.machine(host).address), host)}
    lines = bench.lab.known_hosts.read_text().splitlines()
    return [line for line in lines if not own & set(line.split()[0].split(","))]


def known_key(bench: Bench, host: str) -> list[str]:
    """Return the key of a host in known_hosts."""
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
    assert "did not finish within 60 s" in told.rebuilds[ENDLESS]["sentence"]
    locks = bench.locks([FINE, ENDLESS])
    assert "did not finish within 60 s" in locks[ENDLESS]
    assert locks[FINE] == ""


def test_old_key_stays_known_if_the_host_shows_no_new_one(bench: Bench, told: Told) -> None:
    assert told.rebuilds[ENDLESS]["outcome"] == "failed"
    kept = (bench.machine(ENDLESS).directory / "identity" / "ssh_host_ed25519_key.pub").read_text().split()[1]
    assert known_key(bench, ENDLESS) == [kept]


def test_a_host_whose_installer_got_no_seed_boots_from_its_disk_again(bench: Bench, told: Told) -> None:
    bench.tell("an installer without its seed", SEEDLESS, told)
    assert told.rebuilds[SEEDLESS]["outcome"] == "failed"
    refused = f"did not fetch its seed (requested by {bench.machine(SEEDLESS).address}, which may not: see"
    assert refused in told.rebuilds[SEEDLESS]["sentence"]
    (said,) = bench.invoke.json("power", "status", "--hosts", SEEDLESS, status=0)["hosts"]
    assert (said["boot_override"], said["media"]) == ("", [])
    assert bench.invoke("power", "cycle", "--force", "--hosts", SEEDLESS).returncode == 0
    wait_for_ssh(bench.machine(SEEDLESS))
    assert on(bench.machine(SEEDLESS), "cat /root/kept") == "kept\n"


def test_another_release_than_was_asked_for_leaves_the_host_locked(bench: Bench, told: Told) -> None:
    bench.tell("another release than was asked for", OTHER, told)
    assert told.rebuilds[OTHER]["outcome"] == "failed"
    assert "installed Debian 11, but hostwright_install names Debian 12" in told.rebuilds[OTHER]["sentence"]
    assert "installed Debian 11" in bench.locks([OTHER])[OTHER]
