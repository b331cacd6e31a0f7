"""Disk quotas under a kernel that has them: Debian's user-mode Linux, on a made-up disk, with this machine's programs.

The lab's hosts share their machine's kernel, which may have been built without quotas (CONFIG_QFMT_V2).
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Change, Facts, Planned, Refusal
from hostwright.standard.roles.workspaces.states.quota import DiskQuotas, project_of
from lab.image import ensure_programs

PLACE = "/run/srv/workspaces"
LAB, BOX = f"{PLACE}/alice/lab", f"{PLACE}/bob/box"
LIMITED = DiskQuotas(PLACE, ((LAB, 4096),), (BOX,))
UNLIMITED = DiskQuotas(PLACE, (), (LAB, BOX))
#: by system call, for a small machine has no insmod
INSMOD = "import ctypes, os, sys; sys.exit(ctypes.CDLL(None).syscall(313, os.open(sys.argv[1], os.O_RDONLY), b'', 0))"
START = f"""\
#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
for name in quota_tree quota_v2; do
  {shlex.quote(sys.executable)} -c {shlex.quote(INSMOD)} /usr/lib/uml/modules/*/kernel/fs/quota/$name.ko
done
mkdir /run/srv
"""
END = "umount /run/srv\necho o >/proc/sysrq-trigger\nsleep 5\n"


@pytest.fixture(scope="module", autouse=True)
def programs() -> None:
    ensure_programs(
        {"linux.uml": "user-mode-linux", "setquota": "quota", "mkfs.ext4": "e2fsprogs", "chattr": "e2fsprogs"}
    )


def run(folder: Path, body: str, features: str = "project,quota") -> dict[str, str]:
    """What each part of a shell text printed in a machine with such a disk: a line ``== NAME`` begins the part."""
    disk = folder / "disk"
    disk.touch()
    with disk.open("r+b") as file:
        file.truncate(64 * 2**20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-O", features, disk], check=True)
    init = folder / "init"
    init.write_text(START + body + END)
    init.chmod(0o755)
    words = ["rootfstype=hostfs", "rootflags=/", "ro", "mem=256M", f"ubd0={disk}", f"init={init}", "con=null"]
    done = subprocess.run(
        ["linux.uml", *words, "con0=fd:0,fd:1", "quiet", f"umid={folder.name}"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    parts = done.stdout.replace("\r\n", "\n").split("== ")
    return {name: text for name, _, text in (part.partition("\n") for part in parts)}


def step(state: DiskQuotas, rows: str) -> str:
    """The shell of the change that is planned after these answers."""
    plan = planned(state, rows)
    assert isinstance(plan, Change)
    return f"( set -eu\n{plan.steps[0].script}\n) 2>&1\n"


def planned(state: DiskQuotas, answer: str) -> Planned | None:
    return state.plan(Facts({state.probes()[0]: Answer(0, answer)}))


def test_a_workspace_fills_its_own_limit_and_nobody_elses(tmp_path: Path) -> None:
    """radiasoft/devops issue 86: directories that are mounted; moby/moby issue 28302: exactly what was asked for."""
    look = f"( {LIMITED.probes()[0].script}\n)\n"
    alice = "setpriv --reuid 2001 --regid 2001 --clear-groups --"
    writes = f"{alice} sh -c 'cd {{}} && head -c {{}} /dev/zero >{{}}; echo status $?' 2>&1\n"
    there = f"filesystem /run/srv ext4 rw,prjquota\nlimit {project_of(LAB)} 4096\nend\n"
    parts = run(
        tmp_path,
        f"mount -t ext4 -o prjquota /dev/ubda /run/srv\nmkdir -p {LAB}/deep {BOX}\n"
        f"head -c 1000000 /dev/zero >{LAB}/deep/before\nchown -R 2001:2001 {LAB} {BOX}\n"
        f"echo == before\n{look}"
        f"echo == step\n{step(LIMITED, there.replace('limit', 'no'))}"
        f"echo == after\n{look}"
        f"echo == small\n{writes.format(LAB + '/deep', 2000000, 'small')}"
        f"echo == large\n{writes.format(LAB, 2000000, 'large')}stat -c 'size %s' {LAB}/large\n"
        f"echo == other\n{writes.format(BOX, 9000000, 'large')}"
        f"echo == gone\n{step(UNLIMITED, there)}{look}"
        f"echo == again\n{writes.format(LAB, 9000000, 'large')}echo == end\n",
    )
    assert isinstance(planned(LIMITED, parts["before"]), Change), parts
    assert parts["step"] == ""
    assert planned(LIMITED, parts["after"]) is None, parts["after"]
    assert parts["small"] == "status 0\n"
    assert "Disk quota exceeded" in parts["large"]
    size = int(parts["large"].rpartition("size ")[2])
    assert 900_000 < size < 4096 * 1024 - 3_000_000 + 100_000  # what was there before counts, too
    assert parts["other"] == "status 0\n"
    assert planned(UNLIMITED, parts["gone"]) is None, parts["gone"]
    assert parts["again"] == "status 0\n"


def test_a_disk_that_was_made_or_mounted_without_quotas_is_refused(tmp_path: Path) -> None:
    look = f"( {LIMITED.probes()[0].script}\n)\n"
    parts = run(tmp_path, f"mount -t ext4 /dev/ubda /run/srv\necho == look\n{look}echo == end\n", "^quota")
    plan = planned(LIMITED, parts["look"])
    assert isinstance(plan, Refusal)
    assert "/run/srv/workspaces is on /run/srv (ext4), which is mounted without project quotas" in plan.sentence
