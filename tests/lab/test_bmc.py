"""The lab's BMCs over real Redfish: power, access control, and installations from seeds of a web server."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import pytest
import requests
import sushy
import yaml
from sushy import auth

from lab import cgroups, fleet, machine, snapshots
from lab.bmc import Credentials, netboot, serve
from lab.bmc.faults import Faults, set_faults
from lab.config import BLOCK, BMC_PORT, CHECKOUT, HostOptions, Lab, Machine
from lab.records import find_machine, read_record
from tests.lab.conftest import on
from tests.lab.ownlab import own_lab

SMALL = HostOptions(profile="small")
PATIENCE_S = 120.0  # a boot takes a second or two on an idle machine


def until(what: Callable[[], bool], said: Callable[[], str] = str) -> None:
    """Wait until a condition holds; fail with the output of ``said`` at the timeout."""
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline, said()
        time.sleep(0.1)


@pytest.fixture(scope="module")
def bmc_lab() -> Iterator[Lab]:
    """A separate lab with one host and its BMC."""
    with own_lab("bmc") as lab:
        fleet.up(lab, ["gpu01"], options=SMALL, bmc=True)
        yield lab


@pytest.fixture
def gpu(bmc_lab: Lab) -> Iterator[Machine]:
    """The host, running; changes to its BMC are undone afterwards."""
    fleet.up(bmc_lab, ["gpu01"], options=SMALL)
    yield find_machine(bmc_lab, "gpu01")
    set_faults(bmc_lab, "gpu01", Faults())
    serve.stop(bmc_lab)  # also ends an installation that never completes
    serve.forget(bmc_lab, "gpu01")
    fleet.reset(bmc_lab, ["gpu01"])
    serve.ensure(bmc_lab)


def system(lab: Lab, *, session: bool = True, password: str = "", ca: str = "") -> sushy.resources.system.system.System:
    """Log in to the endpoint and return the host as a sushy system."""
    known = Credentials.read(lab)
    kind = auth.SessionAuth if session else auth.BasicAuth
    login = kind(known.user, password or known.password.reveal())
    return sushy.Sushy(lab.bmc_url, auth=login, verify=ca or str(known.ca)).get_system("/redfish/v1/Systems/gpu01")


def power(one: sushy.resources.system.system.System) -> str:
    one.refresh()
    return str(one.power_state.value)


@pytest.mark.parametrize("session", [True, False])
def test_power_is_what_the_kernel_says(gpu: Machine, session: bool) -> None:
    one = system(gpu.lab, session=session)
    first = on(gpu, "cat /proc/sys/kernel/random/boot_id; cat /etc/machine-id")
    assert power(one) == "On"
    one.reset_system(sushy.RESET_FORCE_OFF)
    assert (power(one), machine.running(gpu)) == ("Off", False)
    one.reset_system(sushy.RESET_ON)
    assert power(one) == "On"
    machine.wait_for_ssh(gpu)
    started = machine.leader(gpu)
    one.reset_system(sushy.RESET_FORCE_RESTART)
    machine.wait_for_ssh(gpu)
    assert machine.leader(gpu) != started
    assert on(gpu, "cat /etc/machine-id").strip() == first.split()[1]  # on the same disk
    one.reset_system(sushy.RESET_GRACEFUL_SHUTDOWN)
    until(lambda: power(one) == "Off")
    assert not machine.running(gpu)


def test_who_does_not_know_the_password_gets_nothing(gpu: Machine) -> None:
    for session in (True, False):
        with pytest.raises(sushy.exceptions.AccessError, match="401"):
            system(gpu.lab, session=session, password="wrong")
    url = f"{gpu.lab.bmc_url}/redfish/v1/Systems/gpu01/Actions/ComputerSystem.Reset"
    ca = str(Credentials.read(gpu.lab).ca)
    assert requests.post(url, json={"ResetType": "ForceOff"}, verify=ca, timeout=60).status_code == 401
    assert machine.running(gpu)


def test_a_client_that_trusts_others_only_does_not_talk_to_it(gpu: Machine, tmp_path: Path) -> None:
    with pytest.raises(sushy.exceptions.ConnectionError, match=r"(?i)certificate"):
        system(gpu.lab, ca="/etc/ssl/certs/ca-certificates.crt")


def test_the_endpoint_listens_on_the_bridge_only(gpu: Machine) -> None:
    others = {one for one in listening(BMC_PORT) if one in BLOCK and one not in gpu.lab.subnet}  # BMCs of other labs
    assert listening(BMC_PORT) - others == {gpu.lab.gateway.ip}


def test_faults_are_what_a_client_sees(gpu: Machine) -> None:
    one = system(gpu.lab)
    set_faults(gpu.lab, "gpu01", Faults(reset_fails=True))
    with pytest.raises(sushy.exceptions.ServerSideError, match="500"):
        one.reset_system(sushy.RESET_FORCE_OFF)
    assert machine.running(gpu)
    set_faults(gpu.lab, "gpu01", Faults(lies_on=True, delay_s=0.5))
    one.reset_system(sushy.RESET_FORCE_OFF)
    one.reset_system(sushy.RESET_ON)
    began = time.monotonic()
    assert (power(one), machine.running(gpu)) == ("On", False)
    assert time.monotonic() - began >= 0.5


def test_the_published_commands_work_in_any_directory(gpu: Machine) -> None:
    inventory = yaml.safe_load(gpu.lab.inventory.read_text())["lab"]
    host, common = inventory["hosts"]["gpu01"], inventory["vars"]

    def said(command: str) -> str:
        return subprocess.run(["sh", "-c", command], cwd="/", capture_output=True, text=True, check=True).stdout

    assert said(common["hostwright_bmc_password_command"]).strip() == Credentials.read(gpu.lab).password.reveal()
    assert said(host["hostwright_host_keys"]) == on(gpu, "cat /etc/ssh/ssh_host_ed25519_key.pub")
    gpu.console.write_text("Kernel panic\x1b[2J\n")
    assert said(host["hostwright_bmc_console"]) == "Kernel panic\N{REPLACEMENT CHARACTER}[2J\n"


@dataclass
class Seeds:
    """A web server for a host's seed files that records its clients."""

    url: str
    files: dict[str, str] = field(default_factory=dict)
    peers: set[str] = field(default_factory=set)


