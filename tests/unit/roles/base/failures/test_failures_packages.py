"""Failures of apt, dpkg, disks and of a host as a whole are seen on a host that has them, and on no other."""

from __future__ import annotations

import fcntl
import json
import os
import string
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.apply.jobs import jobs
from hostwright.audit.failures import logs
from hostwright.audit.failures.rule import FailureRule
from hostwright.audit.judging.context import Unread
from hostwright.plan.host import jobs as hostjobs
from hostwright.plan.host.release import RELEASE
from hostwright.plan.model import Answer, Probe, RolePlan
from hostwright.resources.packages.packages import DPKG, DpkgInOrder
from hostwright.standard.roles.base.failures import apt, disks, host
from hostwright.standard.roles.base.failures.packages import DISK, PACKAGES
from tests.unit.roles import test_role_base, test_role_container
from tests.unit.support.auditcontexts import NOW, df, evidence, look_at
from tests.unit.support.facts import Reply
from tests.unit.support.known import BY_NAME, KNOWN
from tests.unit.support.shell import ask, program, run

SIGNED = [rule for rule in (*DISK, *PACKAGES) if rule.sign]
UPDATES = apt.IN_ORDER.probes()[1]
MENDING = next(one for one in test_role_base.RESOURCES if isinstance(one, DpkgInOrder)).probes()[2]
PACKAGE_RULES = ("dpkg-interrupted", "package-script-failed")
HELD = "/var/lib/dpkg/lock-frontend 812 {} unattended-upgr\n"
RUNS = {"schema": 1, "role": "cuda", "nonce": "N", "run": "r", "operator": "o", "steps": []}


@pytest.mark.parametrize("rule", SIGNED, ids=lambda rule: rule.name)
def test_nothing_is_seen_on_a_host_that_is_as_desired(rule: FailureRule) -> None:
    assert evidence(rule.name) == []


@pytest.mark.parametrize("rule", SIGNED, ids=lambda rule: rule.name)
def test_nothing_is_said_of_a_host_that_was_not_asked(rule: FailureRule) -> None:
    assert rule.sign is not None
    with pytest.raises(Unread):
        evidence(rule.name, dict.fromkeys(rule.sign.probes))


@pytest.mark.parametrize("rule", SIGNED, ids=lambda rule: rule.name)
def test_an_older_audit_that_lacks_one_answer_never_raises(rule: FailureRule) -> None:
    assert rule.sign is not None
    for probe in rule.sign.probes:
        with suppress(Unread):
            evidence(rule.name, {probe: None})


@pytest.mark.parametrize("rule", SIGNED, ids=lambda rule: rule.name)
@given(text=st.text(alphabet=string.printable + "\x1b\x00²\u202e", max_size=300), status=st.sampled_from([0, 1, 124]))
def test_garbage_never_raises(rule: FailureRule, text: str, status: int) -> None:
    assert rule.sign is not None
    with suppress(Unread):
        evidence(rule.name, dict.fromkeys(rule.sign.probes, Answer(status, text)))


# --- dpkg and apt


@pytest.mark.parametrize(
    ("row", "differs", "rule"),
    [
        ("zfs-dkms\t2.0.3\tiF ", {}, "package-script-failed"),
        ("zfs-dkms\t2.0.3\tiF ", {UPDATES: "0001\n"}, "dpkg-interrupted"),  # dpkg was killed meanwhile
        ("zfs-dkms\t2.0.3\tiU ", {}, "dpkg-interrupted"),
        ("zfs-dkms\t2.0.3\tiFR", {}, "dpkg-interrupted"),
        ("dkms\t2.8.4-3\tiF ", {}, "dpkg-interrupted"),  # the role wants it
        ("ntp\t4.2.8\tiF ", {MENDING: "leave ntp\n"}, "dpkg-interrupted"),  # a role takes it away
    ],
)
def test_a_half_configured_package_of_nobodys_is_not_what_provisioning_finishes(
    row: str, differs: dict[Probe, Reply | None], rule: str
) -> None:
    table = test_role_base.PROVISIONED + test_role_container.DPKG
    kept = "".join(f"{line}\n" for line in table.splitlines() if line.partition("\t")[0] != row.partition("\t")[0])
    found = {name: evidence(name, {DPKG: f"{kept}{row}\n", **differs}) for name in (rule, *PACKAGE_RULES)}
    name, version, state = row.split("\t")
    assert found.pop(rule)[0] == f"{name} {version}: {state.strip()}"
    assert not any(found.values())


