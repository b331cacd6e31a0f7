"""Invalid input and unsuitable hosts: one clear message, the correct exit status, and no changes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from lab.config import HostOptions, Lab, Machine
from lab.records import find_machine
from tests.lab.conftest import SMALL, FrontDoor, Guest, on


@pytest.fixture
def inventory(lab: Lab, tmp_path: Path) -> Callable[..., str]:
    """Write a changed copy of the lab's inventory and return its path: ``inventory(stack=…, gpu01={…}, text=…)``."""

    def write(*, gpu01: dict[str, object] | None = None, stack: str = "", text: str = "", **variables: object) -> str:
        copy = tmp_path / "inventory"
        shutil.copytree(lab.inventory.parent, copy, dirs_exist_ok=True)
        data = yaml.safe_load((copy / "lab.yml").read_text())
        data["lab"]["vars"].update(variables)
        if gpu01:
            data["lab"]["hosts"]["gpu01"].update(gpu01)
        if stack:
            (copy / "stacks" / "changed.yml").write_text(f"extends: lab\n{stack}\n")
            data["lab"]["vars"]["stack"] = "changed"
        (copy / "lab.yml").write_text(text or yaml.safe_dump(data))
        return str(copy)

    return write


def untouched(machine: Machine) -> str:
    """Return a checksum over name, time and size of every file that a change could affect."""
    places = "/etc /opt /usr/local /var/lib/dpkg /var/lib/hostwright /var/cache/hostwright"
    listing = f"for d in {places}; do [ ! -e $d ] || find $d -xdev -printf '%p %T@ %s\\n'; done"
    return on(machine, f"{listing} | sort | sha256sum")


