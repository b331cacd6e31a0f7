"""Failed units, the kernel's log and mounts, as the host's own programs tell of them."""

from __future__ import annotations

from pathlib import Path
from shutil import which

import pytest

from hostwright.standard.roles.base.failures import disks, host
from hostwright.standard.roles.base.failures.journal import JOURNAL
from tests.unit.support.auditcontexts import evidence
from tests.unit.support.shell import ask, program, run

UUID = "UUID=0b1c2d3e-1111-2222-3333-444455556666"


def test_a_failed_unit_is_told_with_its_last_words() -> None:
    text = (
        "failed kdump-tools.service exit-code\n"
        "needs kdump-tools.service: docker.service\n"
        "unit kdump-tools.service: Starting Kernel crash dump capture service...\n"
        "unit kdump-tools.service: no crashkernel= parameter in the kernel cmdline\n"
        "unit kdump-tools.service: kdump-tools.service: Main process exited, code=exited, status=1/FAILURE\n"
        "failed snap.mount resources\n"
    )
    assert evidence("other-unit-failed", {JOURNAL: text}) == [
        "kdump-tools.service: exit-code; no crashkernel= parameter in the kernel cmdline; see `hostwright doctor"
        " --explain kdump-not-armed`; required by docker",
        "snap.mount: resources",
    ]


def test_what_is_known_of_a_failed_unit_is_said() -> None:
    text = (
        "failed backup.service exit-code\n"
        "unit backup.service: backup.service: Failed at step EXEC spawning /opt/backup: No such file or directory\n"
        "unit backup.service: backup.service: Main process exited, code=exited, status=203/EXEC\n"
    )
    (line,) = evidence("other-unit-failed", {JOURNAL: text})
    assert line.startswith("backup.service: exit-code; ")
    assert line.endswith("see `hostwright doctor --explain unit-not-startable`")


def test_a_unit_that_a_role_knows_is_left_to_it() -> None:
    text = "failed docker.service exit-code\nfailed nvidia-persistenced.service exit-code\n"
    assert evidence("other-unit-failed", {JOURNAL: text}) == []


def test_the_journal_is_asked_for_failed_units_and_the_kernel(tmp_path: Path) -> None:
    path = tmp_path / "bin"
    shown = 'printf "RequiredBy=docker.service\\nResult=exit-code\\n"'
    program(path, "systemctl", f'case $1 in list-units) echo "a\\x2db.service loaded failed";; *) {shown};; esac')
    kernel = "blk_update_request: I/O error, dev sda, sector 8\nan ordinary line"
    program(path, "journalctl", f'case "$*" in *-u*) echo "it broke";; *) printf "%s\\n" "{kernel}";; esac')
    answer = run(JOURNAL.script, path=path)
    assert answer.stdout.decode().splitlines() == [
        "needs a\\x2db.service: docker.service",
        "failed a\\x2db.service exit-code",
        "unit a\\x2db.service: it broke",
        "kernel blk_update_request: I/O error, dev sda, sector 8",
    ]


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        (f"device /data {UUID} defaults", "boot-needs-missing-disk"),
        (f"device /data {UUID} defaults,nofail", "filesystem-not-mounted"),
        ("absent /data tmpfs size=1m", "filesystem-not-mounted"),
        ("noexec /opt xfs rw,noexec", "programs-not-run-there"),
        ("mode /tmp 755", "directory-not-for-everybody"),
        ("mode /tmp 1777", ""),
        ("fstab /data defaults", ""),
        ("fstab / ro", "boot-read-only"),
        ("fstab / errors=remount-ro", ""),
        ("fstab /data ro", ""),
        ("fstab / ro\nmount / ext4 ro,relatime", ""),  # it is so already
    ],
)
def test_mounts_and_directories_are_judged(row: str, rule: str) -> None:
    names = ("boot-needs-missing-disk", "filesystem-not-mounted", "programs-not-run-there")
    names = (*names, "directory-not-for-everybody", "boot-read-only")
    found = [name for name in names if evidence(name, {disks.MOUNTS: f"{row}\n"})]
    assert found == ([rule] if rule else [])


