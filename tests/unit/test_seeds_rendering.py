"""Seeds: what the installers will read in them, whatever the settings hold.

The schema of autoinstall that is checked here is our own (tests/unit/seeds.py); tests/lab/test_seeds.py asks that of
the installer of Ubuntu 20.04. The newest one is ``autoinstall-schema.json`` in Ubuntu's subiquity repository, which no
package carries: name a copy of it in HOSTWRIGHT_SUBIQUITY_SCHEMA, and the same seeds are checked by it too.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import shutil
import subprocess
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from hostwright.errors import InputError
from hostwright.identity.keys import HostKey
from hostwright.seeds.escaping import preseed, to_yaml
from hostwright.seeds.rendering import Seed, render_keys, render_seed
from hostwright.seeds.settings import Install, read_install
from tests.unit import shell
from tests.unit.seeds import AUTOINSTALL, FIXED, HASH, KEYS, KINDS, MINIMUM, URL, USER_KEY, host, install, kinds

PRIVATE = KEYS.private.reveal()
UBUNTU, DEBIAN = kinds("ubuntu"), kinds("debian")
REAL_SCHEMA = os.environ.get("HOSTWRIGHT_SUBIQUITY_SCHEMA", "")
LINE = re.compile(
    r"(d-i|tasksel|popularity-contest) ([a-z0-9/_-]+) (string|select|multiselect|boolean|password|note)( .*)?"
)


def seed(wanted: Install) -> Seed:
    return render_seed(wanted, host="gpu07.example", keys=KEYS, url=URL)


def document(wanted: Install) -> Any:
    text = seed(wanted).files["user-data"].decode()
    assert text.startswith("#cloud-config\n")
    whole = yaml.safe_load(text)
    assert set(whole) == {"autoinstall"}
    return whole["autoinstall"]


def answers(wanted: Install) -> dict[str, str]:
    """The preseed file as the installer reads it: one question a line."""
    found = {}
    for line in seed(wanted).files["preseed.cfg"].decode().splitlines():
        if line and not line.startswith("#"):
            match = LINE.fullmatch(line)
            assert match, line
            assert match[2] not in found
            found[match[2]] = (match[4] or " ")[1:]
    return found


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


@pytest.mark.skipif(not REAL_SCHEMA, reason="HOSTWRIGHT_SUBIQUITY_SCHEMA names no copy of subiquity's own schema")
@pytest.mark.parametrize("kind", UBUNTU.values(), ids=UBUNTU)
def test_autoinstall_is_valid_by_the_installers_own_schema(kind: dict[str, Any]) -> None:
    schema = json.loads(Path(REAL_SCHEMA).read_text())
    whole = document(install(**kind))
    assert [error.message for error in Draft7Validator(schema).iter_errors(whole)] == []
    assert set(whole) <= set(schema["properties"])  # version 1 passes over unknown keys, so they are looked for here


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


class Target:
    """A new system below a folder of the test, and the programs that an installer has."""

    def __init__(self, folder: Path):
        self.root, self.work, self.programs = folder / "target", folder / "tmp", folder / "programs"
        for name in ("etc/ssh", "etc/sudoers.d", "etc/apt/apt.conf.d", "etc/network"):
            (self.root / name).mkdir(parents=True)
        self.work.mkdir()
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
        return shell.run(moved, path=self.programs)

    def text(self, name: str) -> str:
        return (self.root / name).read_text()

    def mode(self, name: str) -> int:
        return (self.root / name).stat().st_mode & 0o777


def moved_script(target: Target, wanted: Install) -> dict[str, bytes]:
    files = dict(seed(wanted).files)
    files["late.sh"] = files["late.sh"].replace(b"/target", str(target.root).encode())
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


def test_the_host_key_alone_for_a_sites_command() -> None:
    alone = render_keys(KEYS)
    whole = yaml.safe_load(alone.files["user-data"])
    assert whole == {
        "ssh_deletekeys": True,
        "ssh_keys": {"ed25519_private": PRIVATE, "ed25519_public": f"{KEYS.public.line}\n"},
    }
    assert alone.files[alone.first].decode() == PRIVATE


NASTY = (
    "a\nb", 'x": y', "': ", "{{ x }}", "{% raw %}", "- a", "# c", "null", "~", "yes", "0x10", "*a", "&a", " ", "%s",
    "!!python/name:os", "\u2028", "\x85", "\x7f", "ü😀", "\ud800", "\0", "$(reboot)", "`reboot`", "a\\", "\ttab",
    "a\r\nd-i x/y string z",
)  # fmt: skip
hostile = (
    st.text(max_size=40)
    | st.sampled_from(NASTY)
    | st.builds("{0}{1}".format, st.text(max_size=10), st.sampled_from(NASTY))
)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc: {}\"'\n😀", max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(values)
@example("😀\u2028\x85\x7f\ufeff\x00")
def test_any_value_comes_out_of_yaml_as_it_went_in(value: Any) -> None:
    written = to_yaml(value)
    assert written.isascii()
    assert "\n" not in written
    assert yaml.safe_load(f"a: {written}\nb: 1\n") == {"a": value, "b": 1}


@given(hostile)
def test_a_preseed_value_stays_on_its_line_or_is_refused(value: str) -> None:
    try:
        line = f"d-i a/b string {preseed(value, 'x')}"
    except InputError:
        return
    assert len(line.splitlines()) == 1
    assert line.removeprefix("d-i a/b string ") == value
    assert not value.endswith("\\")


#: The field, and where its value stands in the document; lists hold it as their last.
FIELDS: dict[str, tuple[str | int, ...]] = {
    "hostname": ("identity", "hostname"),
    "user": ("identity", "username"),
    "password_hash": ("identity", "password"),
    "locale": ("locale",),
    "keyboard": ("keyboard", "layout"),
    "timezone": ("timezone",),
    "proxy": ("proxy",),
    "mirror": ("apt", "primary", 0, "uri"),
    "disk": ("storage", "layout", "match", "path"),
    "disk.serial": ("storage", "layout", "match", "serial"),
    "packages": ("packages", -1),
    "late_commands": ("late-commands", -1),
    "ssh_keys": ("ssh", "authorized-keys", -1),
}
PLAIN_KEYS = set(document(install())) | {"proxy", "apt", "network"}


def settings(field: str, value: str) -> dict[str, Any]:
    name, _, inner = field.partition(".")
    if inner:
        return {name: {inner: value}}
    if name == "ssh_keys":
        return {name: [f"{KEYS.public.line} {value}"]}
    return {name: [value] if name in ("packages", "late_commands") else value}


@given(st.sampled_from(sorted(FIELDS)), hostile)
@example("late_commands", "echo '{{ x }}': \"a\nb\" # ü😀\x85")
def test_what_a_setting_holds_is_refused_or_comes_out_again(field: str, value: str) -> None:
    changes = settings(field, value)
    try:
        wanted = read_install(host({**MINIMUM, **changes}))
    except InputError:
        return
    assert wanted is not None
    whole = document(wanted)
    assert set(whole) <= PLAIN_KEYS
    if not value and field != "ssh_keys":
        return  # as if it had not been given
    found: Any = whole
    for part in FIELDS[field]:
        found = found[part]
    assert found == (f"{KEYS.public.line} {value}".strip() if field == "ssh_keys" else value)


@given(st.sampled_from(sorted(set(FIELDS) - {"disk.serial"})), hostile)
@example("late_commands", "echo '{{ x }}': \"a\nb\" # ü😀\x85")
def test_nothing_in_a_setting_becomes_a_line_of_the_preseed_file(field: str, value: str) -> None:
    changes = settings(field, value)
    plain = set(answers(install(os="debian", mirror="http://mirror.example/debian")))
    plain |= {f"mirror/https/{name}" for name in ("hostname", "directory", "proxy")}
    try:
        wanted = read_install(host({**MINIMUM, "os": "debian", "release": "12", **changes}))
        assert wanted is not None
        said = answers(wanted)
    except InputError:
        return
    assert set(said) <= plain
    if field == "late_commands":
        last = seed(wanted).files["late.sh"].decode().rpartition("\nsh -c ")[2]
        assert shlex.split(f"sh -c {last}") == ["sh", "-c", value]


@pytest.mark.parametrize("system", ["ubuntu", "debian"])
def test_the_private_key_is_never_shown(system: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    made = seed(install(os=system, password_hash=HASH))
    secret_line = PRIVATE.splitlines()[2]
    assert any(secret_line in content.decode() for content in made.files.values())
    for shown in (repr(made), str(made), repr(KEYS), caplog.text):
        assert secret_line not in shown
        assert HASH not in shown


def test_the_private_key_is_not_in_the_error_of_a_broken_template(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "seeds"
    folder.mkdir()
    (folder / "keys.j2").write_text("{{ private }}{{ nonsense }}")
    monkeypatch.setattr("hostwright.seeds.rendering.render", lambda name, **v: broken(name, tmp_path, **v))
    with pytest.raises(InputError, match="nonsense") as error:
        render_keys(KEYS)
    shown = "".join(traceback.format_exception(error.value))
    assert PRIVATE.splitlines()[2] not in shown


def broken(name: str, folder: Path, **values: object) -> str:
    from hostwright.templates import render

    return render(name, folder=folder, **values)