def test_an_unfinished_journal_is_seen() -> None:
    assert evidence("dpkg-interrupted", {UPDATES: "0001\n"}) == ["/var/lib/dpkg/updates/0001"]


def test_a_dpkg_that_is_at_work_is_not_interrupted() -> None:
    with pytest.raises(Unread, match="dpkg is running"):
        evidence("dpkg-interrupted", {UPDATES: "0001\n", apt.HELD: HELD.format(5)})
    other = "/var/lib/apt/lists/lock 812 5 apt-get\n"
    assert evidence("dpkg-interrupted", {UPDATES: "0001\n", apt.HELD: other})


KERNEL, GRUB = "linux-image-5.10.0-35-amd64\t5.10.237-1\tiF \n", "grub-pc\t2.06-3\tiF \n"
UNFINISHED = ("initramfs-modules-dep", "grub-install-device", "package-script-failed")


@pytest.mark.parametrize(
    ("row", "text", "rule", "why"),
    [
        (KERNEL, "dep /etc/initramfs-tools/initramfs.conf\n", "initramfs-modules-dep",
         "; /etc/initramfs-tools/initramfs.conf has MODULES=dep"),
        (KERNEL, "grub /dev/vda gone\n", "package-script-failed", ""),
        (GRUB, "grub /dev/sda gone\ngrub /dev/sdb gone\n", "grub-install-device",
         "; debconf names /dev/sda, /dev/sdb, which is not there"),
        (GRUB, "", "grub-install-device", "; debconf names no disk for it"),
        (GRUB, "grub /dev/sda\ngrub /dev/sdb gone\n", "package-script-failed", ""),
    ],
)  # fmt: skip
def test_why_a_script_failed_is_said_where_the_host_shows_it(row: str, text: str, rule: str, why: str) -> None:
    table = test_role_base.PROVISIONED + test_role_container.DPKG + row
    ctx = look_at({DPKG: table, apt.CONFLICTS: text})
    found = {name: KNOWN.evidence(BY_NAME[name], ctx) for name in UNFINISHED}
    name, version, state = row.split("\t")
    assert found.pop(rule) == [f"{name} {version}: {state.strip()}{why}"]
    assert not any(found.values())
    assert name in (BY_NAME["package-script-failed"].finding((f"{name} {version}: iF",)).cause)


def test_what_scripts_need_is_read_from_the_host(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "initramfs.conf").write_text("# MODULES: [ most | netboot | dep | list ]\nMODULES=most\n")
    (tmp_path / "conf.d" / "driver-policy").write_text('MODULES="dep"\n')
    (tmp_path / "config.dat").write_text(
        "Name: grub-pc/install_devices\nTemplate: grub-pc/install_devices\nValue: /dev/null, /dev/sdz\n\n"
        "Name: grub-pc/other\nValue: /dev/sdy\n"
    )
    script = apt.CONFLICTS.script.replace("/etc/initramfs-tools", str(tmp_path))
    script = script.replace("/var/cache/debconf", str(tmp_path)).replace("/var/log/apt/", f"{tmp_path}/none/")
    lines = (f"dep {tmp_path}/conf.d/driver-policy", "grub /dev/null", "grub /dev/sdz gone")
    assert ask(script)[1].splitlines() == [*lines]


PURGED = """Log started: 2026-11-29  07:45:16
Removing nvidia-docker (1.0.0~rc.3-1) ...
Purging NVIDIA volumes\r
list nvidia-docker: dial unix /var/lib/nvidia-docker/nvidia-docker.sock: connect: no such file or directory\r
dpkg: error processing package nvidia-docker (--remove):\r
 installed nvidia-docker package pre-removal script subprocess returned error exit status 102\r
dpkg: too many errors, stopping\r
Errors were encountered while processing:
 nvidia-docker
Log ended: 2026-11-29  07:45:16
"""


