"""The settings of an installation: what they come to, and every mistake with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hostwright.common.errors import InputError
from hostwright.common.secret import Secret
from hostwright.inventory import load
from hostwright.rebuild.install.seeds.fields import endpoint
from hostwright.rebuild.install.seeds.reading import read_install, read_reinstall
from hostwright.rebuild.install.seeds.settings import Disk, Network, reinstall_environment
from tests.unit.support.seeds import FIXED, HASH, MINIMUM, USER_KEY, host, install


def test_a_host_without_settings_has_none() -> None:
    assert read_install(host(None)) is None
    assert read_reinstall(host(None)) is None


def test_what_is_not_said_is_sensible() -> None:
    read = install()
    assert (read.hostname, read.user, read.password_hash) == ("gpu07", "ops", None)
    assert read.disk == Disk(path="/dev/nvme0n1")
    assert read.network == Network()
    assert (read.timeout_s, read.only_from, read.boot) == (2400, None, "network")


def test_durations_are_read_as_operators_write_them() -> None:
    assert install(timeout="1h").timeout_s == 3600
    assert install(timeout=900).timeout_s == 900


def test_who_may_fetch_the_seed() -> None:
    assert install(network=FIXED, allow_from="").only_from == "10.0.0.7"
    assert install(network=FIXED, allow_from="any").only_from is None
    assert install(allow_from="10.0.0.9/24").only_from == "10.0.0.0/24"


def test_groups_and_hosts_are_merged_field_by_field(tmp_path: Path) -> None:
    file = tmp_path / "hosts.yml"
    file.write_text(f"""
all:
  vars:
    ansible_user: deploy
    hostwright_install:
      {{serve: "10.0.0.1:8098", os: debian, release: "12", allow_from: 10.0.0.0/24, ssh_keys: ["{USER_KEY}"]}}
  hosts:
    gpu01: {{hostwright_install_disk: /dev/sda, hostwright_install_path: gpu01}}
    gpu02: {{hostwright_install: {{disk: /dev/sdb, hostname: other, path: seeds/two}}}}
    gpu03: {{hostwright_install: null}}
