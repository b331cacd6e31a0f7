"""What an installer runs at its end: the commands of the seeds themselves, on a new system that is a folder."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hostwright.rebuild.install.seeds.settings import Install
from hostwright.transport.identity.keys import HostKey
from tests.unit.support import shell
from tests.unit.support.seed_reading import PRIVATE, answers, document, seed
from tests.unit.support.seeds import FIXED, KEYS, KINDS, URL, USER_KEY, install


class Target:
    """A new system below a folder of the test, and the programs that an installer has."""

    def __init__(self, folder: Path):
        self.root, self.work, self.programs = folder / "target", folder / "tmp", folder / "programs"
        for name in ("etc/ssh", "etc/sudoers.d", "etc/apt/apt.conf.d", "etc/network"):
            (self.root / name).mkdir(parents=True)
        self.work.mkdir()
        self.sums: dict[str, str] = {}  #: of what is moved into the test's folder, before and after
        for name in ("ssh_host_rsa_key", "ssh_host_rsa_key.pub", "ssh_host_ed25519_key", "sshd_config"):
            (self.root / "etc/ssh" / name).write_text("made by the package\n")
        (self.root / "etc/hosts").write_text("127.0.0.1 localhost\n127.0.1.1 debian\n")
        shell.program(self.programs, "chroot", f'echo "$@" >> {folder}/chroot.log')
        shell.program(self.programs, "curtin", f'echo "$@" >> {folder}/curtin.log')

    def serve(self, files: Mapping[str, bytes]) -> None:
        """Let `wget` find these files below the seed's URL, and nothing else."""
        served = self.root.parent / "served"
        served.mkdir()
        for name, content in files.items():
            (served / name).write_bytes(content)
        program = f'case $4 in {URL}/*) cp {served}/"${{4##*/}}" "$3" ;; *) exit 8 ;; esac'
        shell.program(self.programs, "wget", f'[ "$1 $2" = "-q -O" ] && {program}')

    def run(self, command: str) -> subprocess.CompletedProcess[bytes]:
        """What the installer would run, with its places moved into the test's folder."""
        moved = command.replace("/target", str(self.root)).replace("cd /tmp", f"cd {self.work}")
        for asked, had in self.sums.items():
            assert moved.count(asked) == 1
            moved = moved.replace(asked, had)
        return shell.run(moved, path=self.programs)

    def text(self, name: str) -> str:
        return (self.root / name).read_text()

    def mode(self, name: str) -> int:
        return (self.root / name).stat().st_mode & 0o777


def moved_script(target: Target, wanted: Install) -> dict[str, bytes]:
    files = dict(seed(wanted).files)
    before = hashlib.sha256(files["late.sh"]).hexdigest()
    files["late.sh"] = files["late.sh"].replace(b"/target", str(target.root).encode())
    target.sums = {before: hashlib.sha256(files["late.sh"]).hexdigest()}
    return files


@pytest.mark.parametrize("network", [{}, FIXED], ids=["dhcp", "fixed"])
def test_debians_last_command_leaves_the_system_as_wanted(tmp_path: Path, network: dict[str, Any]) -> None:
    target = Target(tmp_path)
    wanted = install(os="debian", network=network, late_commands=['echo "it\'s done" > /target/done', "true"])
    files = moved_script(target, wanted)
    target.serve(files)
    done = target.run(answers(wanted)["preseed/late_command"])
    assert done.returncode == 0, done.stderr
    assert sorted(file.name for file in (target.root / "etc/ssh").iterdir()) == [
        "ssh_host_ed25519_key", "ssh_host_ed25519_key.pub", "sshd_config",
    ]  # fmt: skip
    assert target.text("etc/ssh/ssh_host_ed25519_key") == PRIVATE
    assert HostKey.parse(target.text("etc/ssh/ssh_host_ed25519_key.pub")) == KEYS.public
    assert (target.mode("etc/ssh/ssh_host_ed25519_key"), target.mode("etc/ssh/ssh_host_ed25519_key.pub")) == (
        0o600,
        0o644,
    )
    assert target.text("home/ops/.ssh/authorized_keys") == f"{USER_KEY}\n"
    assert (target.mode("home/ops/.ssh"), target.mode("home/ops/.ssh/authorized_keys")) == (0o700, 0o600)
    assert (tmp_path / "chroot.log").read_text() == f"{target.root} chown -R ops:ops /home/ops/.ssh\n"
    assert target.text("etc/sudoers.d/90-hostwright") == "ops ALL=(ALL) NOPASSWD: ALL\n"
    assert target.mode("etc/sudoers.d/90-hostwright") == 0o440
    assert (target.text("etc/hostname"), target.text("etc/hosts").splitlines()[-1]) == ("gpu07\n", "127.0.1.1 gpu07")
    assert "127.0.1.1 debian" not in target.text("etc/hosts")
    assert '"linux-";' in target.text("etc/apt/apt.conf.d/52hostwright")
    assert target.text("done") == "it's done\n"
    assert not (target.work / "ssh_host_ed25519_key").exists()
    interfaces = target.root / "etc/network/interfaces"
    assert interfaces.exists() == bool(network)
    if network:
        assert interfaces.read_text().endswith(
            "iface eno1 inet static\n    address 10.0.0.7/24\n    gateway 10.0.0.1\n"
        )
        assert target.text("etc/resolv.conf") == "nameserver 10.0.0.2\nnameserver 10.0.0.3\n"


