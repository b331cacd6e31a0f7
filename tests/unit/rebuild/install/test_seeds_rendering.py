"""Seeds: what the installers will read in them, whatever the settings hold.

The schema of autoinstall that is checked here holds the seeds to what they are meant to say
(tests/unit/support/seeds.py); those of the installers are asked in
tests/unit/rebuild/install/test_seeds_autoinstall.py.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from hostwright.rebuild.install.seeds.rendering import render_keys
from tests.unit.support.seed_reading import DEBIAN, PRIVATE, UBUNTU, answers, document, seed
from tests.unit.support.seeds import AUTOINSTALL, FIXED, HASH, KEYS, KINDS, URL, USER_KEY, install


@pytest.mark.parametrize("kind", UBUNTU.values(), ids=UBUNTU)
def test_autoinstall_keeps_to_what_is_documented(kind: dict[str, Any]) -> None:
    assert [error.message for error in Draft7Validator(AUTOINSTALL).iter_errors(document(install(**kind)))] == []


@pytest.mark.parametrize("path", [("identity", "password"), ("version",), ("user-data", "ssh_keys", "ed25519_private")])
def test_our_schema_finds_what_is_missing(path: tuple[str, ...]) -> None:
    whole = document(install())
    inner = whole
    for name in path[:-1]:
        inner = inner[name]
    del inner[path[-1]]
    assert list(Draft7Validator(AUTOINSTALL).iter_errors(whole))


def test_the_installed_ubuntu_has_our_host_key_and_no_other() -> None:
    inner = document(install())["user-data"]
    assert inner["ssh_deletekeys"] is True
    assert inner["ssh_keys"] == {"ed25519_private": PRIVATE, "ed25519_public": f"{KEYS.public.line}\n"}


def test_ubuntu_is_told_the_settings() -> None:
    whole = document(install(**KINDS["place"], **KINDS["mirror"], **KINDS["more"], password_hash=HASH))
    assert whole["identity"] == {"hostname": "n7", "username": "ops", "password": HASH}
    assert whole["ssh"] == {"install-server": True, "allow-pw": False, "authorized-keys": [USER_KEY]}
    assert (whole["timezone"], whole["locale"], whole["keyboard"]) == ("Europe/Berlin", "de_DE.UTF-8", {"layout": "de"})
    assert whole["user-data"]["timezone"] == "Europe/Berlin"  # some installers pass over theirs
    assert whole["apt"]["primary"] == [{"arches": ["default"], "uri": KINDS["mirror"]["mirror"]}]
    assert (whole["proxy"], whole["packages"]) == (KINDS["mirror"]["proxy"], KINDS["more"]["packages"])


def test_ubuntus_disks() -> None:
    assert document(install())["storage"] == {"layout": {"name": "direct", "match": {"path": "/dev/nvme0n1"}}}
    lvm = document(install(**KINDS["serial"]))["storage"]["layout"]
    assert lvm == {"name": "lvm", "match": {"serial": "S6CKNN0T*"}, "sizing-policy": "all"}
    actions = document(install(**KINDS["raid1"]))["storage"]["config"]
    known = {action["id"] for action in actions}
    assert len(known) == len(actions)
    for action in actions:
        named = [action[key] for key in ("device", "volume") if key in action] + action.get("devices", [])
        assert set(named) <= known
    assert [action["match"]["path"] for action in actions if action["type"] == "disk"] == [
        "/dev/nvme0n1",
        "/dev/nvme1n1",
    ]
    assert {action["path"] for action in actions if action["type"] == "mount"} == {"/", "/boot/efi"}


def test_ubuntus_network() -> None:
    assert "network" not in document(install())
    ethernets = document(install(**KINDS["fixed by mac"]))["network"]["ethernets"]
    assert ethernets == {
        "primary": {
            "match": {"macaddress": "0c:42:a1:00:00:07"},
            "dhcp4": False,
            "addresses": ["10.0.0.7/24"],
            "routes": [{"to": "0.0.0.0/0", "via": "10.0.0.1"}],
            "nameservers": {"addresses": ["10.0.0.2", "10.0.0.3"]},
        }
    }
    assert document(install(network={"interface": "eno1"}))["network"]["ethernets"] == {"eno1": {"dhcp4": True}}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, f"autoinstall ds=nocloud-net;s={URL}/"),
        (KINDS["more"], f"autoinstall ds=nocloud-net;s={URL}/ console=ttyS0,115200 iommu=pt"),
        (
            {"network": FIXED},
            f"autoinstall ds=nocloud-net;s={URL}/ "
            "ip=10.0.0.7::10.0.0.1:255.255.255.0:gpu07:eno1:none:10.0.0.2:10.0.0.3",
        ),
        (KINDS["dhcp on one"], f"autoinstall ds=nocloud-net;s={URL}/ BOOTIF=01-0c-42-a1-00-00-07"),
        ({"os": "debian"}, f"auto=true priority=critical url={URL}/preseed.cfg hostname=gpu07 interface=auto"),
        (
            {"os": "debian", "network": FIXED},
            f"auto=true priority=critical url={URL}/preseed.cfg hostname=gpu07 interface=eno1 "
            "netcfg/disable_autoconfig=true netcfg/get_ipaddress=10.0.0.7 netcfg/get_netmask=255.255.255.0 "
            "netcfg/get_gateway=10.0.0.1 netcfg/get_nameservers=10.0.0.2 netcfg/confirm_static=true",
        ),
    ],
)
def test_what_the_installers_kernel_is_given(changes: dict[str, Any], line: str) -> None:
    assert seed(install(**changes)).command_line == line


@pytest.mark.parametrize("kind", DEBIAN.values(), ids=DEBIAN)
def test_debian_is_told_the_settings(kind: dict[str, Any]) -> None:
    wanted = install(**kind)
    said = answers(wanted)
    assert said["netcfg/get_hostname"] == wanted.hostname
    assert said["passwd/username"] == wanted.user
    assert said["passwd/user-password-crypted"] == (HASH if "password_hash" in kind else "!")
    assert said["time/zone"] == wanted.timezone
    assert said["partman-auto/method"] == ("lvm" if wanted.layout == "lvm" else "regular")
    assert shlex.split(said["pkgsel/include"]) == ["openssh-server", "sudo", *wanted.packages]
    assert said.get("debian-installer/add-kernel-opts", "") == " ".join(wanted.kernel_arguments)


def test_debians_installer_speaks_english_and_the_new_system_its_own_language() -> None:
    # On a serial console it knows no language but English, and asks for one where the locale is of another.
    said = answers(install(os="debian", locale="de_DE.UTF-8"))
    names = ("debian-installer/language", "debian-installer/country", "debian-installer/locale")
    assert [said[name] for name in names] == ["en", "DE", "de_DE.UTF-8"]


def test_debians_mirror() -> None:
    said = answers(install(os="debian", mirror="https://mirror.example:8080/a/debian/"))
    assert said["mirror/https/hostname"] == "mirror.example:8080"
    assert (said["mirror/protocol"], said["mirror/https/directory"]) == ("https", "/a/debian")
    assert said["apt-setup/use_mirror"] == "true"  # an installer on a DVD uses none unless it is told so


def test_without_a_mirror_debians_installer_takes_its_own() -> None:
    said = answers(install(os="debian"))
    assert [name for name in said if name.startswith("mirror/")] == ["mirror/http/proxy"]
    assert said["mirror/http/proxy"] == ""


@pytest.mark.skipif(not shutil.which("debconf-set-selections"), reason="this is neither Debian nor Ubuntu")
@pytest.mark.parametrize("kind", DEBIAN.values(), ids=DEBIAN)
def test_debconf_takes_the_preseed_file(kind: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "preseed.cfg"
    file.write_bytes(seed(install(**kind)).files["preseed.cfg"])
    command = ["debconf-set-selections", "--checkonly", str(file)]
    environment = {**os.environ, "DEBCONF_SYSTEMRC": str(own_debconf(tmp_path))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    file.write_text(file.read_text() + "d-i broken\n")
    assert subprocess.run(command, env=environment, capture_output=True, check=False).returncode != 0


def own_debconf(folder: Path) -> Path:
    """The configuration of a debconf with databases of its own: the machine's are locked while anybody uses them."""
    files = {"Config": folder / "config.dat", "Templates": folder / "templates.dat"}
    databases = [f"Name: {name}\nDriver: File\nFilename: {path}\n" for name, path in files.items()]
    uses = "".join(f"{name}: {name}\n" for name in files)
    file = folder / "debconf.conf"
    file.write_text("\n".join([uses, *databases]))
    return file


def test_the_host_key_alone_for_a_sites_command() -> None:
    alone = render_keys(KEYS)
    whole = yaml.safe_load(alone.files["user-data"])
    assert whole == {
        "ssh_deletekeys": True,
        "ssh_keys": {"ed25519_private": PRIVATE, "ed25519_public": f"{KEYS.public.line}\n"},
    }
    assert alone.files[alone.first].decode() == PRIVATE