""")
    hosts = load(file).hosts
    first, second = read_install(hosts["gpu01"]), read_install(hosts["gpu02"])
    assert first is not None
    assert second is not None
    assert (first.disk.path, first.hostname, first.user, first.os) == ("/dev/sda", "gpu01", "deploy", "debian")
    assert (second.disk.path, second.hostname) == ("/dev/sdb", "other")
    assert read_install(hosts["gpu03"]) is None


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"diks": "/dev/sda"}, "hostwright_install.diks: 'diks' is unknown here; did you mean 'disk'?"),
        ({"network": {"adress": "dhcp"}}, "'adress' is unknown here; did you mean 'address'?"),
        ({"os": "fedora"}, "hostwright_install.os: found 'fedora', expected 'ubuntu' or 'debian'"),
        ({"release": 20.04}, "hostwright_install.release: found number 20.04, expected text; put it in quotes"),
        ({"release": "18.04"}, "release: found '18.04', expected a release of Ubuntu that takes autoinstall"),
        ({"serve": "0.0.0.0:80"}, "expected an address and a port of this machine"),
        ({"serve": "controller:80"}, "expected an address and a port of this machine"),
        ({"serve": "10.0.0.1:80000"}, "expected an address and a port of this machine"),
        ({"disk": "sda"}, "expected a disk like /dev/nvme0n1"),
        ({"disk": "/dev/../etc/passwd"}, "expected a disk like /dev/nvme0n1"),
        ({"disk": "/dev/disk/by-id/x"}, "give serial or model"),
        ({"disk": {}}, "no disk is named"),
        ({"disk": {"size": "small"}}, "expected '', 'largest' or 'smallest'"),
        (
            {"release": "20.04", "disk": {"vendor": "ATA"}},
            "disk: the first installers of Ubuntu 20.04 ignore vendor",
        ),
        (
            {"release": "20.04", "layout": "raid1", "second_disk": {"model": "X*", "size": "smallest"}},
            "second_disk: the first installers of Ubuntu 20.04 ignore vendor and size: smallest",
        ),
        ({"layout": "raid1"}, "second_disk: is needed for the layout raid1"),
        ({"layout": "raid1", "second_disk": MINIMUM["disk"]}, "second_disk: is the same as disk"),
        ({"second_disk": "/dev/sdb"}, "second_disk: is not used by the layout direct"),
        (
            {"os": "debian", "release": "12", "layout": "raid1", "second_disk": "/dev/sdb"},
            "raid1 is written for Ubuntu",
        ),
        ({"os": "debian", "release": "12", "disk": {"serial": "x"}}, "Debian's installer needs a path"),
        ({"os": "debian"}, "found '22.04', expected a release of Debian"),
        ({"os": "debian", "release": "12", "network": {**FIXED, "gateway": ""}}, "needs gateway and nameservers"),
        ({"boot": "media"}, "image: is needed to boot from media"),
        ({"image": "ftp://x/y"}, "expected a URL like"),
        ({"proxy": "http://me:word@10.0.0.1:3128"}, "the URL contains a user or a password"),
        ({"ssh_keys": []}, "ssh_keys: is empty: nobody could log in"),
        ({"ssh_keys": ["ssh-ed25519 AAAA"]}, "expected one public key as in a .pub file"),
        ({"ssh_keys": [f'command="x" {USER_KEY}']}, "expected one public key as in a .pub file"),
        ({"ssh_keys": [f"{USER_KEY}\n{USER_KEY}"]}, "expected one public key as in a .pub file"),
        ({"user": "root"}, "'root' cannot be created by an installer"),
        ({"user": "Ops"}, "expected a user name"),
        ({"hostname": "gpu_07"}, "expected a host's name without its domain"),
        ({"network": {"interface": "eno1", "mac": "0c:42:a1:00:00:07"}}, "`interface` and `mac` are both given"),
        ({"network": {"address": "10.0.0.7/24"}}, "a fixed address needs an interface"),
        ({"network": {**FIXED, "address": "10.0.0.7"}}, "expected an address with its prefix"),
        ({"network": {**FIXED, "address": "10.0.0.0/24"}}, "expected an address with its prefix"),
        ({"network": {**FIXED, "gateway": "10.0.1.1"}}, "the gateway 10.0.1.1 is not within 10.0.0.0/24"),
        ({"network": {"gateway": "10.0.0.1"}}, "the DHCP server provides gateway and nameservers; remove"),
        ({"late_commands": ["echo {{ inventory_hostname }}"]}, "found the template '{{ inventory_hostname }}'"),
        ({"late_commands": "echo"}, "found 'echo', expected a list"),
        ({"kernel_arguments": ["a b"]}, "expected one argument like console=ttyS0"),
        ({"packages": ["x; reboot"]}, "expected a Debian package's name"),
        ({"timeout": "soon"}, "expected a duration such as 90"),
        ({"path": "../x"}, "expected a path like seeds/gpu07"),
        ({"path": ""}, "hostwright_install.path: is needed: the name under which the installer finds its seed"),
        ({"allow_from": ""}, "allow_from: is needed with a fixed path: an address, a network, or any"),
        ({"allow_from": "gpu07"}, "expected an address or network"),
    ],
)
def test_mistakes_are_named_with_their_place(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=r"^hosts\.yml:1:3: ") as error:
        read_install(host({**MINIMUM, **changes}))
    assert sentence in str(error.value)


def test_the_name_in_the_inventory_may_be_no_hostname() -> None:
    for name in ("10.0.0.7", "fd00::7", "gpu_07.example"):
        with pytest.raises(InputError, match="hostname: is needed"):
            read_install(host(MINIMUM, name=name))
    with pytest.raises(InputError, match="user: is needed"):
        read_install(host(MINIMUM, user=None))


def test_all_mistakes_at_once() -> None:
    wrong = {"serve": "x", "os": "fedora", "release": "a", "disk": "b", "nonsense": 1}
    with pytest.raises(InputError) as error:
        read_install(host(wrong))
    assert len(str(error.value).splitlines()) == 6  # the five, and ssh_keys is missing


@pytest.mark.parametrize("wrong", ["hunter2", 12345678, ["hunter2"], "$1$salt$hunter2hunter2hunter2", "$6$a b$hunter2"])
def test_a_password_in_the_place_of_its_hash_is_not_shown(wrong: Any) -> None:
    with pytest.raises(InputError, match="is not a password hash") as error:
        read_install(host({**MINIMUM, "password_hash": wrong}))
    shown = f"{error.value!r} {error.value.__context__!r} {error.value.__cause__!r}"
    assert "hunter2" not in shown
    assert "12345678" not in shown


def test_a_hash_is_a_secret() -> None:
    read = install(password_hash=HASH)
    assert read.password_hash == Secret(HASH)
    assert HASH not in repr(read)
    assert install(password_hash=Secret(HASH)) == read


def test_a_sites_own_command() -> None:
    read = read_reinstall(
        host(None, hostwright_reinstall={"command": "maas deploy $HOSTWRIGHT_HOST", "timeout": "30m"})
    )
    assert read is not None
    assert (read.command, read.timeout_s, read.host_keys) == ("maas deploy $HOSTWRIGHT_HOST", 1800, "console")


@pytest.mark.parametrize(
    ("reinstall", "sentence"),
    [
        ({}, "hostwright_reinstall.command: is missing"),
        ({"command": " "}, "expected a command for /bin/sh"),
        ({"command": "x", "host_keys": "guess"}, "expected 'given' or 'console'"),
        ({"command": "x", "host_keys": "given"}, "hostwright_reinstall.serve: is needed with host_keys: given"),
        (
            {"command": "x", "host_keys": "given", "serve": "10.0.0.1:8098", "path": "gpu07"},
            "hostwright_reinstall.allow_from: is needed with a fixed path: an address, a network, or any",
        ),
        ({"command": "x", "comand": "y"}, "did you mean 'command'?"),
        ("x", "expected the variables of the role hostwright_reinstall as a mapping"),
    ],
)
def test_mistakes_in_a_sites_own_command(reinstall: Any, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        read_reinstall(host(None, hostwright_reinstall=reinstall))
    assert sentence in str(error.value)


@pytest.mark.parametrize("more", [{}, {"path": "gpu07", "allow_from": "any"}])
def test_a_sites_own_command_needs_no_path(more: dict[str, Any]) -> None:
    """It is told the seed's address, so a path that nobody can guess protects the key as well."""
    given = {"command": "x", "host_keys": "given", "serve": "10.0.0.1:8098", **more}
    assert read_reinstall(host(None, hostwright_reinstall=given)) is not None