def test_a_package_that_its_own_script_keeps_from_going_is_named_with_script_and_reason(tmp_path: Path) -> None:
    """NVIDIA/nvidia-docker#272"""
    (tmp_path / "term.log").write_text(PURGED)
    text = ask(apt.CONFLICTS.script.replace("/var/log/apt/", f"{tmp_path}/"))[1]
    table = test_role_base.PROVISIONED + test_role_container.DPKG
    there = table + "nvidia-docker\t1.0.0~rc.3-1\tii \n"
    (line,) = evidence("package-removal-failed", {apt.CONFLICTS: text, DPKG: there})
    finding = BY_NAME["package-removal-failed"].finding((line,))
    assert "nvidia-docker is not removed" in finding.cause
    assert "/var/lib/dpkg/info/nvidia-docker.prerm, fails with status 102" in finding.cause
    assert "nvidia-docker.sock: connect: no such file" in finding.cause
    assert "mv /var/lib/dpkg/info/nvidia-docker.prerm" in finding.cure
    assert not finding.provision
    half = there.replace("rc.3-1\tii", "rc.3-1\trH")
    assert KNOWN.evidence(BY_NAME["dpkg-interrupted"], look_at({apt.CONFLICTS: text, DPKG: half})) == []
    text = text.replace("nvidia-docker", "stranger")
    for kept in (table, table + "stranger\t1\tii \n"):  # gone since, or nobody's business
        assert evidence("package-removal-failed", {apt.CONFLICTS: text, DPKG: kept}) == []


def test_a_pin_against_what_a_role_wants_is_named(tmp_path: Path) -> None:
    (tmp_path / "preferences.d").mkdir()
    (tmp_path / "preferences.d" / "no-docker").write_text(
        "Package: *\nPin: release a=sid\nPin-Priority: -10\n\nPackage: pciutils docker*\nPin: version *\nPin-Priority:"
        " -1\n"
    )
    (tmp_path / "preferences.d" / "hostwright-ours").write_text("Package: pciutils\nPin: version *\nPin-Priority: -1\n")
    (tmp_path / "preferences.d" / "old.dpkg-old").write_text("Package: pciutils\nPin: version *\nPin-Priority: -1\n")
    text = ask(apt.CONFLICTS.script.replace("/etc/apt/preferences", f"{tmp_path}/preferences"))[1]
    text = text.replace(str(tmp_path), "/etc/apt")
    missing = test_role_base.PROVISIONED + test_role_container.DPKG
    missing = "".join(row for row in missing.splitlines(keepends=True) if not row.startswith("pciutils"))
    assert evidence("apt-pin-forbids", {apt.CONFLICTS: text, DPKG: missing}) == [
        "/etc/apt/preferences.d/no-docker:7: Pin-Priority -1 of pciutils"
    ]


LOG = """Log started: 2026-11-19  09:00:00
dpkg: error processing archive /var/cache/apt/archives/old_1_all.deb (--unpack):
 trying to overwrite '/etc/old', which is also in package gone 1
Log ended: 2026-11-19  09:00:01

Log started: 2026-11-20  10:00:00
(Reading database ... 295094 files and directories currently installed.)
dpkg: error processing archive /var/cache/apt/archives/libgles1_1.0.0-2ubuntu2.2_amd64.deb (--unpack):
 trying to overwrite '/usr/lib/x86_64-linux-gnu/libGLESv1_CM.so.1', which is also in package nvidia-340 340.106-0ubuntu3
dpkg-deb: error: paste subprocess was killed by signal (Broken pipe)
Log ended: 2026-11-20  10:00:02
"""


def test_a_file_that_two_packages_bring_is_named_while_dpkg_is_not_in_order(tmp_path: Path) -> None:
    """askubuntu.com/questions/1084873"""
    (tmp_path / "term.log").write_text(LOG)
    text = ask(apt.CONFLICTS.script.replace("/var/log/apt/", f"{tmp_path}/"))[1]
    owner, waits = "nvidia-340\t340.106-0ubuntu3\tii \n", "libglvnd-dev\t1.0.0-2\tiU \n"
    assert evidence("package-file-conflict", {apt.CONFLICTS: text, DPKG: owner + waits}) == [
        "libgles1_1.0.0-2ubuntu2.2_amd64.deb: trying to overwrite '/usr/lib/x86_64-linux-gnu/libGLESv1_CM.so.1', which"
        " is also in package nvidia-340 340.106-0ubuntu3"
    ]
    for table in (owner, waits, waits + owner.replace("340.106-0", "340.108-0")):
        assert evidence("package-file-conflict", {apt.CONFLICTS: text, DPKG: table}) == []
    assert ask(apt.CONFLICTS.script.replace("/var/log/apt/", f"{tmp_path}/none/")) == (0, "")


