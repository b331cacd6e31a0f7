"""The role base: what it plans on a bare, a damaged and a finished host, and the traps that it keeps a host from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.plan.host.jobs import WORK_DIRS
from hostwright.plan.model import Answer, Change, Deferred, Facts, Reboot, Refusal, Resource
from hostwright.plan.roles.role import RoleContext, discover
from hostwright.resources.files.files import Absent, File
from hostwright.resources.packages.dpkg import HOLD
from hostwright.resources.packages.packages import APT_GET, DPKG, DPKG_LOCK, PATIENTLY, named_like
from hostwright.resources.system.kernel import HEADERS, KERNEL_GONE
from hostwright.resources.system.room import GB, FreeSpace
from hostwright.stack.stack import WORK
from hostwright.standard.roles.base import Base, base
from hostwright.standard.roles.base.audit import MACHINE
from hostwright.standard.roles.driver.audit import MODULE
from hostwright.standard.roles.driver.section import DRIVER_PACKAGES, NOT_DRIVER
from hostwright.standard.roles.driver.states.nouveau import NOUVEAU, NouveauGone
from hostwright.standard.roles.driver.states.others import NOUVEAU_OFF, no_other_driver
from tests.unit.support.facts import NOTHING, facts_for
from tests.unit.support.shell import program, run
from tests.unit.support.stacks import load_stack

STACK = load_stack("tensorflow-2.9")
#: with the states against other drivers, which the role driver has
ITS, OTHERS = base.resources(Base(), RoleContext(STACK)), tuple(no_other_driver(RoleContext(STACK)))
RESOURCES = (*ITS[:3], *OTHERS[:3], *ITS[3:], *OTHERS[3:])
KERNEL = "5.10.0-28-amd64"

ROOMY = "/usr\t/usr\tdirectory\t8:1\t/\trw\t900000000\t0\t0\n"
PROVISIONED = "".join(
    f"{name}\t1.0\t{state} \n"
    for name, state in [
        *((name, "ii") for name in Base().packages),
        (f"linux-headers-{KERNEL}", "hi"),
        ("linux-headers-amd64", "hi"),
        ("linux-image-amd64", "hi"),
    ]
)


def host(resources: Iterable[Resource] = RESOURCES, **differs: str | Answer) -> Facts:
    """Facts of a provisioned host; ``differs`` are answers by a word that occurs in a probe's script."""
    right: dict[str, str | Answer] = {
        "dpkg-query": PROVISIONED,
        "cd /var/lib/dpkg/updates": "",
        "uname -rm": f"{KERNEL} x86_64\n",
        "build/Makefile": "",
        "initrd.img": "",
        "drivers/nouveau": "",
        "/boot/vmlinuz": "",
        "/sys/module/nvidia": NOTHING,
        "findmnt": ROOMY,
        "for p in": "/usr/bin/nvidia-smi\n",
    }
    for one in resources:
        if isinstance(one, File):
            stat, content, _ = one.probes()
            right[stat.script] = f"regular file|{one.mode}|{one.owner}\n"
            right[content.script] = one.content
        if isinstance(one, Absent):
            right[one.probes()[0].script] = NOTHING
    return facts_for(resources, {**right, **differs})


def plan(**differs: str | Answer) -> list[Change]:
    facts = host(**differs)
    return [change for one in RESOURCES if (change := one.plan(facts)) is not None]


def script(change: Change) -> str:
    return "\n".join(step.script for step in change.steps)


def file(path: str) -> File:
    return next(one for one in RESOURCES if isinstance(one, File) and one.path == path)


def test_a_provisioned_host_plans_nothing() -> None:
    assert plan() == []


def test_a_bare_host_gets_everything_in_one_plan() -> None:
    facts = facts_for(
        RESOURCES, {"dpkg-query": "", "uname -rm": f"{KERNEL} x86_64", "findmnt": ROOMY, "initrd.img": ""}
    )
    planned = [change.what for one in RESOURCES if (change := one.plan(facts)) is not None]
    assert planned == [
        "file /etc/apt/apt.conf.d/52hostwright",
        "file /etc/apt/preferences.d/hostwright-no-other-driver",
        f"packages {' '.join(Base().packages)}",
        "kernel packages",
        f"file {NOUVEAU_OFF}",
    ]


def test_apts_lock_is_waited_for_and_never_removed() -> None:
    changes = plan(**{"dpkg-query": "", "build/Makefile": NOTHING})
    assert changes
    for change in changes:
        assert not any("rm " in line and "lock" in line for line in script(change).splitlines())
        for step in change.steps:
            if "apt-get" in step.script:
                assert step.lock == DPKG_LOCK, PATIENTLY
                assert "DPkg::Lock::Timeout=600" in step.script
    assert "DPkg::Lock::Timeout" in APT_GET


