"""The command suggested by each connection error, with a real sshd."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Iterator

import pytest

from hostwright import transport
from hostwright.common.errors import BecomeError, HostError
from hostwright.transport.root.become import BECOME_FAILED_STATUS, check_become
from tests.lab.sshd import Sshd, Target, free_port, make_key, options, running

ME = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture
def sshd() -> Iterator[Sshd]:
    with running() as server:
        yield server


def unknown_key(sshd: Sshd) -> Target:
    sshd.known_hosts.write_text("")
    return sshd.target(user=ME)


def changed_key(sshd: Sshd) -> Target:
    other = make_key(sshd.folder / "other host key")
    public = other.with_name(other.name + ".pub").read_text()
    sshd.known_hosts.write_text(f"[127.0.0.1]:{sshd.port} {public}")
    return sshd.target(user=ME)


def refused_login(sshd: Sshd) -> Target:
    return sshd.target(user=ME, key_file=str(make_key(sshd.folder / "stranger")))


def silent(sshd: Sshd) -> Target:
    return sshd.target(user=ME, port=free_port())


def dead_jump_host(sshd: Sshd) -> Target:
    return sshd.target(user=ME, proxy_jump=f"{ME}@127.0.0.1:{free_port()}")


def no_such_name(sshd: Sshd) -> Target:
    return sshd.target(user=ME, address="no-such-host.invalid")


@pytest.mark.parametrize(
    ("cause", "lead"),
    [
        (unknown_key, "trust"),
        (changed_key, "trust"),
        (refused_login, ""),
        (silent, "rebuild --check"),
        (dead_jump_host, ""),
        (no_such_name, ""),
    ],
)
def test_the_error_of_a_connection_leads_on(sshd: Sshd, cause: Callable[[Sshd], Target], lead: str) -> None:
    with pytest.raises(HostError) as failed:
        transport.connect(cause(sshd), options())
    assert failed.value.lead == lead, failed.value
    assert ("its jump host" in str(failed.value)) == ("jump" in cause.__name__), failed.value


def test_an_unknown_key_of_a_jump_host_is_none_that_trust_asks_for(sshd: Sshd) -> None:
    with running() as jump, pytest.raises(HostError) as failed:
        transport.connect(sshd.target(user=ME, proxy_jump=f"{ME}@127.0.0.1:{jump.port}"), options())
    assert f"its jump host: the host key of 127.0.0.1:{jump.port} is not known" in str(failed.value)
    assert failed.value.lead == ""


@pytest.mark.parametrize(
    ("answer", "lead"),
    [
        ("sudo: a password is required", "--ask-become-pass"),
        ("sudo: 1 incorrect password attempt", "--ask-become-pass"),
        ("ops is not in the sudoers file", ""),
        ("sudo: sorry, you must have a tty to run sudo", ""),
        ("no sudo", ""),
    ],
)
def test_a_refused_sudo_leads_on_where_a_password_helps(answer: str, lead: str) -> None:
    class Answered:
        status, stderr = BECOME_FAILED_STATUS, f"hostwright-become {answer}".encode()

    with pytest.raises(BecomeError) as failed:
        check_become("gpu01", Answered())
    assert failed.value.lead == lead
