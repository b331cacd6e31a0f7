"""The BMC of a host in the inventory: what can be written, what is wrong, and the command that gives the password."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.common.errors import InputError, InputErrors
from hostwright.common.input.yamlfile import Origin, Vaulted
from hostwright.common.secret import Secret
from hostwright.inventory import Host, Value, load
from hostwright.rebuild.bmc import Bmc, BmcError, read_bmc
from hostwright.rebuild.bmc.opening import password_of
from hostwright.rebuild.bmc.settings import TIMEOUT_S

ENOUGH = {"hostwright_bmc": "bmc07", "hostwright_bmc_user": "admin", "hostwright_bmc_password": Secret("calvin")}


def host(**variables: object) -> Host:
    values = {
        name: Value(value, Origin("hosts.yml", line, 3), "host")
        for line, (name, value) in enumerate(variables.items(), 1)
    }
    return Host("gpu07.rack3", vars=values)


def read(**variables: object) -> Bmc:
    found = read_bmc(host(**{**ENOUGH, **variables}))
    assert found is not None
    return found


def mistakes(**variables: object) -> list[str]:
    with pytest.raises(InputError) as caught:
        read_bmc(host(**variables))
    return str(caught.value).splitlines()


def test_a_host_without_a_bmc_has_none() -> None:
    assert read_bmc(host()) is None
    assert read_bmc(host(hostwright_bmc_user="admin", hostwright_bmc_ca="/etc/bmc.pem")) is None
    assert read_bmc(host(**{**ENOUGH, "hostwright_bmc": None})) is None


def test_the_address_and_a_login_are_enough() -> None:
    assert read() == Bmc("gpu07.rack3", "https://bmc07", "admin", Secret("calvin"), timeout_s=TIMEOUT_S)


def test_everything_can_be_said() -> None:
    assert read(
        hostwright_bmc_password=None,
        hostwright_bmc_password_command="pass show bmc/$HOSTWRIGHT_HOST",
        hostwright_bmc_ca="~/bmc.pem",
        hostwright_bmc_system=1,
        hostwright_bmc_timeout="5m",
        hostwright_bmc_console="ssh admin@{{ inventory_hostname_short }}-bmc, then: console com2",
    ) == Bmc(
        "gpu07.rack3",
        "https://bmc07",
        "admin",
        None,
        "pass show bmc/$HOSTWRIGHT_HOST",
        "~/bmc.pem",
        "1",
        300.0,
        "ssh admin@gpu07-bmc, then: console com2",
    )


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("10.0.0.7", "https://10.0.0.7"),
        ("BMC07.example:8443", "https://bmc07.example:8443"),
        ("2001:db8::7", "https://[2001:db8::7]"),
        ("[2001:db8::7]:8443", "https://[2001:db8::7]:8443"),
        ("https://bmc07/", "https://bmc07"),
        ("https://bmc07/redfish/v1/", "https://bmc07"),
        ("{{ inventory_hostname_short }}-bmc.example", "https://gpu07-bmc.example"),
        ("{{ansible_host}}", "https://10.9.9.9"),
    ],
)
def test_an_address_is_written_in_many_ways(text: str, url: str) -> None:
    assert read(hostwright_bmc=text, ansible_host="10.9.9.9").url == url


@pytest.mark.parametrize(
    "text",
    ["bmc 07", "bmc07:x", "bmc07:99999", "https://", "ftp://bmc07", "https://bmc07/index.html", "bmc07?x", "-bmc07",
     "[::1", "fe80::1%eth0", "{{ nowhere }}", "{% if x %}", "", 7.5, True, ["bmc07"]],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: object) -> None:
    (line,) = mistakes(**{**ENOUGH, "hostwright_bmc": text})
    assert line.startswith("hosts.yml:1:3: hostwright_bmc: ")


@given(st.text(max_size=40))
def test_whatever_is_written_is_a_plain_url_or_refused(text: str) -> None:
    try:
        url = urlsplit(read(hostwright_bmc=text, hostwright_bmc_insecure=True).url)
    except InputError:
        return
    assert url.scheme in ("http", "https")
    assert url.hostname
    assert (url.username, url.password, url.path, url.query, url.fragment) == (None, None, "", "", "")


@pytest.mark.parametrize("text", ["https://admin:hunter22@bmc07", "admin:hunter22@bmc07", "https://a:hunter[22@b"])
def test_a_login_in_the_address_is_refused_and_not_repeated(text: str) -> None:
    (line,) = mistakes(**{**ENOUGH, "hostwright_bmc": text})
    assert "contains a login; put the user into hostwright_bmc_user" in line
    assert "hunter" not in line


def test_all_mistakes_are_told_at_once_with_their_places() -> None:
    lines = mistakes(
        hostwright_bmc="http://bmc07",
        hostwright_bmc_usr="admin",
        hostwright_bmc_password=Secret("a\nb"),
        hostwright_bmc_timeout="soon",
        hostwright_bmc_insecure="perhaps",
    )
    assert [line.partition(": ")[0] for line in lines] == [f"hosts.yml:{n}:3" for n in (2, 3, 4, 5, 1, 1)]
    assert "did you mean 'hostwright_bmc_user'?" in lines[0]
    assert "contains a line break or another control character" in lines[1]
    assert "expected a duration such as 90" in lines[2]
    assert "found 'perhaps', expected true or false" in lines[3]
    assert "is set, but hostwright_bmc_user is not" in lines[4]
    assert "over http:// the password can be read in transit" in lines[5]


def test_one_source_of_the_password_is_needed_and_no_more() -> None:
    (line,) = mistakes(hostwright_bmc="bmc07", hostwright_bmc_user="admin")
    assert "is set without a password; set hostwright_bmc_password" in line
    (line,) = mistakes(**ENOUGH, hostwright_bmc_password_command="pass show bmc")
    assert "hostwright_bmc_password is set as well; set one of them to null" in line


def test_a_bmc_without_tls_wants_to_be_meant_and_is_noted() -> None:
    plain = read(hostwright_bmc="http://bmc07", hostwright_bmc_insecure=True)
    assert plain.insecure
    assert "without TLS: its password can be read in transit" in plain.notes[0]
    assert read().notes == ()


def test_a_vault_and_a_colon_in_the_user_are_refused() -> None:
    assert "is encrypted with Ansible Vault" in mistakes(**{**ENOUGH, "hostwright_bmc_password": Vaulted()})[0]
    assert "cannot contain a colon" in mistakes(**{**ENOUGH, "hostwright_bmc_user": "a:b"})[0]


def test_a_password_may_come_from_another_secret_and_goes_nowhere_else() -> None:
    assert read(hostwright_bmc_password=Secret("{{ bmc_secret }}"), bmc_secret=Secret("s3cr3t")).password == Secret(
        "s3cr3t"
    )
    (line,) = mistakes(**{**ENOUGH, "hostwright_bmc_console": "{{ bmc_secret }}"}, bmc_secret=Secret("s3cr3t"))
    assert "a secret, which is not allowed here" in line


def test_an_inventory_file_hides_the_password(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text(
        "all:\n  vars:\n    hostwright_bmc: '{{ inventory_hostname }}-bmc'\n    hostwright_bmc_user: root\n"
        "    hostwright_bmc_password: 12345\n  hosts:\n    gpu01:\n    gpu02:\n"
    )
    found = [read_bmc(one) for one in load(tmp_path).hosts.values()]
    assert [one.url for one in found if one] == ["https://gpu01-bmc", "https://gpu02-bmc"]
    assert found[0] is not None
    assert found[0].password == Secret("12345")
    assert "12345" not in repr(found)


# --- the command that gives the password


def command(text: str) -> Bmc:
    return Bmc("gpu07", "https://bmc07", "admin", password_command=text)


def test_the_first_line_of_the_command_is_the_password() -> None:
    assert password_of(command("printf '%s p\\303\\244ss \\r\\nsecond' \"$HOSTWRIGHT_HOST\"")) == Secret("gpu07 päss ")
    assert password_of(read()) == Secret("calvin")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("echo 'gpg: decryption failed: No secret key' >&2; exit 2", "status 2: gpg: decryption failed: No secret key"),
        ("true", "the first line of its output is empty"),
        ("printf 'a\\033b'", "control character"),
        ("head -c 5000 /dev/zero | tr '\\0' a", "too long"),
        ("nonesuch-command", "status 127"),
    ],
)
def test_a_command_without_a_password(text: str, why: str) -> None:
    with pytest.raises(BmcError, match="hostwright_bmc_password_command printed no password") as caught:
        password_of(command(text))
    assert why in str(caught.value)


def test_what_a_failing_command_printed_is_not_repeated() -> None:
    with pytest.raises(BmcError) as caught:
        password_of(command("echo s3cr3t; echo 's3cr3t was it' >&2; exit 1"))
    assert "s3cr3t" not in str(caught.value)


def test_endless_command_is_ended_with_its_children(tmp_path: Path) -> None:
    record = shlex.quote(str(tmp_path / "pid"))
    with pytest.raises(BmcError, match="the command did not end within its time limit"):
        password_of(command(f"sleep 300 & echo $! >{record}; wait"), timeout_s=6)  # time for the child to be noted down
    pid = int((tmp_path / "pid").read_text())
    deadline_s = time.monotonic() + 60
    while _alive(pid):
        assert time.monotonic() < deadline_s, "the command's child is still there"
        time.sleep(0.02)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_several_mistakes_are_one_error_each() -> None:
    with pytest.raises(InputErrors) as caught:
        read_bmc(host(hostwright_bmc="a b", hostwright_bmc_ca=""))
    assert len(caught.value.errors) == 4
