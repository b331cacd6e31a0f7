"""Sources of trusted keys, and their order of precedence; other sources are ignored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hostwright.common.errors import InputError, InputErrors, Refused
from hostwright.common.input.yamlfile import Origin
from hostwright.inventory import Host
from hostwright.inventory.model import HOST_LEVEL, Value
from hostwright.rebuild.install import sources
from hostwright.rebuild.install.sources import (
    CONSOLE,
    GIVEN,
    OPERATOR,
    Confirmed,
    Sources,
    confirm,
    console_keys,
    read_console_command,
    read_fingerprint,
)
from hostwright.transport.identity.hostkeys import KnownHost
from hostwright.transport.identity.keys import HostKey
from tests.unit.support.hostkeys import host_key

OLD, NEW, RSA_LIKE = (host_key(number) for number in range(3))
HOST = Host("gpu07", address="10.0.0.7")
BEFORE = (KnownHost(Path("known_hosts"), 3, "", "10.0.0.7", *OLD.line.split()),)


def having(**variables: Any) -> Host:
    values = {name: Value(value, Origin("hosts.yml", 7), HOST_LEVEL) for name, value in variables.items()}
    return Host("gpu07", vars=values)


def printing(tmp_path: Path, *keys: HostKey) -> str:
    file = tmp_path / "console"
    file.write_text("".join(f"{key.line} root@gpu07\n" for key in keys))
    return f"cat {file}"


def never(question: str) -> str:
    raise AssertionError(f"nobody was to be asked: {question}")


def test_a_given_fingerprint_must_be_the_one_that_is_shown() -> None:
    given = Sources(NEW.fingerprint, "exit 9", never)
    assert confirm(HOST, NEW, BEFORE, given) == Confirmed((NEW,), GIVEN)
    with pytest.raises(Refused) as caught:
        confirm(HOST, RSA_LIKE, BEFORE, given)
    for said in (NEW.fingerprint, RSA_LIKE.fingerprint, OLD.fingerprint, "known_hosts:3", "Nothing was changed"):
        assert said in str(caught.value)


def test_shown_key_comes_first_among_the_consoles(tmp_path: Path) -> None:
    console = Sources(console=printing(tmp_path, RSA_LIKE, NEW), ask=never)
    assert confirm(HOST, NEW, BEFORE, console) == Confirmed((NEW, RSA_LIKE), CONSOLE)


def test_another_key_on_the_console_refuses_and_nobody_is_asked(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        confirm(HOST, NEW, BEFORE, Sources(console=printing(tmp_path, RSA_LIKE), ask=never))
    for said in (NEW.fingerprint, RSA_LIKE.fingerprint, OLD.fingerprint, "someone may be between"):
        assert said.lower() in str(caught.value).lower()


def test_the_command_knows_which_host_it_is_for(tmp_path: Path) -> None:
    command = f'printf "%s {NEW.line}\\n" "$HOSTWRIGHT_HOST,$HOSTWRIGHT_ADDRESS" | tee {tmp_path}/said'
    assert console_keys(HOST, command) == (NEW,)
    assert (tmp_path / "said").read_text().split()[0] == "gpu07,10.0.0.7"


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("echo no such BMC >&2; exit 3", "ended with status 3: no such BMC"),
        ("exit 1", "ended with status 1 and printed nothing"),
        ("kill -9 $$", "ended with status -9"),
        ("sleep 60", "did not end within 0 s"),
        ("true", "printed no key"),
        (f"echo login: ; echo {NEW.line}", "printed something other than keys (line 1"),
    ],
    ids=("fails", "silent", "killed", "slow", "empty", "chatty"),
)
def test_a_command_that_fails_or_prints_no_keys_refuses(
    monkeypatch: pytest.MonkeyPatch, command: str, sentence: str
) -> None:
    monkeypatch.setattr(sources, "TIMEOUT_S", 0.3 if "sleep" in command else 60.0)
    with pytest.raises(Refused, match="hostwright_host_keys") as caught:
        confirm(HOST, NEW, BEFORE, Sources(console=command, ask=never))
    assert sentence in str(caught.value)
    assert "Nothing was changed" in str(caught.value)


def test_the_question_shows_both_keys_and_wants_the_whole_word() -> None:
    asked: list[str] = []

    def answering(text: str) -> Sources:
        return Sources(ask=lambda question: asked.append(question) or text)

    assert confirm(HOST, NEW, BEFORE, answering(" yes\n")) == Confirmed((NEW,), OPERATOR)
    assert all(said in asked[0] for said in ("gpu07", NEW.fingerprint, OLD.fingerprint, "known_hosts:3", "yes"))
    for wrong in ("", "y", "Yes", "yes please", "no\nyes"):
        with pytest.raises(Refused, match="the answer was not yes"):
            confirm(HOST, NEW, BEFORE, answering(wrong))


def test_without_a_terminal_a_changed_key_is_refused() -> None:
    with pytest.raises(Refused) as caught:
        confirm(HOST, NEW, BEFORE, Sources())
    for said in (NEW.fingerprint, OLD.fingerprint, "--fingerprint", "hostwright_host_keys", "in a terminal"):
        assert said in str(caught.value)
    with pytest.raises(Refused, match="no key is recorded for it"):
        confirm(HOST, NEW, (), Sources())


def test_a_fingerprint_is_read_as_ssh_keygen_prints_it() -> None:
    assert read_fingerprint(NEW.fingerprint) == NEW.fingerprint


@pytest.mark.parametrize(
    "text",
    ["", "SHA256:", "MD5:00:11", NEW.fingerprint[:-1], NEW.fingerprint + "A", NEW.fingerprint[7:], NEW.line],
    ids=("nothing", "no digest", "md5", "too short", "too long", "no kind", "a key"),
)
def test_anything_else_is_no_fingerprint(text: str) -> None:
    with pytest.raises(InputError, match=r"--fingerprint: found .*expected SHA256:"):
        read_fingerprint(text)


def test_the_inventory_names_the_command_or_none() -> None:
    assert read_console_command(having()) == ""
    assert read_console_command(having(hostwright_host_keys=None)) == ""
    assert read_console_command(having(hostwright_host_keys="bmc keys")) == "bmc keys"


@pytest.mark.parametrize("value", ["", "  ", 7, ["a"], "a\0b", "bmc {{ inventory_hostname }}", "bmc {{ansible_host}}"])
def test_what_cannot_be_a_command_is_named_with_its_line(value: Any) -> None:
    with pytest.raises(InputError, match=r"hosts\.yml:7.*hostwright_host_keys: found"):
        read_console_command(having(hostwright_host_keys=value))


def test_slips_of_the_name_are_all_named() -> None:
    with pytest.raises(InputError, match=r"hostwright_host_key:.*hostwright_host_keys"):
        read_console_command(having(hostwright_host_key="bmc keys"))
    with pytest.raises(InputErrors) as caught:
        read_console_command(having(hostwright_host_keys=7, hostwright_host_keyz="x"))
    assert len(caught.value.errors) == 2