@contextmanager
def seed_server(lab: Lab) -> Iterator[Seeds]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seeds.peers.add(self.client_address[0])
            text = seeds.files.get(self.path.removeprefix("/gpu01/"))
            self.send_response(404 if text is None else 200)
            self.end_headers()
            self.wfile.write((text or "").encode())

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer((str(lab.gateway.ip), 0), Handler)
    seeds = Seeds(f"http://{lab.gateway.ip}:{server.server_port}/gpu01/")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield seeds
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass(frozen=True)
class Keys:
    """A key pair for one test: a user's or a host's."""

    file: Path

    @classmethod
    def make(cls, file: Path) -> Keys:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "made", "-f", str(file)], check=True)
        return cls(file)

    @property
    def public(self) -> str:
        return self.file.with_suffix(".pub").read_text()


def autoinstall(host: Keys, login: Keys) -> dict[str, str]:
    rule = "ops ALL=(ALL) NOPASSWD: ALL"
    document = {
        "version": 1,
        "identity": {"hostname": "fresh", "username": "ops", "password": "*"},
        "ssh": {"install-server": True, "authorized-keys": [login.public.strip()]},
        "user-data": {"ssh_keys": {"ed25519_private": host.file.read_text(), "ed25519_public": host.public}},
        "late-commands": [
            f"echo '{rule}' >/target/etc/sudoers.d/ops",
            ["curtin", "in-target", "--target=/target", "--", "touch", "/root/late ran"],
        ],
    }
    return {"user-data": "#cloud-config\n" + yaml.safe_dump({"autoinstall": document}), "meta-data": ""}