@pytest.mark.parametrize("age_s, seen", [(9, False), (30, True), (600, True), (601, False)])
def test_an_apt_that_is_at_work_is_named_with_what_to_do(age_s: int, seen: bool) -> None:
    assert bool(evidence("apt-at-work", {apt.HELD: HELD.format(age_s)})) is seen


@pytest.mark.parametrize("age_s, seen", [(599, False), (601, True), (10**9, True)])
def test_a_lock_is_named_when_it_is_held_for_long(age_s: int, seen: bool) -> None:
    assert bool(evidence("apt-lock", {apt.HELD: HELD.format(age_s)})) is seen


def test_who_holds_the_lock_is_named() -> None:
    assert evidence("apt-lock", {apt.HELD: HELD.format(1500)}) == [
        "/var/lib/dpkg/lock-frontend is held by unattended-upgr (812), which runs for 25 min"
    ]


def test_our_own_run_may_hold_the_lock_for_long() -> None:
    ours = {apt.HELD: HELD.format(1500), hostjobs.RUNNING: f"run1-cuda-aa {json.dumps(RUNS)}\n"}
    assert evidence("apt-lock", ours) == []


def test_the_holder_of_a_lock_is_found(tmp_path: Path) -> None:
    """By the machine's own /proc/locks, with this process as the holder."""
    mine, other = tmp_path / "lock-frontend", tmp_path / "lock"
    other.touch()
    script = apt.HELD.script.replace("/var/lib/dpkg/lock-frontend", str(mine)).replace(
        "/var/lib/dpkg/lock ", f"{other} "
    )
    with mine.open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        lines = ask(script)[1].splitlines()
    (line,) = [line for line in lines if line.startswith(str(tmp_path))]
    path, pid, age_s, _ = line.split(" ", 3)
    assert (path, pid) == (str(mine), str(os.getpid()))
    assert age_s.isdigit()
    assert not [line for line in ask(script)[1].splitlines() if line.startswith(str(tmp_path))]


CONFLICT = "E: Conflicting values set for option Signed-By regarding source https://m.example/ /: a != b\n"
UNREAD = "E: The list of sources could not be read.\n"


def test_a_repeated_signed_by_conflict_is_reported_once() -> None:
    said = {apt.RELEASES: (CONFLICT + UNREAD) * 2}
    assert evidence("signed-by-conflict", said) == [CONFLICT.strip()]
    assert evidence("apt-sources-unreadable", said) == []


def test_the_lists_of_a_repository_with_two_keys_are_named() -> None:
    conflict = CONFLICT.replace("https://m.example/ /", "https://m.example/deb/amd64/ /").strip()
    lists = (
        "/etc/apt/sources.list:1:deb http://m.example/debian bullseye main\n"
        "/etc/apt/sources.list.d/a.list:3:deb [signed-by=/b.asc] https://m.example/deb/$(ARCH) /\n"
        "/etc/apt/sources.list.d/b.sources:2:URIs: https://m.example/deb/amd64/\n"
    )
    found = evidence("signed-by-conflict", {apt.RELEASES: f"{conflict}\n{UNREAD}{lists}"})
    assert [line.split(":")[0] for line in found[1:]] == [
        "/etc/apt/sources.list.d/a.list",
        "/etc/apt/sources.list.d/b.sources",
    ]
    assert evidence("apt-sources-unreadable", {apt.RELEASES: f"{conflict}\n{UNREAD}{lists}"}) == []


def test_what_apt_cannot_read_is_seen() -> None:
    malformed = "E: Malformed entry 1 in list file /etc/apt/sources.list.d/x.list (Suite)\n"
    assert evidence("apt-sources-unreadable", {apt.RELEASES: malformed + UNREAD}) == [malformed.strip()]
    assert evidence("signed-by-conflict", {apt.RELEASES: malformed + UNREAD}) == []
    assert evidence("apt-sources-unreadable", {apt.RELEASES: "E: The package cache cannot be opened.\n"}) == []


