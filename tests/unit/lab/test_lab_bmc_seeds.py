"""How the lab's stand-in installer reads a seed, and where a real one would stop."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from hostwright.common.errors import LabError
from hostwright.common.secret import Secret
from lab.bmc.fetching import NoAnswer
from lab.bmc.installer import read_seed
from lab.bmc.seeds import Seed, parse_autoinstall, parse_preseed, preseed_answers, public_line


def key_pair() -> tuple[str, str]:
    key = Ed25519PrivateKey.generate()
    openssh = serialization.PrivateFormat.OpenSSH
    private = key.private_bytes(serialization.Encoding.PEM, openssh, serialization.NoEncryption()).decode()
    return private, public_line(Secret(private))


PRIVATE, PUBLIC = key_pair()
LOGIN = "ssh-ed25519 AAAAC3Nza operator@desk"
AUTOINSTALL: dict[str, Any] = {
    "version": 1,
    "identity": {"hostname": "gpu01", "username": "admin", "password": "$6$salt$hash"},
    "ssh": {"install-server": True, "authorized-keys": [LOGIN]},
    "storage": {"layout": {"name": "lvm"}},
    "user-data": {"ssh_keys": {"ed25519_private": PRIVATE, "ed25519_public": PUBLIC}},
    "late-commands": ["echo 'admin ALL=(ALL) NOPASSWD: ALL' >/target/etc/sudoers.d/admin"],
}
PRESEED = """
# made up
d-i netcfg/get_hostname string gpu01
d-i passwd/username string admin
d-i passwd/user-password-crypted password $6$salt$hash
d-i partman-auto/disk string /dev/nvme0n1
d-i preseed/late_command string cd /tmp; \\
  wget -q -O late.sh http://seeds/x/late.sh && sh late.sh
"""


def user_data(**changes: Any) -> str:
    return "#cloud-config\n" + yaml.safe_dump({"autoinstall": {**AUTOINSTALL, **changes}})


def test_an_autoinstall_seed_says_who_logs_in_and_with_which_host_key() -> None:
    seed = parse_autoinstall(user_data())
    assert (seed.hostname, seed.user, seed.authorized_keys) == ("gpu01", "admin", (LOGIN,))
    assert seed.host_key is not None
    assert seed.host_key.reveal() == PRIVATE
    assert "lvm" in seed.storage
    assert list(seed.late_commands) == AUTOINSTALL["late-commands"]


def test_a_late_command_may_be_a_list_of_words() -> None:
    commands = [["touch", "/target/a b"], "true && false"]
    assert parse_autoinstall(user_data(**{"late-commands": commands})).late_commands == (
        "touch '/target/a b'",
        "true && false",
    )


def test_a_seed_never_shows_its_secrets() -> None:
    shown = repr(parse_autoinstall(user_data())) + repr(parse_preseed(PRESEED))
    assert PRIVATE.splitlines()[2] not in shown
    assert "$6$" not in shown


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("autoinstall: {}", "#cloud-config"),
        ("#cloud-config\n{", "YAML"),
        ("#cloud-config\n[]", "mapping"),
        (user_data(version=2), "version"),
        (user_data(identity=None), "identity"),
        (user_data(identity={"hostname": "../x", "username": "admin"}), "host"),
        (user_data(identity={"hostname": "gpu01", "username": "ad:min"}), "user"),
        (user_data(identity={"hostname": "gpu01", "username": "a", "password": "x\ny:z"}), "password"),
        (user_data(ssh={}), "install-server"),
        (user_data(**{"late-commands": "reboot"}), "late-commands"),
        (user_data(**{"late-commands": [{"a": "b"}]}), "late-commands"),
        (user_data(ssh={"install-server": True, "authorized-keys": ["not a key"]}), "authorized"),
        (user_data(ssh={"install-server": True, "authorized-keys": LOGIN}), "authorized"),
        (user_data(**{"user-data": {"ssh_keys": {"ed25519_private": PRIVATE}}}), "a pair of strings"),
        (user_data(**{"user-data": {"ssh_keys": {"ed25519_private": "no key", "ed25519_public": "x"}}}), "OpenSSH"),
        (
            user_data(**{"user-data": {"ssh_keys": {"ed25519_private": PRIVATE, "ed25519_public": LOGIN}}}),
            "does not belong to its private",
        ),
    ],
)
def test_a_seed_at_which_a_real_installer_would_stop_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(LabError, match=complaint) as caught:
        parse_autoinstall(text)
    assert PRIVATE.splitlines()[2] not in str(caught.value)


def test_preseed_leaves_the_keys_to_its_late_command() -> None:
    seed = parse_preseed(PRESEED)
    assert (seed.hostname, seed.user, seed.host_key) == ("gpu01", "admin", None)
    assert " ".join(seed.late_commands[0].split()) == (
        "cd /tmp; wget -q -O late.sh http://seeds/x/late.sh && sh late.sh"
    )


@given(st.dictionaries(st.from_regex(r"[a-z/_]{1,20}", fullmatch=True), st.from_regex(r"[!-~]{1,30}", fullmatch=True)))
def test_preseed_answers_come_out_as_they_went_in(answers: dict[str, str]) -> None:
    kept = {question: value for question, value in answers.items() if not value.endswith("\\")}
    assert preseed_answers("".join(f"d-i {q} string {value}\n" for q, value in kept.items())) == kept


@given(st.text(max_size=200))
def test_no_text_breaks_the_readers(text: str) -> None:
    for reader in (parse_autoinstall, parse_preseed):
        for body in (text, "#cloud-config\nautoinstall: " + text):
            try:
                seed = reader(body)
            except LabError:
                continue
            assert isinstance(seed, Seed)


@pytest.mark.parametrize(
    ("there", "found"),
    [
        ({}, None),
        ({"user-data": user_data()}, None),
        ({"user-data": user_data(), "meta-data": ""}, "Ubuntu autoinstall"),
        ({"preseed.cfg": PRESEED}, "Debian preseed"),
    ],
)
def test_a_seed_is_there_when_all_that_its_installer_needs_is(there: dict[str, str], found: str | None) -> None:
    seed = read_seed(there.get)
    assert (seed.kind if seed else None) == found


def test_no_answer_is_told_from_a_bad_seed() -> None:
    def refused(_name: str) -> str:
        raise NoAnswer("Connection refused")

    with pytest.raises(NoAnswer):
        read_seed(refused)
