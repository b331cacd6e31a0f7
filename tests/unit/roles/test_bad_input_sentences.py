"""Eight mistakes in stacks and hosts of today, each with the message before any change.

Plans use made-up facts: a refusal in a plan means that nothing is sent. Faults in files on this machine (an index
without a wheel, an expired key) are reported before the first step of a host is sent.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from hostwright.apply.delivery.delivery import Delivery
from hostwright.apply.delivery.sources.settings import FileSettings
from hostwright.common.errors import ArtifactError
from hostwright.plan.model import Change, Facts, Reboot, Refusal, Resource
from hostwright.plan.roles.role import RoleContext
from hostwright.plan.testing import Reply
from hostwright.resources.python.wheels import Wheel
from hostwright.stack.rules import HostFacts
from hostwright.stack.stack import Artifact, Stack
from hostwright.standard.roles.container.cdi import GpusFlagWorks
from hostwright.standard.roles.driver import Driver, driver
from hostwright.standard.roles.driver.states.gpu_use import SECURE_BOOT
from hostwright.standard.roles.driver.states.packages import NvidiaPackages
from hostwright.standard.roles.driver.states.runfile import NvidiaRunfile
from tests.unit.roles.driver.test_driver_sets import PIN, nvidia, section, stack_of
from tests.unit.stack.test_rules import GOOD
from tests.unit.stack.test_rules import nvidia as cards
from tests.unit.support.facts import facts_for
from tests.unit.support.runs import run_of
from tests.unit.support.shell import program
from tests.unit.support.stackfleet import SYSTEMS
from tests.unit.support.stacks import check_host, check_stack, load_stack, with_values

NEW, OLD = "580.178.04", "580.159.03"  #: versions of a library, and of the module that is still loaded
A100, B200, V100 = 0x20B0, 0x2901, 0x1DB4
LIB = "/usr/lib/x86_64-linux-gnu"
NOBLE = replace(
    GOOD, version="24.04", kernel=SYSTEMS["ubuntu 24.04"][0], pythons=("3.12",), memory_bytes=512_000_000_000
)
QUIET: dict[str, Reply] = {
    "drivers/nouveau": "",
    "/boot/vmlinuz": "",
    "secure boot": "off\n",
    "display-manager": "",
    "extended_states": "",
    "for word in": "",
    "0x03": f"0x10de 0x030200 {A100:#x}\n",
}


def state(version: str, loaded: str, *more: str) -> str:
    """Return the output of the driver state's probe for libraries and module of these versions."""
    names = ("libcuda.so", "libnvidia-ml.so")
    lines = [f"module={version}", "license=Dual MIT/GPL", *(f"{one}.1={LIB}/{one}.{version}" for one in names), *more]
    return "\n".join([*lines, *([f"loaded={loaded}", "loaded kind=open", "uvm=yes"] if loaded else []), ""])


INTACT = ("dkms=yes", "source=yes", "record=yes")
BARE = "libcuda.so.1=\nlibnvidia-ml.so.1=\n"


def installed(stack: Stack) -> Resource:
    """Return the state that installs the driver."""
    states = driver.resources(Driver(), RoleContext(stack))
    return next(one for one in states if isinstance(one, NvidiaRunfile | NvidiaPackages))


def facts(one: Resource, text: str, **differs: Reply) -> Facts:
    """Return a host's facts with those of its driver."""
    return facts_for(one, {**QUIET, "modinfo -k": text, **differs})


RUN = with_values(load_stack("pytorch-2.14"), driver={"version": NEW})  # installed by its .run file
SET = stack_of(nvidia())
PACKAGES = dict(nvidia().packages)
ROWS = "".join(f"{name}\t{version}\thi \n" for name, version in PACKAGES.items())


def refused_stack(make: Callable[[], object]) -> str:
    with pytest.raises(ValidationError) as error:
        make()
    return str(error.value)


def misfits(stack: Stack, host: HostFacts | None = None) -> str:
    found = [*check_stack(stack), *(check_host(stack, host) if host else ())]
    return "\n".join(f"{one.rule}: {one.sentence}" for one in found)


def refusal(one: Resource, known: Facts) -> str:
    planned = one.plan(known)
    assert isinstance(planned, Refusal), planned
    return f"{planned.rule}: {planned.sentence}"