def preseed(host: Keys, login: Keys, url: str) -> dict[str, str]:
    names = ("ssh_host_ed25519_key", "ssh_host_ed25519_key.pub", "authorized_keys")
    fetch = " && ".join(f"wget -q -O {name} {url}{name}" for name in names)
    late = (
        f"set -e; umask 077; cd /tmp; {fetch}; cp ssh_host_* /target/etc/ssh/; mkdir /target/home/ops/.ssh; "
        "cp authorized_keys /target/home/ops/.ssh/; chroot /target chown -R ops:ops /home/ops/.ssh; "
        "echo ops ALL=NOPASSWD: ALL >/target/etc/sudoers.d/ops; touch '/target/root/late ran'"
    )
    lines = {
        "netcfg/get_hostname string": "fresh",
        "passwd/username string": "ops",
        "passwd/user-password-crypted password": "!",
        "preseed/late_command string": late,
    }
    text = "".join(f"d-i {question} {answer}\n" for question, answer in lines.items())
    return dict(zip(names, (host.file.read_text(), host.public, login.public), strict=True)) | {"preseed.cfg": text}


def logged_in(gpu: Machine, host: Keys, login: Keys, command: str) -> str:
    """Run a command over SSH as the seed's user, with only the seed's host key trusted; return its output."""
    known = host.file.with_name("known_hosts")
    known.write_text(f"{gpu.address} {host.public}")
    options = (f"UserKnownHostsFile={known}", "StrictHostKeyChecking=yes", "IdentitiesOnly=yes", "BatchMode=yes")
    argv = ["ssh", "-F", "none", "-i", str(login.file), *(f"-o{one}" for one in options), f"ops@{gpu.address}", command]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", ["autoinstall", "preseed"])
def test_a_host_is_installed_from_its_seed(gpu: Machine, tmp_path: Path, kind: str) -> None:
    host, login = Keys.make(tmp_path / "host"), Keys.make(tmp_path / "login")
    trusted = gpu.lab.known_hosts.read_text()
    on(gpu, "echo old >/root/old; echo old >/home/ops/old")
    one = system(gpu.lab)
    with seed_server(gpu.lab) as seeds:
        seeds.files = autoinstall(host, login) if kind == "autoinstall" else preseed(host, login, seeds.url)
        netboot.set_seed(gpu.lab, "gpu01", seeds.url)
        if kind == "autoinstall":
            one.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_PXE, enabled=sushy.BOOT_SOURCE_ENABLED_ONCE)
        else:
            one.virtual_media.get_members()[0].insert_media("http://192.0.2.1/installer.iso")
            one.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_CD, enabled=sushy.BOOT_SOURCE_ENABLED_ONCE)
        one.reset_system(sushy.RESET_FORCE_RESTART)
        assert power(one) == "On"
        assert one.boot.enabled == sushy.BOOT_SOURCE_ENABLED_DISABLED  # consumed
        until(lambda: machine.running(gpu), gpu.console.read_text)
        machine.wait_for_ssh(gpu)
    assert seeds.peers == {str(gpu.address)}  # requests come from the host's address
    seen = logged_in(gpu, host, login, "hostname; sudo -n sh -c 'ls /root /home/ops'")
    assert seen.startswith("fresh\n")
    assert "late ran" in seen
    assert "old" not in seen
    assert read_record(gpu.directory).host_key.split()[:2] == host.public.split()[:2]
    assert [one.state for one in fleet.status(gpu.lab)] != ["off"]
    # publishes the inventory; a key that is not trusted yet stays untrusted
    fleet.up(gpu.lab, ["gpu01"], options=SMALL)
    assert gpu.lab.known_hosts.read_text() == trusted
    console = [sys.executable, "-m", "lab", "console", "--name", "bmc", "--hosts", "gpu01"]
    said = subprocess.run(console, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    assert "stand-in for an operating system's installer" in said
    assert host.file.read_text().splitlines()[2] not in said + (gpu.lab.bmc / "log").read_text()


def test_without_a_seed_the_host_stays_in_the_installer_with_its_disk(gpu: Machine) -> None:
    on(gpu, "echo kept >/root/kept; sync")
    one = system(gpu.lab)
    netboot.set_seed(gpu.lab, "gpu01", f"http://{gpu.lab.gateway.ip}:9/")  # a closed port
    one.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_PXE, enabled=sushy.BOOT_SOURCE_ENABLED_ONCE)
    one.reset_system(sushy.RESET_FORCE_RESTART)
    until(lambda: "refused" in gpu.console.read_text(), gpu.console.read_text)
    assert "waits for the seed" in gpu.console.read_text()
    assert (power(one), machine.running(gpu)) == ("On", False)
    one.reset_system(sushy.RESET_FORCE_RESTART)
    machine.wait_for_ssh(gpu)
    assert on(gpu, "cat /root/kept") == "kept\n"