def test_what_fstab_wants_and_is_not_mounted_is_read(tmp_path: Path) -> None:
    (tmp_path / "mounts").write_text(
        "/dev/a / ext4 rw 0 0\n/dev/b /opt xfs rw,noexec 0 0\n/dev/c /tmp tmpfs noexec 0 0\n"
    )
    (tmp_path / "fstab").write_text(
        f"/dev/a / ext4 defaults 0 1\n{UUID} /data ext4 defaults 0 2\n{UUID} /more ext4 noauto 0 2\n"
        "/dev/a none swap sw 0 0\nserver:/x /home nfs defaults 0 0\n/dev/nowhere /raw ext4 nofail 0 0\n"
    )
    script = disks.MOUNTS.script.replace("/proc/self/mounts", f"{tmp_path}/mounts")
    status, text = ask(script.replace("/etc/fstab", f"{tmp_path}/fstab"))
    lines = [line for line in text.splitlines() if not line.startswith(("fstab", "mode"))]
    assert (status, lines) == (
        0,
        [
            "noexec /opt xfs rw,noexec",
            f"device /data {UUID} defaults",
            "absent /home server:/x defaults",
            "device /raw /dev/nowhere nofail",
        ],
    )


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ("cycle docker.service: Found ordering cycle on site.service/start", "unit-ordering-cycle"),
        ("sshd /etc/ssh/sshd_config: line 130: Bad configuration option: UsePAMM", "sshd-config"),
        ("target rescue.target", "boot-target"),
        ("lacks mnt-data.mount not-found", "unit-dependency"),
        ("target graphical.target", ""),
        ("limit /etc/profile.d/00-a.sh:1:ulimit -v 8000000", "limits-too-low"),
        ("limit /etc/profile.d/00-a.sh:1:ulimit -S -n 64", "limits-too-low"),
        ("limit /etc/security/limits.d/a.conf:1:* hard nproc 64", "limits-too-low"),
        ("limit /etc/security/limits.d/a.conf:1:* hard nofile 65536", ""),
        ("sysctl /etc/sysctl.d/a.conf vm.overcommit_memory 2", "limits-too-low"),
        ("sysctl /etc/sysctl.d/a.conf vm.overcommit_memory 1", ""),
        ("sysctl /etc/sysctl.d/a.conf kernel.pid_max 400", "limits-too-low"),
        ("sysctl /usr/lib/sysctl.d/50-pid-max.conf kernel.pid_max 4194304", ""),
        ("memory 1000000 2048\nsysctl /etc/sysctl.d/a.conf vm.nr_hugepages 480", "limits-too-low"),
        ("memory 1000000 2048\nsysctl /etc/sysctl.d/a.conf vm.nr_hugepages 64", ""),
        ("sysctl /etc/sysctl.d/a.conf kernel.modules_disabled 1", "limits-too-low"),
        ("unit docker.service TasksMax=20", "limits-too-low"),
        ("unit docker.service LimitAS=8000000", "limits-too-low"),
        ("unit docker.service LimitNOFILE=1048576", ""),
        ("unit user-1000.slice TasksMax=infinity", ""),
        ("sleeps /etc/systemd/logind.conf.d/x.conf IdleAction=suspend", "host-sleeps"),
        ("sleeps /etc/systemd/logind.conf IdleAction=lock", ""),
        ("unresolved gpu7", "own-name-unresolved"),
        ("closed /usr/local/cuda-11.2 700", "path-closed-to-users"),
    ],
)
def test_what_the_next_boot_and_login_meet_is_judged(row: str, rule: str) -> None:
    names = ("unit-ordering-cycle", "unit-dependency", "sshd-config", "boot-target", "limits-too-low")
    names = (*names, "host-sleeps", "own-name-unresolved", "path-closed-to-users")
    found = {name: evidence(name, {host.NEXT_BOOT: f"{row}\n"}) for name in names}
    assert [name for name, lines in found.items() if lines] == ([rule] if rule else [])


