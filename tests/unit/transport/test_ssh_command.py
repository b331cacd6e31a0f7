"""The ssh command line for an operator: the inventory's address, port, user, key, jump hosts and known hosts."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright.common.errors import Unreachable
from hostwright.common.secret import Secret
from hostwright.transport.routing.sshcommand import ssh_command
from tests.lab.sshd import Sshd, Target, make_key, options, running

ME = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture
def sshd() -> Iterator[Sshd]:
    with running() as server:
        yield server


def target(sshd: Sshd, **changes: object) -> Target:
    return sshd.target(**{"user": ME, **changes})


def said(call: tuple[str, ...]) -> tuple[int, str, str]:
    """The effective settings of an ssh call by a user without an agent."""
    env = {name: value for name, value in os.environ.items() if name != "SSH_AUTH_SOCK"}
    done = subprocess.run(
        call, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False, env=env
    )
    return done.returncode, done.stdout, done.stderr


def test_it_reaches_the_host_and_runs_the_line_there(sshd: Sshd) -> None:
    assert said(ssh_command(target(sshd), options(), "echo a; exit 5"))[:2] == (5, "a\n")


@pytest.mark.parametrize("line", ["-oProxyCommand=false; echo no", "-p 1", "-V"])
def test_what_is_to_be_run_is_no_option_of_ssh(sshd: Sshd, line: str) -> None:
    status, _, err = said(ssh_command(target(sshd), options(), line))
    assert status in (2, 127), err
    assert "not found" in err or "invalid option" in err or "Illegal option" in err, (
        "it is the host's shell that says it"
    )


def test_a_host_whose_key_is_not_known_is_refused_without_a_question(sshd: Sshd) -> None:
    sshd.known_hosts.write_text("")
    status, _, err = said(ssh_command(target(sshd), options(), "true"))
    assert status == 255 and "strict checking" in err
    assert said(ssh_command(target(sshd), options(host_keys="accept-new"), "true"))[0] == 0
    assert sshd.public_host_key in sshd.known_hosts.read_text()


def test_files_with_spaces_and_percent_signs_are_understood(sshd: Sshd) -> None:
    folder = sshd.folder / 'a "b" 100%h'
    folder.mkdir(mode=0o755)
    key, known = shutil.copy(sshd.key, folder), shutil.copy(sshd.known_hosts, folder)
    assert said(ssh_command(target(sshd, key_file=str(key), known_hosts=str(known)), options(), "true"))[0] == 0


def test_only_the_inventorys_key_is_offered(sshd: Sshd, tmp_path: Path) -> None:
    other = make_key(tmp_path / "other")
    call = ssh_command(target(sshd, key_file=str(other)), options(), "true")
    status, _, err = said((call[0], "-v", "-o", "BatchMode=yes", *call[1:]))
    assert status == 255
    assert err.count("Offering public key") == 1


@pytest.mark.parametrize("hops", [1, 2])
def test_jump_hosts_are_gone_through_and_their_keys_are_those_of_the_inventorys_file(sshd: Sshd, hops: int) -> None:
    with running() as first, running() as second:
        jumps = (first, second)[:hops]
        for jump in jumps:
            shutil.copy(sshd.folder / "authorized_keys", jump.folder / "authorized_keys")
        config = sshd.folder / "config 1"
        config.write_text(f'IdentityFile "{sshd.key}"\nUserKnownHostsFile /dev/null\nGlobalKnownHostsFile /dev/null\n')
        known = sshd.folder / "known of all"
        known.write_text("".join(server.known_hosts.read_text() for server in (sshd, *jumps)))
        chain = ",".join(f"{ME}@127.0.0.1:{jump.port}" for jump in jumps)
        through = target(sshd, proxy_jump=chain, known_hosts=str(known))
        status, out, err = said(ssh_command(through, options(ssh_config=config), "echo there $SSH_CLIENT"))
        assert (status, out.split()[:1]) == (0, ["there"]), err
        for jump in jumps:
            assert "Accepted publickey" in (jump.folder / "log").read_text()
        known.write_text(sshd.known_hosts.read_text())
        assert said(ssh_command(through, options(ssh_config=config), "true"))[0] == 255, "a jump host is not known"


def test_no_secret_stands_in_the_command_line() -> None:
    host = Target(password=Secret("hunter2 and more"), port=22, user="ops")
    call = ssh_command(host, options())
    assert "hunter2" not in " ".join(call) and "***" not in " ".join(call)
    assert call[-2:] == ("--", "127.0.0.1")


def test_no_jump_host_is_said_where_the_inventory_says_none() -> None:
    assert "ProxyJump=none" in ssh_command(Target(proxy_jump="none"), options())
    assert "ConnectTimeout=8" in ssh_command(Target(connect_timeout=7.5), options())
    assert "-t" in ssh_command(Target(), options(), "top", terminal=True)


@pytest.mark.parametrize("address", ["-oProxyCommand=id", "a b", "ops@gpu01", "ssh://gpu01", "gpu01;id"])
def test_what_ssh_would_take_apart_is_refused(address: str) -> None:
    with pytest.raises(Unreachable, match="is not a valid SSH host "):
        ssh_command(Target(address=address), options())


def test_a_jump_host_that_is_none_is_refused() -> None:
    with pytest.raises(Unreachable, match="is not a jump host"):
        ssh_command(Target(proxy_jump="a b:c"), options())