def test_only_one_way_may_be_given() -> None:
    both = host(MINIMUM, hostwright_reinstall={"command": "x"})
    for read in (read_install, read_reinstall):
        with pytest.raises(
            InputError, match=r"hosts\.yml:2:3: hostwright_reinstall and hostwright_install are both set"
        ):
            read(both)


def test_the_environment_of_a_command_is_text_on_one_line() -> None:
    said = reinstall_environment(
        host="gpu07", address="10.0.0.7", reason="a\nb\x1b[2J", run="r1", host_key="ssh-ed25519 A"
    )
    names = ("HOST", "ADDRESS", "REASON", "RUN", "HOST_KEY", "SEED", "SEED_CA")
    assert set(said) == {f"HOSTWRIGHT_{name}" for name in names}
    assert (said["HOSTWRIGHT_REASON"], said["HOSTWRIGHT_SEED"]) == ("a b [2J", "")


def test_addresses_to_serve_at() -> None:
    assert endpoint("10.0.0.1:8098") == ("10.0.0.1", 8098)
    assert endpoint("[fd00::1]:8098") == ("fd00::1", 8098)
    for wrong in ("fd00::1:8098", "[10.0.0.1]:80", "10.0.0.1", ":80", "10.0.0.1:", "10.0.0.1:0", "224.0.0.1:80"):
        with pytest.raises(ValueError, match="expected an address and a port"):
            endpoint(wrong)