@pytest.mark.parametrize("half", ["foo\t1\tiF \n", "foo\t1\tiU \n", "foo\t1\tiHR\n"])
def test_an_interrupted_dpkg_is_mended_before_it_is_used(half: str) -> None:
    changes = plan(**{"dpkg-query": half})
    assert changes[0].what == "dpkg"
    assert "dpkg --configure -a" in script(changes[0])
    assert [change.what for change in plan(**{"dpkg-query": PROVISIONED + half})] == ["dpkg"]


def test_an_unfinished_dpkg_journal_is_mended_too() -> None:
    assert [change.what for change in plan(**{"in /var/lib/dpkg/updates/*": "0001\n"})] == ["dpkg"]


def test_headers_are_those_of_the_running_kernel() -> None:
    (change,) = plan(**{"build/Makefile": NOTHING, "dpkg-query": PROVISIONED.replace(f"linux-headers-{KERNEL}", "x")})
    assert f"\nbring linux-headers-{KERNEL}\n" in script(change)
    assert "linux-headers-amd64" not in script(change)
    assert script(change).endswith(f"xargs -r {HOLD}")


@pytest.mark.parametrize("known", [True, False], ids=["lists are fresh", "lists are stale"])
def test_headers_with_missing_files_are_reinstalled(tmp_path: Path, known: bool) -> None:
    (change,) = plan(**{"build/Makefile": NOTHING})
    bin_, log = tmp_path / "bin", tmp_path / "log"
    headers, common = f"linux-headers-{KERNEL}", "linux-headers-5.10.0-28-common"
    program(bin_, "apt-cache", f'[ "$*" = "depends --recurse --installed --important {headers}" ] || exit 1\n'
            f'printf "%s\\n" {headers} "  Depends: {common}" {common} gcc-10')  # fmt: skip
    program(bin_, "apt-mark", f'[ "$1" != showauto ] || echo {common}; echo "$*" >>{log}')
    program(bin_, "apt-get", f'case "$*" in *indextargets*) exit ;; esac; '
            f'echo "apt-get $*" >>{log}; case "$*" in *update) touch {tmp_path}/updated ;; '
            f'*) {":" if known else f"[ -e {tmp_path}/updated ]"} ;; esac')  # fmt: skip
    program(bin_, "dpkg-query", f"echo installed {headers}")
    program(bin_, "dpkg", f'{{ echo "dpkg $*"; cat; }} >>{log}')
    assert run(script(change), path=bin_).returncode == 0
    both = f"{headers} {common}"
    install = f"--no-install-recommends --allow-change-held-packages --reinstall install {both}"
    lines = log.read_text().splitlines()
    assert [line.rpartition("force-confold ")[2] for line in lines] == [
        f"showauto {both}",
        install,
        *([] if known else ["update", install]),
        f"auto {common}",
        "dpkg --set-selections",
        f"{headers} hold",
    ]


def test_kernels_stay_where_they_are() -> None:
    loose = PROVISIONED.replace("linux-image-amd64\t1.0\thi", "linux-image-amd64\t1.0\tii")
    (change,) = plan(**{"dpkg-query": loose})
    assert change.have == "linux-image-amd64 not held"
    assert "install" not in script(change).replace("installed", "")
    removed = PROVISIONED.replace("linux-image-amd64\t1.0\thi", "linux-image-amd64\t1.0\trc")
    assert plan(**{"dpkg-query": removed}) == []


@pytest.mark.parametrize(
    "package",
    [
        "nvidia-driver-470", "nvidia-driver-460", "nvidia-headless-470-server", "libnvidia-compute-470",
        "libnvidia-ml1", "libnvidia-cfg1-470", "libnvidia-common-470", "cuda-drivers", "cuda-drivers-535",
        "nvidia-dkms-470", "libcuda1", "nvidia-kernel-dkms", "nvidia-tesla-470-kernel-dkms", "nvidia-smi",
        "xserver-xorg-video-nvidia-470", "nvidia-alternative", "linux-modules-nvidia-470-generic",
        "nvidia-persistenced", "nvidia-open",
    ],
)  # fmt: skip
def test_packages_of_another_driver_are_purged_and_pinned_away(package: str) -> None:
    (change,) = plan(**{"dpkg-query": f"{PROVISIONED}{package}\t470.1-1\tii \n"})
    assert script(change).endswith(f" purge {package}")
    assert pinned_away(package)