CASES = {
    "unknown host": (dict(), ["--hosts", "gpu1"], 2, ["gpu1", "gpu01"]),
    "no host named": (dict(), [], 2, ["--hosts"]),
    "empty selection": (dict(), ["--hosts", "gpu01,!gpu01"], 2, ["matches no host"]),
    "unknown role": (dict(), ["--hosts", "gpu01", "--roles", "cudn"], 2, ["cudn", "cudnn"]),
    "broken YAML": (dict(text="lab:\n  hosts:\n    gpu01: [\n"), ["--hosts", "gpu01"], 2, ["lab.yml:"]),
    "duplicate key": (dict(text="lab:\n  hosts:\n    a:\n  hosts:\n    b:\n"), ["--hosts", "a"], 2, ["lab.yml:4"]),
    "unknown variable": (
        dict(cuda={"keep_repositry": True}), ["--hosts", "gpu01"], 2, ["keep_repositry", "keep_repository", "lab.yml:"]
    ),
    "wrong type": (dict(driver_force="perhaps"), ["--hosts", "gpu01"], 2, ["driver", "true or false", "lab.yml:"]),
    "unknown stack": (dict(gpu01={"stack": "tensorflow-2.8"}), ["--hosts", "gpu01"], 2, ["tensorflow-2.8"]),
    "CUDA 11.4": (dict(stack="cuda: {version: 11.4.0}"), ["--hosts", "gpu01"], 2, ["11.4", "11.2"]),
    "cuDNN 8.3": (dict(stack="cudnn: {version: 8.3.0.98}"), ["--hosts", "gpu01"], 2, ["8.3", "8.1"]),
    "driver 450.51": (dict(stack="driver: {version: 450.51.06}"), ["--hosts", "gpu01"], 2, ["450.51.06", "450.80.02"]),
    "Python 3.11": (dict(stack='tensorflow: {pythons: ["3.11"]}'), ["--hosts", "gpu01"], 2, ["3.11", "3.10"]),
    "unreachable": (
        dict(gpu01={"ansible_host": "127.0.0.1", "ansible_port": 9}), ["--hosts", "gpu01"], 1, ["gpu01", "127.0.0.1"]
    ),
    "no such user": (dict(gpu01={"ansible_user": "nobody-here"}), ["--hosts", "gpu01"], 1, ["gpu01", "nobody-here"]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bad_input_is_refused_with_a_clear_sentence(invoke: FrontDoor, inventory, gpu01: Machine, case: str):
    changes, words, status, said = CASES[case]
    before = untouched(gpu01)
    done = invoke("provision", *words, inventory=inventory(**changes))
    assert done.returncode == status, f"{done.stdout}\n{done.stderr}"
    sentence = " ".join(done.stderr.split())  # independent of line breaks
    for part in said:
        assert part in sentence, f"{part!r} is not in: {done.stderr}"
    assert "Traceback" not in done.stderr
    assert untouched(gpu01) == before


def test_a_wrong_host_key_names_both_fingerprints(invoke: FrontDoor, inventory, lab: Lab, tmp_path: Path):
    lines = lab.known_hosts.read_text().splitlines()
    keys = {line.split()[0].split(",")[1]: line.split(" ", 1)[1] for line in lines}
    swapped = tmp_path / "known_hosts"
    swapped.write_text(f"{find_machine(lab, 'gpu01').address} {keys['gpu02']}\n")
    path = inventory(gpu01={"hostwright_known_hosts": str(swapped)})
    done = invoke("provision", "--hosts", "gpu01", inventory=path)
    assert done.returncode == 1
    assert done.stderr.count("SHA256:") == 2
    assert str(swapped) in done.stderr
    accepted = invoke("provision", "--hosts", "gpu01", "--accept-new", inventory=path)
    assert accepted.returncode == 1, "a changed key is an error also where new ones are accepted"


def test_an_unknown_key_is_refused_and_accepted_only_by_intent(provisioned: FrontDoor, inventory, tmp_path: Path):
    empty = tmp_path / "known_hosts"
    path = inventory(gpu01={"hostwright_known_hosts": str(empty)})
    refused = provisioned("plan", "--hosts", "gpu01", inventory=path)
    assert refused.returncode == 1
    assert "SHA256:" in refused.stderr
    assert not empty.exists()
    assert provisioned("plan", "--hosts", "gpu01", "--accept-new", inventory=path).returncode == 0
    assert oct(empty.stat().st_mode & 0o777) == "0o600"
    assert provisioned("plan", "--hosts", "gpu01", inventory=path).returncode == 0


def test_a_missing_artifact_is_named_before_anything_is_touched(invoke: FrontDoor, bare01: Machine, tmp_path: Path):
    before = untouched(bare01)
    done = invoke("provision", "--hosts", "bare01", HOSTWRIGHT_ARTIFACTS=str(tmp_path / "empty"))
    assert done.returncode == 1
    assert "invoke mirror" in done.stderr
    assert untouched(bare01) == before


def test_an_artifact_with_a_wrong_checksum_is_not_taken(invoke: FrontDoor, inventory, tmp_path: Path):
    path = inventory(stack=f"artifacts: {{cudnn: {{sha256: {'f' * 64}}}}}")
    done = invoke("mirror", "--stack", "changed", inventory=path, HOSTWRIGHT_ARTIFACTS=str(tmp_path / "store"))
    assert done.returncode == 1
    assert "f" * 64 in done.stderr
    assert not [file for file in (tmp_path / "store").rglob("cudnn*") if not file.name.endswith(".part")]


@pytest.fixture(scope="module")
def bare01(guest: Guest) -> Machine:
    """A host that was never provisioned."""
    return guest("bare01", SMALL)


def test_hosts_that_do_not_fit_are_refused_and_the_others_provisioned(provisioned: FrontDoor, guest: Guest, lab: Lab):
    """trixie has only Python 3.13; gpu02 is repaired in the same run."""
    trixie = guest("trixie01", HostOptions(profile="small", distro="trixie"))
    gpu02 = find_machine(lab, "gpu02")
    before = untouched(trixie)
    on(gpu02, "rm /etc/profile.d/cuda.sh")
    done = provisioned("provision", "--hosts", "gpu02,trixie01")
    assert done.returncode == 1
    assert "trixie01" in done.stderr
    assert "debian 13" in done.stderr.lower() or "3.13" in done.stderr
    assert untouched(trixie) == before
    assert "cuda.sh" in on(gpu02, "ls /etc/profile.d")


def test_no_sudo_is_said_and_nothing_is_changed(invoke: FrontDoor, guest: Guest):
    machine = guest("nosudo01", HostOptions(profile="small", sudo="none"))
    before = untouched(machine)
    done = invoke("provision", "--hosts", "nosudo01")
    assert done.returncode == 1
    assert "sudo" in done.stderr
    assert untouched(machine) == before


def test_a_full_disk_is_refused_before_it_is_fuller(invoke: FrontDoor, inventory, bare01: Machine):
    path = inventory(stack="requirements: {free_bytes: 99_000_000_000_000}")
    done = invoke("provision", "--hosts", "bare01", inventory=path)
    assert done.returncode == 1
    assert "free" in done.stderr


def test_real_driver_is_refused_on_an_unsupported_kernel(invoke: FrontDoor, inventory, bare01: Machine):
    """The lab's kernel is newer than 6.3, so the real stack file must refuse it."""
    path = inventory(stack='driver: {kernels: "<6.3"}')
    done = invoke("provision", "--hosts", "bare01", inventory=path)
    assert done.returncode == 1
    assert "kernel" in done.stderr
    assert "470.182.03" in done.stderr


@pytest.mark.parametrize(
    "words", [("remove",), ("rebuild", "--from", "reinstall"), ("power", "off"), ("power", "cycle")], ids=" ".join
)
def test_what_destroys_is_refused_where_nobody_can_be_asked(
    invoke: FrontDoor, gpu01: Machine, words: tuple[str, ...]
) -> None:
    before = untouched(gpu01)
    done = invoke(*words, "--hosts", "gpu01", HOSTWRIGHT_YES="")
    assert done.returncode == 2
    assert "pass --yes or set HOSTWRIGHT_YES=1, since no terminal exists to ask on; nothing was changed" in " ".join(
        done.stderr.split()
    )
    assert untouched(gpu01) == before