def test_the_unreadable_list_and_the_held_packages_are_named_in_the_cause() -> None:
    page = (
        "E: Type '<!doctype' is not known on line 1 in source list /etc/apt/sources.list.d/toolkit.list\n"
        "E: The list of sources could not be read.\n"
    )
    found = KNOWN.explained(page)
    assert found is not None
    assert found.cause.startswith("/etc/apt/sources.list.d/toolkit.list has a line")
    held = (
        "The following held packages will be changed:\n  libnvidia-container-tools libnvidia-container1\n"
        "The following packages will be upgraded:\n  libnvidia-container-tools libnvidia-container1\n"
        "E: Held packages were changed and -y was used without --allow-change-held-packages.\n"
    )
    found = KNOWN.explained(held)
    assert found is not None
    assert found.cause.startswith("libnvidia-container-tools libnvidia-container1: on hold on this host")
    assert "apt-mark unhold libnvidia-container-tools libnvidia-container1 on" in found.cure
    built = "Error! Bad return status for module build on kernel: 6.1.0-57-amd64 (x86_64)\n"
    named = KNOWN.named("The following held packages will be changed:\n  libcuda1\n" + built)
    assert named is not None
    assert named[0] == "dkms-build"  # apt lists what our own flag lets it change
    clash = (
        "The following packages have unmet dependencies:\n"
        " docker-ce : Depends: containerd.io (>= 1.6.24) but 1.4.3-1 is to be installed\n"
        "E: Unable to correct problems, you have held broken packages.\n"
    )
    found = KNOWN.explained(clash)
    assert found is not None
    assert (found.rule, "containerd.io (>= 1.6.24) but 1.4.3-1" in found.evidence[0]) == ("held-packages", True)


def test_a_repository_that_is_there_twice_is_seen_once() -> None:
    twice = (
        "W: Target Packages (main/binary-{}/Packages) is configured multiple times in /etc/apt/sources.list:1 "
        "and /etc/apt/sources.list.d/a.list:1\n"
    )
    said = twice.format("amd64") + twice.format("all")
    assert evidence("apt-sources-twice", {apt.RELEASES: said}) == [
        "/etc/apt/sources.list:1 and /etc/apt/sources.list.d/a.list:1"
    ]


def test_a_warning_of_another_kind_is_none() -> None:
    said = {apt.RELEASES: "W: Unable to read /etc/apt/x - open (13: Permission denied)\n"}
    assert evidence("apt-sources-twice", said) == evidence("apt-sources-unreadable", said) == []


def apt_says(folder: Path, *lines: str) -> str:
    """What this machine's own apt says of these sources."""
    (folder / "sources").write_text("".join(f"{line}\n" for line in lines))
    own = f"-o Dir::Etc::SourceList={folder}/sources -o Dir::Etc::SourceParts=/dev/null indextargets"
    status, text = ask(apt.RELEASES.script.replace("indextargets", own))
    assert status == 0
    return text


def test_apts_own_words_are_understood(tmp_path: Path) -> None:
    line = "deb http://m.example/debian bookworm main"
    assert apt_says(tmp_path, line) == ""
    assert len(evidence("apt-sources-twice", {apt.RELEASES: apt_says(tmp_path, line, line)})) == 1
    assert evidence("apt-sources-unreadable", {apt.RELEASES: apt_says(tmp_path, "dbe http://m.example")})
    keys = (line.replace("deb ", f"deb [signed-by=/{name}.gpg] ") for name in "ab")
    assert evidence("signed-by-conflict", {apt.RELEASES: apt_says(tmp_path, *keys)})


# --- disks


def free(*rows: tuple[str, int, int], inodes: tuple[str, int, int] = ("/", 1000, 500)) -> Mapping[Probe, Reply]:
    return {disks.FREE: f"{df(*rows)}inodes\n{df(inodes)}"}


