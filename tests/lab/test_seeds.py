"""Seeds checked by real software: cloud-init's schema checker, Debian's guide and its BusyBox.

The packages are Debian's, unpacked without installation. tests/unit/rebuild/install/test_seeds_autoinstall.py tests
Ubuntu's installer.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from hostwright.common.secret import Secret
from hostwright.rebuild.install.seeds.debian import FETCHED
from hostwright.rebuild.install.seeds.rendering import Seed, render_keys, render_seed
from hostwright.rebuild.install.seeds.serving import SeedServer
from hostwright.rebuild.install.seeds.settings import Install
from hostwright.transport.identity.keys import HostKey
from lab.bmc import seeds as lab_seeds
from tests.lab.unpacking import unpack
from tests.unit.support.seeds import FIXED, HASH, KEYS, URL, USER_KEY, install, kinds

#: cloud-init with its checker's dependencies that this project lacks; the guide; the installer's BusyBox.
PACKAGES = (
    "cloud-init", "python3-configobj", "python3-oauthlib", "python3-six", "python3-jsonpatch", "python3-json-pointer",
    "installation-guide-amd64", "busybox-static",
)  # fmt: skip
GUIDE = "usr/share/doc/installation-guide-amd64/example-preseed.txt.gz"
UBUNTU, DEBIAN = kinds("ubuntu"), kinds("debian")


@pytest.fixture(scope="session")
def unpacked() -> Path:
    """The packages' files, in one folder of the lab's cache."""
    return unpack("seeds", PACKAGES)


def seed(wanted: Install, url: str = URL) -> Seed:
    return render_seed(wanted, host="gpu07", keys=KEYS, url=url)


def check(unpacked: Path, text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Check a file with ``cloud-init schema``."""
    file = folder / "cloud-config"
    file.write_text(text)
    modules = str(unpacked / "usr/lib/python3/dist-packages")
    command = [sys.executable, "-m", "cloudinit.cmd.main", "schema", "--config-file", str(file)]
    environment = {**os.environ, "PYTHONPATH": modules}
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )


def inner(text: str) -> Any:
    return yaml.safe_load(text)["autoinstall"]["user-data"]


@pytest.mark.parametrize("kind", ["least", "raid1", "fixed", "commands", "more"])
def test_cloud_init_takes_both_documents_of_a_seed(unpacked: Path, tmp_path: Path, kind: str) -> None:
    text = seed(install(**UBUNTU[kind])).files["user-data"].decode()
    for part in (text, f"#cloud-config\n{yaml.safe_dump(inner(text))}"):
        done = check(unpacked, part, tmp_path)
        assert (done.returncode, done.stdout.strip()) == (0, f"Valid cloud-config: {tmp_path / 'cloud-config'}"), (
            done.stderr
        )


def test_cloud_init_takes_the_host_key_alone(unpacked: Path, tmp_path: Path) -> None:
    done = check(unpacked, render_keys(KEYS).files["user-data"].decode(), tmp_path)
    assert done.returncode == 0, done.stderr


def test_cloud_init_refuses_what_is_wrong(unpacked: Path, tmp_path: Path) -> None:
    text = seed(install()).files["user-data"].decode()
    wrong = inner(text)
    wrong["ssh_keys"]["ed25519_private"] = 5
    done = check(unpacked, f"#cloud-config\n{yaml.safe_dump(wrong)}", tmp_path)
    assert done.returncode != 0
    assert "ssh_keys.ed25519_private" in done.stdout + done.stderr
    assert check(unpacked, text.replace("  version: 1\n", ""), tmp_path).returncode != 0


@pytest.mark.parametrize("kind", DEBIAN.values(), ids=DEBIAN)
def test_every_question_is_in_debians_guide(unpacked: Path, kind: dict[str, Any]) -> None:
    guide = gzip.decompress((unpacked / GUIDE).read_bytes()).decode()
    known = set(re.findall(r"^#?\s*(?:d-i|tasksel|popularity-contest)\s+([a-z0-9/_-]+)", guide, re.MULTILINE))
    # Not in the example: pkgsel's own template, and the mirror's https questions, which correspond to the http ones.
    known |= {"pkgsel/update-policy"}
    asked = lab_seeds.preseed_answers(seed(install(**kind)).files["preseed.cfg"].decode())
    assert len(asked) > 20
    assert {name.replace("mirror/https/", "mirror/http/") for name in asked} <= known