def secure_boot(stack: Stack, text: str, answered: str, rows: str = "") -> str:
    one = installed(stack)
    return refusal(one, facts(one, text, **{"SecureBoot-": answered, "dpkg-query -W": rows}))


def half_upgraded(stack: Stack, version: str, *more: str, rows: str = "") -> str:
    """Return the note and plan of a host whose libraries alone have this version."""
    one = installed(stack)
    known = facts(one, state(version, OLD, *more), **{"dpkg-query -W": rows})
    planned = one.plan(known)
    assert isinstance(planned, Reboot | Change)
    after = planned.reason if isinstance(planned, Reboot) else planned.have
    return f"{one.notes(known)[0]}; {after}"


def without_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the real pip against an empty index."""
    monkeypatch.setenv("PIP_INDEX_URL", tmp_path.as_uri())
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    file = "torch-2.14.1-cp312-cp312-manylinux_2_28_x86_64.whl"
    wheel = Wheel(name="torch", file=file, sha256="5" * 64, package="torch", version="2.14.1", python="3.12")
    with pytest.raises(ArtifactError) as error:
        wheel.bring(tmp_path)
    return str(error.value)


def expired_key(tmp_path: Path) -> str:
    """Create a key with the real gpg that expired in 2020."""
    home = tmp_path / "gpg"
    home.mkdir(mode=0o700)
    gpg = ["gpg", "--homedir", str(home), "--batch", "-q", "--pinentry-mode", "loopback", "--passphrase", ""]
    gpg += ["--faked-system-time", "20200101T000000!"]
    try:
        subprocess.run([*gpg, "--quick-generate-key", "Vendor", "ed25519", "sign", "1d"], check=True)
        key = subprocess.run([*gpg, "--armor", "--export"], check=True, capture_output=True).stdout
    finally:
        subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False, capture_output=True)
    (tmp_path / "vendor.asc").write_bytes(key)
    artifact = Artifact(name="nvidia-key", file="vendor.asc")
    run = run_of(locate=lambda one: tmp_path / one.file, handout=None)
    with pytest.raises(ArtifactError) as error:
        Delivery(None, run, FileSettings(), SET).check([artifact])  # type: ignore[arg-type]
    return str(error.value)


def engine_too_old() -> str:
    one = GpusFlagWorks("cdi")
    return refusal(one, facts_for(one, {"dpkg-query -W": "docker.io\t26.1.5+dfsg1-9\tii \n"}))


#: mistake → its message, or a part of it
CASES: dict[str, tuple[Callable[[], str], str]] = {
    "both sources": (
        lambda: refused_stack(lambda: section(packages=PACKAGES, artifact="driver")),
        "the driver has both artifact and packages; set one to null",
    ),
    "a module kind that the branch lacks": (
        lambda: misfits(with_values(RUN, driver={"version": "620.70.06", "module": "proprietary"})),
        "driver-module: driver 620.70.06 has no proprietary kernel module: the last branch with it was before R620",
    ),
    "a module kind that the card cannot have": (
        lambda: misfits(with_values(RUN, driver={"module": "proprietary"}), replace(NOBLE, gpus=cards(B200))),
        "gpu-module: Blackwell (GB100) GPUs need the open kernel module, and the stack has the proprietary one",
    ),
    "a package set without its pin": (
        lambda: misfits(stack_of(nvidia(PIN, **{"nvidia-open": f"{nvidia().version}-1"}))),
        "driver-pin: nvidia-driver-cuda follows the newest branch of its repository, and driver.packages have no pin",
    ),
    "Secure Boot, no key": (
        lambda: secure_boot(RUN, BARE, "on\n"),
        "secure-boot: Secure Boot is on and no signing key of DKMS is enrolled, so the kernel would "
        "reject the driver: as root on the host make one (update-secureboot-policy --new-key on Ubuntu, else openssl",
    ),
    "Secure Boot, a key that is not enrolled": (
        lambda: secure_boot(RUN, BARE, "made /var/lib/dkms/mok.pub\n"),
        "as root on the host run mokutil --import /var/lib/dkms/mok.pub, reboot, choose Enroll MOK at its console, "
        "then provision again; or switch Secure Boot off in the firmware",
    ),
    "Secure Boot, a key that waits for the console": (
        lambda: secure_boot(RUN, BARE, "pending /var/lib/shim-signed/mok/MOK.der\n"),
        "secure-boot: Secure Boot is on and the key /var/lib/shim-signed/mok/MOK.der is not enrolled yet: reboot the "
        "host, choose Enroll MOK at its console, then provision again",
    ),
    "Secure Boot, an unsigned module on the disk": (
        lambda: secure_boot(RUN, state(NEW, "", *INTACT), "made /var/lib/dkms/mok.pub\n"),
        "secure-boot: Secure Boot is on and no signing key",
    ),
    "Secure Boot, an unsigned module of a package": (
        lambda: secure_boot(SET, state(nvidia().version, ""), "made /var/lib/dkms/mok.pub\n", ROWS),
        "secure-boot: Secure Boot is on and no signing key",
    ),
    "half upgraded by the .run": (
        lambda: half_upgraded(RUN, NEW, *INTACT),
        f"the driver is half upgraded: the libraries are {NEW} and the loaded module is {OLD}, so programs "
        f"find no GPU (Driver/library version mismatch); driver {OLD} is loaded and {NEW} is installed",
    ),
    "half upgraded to another version than the stack's": (
        lambda: half_upgraded(SET, NEW, rows=ROWS.replace("libcuda1\t580.159.04-1", f"libcuda1\t{NEW}-1")),
        f"the loaded module is {OLD}, so programs find no GPU (Driver/library version mismatch); libcuda1 {NEW}-1",
    ),
    "an engine too old for the CDI specification": (
        engine_too_old,
        "cdi-engine: Docker 26.1.5+dfsg1-9 runs `docker run --gpus` only through the container toolkit's hook, "
        "which refuses the mode cdi; set container.toolkit.mode to auto, or install Docker 29.2 or newer",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_mistake_has_its_sentence(name: str) -> None:
    make, sentence = CASES[name]
    assert sentence in make()


def test_an_index_that_lacks_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = without_wheel(tmp_path, monkeypatch)
    assert sentence.startswith(
        "pip's package index does not serve torch 2.14.1 for Python 3.12 (torch-2.14.1-cp312-cp312-manylinux_2_28"
    )
    assert "No matching distribution found for torch==2.14.1" in sentence


@pytest.mark.skipif(shutil.which("gpg") is None, reason="this machine has no gpg")
def test_a_repository_whose_key_expired(tmp_path: Path) -> None:
    assert expired_key(tmp_path) == (
        "nvidia-key: the key in vendor.asc expired on 2020-01-02, and apt rejects its signatures; download the "
        "repository's new key, and name it in the stack"
    )


def test_signed_modules_and_good_hosts_are_not_refused() -> None:
    """The same checks with valid facts: no refusals and no notes."""
    one = installed(RUN)
    known = facts(one, state(NEW, NEW, *INTACT), **{"SecureBoot-": "made /var/lib/dkms/mok.pub\n"})
    assert (one.plan(known), one.notes(known)) == (None, ())
    enrolled = facts(one, BARE, **{"SecureBoot-": "enrolled\n"})
    assert isinstance(one.plan(enrolled), Change)
    assert misfits(load_stack("pytorch-2.14"), replace(NOBLE, gpus=cards(A100))) == ""


@pytest.mark.parametrize(
    ("answered", "state_of_it"),
    [
        ("/k is already enrolled", "enrolled"),
        ("CA of /k is already enrolled", "enrolled"),
        ("SKIP: /k is already in the enrollment request", "pending"),
        ("/k is not enrolled", "made"),
        ("", "made"),
    ],
)
def test_what_mokutil_says_of_a_key(tmp_path: Path, answered: str, state_of_it: str) -> None:
    """In the wording of mokutil 0.6.0."""
    variable, key = tmp_path / "SecureBoot", tmp_path / "mok.pub"
    program(tmp_path / "bin", "mokutil", f"echo '{answered}'")
    script = SECURE_BOOT.script
    for path, place in (
        ("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", variable),
        ("/var/lib/shim-signed/mok/MOK.der", tmp_path / "none"),
        ("/var/lib/dkms/mok.pub", key),
    ):
        script = script.replace(path, str(place))

    def asked() -> str:
        done = subprocess.run(
            ["sh", "-c", script], env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    assert asked() == "off"
    variable.write_bytes(bytes([6, 0, 0, 0, 0]))
    assert asked() == "off"
    variable.write_bytes(bytes([6, 0, 0, 0, 1]))
    assert asked() == "on"
    key.write_bytes(b"key")
    assert asked() == f"{state_of_it} {key}"