def test_removing_a_loaded_drivers_packages_disturbs() -> None:
    other = {"dpkg-query": f"{PROVISIONED}nvidia-driver-470\t470.1-1\tii \n"}
    assert [change.disturbs for change in plan(**other)] == [""]
    assert [change.disturbs for change in plan(**other, **{"/sys/module/nvidia": ""})] == ["removes a driver"]


@pytest.mark.parametrize(
    "package",
    [
        "libnvidia-container1", "libnvidia-container-tools", "nvidia-container-toolkit", "libcudart11.0",
        "nvidia-container-toolkit-base", "nvidia-fabricmanager-470", "cuda-toolkit-11-2", "cuda-cudart-11-2",
        "libcudnn8", "libcublas-11-2",
    ],
)  # fmt: skip
def test_the_stacks_own_packages_are_neither_purged_nor_pinned_away(package: str) -> None:
    assert plan(**{"dpkg-query": f"{PROVISIONED}{package}\t1-1\tii \n"}) == []
    assert not pinned_away(package)


def pinned() -> list[str]:
    """The shell patterns of the preferences file."""
    text = file("/etc/apt/preferences.d/hostwright-no-other-driver").content
    assert "Pin-Priority: -1" in text
    return next(line for line in text.splitlines() if line.startswith("Package:")).split()[1:]


def pinned_away(package: str) -> bool:
    """What apt makes of the preferences file."""
    return any(fnmatchcase(package, name) for name in pinned())


def test_no_pin_is_a_regular_expression() -> None:
    """apt compiles one anew for each of 60,000 packages, in each of its runs."""
    assert not [name for name in pinned() if name.startswith("/")]


@given(st.text("cont-0a", max_size=5))
def test_every_library_of_the_driver_is_pinned_away_and_none_of_the_container_toolkit(rest: str) -> None:
    driver = re.match("([^c]|c[^o]|co[^n])", rest) is not None
    assert pinned_away(f"libnvidia-{rest}") == driver


def test_what_is_purged_is_what_is_pinned_away() -> None:
    text = file("/etc/apt/preferences.d/hostwright-no-other-driver").content
    assert set(DRIVER_PACKAGES) - {"libnvidia-*"} <= set(text.split())
    assert NOT_DRIVER == ("libnvidia-container*",)


def test_the_marker_of_a_distributions_driver_goes() -> None:
    marker = next(one for one in RESOURCES if isinstance(one, Absent))
    (change,) = plan(**{marker.probes()[0].script: ""})
    assert script(change) == "rm -f -- /usr/lib/nvidia/alternate-install-present"


def test_unattended_upgrades_leave_drivers_toolkits_and_kernels_alone() -> None:
    text = file("/etc/apt/apt.conf.d/52hostwright").content
    assert text.count("{") == text.count("};")
    fenced = re.findall(r'^ {4}"(.*)";$', text, re.MULTILINE)
    for package in ("nvidia-fabricmanager-470", "libnvidia-container1", "cuda-toolkit-11-2", "linux-image-amd64"):
        assert any(re.match(name, package) for name in fenced), package
    assert not any(re.match(name, "openssl") for name in fenced)


def test_nouveau_and_its_successors_are_kept_off_the_cards() -> None:
    lines = file(NOUVEAU_OFF).content.splitlines()
    for module in ("nouveau", "nova_core", "nova_drm"):
        assert f"blacklist {module}" in lines
    assert "options nouveau modeset=0" in lines
    assert any("update-initramfs -u" in one for one in file(NOUVEAU_OFF).then)


def test_an_initramfs_older_than_the_blacklist_is_rebuilt() -> None:
    (change,) = plan(**{"initrd.img": NOTHING})
    assert change.what == "initramfs"
    assert "update-initramfs -u -k all" in script(change)


def test_nouveau_that_has_a_card_wants_a_reboot_and_nothing_else() -> None:
    (change,) = plan(**{"drivers/nouveau": "0000:3b:00.0 nouveau\n0000:5e:00.0 nouveau\n"})
    assert isinstance(change, Reboot)
    assert change.have == "nouveau drives 0000:3b:00.0, nouveau drives 0000:5e:00.0"
    assert change.reason
    assert NouveauGone().plan(facts_for(NouveauGone(), {"nova": ""})) is None


def test_removed_running_kernel_needs_a_reboot_before_headers() -> None:
    kernel, packages = plan(**{"/boot/vmlinuz": "5.10.0-30-amd64\n", "build/Makefile": NOTHING})
    assert isinstance(kernel, Reboot)
    assert kernel.reason == f"the running kernel {KERNEL} has been removed, and 5.10.0-30-amd64 is installed"
    assert (type(packages), packages.what, packages.until) == (Deferred, "kernel packages", "reboot")