@pytest.mark.parametrize(
    "size_kib, free_kib, full, nearly",
    [
        (100_000_000, 50_000_000, False, False),
        (100_000_000, 9_000_000, False, True),
        (100_000_000, 400_000, True, False),
        (500_000, 200_000, False, False),  # a /boot of half a gigabyte
        (500_000, 40_000, True, False),
        (2_000_000, 250_000, False, False),
        (100_000_000, 0, True, False),
    ],
)
def test_room_is_judged_by_bytes_and_by_share(size_kib: int, free_kib: int, full: bool, nearly: bool) -> None:
    given_ = free(("/srv/a b", size_kib, free_kib))
    assert bool(evidence("no-space", given_)) is full
    assert bool(evidence("disk-nearly-full", given_)) is nearly


@pytest.mark.parametrize(
    ("free_kib", "initramfs", "found"),
    [
        (60_000, "80000000", ["/boot has 61 MB of 487 MB free (13%), and an initramfs takes 80 MB"]),
        (90_000, "80000000", []),
        (0, "", []),
        (0, "stat: error", []),
    ],
)
def test_a_boot_that_has_no_room_for_another_initramfs_is_named(
    free_kib: int, initramfs: str, found: list[str]
) -> None:
    rows = df(("/boot", 476_000, free_kib))
    assert evidence("boot-full", {disks.INITRAMFS: f"{rows}{initramfs}\n"}) == found


def test_the_machines_own_boot_can_be_asked() -> None:
    assert list(disks.no_room_for_initramfs(look_at({disks.INITRAMFS: ask(disks.INITRAMFS.script)[1]}))) == []


def test_a_filesystem_is_named_once_and_what_can_go_from_it() -> None:
    rows = (("/", 100_000_000, 200_000), ("/var", 50_000_000, 40_000_000))
    left = {disks.LEFT_BEHIND: "1400000\t/var/cuda-repo-x\n99\t/var/cache/apt/archives\nx\ty\n"}
    assert evidence("no-space", {**free(*rows, *rows), **left}) == ["/ has 205 MB of 102.4 GB free (0%)"]
    low = (("/", 100_000_000, 200_000), ("/", 100_000_000, 200_000))
    assert evidence("no-space", {**free(*low), **left}) == [
        "/ has 205 MB of 102.4 GB free (0%)",
        "/var/cuda-repo-x takes 1.4 GB",
    ]


def test_a_df_that_hangs_says_nothing() -> None:
    with pytest.raises(Unread):
        evidence("no-space", {disks.FREE: "inodes\n" + df(("/", 10, 0))})
    with pytest.raises(Unread):
        evidence("inodes-exhausted", {disks.FREE: df(("/", 10, 5)) + "inodes\n"})


def test_numbers_without_end_are_not_believed() -> None:
    with pytest.raises(Unread):
        evidence("no-space", {disks.FREE: f"/dev/x {'9' * 5000} 1 1 1% /\ninodes\n"})


def test_exhausted_inodes_are_seen() -> None:
    given_ = free(("/", 100_000_000, 50_000_000), inodes=("/", 1000, 9))
    assert evidence("inodes-exhausted", given_) == ["/ has 9 of 1000 inodes free"]


def test_a_filesystem_without_fixed_inodes_has_enough() -> None:
    both = {disks.FREE: df(("/", 10, 9)) + "inodes\n" + df(("/", 0, 0), ("/boot", 100, 50))}
    assert evidence("inodes-exhausted", both) == []


@pytest.mark.parametrize(
    "text, seen",
    [
        ("mount / ext4 ro,relatime,errors=remount-ro\nfstab / errors=remount-ro\n", True),
        ("mount / ext4 rw,emergency_ro\n", True),
        ("mount /etc ext4 ro,relatime\n", True),
        ("mount /usr ext4 ro\nfstab /usr defaults,ro\n", False),
        ("mount /data xfs ro,relatime\nfstab /data defaults\n", True),
        ("mount /data xfs ro,relatime\n", False),
        ("mount /media/cdrom iso9660 ro\nfstab /media/cdrom noauto\n", False),
        ("mount /snap/core/1 squashfs ro\n", False),
    ],
)
def test_a_disk_that_turned_read_only_is_seen(text: str, seen: bool) -> None:
    assert bool(evidence("mounted-read-only", {disks.MOUNTS: text})) is seen