def test_an_installation_that_never_ends_leaves_the_disk_alone(gpu: Machine, tmp_path: Path) -> None:
    set_faults(gpu.lab, "gpu01", Faults(install_never_ends=True))
    one = system(gpu.lab)
    with seed_server(gpu.lab) as seeds:
        seeds.files = autoinstall(Keys.make(tmp_path / "host"), Keys.make(tmp_path / "login"))
        netboot.set_seed(gpu.lab, "gpu01", seeds.url)
        one.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_PXE, enabled=sushy.BOOT_SOURCE_ENABLED_ONCE)
        one.reset_system(sushy.RESET_FORCE_RESTART)
        until(lambda: "never ends" in gpu.console.read_text(), gpu.console.read_text)
    assert (power(one), machine.running(gpu)) == ("On", False)
    one.reset_system(sushy.RESET_FORCE_OFF)
    assert power(one) == "Off"


def test_snapshot_restore_keeps_the_current_host_key(gpu: Machine, tmp_path: Path) -> None:
    host, login = Keys.make(tmp_path / "host"), Keys.make(tmp_path / "login")
    before = snapshots.freeze(gpu, f"b{os.getpid()}")
    snapshots.thaw(gpu, before)
    one = system(gpu.lab)
    with seed_server(gpu.lab) as seeds:
        seeds.files = autoinstall(host, login)
        netboot.set_seed(gpu.lab, "gpu01", seeds.url)
        one.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_PXE, enabled=sushy.BOOT_SOURCE_ENABLED_ONCE)
        one.reset_system(sushy.RESET_FORCE_RESTART)
        until(lambda: machine.running(gpu), gpu.console.read_text)
        machine.wait_for_ssh(gpu)
    snapshots.thaw(gpu, before)
    assert on(gpu, "cat /etc/ssh/ssh_host_ed25519_key.pub").split()[:2] == host.public.split()[:2]


def listening(port: int) -> set[IPv4Address | IPv6Address]:
    """Return the addresses with a listener on a port, from the kernel's tables.

    On some machines a proxy accepts connections to addresses that do not exist.
    """
    rows = [row.split() for name in ("tcp", "tcp6") for row in Path("/proc/net", name).read_text().splitlines()]
    local = [row[1].split(":") for row in rows if row[3] == "0A"]
    return {address_of(address) for address, its_port in local if int(its_port, 16) == port}


def address_of(text: str) -> IPv4Address | IPv6Address:
    """Return an address from the format of the kernel's tables: four-byte words in native byte order."""
    words = [int(text[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(text), 8)]
    return ip_address(b"".join(words))


def listens(lab: Lab) -> bool:
    return lab.gateway.ip in listening(BMC_PORT)


def test_down_leaves_nothing_and_a_lab_without_bmcs_starts_none() -> None:
    with own_lab("bmcdown") as lab:
        fleet.up(lab, ["gpu01"], options=SMALL)
        assert not serve.wanted(lab)
        assert not serve.running(lab)
        assert "hostwright_bmc" not in lab.inventory.read_text()
        fleet.up(lab, ["gpu01"], options=SMALL, bmc=True)
        assert serve.running(lab)
        assert listens(lab)
        assert "hostwright_bmc" in lab.inventory.read_text()
        serve.stop(lab)
        assert not listens(lab)
        fleet.up(lab, ["gpu01"], options=SMALL)  # a lab with BMCs keeps them
        assert listens(lab)
        fleet.down(lab)
    assert not listens(lab)
    assert not cgroups.processes(serve.group(lab))
    assert not [path for hierarchy in cgroups.hierarchies() for path in hierarchy.glob("hostwright-lab/bmcdown*")]
    assert not lab.state.exists()
