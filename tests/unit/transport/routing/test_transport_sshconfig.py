"""ssh_config: the inventory takes precedence; the rest is as in OpenSSH."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hostwright.common.errors import InputError
from hostwright.transport.routing import openssh
from hostwright.transport.routing.openssh import Destination, OpenSsh
from hostwright.transport.routing.sshconfig import Endpoint, hop, hops, resolve


def endpoint(tmp_path: Path, text: str, destination: Destination | str = "gpu01") -> Endpoint:
    file = tmp_path / "config"
    file.write_text(text)
    return resolve(Destination(destination) if isinstance(destination, str) else destination, file, OpenSsh())


FULL = """\
# mine
Host gpu01 gpu02
  HostName 10.0.0.1
  User=ops
  Port 2222
  IdentityFile "~/.ssh/fleet"
  IdentitiesOnly yes
  UserKnownHostsFile /srv/known ~/.ssh/more
  ConnectTimeout 7
  HostKeyAlias Rack1
Host gpu* !gpu03
  User other
  ProxyJump ops@bastion:22022,inner
Host *
  IdentityFile ~/.ssh/%r-key
"""


def test_a_host_with_everything(tmp_path: Path) -> None:
    found = endpoint(tmp_path, FULL)
    assert (found.address, found.port, found.user) == ("10.0.0.1", 2222, "ops")
    assert found.host_key_name == "rack1"
    assert found.identity_files == (Path("~/.ssh/fleet").expanduser(), Path("~/.ssh/ops-key").expanduser())
    assert found.identities_only
    assert not found.default_identities
    assert found.known_hosts == (Path("/srv/known"), Path("~/.ssh/more").expanduser())
    assert found.proxy_jump == ("ops@bastion:22022", "inner")
    assert found.connect_timeout_s == 7
    assert str(found) == "ops@10.0.0.1:2222"


def test_a_negated_pattern_rules_a_host_out(tmp_path: Path) -> None:
    assert endpoint(tmp_path, FULL, "gpu03").proxy_jump == ()


def test_a_host_that_nothing_is_said_about(tmp_path: Path) -> None:
    found = endpoint(tmp_path, "")
    assert (found.address, found.port, found.user) == ("gpu01", 22, getpass.getuser())
    assert found.default_identities
    assert Path("~/.ssh/known_hosts").expanduser() in found.known_hosts
    assert Path("/etc/ssh/ssh_known_hosts") in found.system_known_hosts
    assert found.connect_timeout_s is None


def test_the_inventory_wins(tmp_path: Path) -> None:
    found = endpoint(tmp_path, FULL, Destination("gpu01", "root", 22))
    assert (found.user, found.port) == ("root", 22)


def test_a_proxy_command_gets_the_values_that_were_decided(tmp_path: Path) -> None:
    text = "Host *\n ProxyCommand nc -X %r %h %p\nHost gpu01\n HostName 10.0.0.9\n"
    assert endpoint(tmp_path, text, Destination("gpu01", "ops", 2022)).proxy_command == "nc -X ops 10.0.0.9 2022"


@pytest.mark.parametrize(
    ("text", "jump", "command"),
    [
        ("ProxyJump b\nProxyCommand c", ("b",), ""),
        ("ProxyCommand c\nProxyJump b", (), "c"),
        ("ProxyJump none\nProxyJump b", (), ""),
        ("ProxyCommand none\nProxyJump b", (), ""),
    ],
)
def test_the_first_of_proxyjump_and_proxycommand_wins(
    tmp_path: Path, text: str, jump: tuple[str, ...], command: str
) -> None:
    found = endpoint(tmp_path, text)
    assert (found.proxy_jump, found.proxy_command) == (jump, command)


def test_includes_are_read_where_they_stand_and_do_not_leak(tmp_path: Path) -> None:
    (tmp_path / "b.conf").write_text("Host other\n User leaked\n")
    (tmp_path / "a.conf").write_text("Host gpu01\n User included\n")
    text = f"Include {tmp_path}/*.conf {tmp_path}/none/*\nPort 2022\nHost gpu01\n User late\n HostName 10.9.9.9\n"
    found = endpoint(tmp_path, text)
    assert (found.user, found.port, found.address) == ("included", 2022, "10.9.9.9")
    assert endpoint(tmp_path, text, "elsewhere").port == 2022


def test_an_include_inside_a_stanza_holds_for_its_hosts_only(tmp_path: Path) -> None:
    (tmp_path / "user").write_text("User included\n")
    text = f"Host gpu01\n Include {tmp_path}/user\n Port 2022\n"
    assert endpoint(tmp_path, text).user == "included"
    assert endpoint(tmp_path, text).port == 2022
    assert endpoint(tmp_path, text, "gpu02").user == getpass.getuser()


def test_files_that_include_each_other_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ssh cannot read ssh_config: .*[Tt]oo many recursive"):
        endpoint(tmp_path, f"Include {tmp_path}/config\n")


def test_a_match_line_is_understood(tmp_path: Path) -> None:
    text = "Match host gpu* user ops\n Port 2022\nMatch all\n User nobody\n"
    assert endpoint(tmp_path, text, Destination("gpu01", "ops")).port == 2022
    assert endpoint(tmp_path, text, Destination("gpu01")).port == 22


def test_of_a_thousand_stanzas_the_right_one_counts(tmp_path: Path) -> None:
    text = "".join(f"Host node{n}\n Port {1000 + n}\n" for n in range(1000))
    assert endpoint(tmp_path, text, "node999").port == 1999


def test_without_openssh_the_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"OpenSSH's client, .* is not installed .*apt install openssh-client"):
        endpoint(tmp_path, "")


def test_a_program_that_hangs_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openssh, "_READING_S", 0.3)
    with pytest.raises(InputError, match=r"`ssh -G gpu01` did not end within 0\.3 s; check `Match exec`"):
        endpoint(tmp_path, 'Match exec "exec sleep 2"\n Port 2022\n')


def test_ctrl_c_is_no_mistake_in_a_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal sends SIGINT to the whole process group: ``ssh -G`` would end without a reason."""
    ours = tmp_path / "ssh"
    group = '"$(ps -o pgid= -p $$ | tr -d " ")"'
    ours.write_text(f'#!/bin/sh\n[ {group} != {os.getpgrp()} ] && exec {shutil.which("ssh")} "$@"\n')
    ours.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert endpoint(tmp_path, "Host gpu01\n Port 2022\n", "gpu01").port == 2022