def test_mounts_are_read(tmp_path: Path) -> None:
    """The topmost mount of a point counts; ``ro`` within a word is none."""
    (tmp_path / "mounts").write_text(
        "/dev/a / ext4 ro 0 0\n/dev/b / ext4 rw,errors=remount-ro 0 0\n/dev/c /a\\040b xfs rw 0 0\n"
        "/dev/c /a\\040b xfs noatime,ro 0 0\n/dev/d /ro tmpfs rw,prog=ro-x 0 0\n"
    )
    (tmp_path / "fstab").write_text("# ro /x y\n/dev/c /a\\040b xfs defaults 0 2\n\n")
    script = disks.MOUNTS.script.replace("/proc/self/mounts", f"{tmp_path}/mounts")
    status, text = ask(script.replace("/etc/fstab", f"{tmp_path}/fstab"))
    lines = [line for line in text.splitlines() if not line.startswith("mode ")]
    assert (status, lines) == (0, ["mount /a\\040b xfs noatime,ro", "fstab /a\\040b defaults"])
    assert evidence("mounted-read-only", {disks.MOUNTS: text}) == ["/a\\040b (xfs) is mounted noatime,ro"]


def test_dockers_own_directory_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "daemon.json").write_text(f'{{\n  "data-root" : "{tmp_path}", "x": "y"}}')
    script = disks.FREE.script.replace("/etc/docker/daemon.json", f"{tmp_path}/daemon.json")
    program(tmp_path / "bin", "df", 'echo "$@"')
    lines = run(script, path=tmp_path / "bin").stdout.decode().splitlines()
    assert lines[0].startswith("-Pk -- / ")
    assert lines[0].endswith(f" {tmp_path}")
    assert lines[1] == "inodes"


def test_this_machines_own_df_is_understood() -> None:
    status, text = ask(disks.FREE.script)
    assert status == 0
    ctx = look_at({disks.FREE: text})
    for found in (disks.full(ctx), disks.nearly_full(ctx), disks.no_inodes(ctx)):
        assert all("/" in line for line in found)


# --- the host as a whole


@pytest.mark.parametrize(
    "off_s, seen",
    [(0, ""), (59, ""), (-140, ""), (61, "61 s ahead of"), (-151, "151 s behind"), (-(10**9), "1000000000 s behind")],
)
def test_a_clock_that_is_off_is_seen(off_s: int, seen: str) -> None:
    at = NOW + timedelta(seconds=off_s)
    found = evidence("clock-off", {host.CLOCK: f"{at.timestamp():.0f}\n"})
    assert found == ([f"its clock is {seen} this machine's"] if seen else [])


def test_the_question_for_the_time_is_answered() -> None:
    status, text = ask(host.CLOCK.script)
    assert status == 0
    assert abs(int(text) - time.time()) < host.BEHIND_S


@pytest.mark.parametrize("answer, seen", [(Answer(1, ""), "not there"), (Answer(0, '{"schema": 1'), "damaged")])
def test_a_lost_record_is_seen(answer: Answer, seen: str) -> None:
    assert evidence("release-record-lost", {RELEASE: answer}) == [f"/var/lib/hostwright/release.json is {seen}"]


def test_a_host_that_differs_need_not_have_a_record() -> None:
    assert evidence("release-record-lost", {RELEASE: Answer(1, ""), DPKG: "bash\t5\tii \n"}) == []


def a_job(home: Path, role: str, status: int | None, log: str, age_s: int) -> None:
    """A job's directory as a run leaves it."""
    home.mkdir(parents=True)
    record = jobs.Job(home.name, RolePlan(role), "NONCE", "run1", "ada@desk").to_json()
    (home / "job.json").write_text(record)
    (home / "log").write_text(log)
    if status is not None:
        (home / "status").write_text(f"{status}\n")
    os.utime(home, (NOW.timestamp() - age_s,) * 2)