def test_what_the_next_boot_meets_is_read_from_its_own_programs(tmp_path: Path) -> None:
    path = tmp_path / "bin"
    first = "# /etc/sysctl.d/9-a.conf\nkernel/pid_max=900\n#kernel.pid_max=1"
    config = f"{first}\n# /etc/sysctl.d/10-b.conf\n-kernel.pid_max = 400"
    logind = "# /etc/systemd/logind.conf\n[Login]\n#IdleAction=lock\n# /etc/a.conf\nIdleAction=suspend"
    cycle = "a.service: Found ordering cycle on b.service/start\nUnknown key"
    program(
        path,
        "systemd-analyze",
        f"""case "$*" in
verify*) echo '{cycle}' >&2; exit 1;; *logind*) echo '{logind}';; *) echo '{config}';; esac""",
    )
    program(path, "sshd", "echo '/etc/ssh/sshd_config: line 3: Bad configuration option: X' >&2; exit 255")
    program(path, "getent", "exit 2")
    (tmp_path / "hostname").write_text("gpu7\n")
    (tmp_path / "logind.conf").write_text("[Login]\nIdleAction=suspend\n")
    needs = 'printf "TasksMax=20\\nId=docker.service\\nRequires=a.mount b.socket\\nBindsTo=\\n\\n'
    needs += 'TasksMax=infinity\\nLimitNOFILE=64\\nId=b.slice\\n"'
    units = 'printf "Id=a.mount\\nLoadState=not-found\\n\\nId=b.socket\\nLoadState=loaded\\n"'
    program(
        path,
        "systemctl",
        f'case "$*" in get-default) echo rescue.target;; *Requires*) {needs};;'
        " is-enabled*) echo disabled; exit 1;;"
        f" *) {units};; esac",
    )
    script = host.NEXT_BOOT.script.replace("/proc/sys/kernel/hostname", f"{tmp_path}/hostname")
    script = script.replace("/etc/systemd/logind.conf ", f"{tmp_path}/logind.conf ")
    lines = run(script, path=path).stdout.decode().splitlines()
    assert [line for line in lines if not line.startswith(("limit ", "memory ", "closed "))] == [
        "cycle a.service: Found ordering cycle on b.service/start",
        "sshd /etc/ssh/sshd_config: line 3: Bad configuration option: X",
        "target rescue.target",
        "unstarted ssh.service is disabled",
        "unit docker.service TasksMax=20",
        "unit b.slice LimitNOFILE=64",
        "lacks a.mount not-found docker.service",
        "sleeps /etc/a.conf IdleAction=suspend",
        "unresolved gpu7",
        "sysctl /etc/sysctl.d/10-b.conf kernel.pid_max 400",
    ]


@pytest.mark.parametrize(
    ("mode", "file_mode", "group", "closed"),
    [
        (0o755, 0o755, "root", ""),
        (0o700, 0o755, "root", "/opt/planted 700"),
        (0o711, 0o755, "root", ""),
        (0o755, 0o700, "root", "/opt/planted/lib/libplanted.so 700"),
        (0o750, 0o755, "site", ""),  # of a group that somebody chose
    ],
)
def test_a_path_that_users_are_sent_to_is_read_by_them(
    tmp_path: Path, mode: int, file_mode: int, group: str, closed: str
) -> None:
    top = tmp_path / "opt/planted"
    library = top / "lib/libplanted.so"
    library.parent.mkdir(parents=True)
    library.write_text("")
    library.chmod(file_mode)
    top.chmod(mode)
    path = tmp_path / "bin"
    program(path, "ldconfig", f"echo '1 libs found'; printf '\\tlibplanted.so (libc6) => {library}\\n'")
    for name in ("systemd-analyze", "systemctl", "sshd", "getent"):
        program(path, name, "exit 0")
    listed = f"{which('stat')} \"$@\" | sed 's/ root / {group} /'"
    program(path, "stat", listed)
    lines = run(host.NEXT_BOOT.script, path=path).stdout.decode().splitlines()
    found = [line.replace(str(tmp_path), "") for line in lines if line.startswith("closed ") and "planted" in line]
    assert found == ([f"closed {closed}"] if closed else [])