@pytest.mark.parametrize(
    ("there", "container", "said"),
    [
        (("boot/vmlinuz-2", "lib/modules/2/"), False, "2\n"),
        (("boot/vmlinuz-2", "lib/modules/2/", "boot/vmlinuz-3", "lib/modules/3/"), False, "2\n3\n"),
        (("boot/vmlinuz-2", "lib/modules/2/"), True, ""),
        (("boot/vmlinuz-2", "lib/modules/2/", "lib/modules/1/"), False, ""),
        (("boot/vmlinuz-2", "lib/modules/2/", "boot/vmlinuz-1"), False, ""),
        (("boot/vmlinuz-2",), False, ""),
        ((), False, ""),
    ],
    ids=[
        "another one is there", "two others", "in a container", "its modules are there", "its image is there",
        "the other one is not whole", "no kernel of its own, as in a container",
    ],
)  # fmt: skip
def test_a_kernel_counts_as_removed_only_when_another_one_could_be_booted(
    tmp_path: Path, there: tuple[str, ...], container: bool, said: str
) -> None:
    for name in there:
        path = tmp_path / name
        path.mkdir(parents=True) if name.endswith("/") else path.parent.mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.touch()
    programs = tmp_path / "bin"
    (tmp_path / "osrelease").write_text("1\n")
    program(programs, "systemd-detect-virt", f"exit {0 if container else 1}")
    script = KERNEL_GONE.script.replace("/lib/modules", f"{tmp_path}/lib/modules").replace(
        "/boot/", f"{tmp_path}/boot/"
    )
    script = script.replace("/proc/sys/kernel/osrelease", f"{tmp_path}/osrelease")
    done = run(script, path=programs)
    assert (done.returncode, done.stdout.decode()) == (0, said)


def test_little_disk_refuses_a_bare_host_and_not_a_finished_one() -> None:
    room = FreeSpace(20 * GB, RoleContext(STACK).shares())
    named = [share.directory for share in room.shares if share.directory != WORK]
    rows = "".join(f"{name}\t/\tdirectory\t8:1\t/\trw\t3000000\t0\t0\n" for name in (*named, *WORK_DIRS))
    change = room.plan(facts_for(room, {"findmnt": rows}))
    assert isinstance(change, Refusal)
    assert "/ has 3.1 GB free and 20.0 GB are needed" in change.sentence
    assert "the driver, CUDA, cuDNN, TensorFlow, Docker" in change.sentence
    everything = "".join(f"there\t{share.unless}\n" for share in room.shares)
    assert room.plan(facts_for(room, {"findmnt": rows + everything})) is None


def test_the_shares_of_a_bare_host_are_the_whole() -> None:
    assert sum(share.percent for share in RoleContext(STACK).shares()) == 100


def test_base_shares_its_probes() -> None:
    asked = [probe for one in RESOURCES for probe in one.probes()]
    assert {DPKG, HEADERS, NOUVEAU} <= set(asked)
    kinds = {probe.part.kind if probe.part else probe for probe in asked}
    # one is what apt marked as installed for others, one what else apt would change: no fork where all are there
    # two are whether a script that waits in dpkg may end containers: no fork where dpkg is in order
    assert len(kinds) <= 18


def test_base_audit_does_not_ask_for_nouveau() -> None:
    assert "nouveau" not in MACHINE.text
    assert "say nouveau" in MODULE.text


def test_a_driver_that_cannot_be_configured_goes_where_the_host_gets_another() -> None:
    """NVIDIA/nvidia-container-toolkit#361, mailrocketsystems/CudaSetupUbuntu20#1: its module does not build."""
    roles = {role.name: role for role in discover()}
    told = [(roles[name], roles[name].variables()) for name in ("base", "driver")]
    with_driver = RoleContext(STACK, roles=tuple(told)).leaving()
    assert RoleContext(STACK, roles=tuple(told[:1])).leaving() == ()
    kept = tuple(pattern.removeprefix("!") for pattern in with_driver if pattern.startswith("!"))
    assert with_driver[: len(kept)] == tuple(f"!{pattern}" for pattern in kept), "the first that matches counts"
    for name in ("nvidia-dkms-510", "nvidia-kernel-dkms", "nvidia-driver-510", "nvidia-tesla-470-kernel-dkms"):
        assert named_like(name, with_driver) and not named_like(name, kept), name
    assert named_like("libnvidia-tesla-470-cuda1", with_driver)
    for name in ("libnvidia-container1", "nvidia-container-toolkit", "nvidia-docker2", "dkms"):
        assert not named_like(name, with_driver) or named_like(name, kept), name