@pytest.mark.parametrize("missing", ["ssh_host_ed25519_key", "authorized_keys", "late.sh"])
def test_debians_last_command_fails_when_a_file_cannot_be_had(tmp_path: Path, missing: str) -> None:
    target = Target(tmp_path)
    wanted = install(os="debian")
    files = moved_script(target, wanted)
    del files[missing]
    target.serve(files)
    assert target.run(answers(wanted)["preseed/late_command"]).returncode != 0
    assert target.text("etc/ssh/ssh_host_ed25519_key") == "made by the package\n"


@pytest.mark.parametrize("changed", ["authorized_keys", "late.sh"])
def test_debians_last_command_runs_nothing_that_was_changed_on_its_way(tmp_path: Path, changed: str) -> None:
    target = Target(tmp_path)
    wanted = install(os="debian")
    files = moved_script(target, wanted)
    target.serve(files | {changed: files[changed] + f"touch {tmp_path}/ran\n".encode()})
    assert target.run(answers(wanted)["preseed/late_command"]).returncode != 0
    assert not (tmp_path / "ran").exists()
    assert not (target.root / "etc/sudoers.d/90-hostwright").exists()


def test_debians_installation_stops_when_a_command_of_the_site_fails(tmp_path: Path) -> None:
    target = Target(tmp_path)
    wanted = install(os="debian", late_commands=["exit 3", "touch /target/after"])
    target.serve(moved_script(target, wanted))
    assert target.run(answers(wanted)["preseed/late_command"]).returncode == 3
    assert not (target.root / "after").exists()


def test_ubuntus_last_commands_leave_the_system_as_wanted(tmp_path: Path) -> None:
    target = Target(tmp_path)
    wanted = install(**KINDS["more"], late_commands=['echo "it\'s done" > /target/done'])
    for command in document(wanted)["late-commands"]:
        done = target.run(command)
        assert done.returncode == 0, done.stderr
    assert target.text("etc/sudoers.d/90-hostwright") == "ops ALL=(ALL) NOPASSWD: ALL\n"
    assert target.mode("etc/sudoers.d/90-hostwright") == 0o440
    assert '"linux-";' in target.text("etc/apt/apt.conf.d/52hostwright")
    line = f'. "{target.root}/etc/default/grub.d/90-hostwright.cfg"; echo "$GRUB_CMDLINE_LINUX"'
    assert shell.ask(f"GRUB_CMDLINE_LINUX=quiet; {line}") == (0, "quiet console=ttyS0,115200 iommu=pt\n")
    assert (tmp_path / "curtin.log").read_text() == f"in-target --target={target.root} -- update-grub\n"
    assert target.text("done") == "it's done\n"


@pytest.mark.parametrize("status", [0, 5], ids=["as of 20.04", "nothing left to take"])
def test_ubuntus_root_takes_the_whole_volume_group_whatever_the_installer_made(tmp_path: Path, status: int) -> None:
    # An installer that does not know sizing-policy leaves most of a large disk to nobody.
    target = Target(tmp_path)
    shell.program(target.programs, "findmnt", f'[ "$*" = "-n -o SOURCE {target.root}" ] && echo /dev/mapper/vg-lv')
    shell.program(target.programs, "lvextend", f'echo "$@" >> {tmp_path}/lvextend.log; exit {status}')
    for command in document(install(layout="lvm"))["late-commands"]:
        assert target.run(command).returncode == 0
    assert (tmp_path / "lvextend.log").read_text() == "--resizefs --extents +100%FREE /dev/mapper/vg-lv\n"
    assert "lvextend" not in str(document(install(layout="direct")))