@pytest.fixture
def last_jobs(tmp_path: Path) -> str:
    """What the question for the last jobs is answered on a host with several."""
    a_job(tmp_path / "r3-base-a", "base", 1, "NONCE begin 0\nE: no room\n\nNONCE end 0 1 12\n", 10)
    a_job(tmp_path / "r2-base-b", "base", 0, "fine\n", 20)
    a_job(tmp_path / "r2-container-c", "container", 0, "fine\n", 30)
    a_job(tmp_path / "r1-container-d", "container", 4, "E: long ago\n", 40)
    a_job(tmp_path / "r4-cuda-e", "cuda", None, "still running\n", 5)
    status, text = ask(logs.LAST_JOBS.script.replace(hostjobs.JOBS_DIR, str(tmp_path)))
    assert status == 0
    return text


def test_the_last_job_of_each_role_is_read(last_jobs: str) -> None:
    assert list(logs.ended(last_jobs)) == [
        logs.EndedJob("cuda", "r4-cuda-e", None, ""),
        logs.EndedJob("base", "r3-base-a", 1, "E: no room"),
        logs.EndedJob("container", "r2-container-c", 0, ""),
    ]


def test_a_job_that_failed_is_seen_while_its_layer_differs(last_jobs: str) -> None:
    assert evidence("job-failed", {logs.LAST_JOBS: last_jobs}) == []
    differing = {logs.LAST_JOBS: last_jobs, UPDATES: "0001\n"}
    assert evidence("job-failed", differing) == ["base: job r3-base-a ended with status 1: E: no room"]


@pytest.mark.parametrize(
    "running, seen", [("", ["base: job r9-base-x was interrupted before it finished"]), ("r9-base-x", [])]
)
def test_a_job_that_was_cut_off_is_told_from_one_that_runs(last_jobs: str, running: str, seen: list[str]) -> None:
    newest = 'job r9-base-x\nr9-base-x/job.json:{"schema": 1, "role": "base\n' + last_jobs
    alive = f"{running} {json.dumps({**RUNS, 'role': 'base'})}\n" if running else ""
    assert evidence("job-failed", {logs.LAST_JOBS: newest, hostjobs.RUNNING: alive, UPDATES: "0001\n"}) == seen


def test_a_host_without_jobs_has_none(tmp_path: Path) -> None:
    assert ask(logs.LAST_JOBS.script.replace(hostjobs.JOBS_DIR, str(tmp_path / "none"))) == (0, "")
    assert ask(logs.LAST_JOBS.script.replace(hostjobs.JOBS_DIR, str(tmp_path))) == (0, "")


@pytest.mark.parametrize(
    ("text", "file"),
    [
        (" unable to install new version of './usr/bin/curl': Operation not permitted", "/usr/bin/curl"),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 1] Operation not permitted: '/opt/x.py'",
            "/opt/x.py",
        ),
        ("cp: cannot create regular file '/etc/profile.d/cuda.sh': Operation not permitted", "/etc/profile.d/cuda.sh"),
        ("mv: cannot move '/etc/x.new' to '/etc/x': Operation not permitted", "/etc/x"),
        ("sed: cannot rename /etc/sedAbc12d: Operation not permitted", "/etc/"),
        ("ERROR: Unable to create '/usr/bin/nvidia-smi' for copying (Operation not permitted)", "/usr/bin/nvidia-smi"),
        ("bash: line 3: /etc/resolv.conf: Operation not permitted", "/etc/resolv.conf"),
    ],
)
def test_a_file_that_not_even_root_may_change_is_named_whatever_the_tool(text: str, file: str) -> None:
    found = KNOWN.explained(f"Unpacking...\n{text}\nE: Sub-process /usr/bin/dpkg returned an error code (1)\n")
    assert found is not None
    assert (found.rule, found.evidence) == ("file-immutable", (text.strip(),))
    assert f"lsattr -d on {file} " in found.cure


@pytest.mark.parametrize(
    "text",
    [
        "chown: changing ownership of '/data/x': Operation not permitted",  # NFS, a container without root
        "mount: /mnt: cannot mount /dev/sdb1: Operation not permitted",
        "sh: 1: cannot create /proc/sys/kernel/x: Operation not permitted",
        "modprobe: ERROR: could not insert 'nvidia': Operation not permitted",
        "nvidia-container-cli: mount error: open failed: /sys/fs/cgroup/devices/devices.allow: operation not permitted",
    ],
)
def test_what_else_is_not_permitted_is_nothing_that_chattr_set(text: str) -> None:
    found = KNOWN.explained(text)
    assert found is None or found.rule != "file-immutable"