def test_a_later_setting_about_host_keys_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting of a later OpenSSH has an unknown meaning."""
    later = tmp_path / "ssh"
    later.write_text(f'#!/bin/sh\n{shutil.which("ssh")} "$@" && echo "hostkeyquorum 2"\n')
    later.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(InputError, match="does not support the host key setting 'hostkeyquorum'"):
        endpoint(tmp_path, "")


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ('UserKnownHostsFile "/srv/my keys"', "UserKnownHostsFile 'keys' is not an absolute path; write"),
        ("GlobalKnownHostsFile known", "GlobalKnownHostsFile 'known'"),
        ("RevokedHostKeys list", "RevokedHostKeys 'list'"),
        ("RevokedHostKeys /srv/%q", "'%q' in '/srv/%q' has no value"),
        ("IdentityFile ${HOSTWRIGHT_NOT_SET}/id", r"'\$\{HOSTWRIGHT_NOT_SET\}' in .* has no value"),
    ],
)
def test_a_file_that_may_be_another_is_an_error(tmp_path: Path, setting: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        endpoint(tmp_path, setting)


def test_what_is_said_of_host_keys(tmp_path: Path) -> None:
    text = (
        "HostKeyAlias rack1\nRevokedHostKeys /srv/%k/%p\nKnownHostsCommand /bin/echo %H\nRequiredRSASize 3072\n"
        "CheckHostIP yes\nHashKnownHosts yes\nStrictHostKeyChecking yes\nVerifyHostKeyDNS ask\n"
    )
    trust = endpoint(tmp_path, text, Destination("gpu01", "ops", 2022)).trust
    assert (trust.alias, trust.revoked, trust.command) == ("rack1", (Path("/srv/rack1/2022"),), "/bin/echo %H")
    assert (trust.rsa_bits, trust.address_too, trust.hashed, trust.strict, trust.dns) == (3072, True, True, True, True)


@pytest.mark.parametrize(
    ("setting", "own"),
    [("", False), ("+ssh-rsa", False), ("-ssh-ed25519", True), ("^rsa-sha2-512", True), ("ssh-ed25519", True)],
)
def test_an_order_of_the_users_own_is_kept(tmp_path: Path, setting: str, own: bool) -> None:
    trust = endpoint(tmp_path, f"HostKeyAlgorithms {setting}\n" if setting else "").trust
    assert trust.own_order is own
    assert all(name in trust.algorithms for name in ("rsa-sha2-512", "ssh-ed25519") if setting in ("", "+ssh-rsa"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Port x", "config line 1: Bad port 'x'"),
        ("nonsense", 'config line 1: no argument after keyword "nonsense"'),
        ('Host "a', "config line 1: invalid quotes"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        endpoint(tmp_path, text)


def test_a_file_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist or is not readable"):
        resolve(Destination("gpu01"), tmp_path / "none", OpenSsh())


@pytest.mark.parametrize("name", ["-oProxyCommand=x", "a b", "a\nUser root", "$(id)", "a;b", "`id`", "a'b"])
def test_a_name_is_never_an_option_a_line_or_a_command(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="is not a valid SSH host "):
        endpoint(tmp_path, "ProxyCommand nc %h 22", name)
    with pytest.raises(InputError, match="is not a valid SSH host "):
        endpoint(tmp_path, "ProxyCommand nc %r 22", Destination("gpu01", name))


def test_hops() -> None:
    assert hops("a, ssh://b@c:22 ,d") == ("a", "b@c:22", "d")
    assert hops("none") == hops("") == ()
    assert hop("ops@bastion:2022") == Destination("bastion", "ops", 2022)
    assert hop("[fe80::1]:22") == Destination("fe80::1", "", 22)
    assert hop("bastion") == Destination("bastion")
    with pytest.raises(InputError, match="not a jump host"):
        hop("a:b:c")


@pytest.mark.parametrize("alias", ["gpu01", "gpu02", "gpu03", "elsewhere"])
def test_openssh_reads_the_same(tmp_path: Path, alias: str) -> None:
    assert shutil.which("ssh"), "OpenSSH's client is needed: apt install openssh-client"
    found = endpoint(tmp_path, FULL, alias)
    printed = subprocess.run(
        ["ssh", "-G", "-F", tmp_path / "config", alias], check=True, capture_output=True, text=True
    )
    theirs = dict(line.split(" ", 1) for line in printed.stdout.splitlines() if " " in line)
    assert theirs["hostname"] == found.address
    assert theirs["port"] == str(found.port)
    assert theirs["user"] == found.user
    assert theirs.get("proxyjump", "") == ",".join(found.proxy_jump)
