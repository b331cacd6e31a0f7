"""The lab itself: its hosts boot, break and come back as machines do, and nothing of it stays behind.

Everything runs in labs of its own names, so that a developer's running lab is not touched.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from hostwright.common.errors import LabError
from lab import cgroups, firewall, fleet, network, surroundings
from lab.config import CHECKOUT, HostOptions, Lab, Machine
from lab.hardware import A100, Hardware
from lab.machine import answers, console, exec_in, leader, power_off, running, start, wait_for_ssh
from lab.mounts import mount_points, unmount_below
from lab.programs import attempt, run
from lab.records import find_lab, find_machine, open_lab, read_record, read_records
from lab.support import require_support
from tests.lab.ownlab import own_lab

SMALL = HostOptions(profile="small")
PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with own_lab("hwtest") as opened:
        fleet.up(opened, ["t01", "t02"], options=SMALL)
        yield opened


@pytest.fixture
def host(lab: Lab) -> Machine:
    """A host that runs and answers, whatever the test before did to it."""
    fleet.up(lab, ["t01"], options=SMALL)
    return find_machine(lab, "t01")


@pytest.fixture
def scratch() -> Iterator[Lab]:
    """A lab that only one test uses."""
    with own_lab("hwscrat") as opened:
        yield opened


def ssh(machine: Machine, command: str, known_hosts: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command as the inventory's user would, trusting no key that is not on record."""
    options = {
        "UserKnownHostsFile": known_hosts or machine.lab.known_hosts,
        "StrictHostKeyChecking": "yes",
        "BatchMode": "yes",
        "ConnectTimeout": 10,
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return attempt(["ssh", "-F", "none", *words, "-i", machine.lab.private_key, f"ops@{machine.address}", command])


def boot_id(machine: Machine) -> str:
    return console(machine, "cat", "/proc/sys/kernel/random/boot_id")


def eventually(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"still not after {PATIENCE_S} s: {what}"
        time.sleep(0.05)


def settled(machine: Machine) -> str:
    return exec_in(machine, ["systemctl", "is-system-running", "--wait"]).stdout.strip()


def test_a_host_is_a_machine_with_its_own_address_systemd_and_sudo(host: Machine) -> None:
    seen = ssh(host, "hostname; sudo -n id -u; python3 --version; . /etc/os-release; echo $VERSION_CODENAME")
    assert seen.stdout.split("\n")[:4] == ["t01", "0", seen.stdout.split("\n")[2], "bullseye"], seen.stderr
    assert seen.stdout.split("\n")[2].startswith("Python 3.9.")
    assert settled(host) == "running"


def test_the_inventory_reaches_every_host_and_only_its_owner_reads_the_key(lab: Lab) -> None:
    written = yaml.safe_load(lab.inventory.read_text())["lab"]
    assert written["hosts"] == {
        name: {"ansible_host": str(find_machine(lab, name).address)} for name in sorted(read_records(lab))
    }
    assert written["vars"]["stack"] == "lab"
    assert Path(written["vars"]["hostwright_known_hosts"]).read_text().count("ssh-ed25519") == len(written["hosts"])
    assert Path(written["vars"]["ansible_ssh_private_key_file"]).stat().st_mode & 0o777 == 0o600


def test_up_leaves_healthy_hosts_alone(lab: Lab, host: Machine) -> None:
    before = boot_id(host)
    assert fleet.up(lab, ["t01", "t02"], options=SMALL) == []
    assert boot_id(host) == before


def test_up_refuses_to_turn_a_host_into_another_kind(lab: Lab, host: Machine) -> None:
    with pytest.raises(LabError, match=r"t01 exists with hardware=.*reset --hosts t01"):
        fleet.up(lab, ["t01"], options=HostOptions(profile="small", hardware=Hardware(cards=(A100,))))
    assert running(host)


def test_reboot_inside_boots_the_same_disk_again(host: Machine) -> None:
    before = boot_id(host)
    ssh(host, "echo kept > note; sudo systemctl reboot")
    eventually(lambda: boot_id_or_none(host) not in (None, before), "a new boot id after reboot")
    wait_for_ssh(host)
    assert ssh(host, "cat note").stdout == "kept\n"


def boot_id_or_none(machine: Machine) -> str | None:
    try:
        return boot_id(machine)
    except LabError:
        return None


def test_what_a_host_stops_on_its_way_down_does_not_keep_us(host: Machine) -> None:
    """nsenter stops with the program that it runs, and a host whose console's program nobody reaps never ends."""
    assert exec_in(host, ["sh", "-c", "kill -STOP $$; echo on"]).stdout == "on\n"


def test_power_off_kills_all_and_start_finds_the_disk_as_it_was(host: Machine) -> None:
    before = boot_id(host)
    ssh(host, "echo kept > note")
    power_off(host)
    assert not running(host)
    assert not answers(host)
    with pytest.raises(LabError, match="t01 is off"):
        exec_in(host, ["true"])
    start(host)
    wait_for_ssh(host)
    assert boot_id(host) != before
    assert ssh(host, "cat note").stdout == "kept\n"


def test_poweroff_inside_stays_off_until_up(lab: Lab, host: Machine) -> None:
    ssh(host, "sudo systemctl poweroff")
    eventually(lambda: not running(host), "the host is off")
    assert {status.name: status.state for status in fleet.status(lab)}["t01"] == "off"
    assert fleet.up(lab, ["t01"], options=SMALL) == []
    assert answers(host)


def test_a_cut_cable_silences_the_network_and_not_the_host(host: Machine) -> None:
    before = boot_id(host)
    network.cut_network(host)
    assert not answers(host)
    assert console(host, "hostname") == "t01\n"
    network.restore_network(host)
    eventually(lambda: answers(host), "sshd answers again")
    assert boot_id(host) == before


def test_the_gateway_stays_known_to_hosts_when_another_cable_is_plugged_in(lab: Lab, host: Machine) -> None:
    # A bridge without an address of its own takes the least of its cables', and hosts go on asking the former one.
    before = gateway_mac(lab)
    assert refuses(host, str(lab.gateway.ip))
    run(["ip", "link", "add", "hw-least", "address", "02:00:00:00:00:01", "type", "veth"])
    try:
        run(["ip", "link", "set", "hw-least", "master", lab.bridge, "up"])
        assert refuses(host, str(lab.gateway.ip))
        assert gateway_mac(lab) == before
    finally:
        run(["ip", "link", "delete", "hw-least"])


def refuses(host: Machine, address: str) -> bool:
    """Tell whether the address answers the host at all: nobody listens on that port, which is said at once."""
    return "refused" in exec_in(host, ["timeout", "5", "bash", "-c", f"echo >/dev/tcp/{address}/1"]).stderr


def gateway_mac(lab: Lab) -> str:
    return Path(f"/sys/class/net/{lab.bridge}/address").read_text().strip()


def test_a_host_whose_supervisor_was_killed_gets_another_one_by_up(lab: Lab, host: Machine) -> None:
    before = boot_id(host)
    ssh(host, "echo kept > note")
    os.kill(supervisor(host), signal.SIGKILL)
    eventually(lambda: leader_parent(host) not in cgroups.processes(host.cgroup), "nspawn is gone with its supervisor")
    assert fleet.up(lab, ["t01"], options=SMALL) == []
    assert boot_id(host) != before
    assert ssh(host, "cat note").stdout == "kept\n"
    assert supervisor(host) in cgroups.processes(host.cgroup)


def supervisor(machine: Machine) -> int:
    """Return the process above nspawn, which is above the host's PID 1."""
    return parent(leader_parent(machine))


def leader_parent(machine: Machine) -> int:
    return parent(leader(machine))


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_up_restores_hosts_and_disks_after_a_machine_reboot(lab: Lab, host: Machine) -> None:
    ssh(host, "echo kept > note")
    for name in ("t01", "t02"):
        cgroups.kill(find_machine(lab, name).cgroup)
    unmount_below(lab.state)
    network.remove_bridge(lab)
    assert not answers(host)
    assert fleet.up(lab, ["t01", "t02"], options=SMALL) == []
    assert ssh(host, "cat note").stdout == "kept\n"


def test_a_host_that_cannot_boot_any_more_is_made_anew(lab: Lab, host: Machine) -> None:
    power_off(host)
    (host.merged / "usr/lib/systemd/systemd").unlink()
    assert fleet.up(lab, ["t01"], options=SMALL) == ["t01"]
    assert ssh(host, "true").returncode == 0


def test_reset_is_a_fresh_installation_with_a_new_host_key(lab: Lab, host: Machine, tmp_path: Path) -> None:
    former = shutil.copy(lab.known_hosts, tmp_path / "known_hosts")
    identity = console(host, "cat", "/etc/machine-id")
    ssh(host, "echo gone > note")
    fleet.reset(lab, ["t01"])
    refused = ssh(host, "true", known_hosts=Path(former))
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in refused.stderr
    assert ssh(host, "ls note").returncode == 2
    assert console(host, "cat", "/etc/machine-id") != identity
    assert read_record(host.directory).options == SMALL.to_json()


def test_prefilled_packages_install_without_any_network(host: Machine) -> None:
    console(host, "ip", "route", "delete", "default")
    try:
        installed = ssh(host, "sudo DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends apparmor")
    finally:
        console(host, "ip", "route", "add", "default", "via", str(host.lab.gateway.ip))
    assert installed.returncode == 0, installed.stderr
    assert ssh(host, "/usr/sbin/apparmor_parser --version").returncode == 0


def test_apt_and_pip_reach_their_indexes(host: Machine) -> None:
    update = ssh(host, "sudo apt-get update 2>&1")
    assert update.returncode == 0 and "Err:" not in update.stdout, update.stdout
    download = ssh(host, "pip3 download --no-deps --dest /tmp/wheels six 2>&1")
    assert download.returncode == 0, download.stdout


def test_a_nested_docker_runs_a_container(host: Machine) -> None:
    installed = exec_in(
        host,
        ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "--no-install-recommends", "docker.io"],
    )
    assert installed.returncode == 0, installed.stderr
    script = (
        "mkdir -p /tmp/image/bin && cp /bin/sh /tmp/image/bin/"
        " && cp --parents $(ldd /bin/sh | grep -o '/[^ ]*') /tmp/image"
        " && tar -C /tmp/image -c . | docker import - tiny >/dev/null"
        " && docker run --rm tiny /bin/sh -c 'echo from inside'"
    )
    done = exec_in(host, ["sh", "-c", script])
    assert done.stdout == "from inside\n", done.stderr
    assert console(host, "docker", "info", "--format", "{{.Driver}}") == "overlay2\n"


def test_sudo_with_a_password_and_without_any(lab: Lab) -> None:
    fleet.up(lab, ["t03"], options=HostOptions(profile="small", sudo="password", sudo_password="a b'c"))
    fleet.up(lab, ["t04"], options=HostOptions(profile="small", sudo="none"))
    asks, never = find_machine(lab, "t03"), find_machine(lab, "t04")
    assert ssh(asks, "sudo -n true").returncode == 1
    assert ssh(asks, "echo \"a b'c\" | sudo -S -p '' id -u").stdout == "0\n"
    assert ssh(never, "sudo -n true").returncode == 1
    assert "sudo" not in ssh(never, "id -Gn").stdout.split()


def test_a_host_with_a_disk_of_its_own_can_fill_it(lab: Lab) -> None:
    fleet.up(lab, ["t05"], options=HostOptions(profile="small", disk_bytes=2**28))
    host = find_machine(lab, "t05")
    assert exec_in(host, ["dd", "if=/dev/zero", "of=/var/filling", "bs=1M", "count=512"]).returncode == 1
    assert "100%" in console(host, "df", "/")
    console(host, "rm", "/var/filling")
    power_off(host)
    start(host)
    wait_for_ssh(host)
    assert "100%" not in console(host, "df", "/")


def test_down_leaves_nothing_and_can_be_run_twice(scratch: Lab) -> None:
    settings = {name: Path("/proc/sys", name).read_text() for name in ("net/ipv4/ip_forward",)}
    fleet.up(scratch, ["d01", "d02"], options=SMALL)
    assert traces(scratch)
    fleet.down(scratch)
    assert traces(scratch) == []
    fleet.down(scratch)
    assert traces(scratch) == []
    if not any(scratch.root.glob("*/lab.json")):
        assert Path("/proc/sys/net/ipv4/ip_forward").read_text() == settings["net/ipv4/ip_forward"]


def traces(lab: Lab) -> list[str]:
    """Return all that the machine has of a lab, by name."""
    group = f"hostwright-lab/{lab.name}"
    found = [str(point) for point in mount_points() if point.is_relative_to(lab.state)]
    found += network.links(lab)
    found += [line for line in run(["nft", "list", "tables"]).splitlines() if line.endswith(lab.table)]
    found += [str(hierarchy / group) for hierarchy in cgroups.hierarchies() if (hierarchy / group).exists()]
    found += [str(path) for path in (lab.state, lab.inventory) if path.exists()]
    processes = (attempt(["ps", "-e", "-o", "args="]).stdout or "").splitlines()
    return found + [line for line in processes if f"--machine={lab.name}-" in line]


@pytest.mark.parametrize("moment", range(3))
def test_a_lab_whose_making_was_killed_is_finished_by_the_next_up(scratch: Lab, moment: int) -> None:
    command = [sys.executable, "-m", "lab", "up", "--name", scratch.name, "--profile", "small", "--hosts", "k[1-3]"]
    maker = subprocess.Popen(command, cwd=CHECKOUT, start_new_session=True, stderr=subprocess.DEVNULL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        maker.wait(random.Random(moment).uniform(0.2, 1.5))  # noqa: S311  (a moment, not a secret)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(maker.pid, signal.SIGKILL)
    maker.wait()
    fleet.up(scratch, ["k1", "k2", "k3"], options=SMALL)
    assert [status.name for status in fleet.status(scratch) if answers(find_machine(scratch, status.name))] == [
        "k1", "k2", "k3",
    ]  # fmt: skip
    fleet.down(scratch)
    assert traces(scratch) == []


def test_two_labs_have_two_networks(lab: Lab, scratch: Lab) -> None:
    assert not lab.subnet.overlaps(scratch.subnet)
    assert find_lab("hwtest") == lab


def test_without_the_capability_one_sentence_says_what_to_do(lab: Lab) -> None:
    code = "import sys, pathlib, lab.support; lab.support.require_support(pathlib.Path(sys.argv[1]))"
    confined = ["setpriv", "--bounding-set=-sys_admin", "env", f"PYTHONPATH={CHECKOUT}"]
    done = attempt([*confined, sys.executable, "-c", code, lab.root])
    (last,) = done.stderr.splitlines()[-1:]
    assert "the capability CAP_SYS_ADMIN is missing" in last and "use a machine or a VM" in last
    require_support(lab.root)


def test_a_closed_forward_chain_gets_a_door_that_goes_away_again() -> None:
    closed = "table ip filter {\n chain FORWARD {\n type filter hook forward priority 0; policy drop;\n }\n}\n"
    code = (
        "import sys, json\n"
        "from lab import firewall\nfrom lab.config import Lab\nfrom lab.programs import run\n"
        "show = lambda: run(['nft', 'list', 'ruleset'])\n"
        "run(['nft', '-f', '-'], stdin=sys.stdin.read())\n"
        "before = show(); firewall.install(Lab('door')); during = show(); firewall.remove(Lab('door'))\n"
        "print(json.dumps([before, during, show()]))\n"
    )
    namespaced = ["unshare", "--net", "env", f"PYTHONPATH={CHECKOUT}", sys.executable, "-c", code]
    before, during, after = json.loads(run(namespaced, stdin=closed))
    assert during.count(f'accept comment "{firewall.Lab("door").table}"') == 2
    assert after == before


def test_pip_settings_are_carried_over_without_what_only_this_machine_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "pip.conf"
    file.write_text(
        "[global]\nextra-index-url = file:///opt/pypi https://extra.example/simple http://localhost:3141/\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")
    lines = surroundings.pip_conf().splitlines()
    assert "index-url = https://index.example/simple" in lines
    assert "extra-index-url = https://extra.example/simple" in lines


def test_a_bad_name_is_refused_before_anything_is_made() -> None:
    with pytest.raises(LabError, match="cannot name a lab"):
        open_lab("../etc")
    with pytest.raises(LabError, match="cannot name a host"):
        Machine(Lab(), "a/b", 1)
