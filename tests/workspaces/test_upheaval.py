"""What ends the work of people on a host names them before, ends nothing unasked, and leaves their things in place.

Each test begins with the same host: alice in her Jupyter, a batch run of hers in its middle, bob in his SSH box.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml

from lab import fleet
from lab.machine import exec_in, wait_for_ssh
from lab.records import find_machine, read_snapshots
from tests.lab.conftest import on
from tests.workspaces.busy import (
    BOX,
    HOST,
    LAB,
    ON_CARDS,
    OPTIONS,
    RUN,
    SNAPSHOT,
    WHOSE,
    Busy,
    as_settled,
)
from tests.workspaces.tunnels import eventually

OTHER_DRIVER = "lab-470.256"
SECOND = "busy02"
#: another version of the module is in the kernel: nothing but a reboot helps
REBOOT_WANTED = "echo 460.32.03 >/sys/module/nvidia/version; sed -i s/470.182.03/460.32.03/ /proc/driver/nvidia/version"
BEFORE = "--force: the plan"  #: begins the sentence that names people whom force does not wait for
TIMES = f"/srv/workspaces/alice/{RUN}/times"


@pytest.fixture
def busy(host: Busy) -> Iterator[Busy]:
    """The host as it had settled, with everybody at work."""
    as_settled(host)
    with host.at_work():
        yield host


def there_again(busy: Busy, kept: dict[str, str], run: str = "ended with status") -> None:
    """Jupyter and box answer with the same token and host key, files are there, and the run is not run again."""
    busy.awake()
    busy.answers()
    assert busy.kept() == kept
    assert busy.on(f"cat {TIMES}") == "begun\n"
    rows = json.loads(busy.said("workspace.list", "--hosts", HOST, "--json", status=0))["workspaces"]
    states = {row["name"]: row["state"] for row in rows}
    assert (states[LAB], states[BOX]) == ("running", "running")
    assert states[RUN].startswith(run)
    busy.plan(status=0)


def test_a_reboot_that_provision_needs(busy: Busy) -> None:
    kept = busy.kept()
    busy.on(REBOOT_WANTED)
    plan = busy.plan()
    assert [name for name in WHOSE if name not in " ".join(plan["busy"])] == []
    assert [user for user in plan["busy"] if not user.startswith("workspace ")] == []  # nobody twice, no container's id
    assert len(plan["busy"]) == len(WHOSE)
    busy.refused("provision", "--hosts", HOST)
    assert BEFORE in busy.forced("provision", "--hosts", HOST, then="after the reboot")
    there_again(busy, kept)


def test_a_restart_of_docker_by_its_changed_file(busy: Busy) -> None:
    kept = busy.kept()
    busy.on("echo '{}' >/etc/docker/daemon.json")
    plan = busy.plan("--roles", "container")
    assert [name for name in WHOSE if name not in " ".join(plan["busy"])] == []
    assert [user for user in plan["busy"] if not user.startswith("workspace ")] == []
    boot = busy.on("cat /proc/sys/kernel/random/boot_id")
    busy.refused("provision", "--hosts", HOST)
    busy.forced("provision", "--hosts", HOST, then="container: ok")
    there_again(busy, kept)
    assert busy.on("cat /proc/sys/kernel/random/boot_id") == boot


@pytest.mark.parametrize("order", ["cycle", "off"])
def test_power(busy: Busy, order: str) -> None:
    kept = busy.kept()
    busy.refused("power", order, "--hosts", HOST)
    busy.said("power", order, "--hosts", HOST, "--force", status=0)
    if order == "off":
        busy.said("power", "on", "--hosts", HOST, status=0)
    there_again(busy, kept)


def test_idle_workspaces_are_named_before_the_power_is_cut(host: Busy) -> None:
    """Nothing of theirs is lost, so nobody is waited for; a card is kept for its workspace, so that there is none."""
    as_settled(host)
    host.declare(alice_lab=None)
    host.said("provision", "--hosts", HOST, "--roles", "workspaces", "--force", status=0)
    done = host.invoke("power", "cycle", "--hosts", HOST)
    assert done.returncode == 0, done.stderr
    assert f"{HOST}: the reboot ends workspace {BOX} of bob; Docker starts it again" in " ".join(done.stderr.split())
    host.awake()


def test_another_driver_and_the_way_back(busy: Busy) -> None:
    kept = busy.kept()
    busy.said("mirror", "--stack", OTHER_DRIVER, status=0)
    other = ("--hosts", HOST, "--var", f"stack={OTHER_DRIVER}")
    plan = busy.plan("--var", f"stack={OTHER_DRIVER}")
    assert [name for name in ON_CARDS if name not in " ".join(plan["busy"])] == []
    busy.refused("provision", *other, whose=ON_CARDS)
    card = busy.on(f"docker exec workspace-{LAB} nvidia-smi -L")
    assert BEFORE in busy.forced("provision", *other, whose=ON_CARDS, then="driver: ok")
    assert busy.on("cat /sys/module/nvidia/version").strip() == "470.256.02"
    busy.answers()
    assert busy.on(f"docker exec workspace-{LAB} nvidia-smi -L") == card
    with busy.at_work(batch=False):
        busy.refused("rollback", *other, whose=ON_CARDS[:1])
        busy.forced("rollback", *other, whose=ON_CARDS[:1], then="driver: ok")
    assert busy.on("cat /sys/module/nvidia/version").strip() == "470.182.03"
    there_again(busy, kept, run="running")  # its program has no card open, so nothing had to end it


@pytest.mark.parametrize("roles", ["workspaces", "container", "proxy,workspaces", ""])
def test_remove_names_and_ends_nobody(busy: Busy, roles: str) -> None:
    chosen = ("--roles", roles) if roles else ()
    planned = busy.said("remove", "--hosts", HOST, *chosen, "--check", status=3)
    assert [name for name in WHOSE if name not in planned] == []
    busy.refused("remove", "--hosts", HOST, *chosen)


def test_a_role_that_was_taken_away_comes_back_with_everybodys_files(busy: Busy) -> None:
    kept = busy.kept()
    busy.forced("remove", "--hosts", HOST, "--roles", "container", then="container: ok")
    busy.said("provision", "--hosts", HOST, "--force", status=0)
    there_again(busy, kept)  # their containers were Docker's data, which a removal leaves
    busy.said("remove", "--hosts", HOST, "--force", status=0)
    assert exec_in(busy.machine, ["sh", "-c", "command -v docker"]).returncode != 0
    files = [file for file in kept if file.startswith("/srv/")]
    assert {file: busy.on(f"cat {file}") for file in files} == {file: kept[file] for file in files}


def test_a_rebuild_names_them_in_what_it_is_about_to_do(busy: Busy) -> None:
    kept = busy.kept()
    words = ("rebuild", "--hosts", HOST, "--from", "relayer")
    decision = json.loads(busy.said(*words, "--check", "--json", status=3))["decisions"][HOST]
    assert [name for name in WHOSE if name not in " ".join(decision["ends"])] == []
    busy.refused(*words)
    busy.forced(*words, then="remove:")
    busy.awake()
    busy.answers()
    files = [file for file in kept if file.startswith("/srv/")]
    assert {file: busy.on(f"cat {file}") for file in files} == {file: kept[file] for file in files}


def test_a_drain_waits_for_them_by_name(busy: Busy) -> None:
    kept = busy.kept()
    busy.on(REBOOT_WANTED)
    hooks = {"hostwright_drain": "true", "hostwright_undrain": "true", "hostwright_drain_on": "host"}
    variables = busy.lab.inventory.parent / "host_vars" / f"{HOST}.yml"
    variables.parent.mkdir(exist_ok=True)
    variables.write_text(yaml.safe_dump({**hooks, "hostwright_drain_timeout": "5s"}))
    try:
        said = busy.refused("provision", "--hosts", HOST, "--drain")
        assert "still in use by" in said
        end = f"docker stop -t 1 workspace-{LAB} workspace-{RUN}; docker exec workspace-{BOX} pkill sleep; true"
        variables.write_text(yaml.safe_dump({**hooks, "hostwright_drain": end, "hostwright_drain_timeout": "120s"}))
        busy.said("provision", "--hosts", HOST, "--drain", status=0)
    finally:
        variables.unlink()
    there_again(busy, kept)


def test_images_are_built_again_behind_a_canary(busy: Busy) -> None:
    """A box in which somebody works is left as it is, with its host; and no further host is begun."""
    kept = busy.kept()
    fleet.up(busy.lab, [SECOND], options=OPTIONS, snapshot=read_snapshots(busy.lab)[SNAPSHOT])
    try:
        wait_for_ssh(find_machine(busy.lab, SECOND))
        busy.declare(SECOND)
        second = find_machine(busy.lab, SECOND)
        before = on(second, f"docker inspect --format '{{{{.Id}}}}' workspace-{BOX}")
        words = ("images.rebuild", "--hosts", f"{HOST},{SECOND}", "--canary", "1")
        said = busy.refused(*words, whose=("workspace bob-box of bob (",))
        assert f"{SECOND} untouched" in said
        assert on(second, f"docker inspect --format '{{{{.Id}}}}' workspace-{BOX}") == before
    finally:
        fleet.remove(busy.lab, [SECOND])
        busy.declare()
    busy.forced("images.rebuild", "--hosts", HOST, whose=("workspace bob-box of bob (",), then="workspaces: ok")
    eventually(lambda: busy.kept() == kept, 60, "the box with its key and files")