def test_the_labs_installer_reads_both_seeds_alike() -> None:
    """The stand-in installer reads the same values from both seeds of the product."""
    ubuntu = lab_seeds.parse_autoinstall(seed(install(password_hash=HASH)).files["user-data"].decode())
    made = seed(install(os="debian", password_hash=HASH)).files["preseed.cfg"].decode()
    debian = lab_seeds.parse_preseed(made)
    for one in (ubuntu, debian):
        assert (one.hostname, one.user, one.password_hash) == ("gpu07", "ops", Secret(HASH))
    assert (ubuntu.authorized_keys, ubuntu.host_key) == ((USER_KEY,), KEYS.private)
    assert len(ubuntu.late_commands) == 2
    assert debian.late_commands == (lab_seeds.preseed_answers(made)["preseed/late_command"],)


@pytest.mark.parametrize("network", [{}, FIXED], ids=["dhcp", "fixed"])
def test_debians_last_command_runs_in_the_installers_busybox(
    unpacked: Path, tmp_path: Path, network: dict[str, Any]
) -> None:
    target, work, programs = tmp_path / "target", tmp_path / "tmp", tmp_path / "programs"
    for folder in ("bin", "etc/ssh", "etc/sudoers.d", "etc/apt/apt.conf.d", "etc/network"):
        (target / folder).mkdir(parents=True)
    (target / "etc/hosts").write_text("127.0.0.1 localhost\n")
    (target / "etc/ssh/ssh_host_rsa_key").write_text("the package's")
    work.mkdir()
    programs.mkdir()
    busybox = next(path for path in (unpacked / "bin/busybox", unpacked / "usr/bin/busybox") if path.exists())
    (programs / "sh").symlink_to(busybox)  # the one binary of all programs
    shutil.copy(busybox, target / "bin/chown")
    (target / "etc/passwd").write_text("ops:x:1234:1235::/home/ops:/bin/sh\n")
    (target / "etc/group").write_text("ops:x:1235:\n")
    wanted = install(os="debian", network=network, late_commands=["echo 'a  b' > /target/said"])
    with SeedServer("127.0.0.1", 0) as server:
        made = seed(wanted, server.reserve("gpu07"))
        moved = made.files["late.sh"].replace(b"/target", str(target).encode())
        server.publish("gpu07", Seed({**made.files, "late.sh": moved}, "", made.first), only_from="127.0.0.1")
        command = lab_seeds.preseed_answers(made.files["preseed.cfg"].decode())["preseed/late_command"]
        sums = [hashlib.sha256(content).hexdigest() for content in (made.files["late.sh"], moved)]
        assert command.count(sums[0]) == 1
        command = command.replace(*sums).replace("/target", str(target)).replace("cd /tmp", f"cd {work}")
        done = subprocess.run(
            [str(programs / "sh"), "-c", command], env={"PATH": f"{programs}:/bin"}, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert server.wait_fetched("gpu07", 10, name="late.sh")
        assert server.fetched("gpu07") == set(FETCHED)
    assert sorted(file.name for file in (target / "etc/ssh").iterdir()) == [
        "ssh_host_ed25519_key",
        "ssh_host_ed25519_key.pub",
    ]
    private, public = target / "etc/ssh/ssh_host_ed25519_key", target / "etc/ssh/ssh_host_ed25519_key.pub"
    assert HostKey.parse(public.read_text()) == KEYS.public
    of_private = subprocess.run(["ssh-keygen", "-y", "-f", str(private)], capture_output=True, text=True, check=True)
    assert HostKey.parse(of_private.stdout) == KEYS.public
    rule = target / "etc/sudoers.d/90-hostwright"
    visudo = shutil.which("visudo", path="/usr/sbin:/sbin") or "visudo"
    assert subprocess.run([visudo, "-c", "-f", str(rule)], capture_output=True, check=False).returncode == 0
    assert (target / "said").read_text() == "a  b\n"
    keys = (target / "home/ops/.ssh/authorized_keys").stat()
    assert (keys.st_uid, keys.st_gid, keys.st_mode & 0o777) == (1234, 1235, 0o600)
    assert (target / "etc/network/interfaces").exists() == bool(network)
