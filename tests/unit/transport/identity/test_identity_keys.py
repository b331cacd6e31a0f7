"""Host keys: strict parsing of output of consoles and tools, and generation for sshd."""

from __future__ import annotations

import pickle
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.transport.identity.keys import KEY_TYPES, LINE_CHARACTERS, HostKey, fingerprint, generate, parse_many
from tests.unit.support.hostkeys import host_key

KINDS = {
    "ssh-ed25519": ("-t", "ed25519"),
    "ecdsa-sha2-nistp256": ("-t", "ecdsa", "-b", "256"),
    "ecdsa-sha2-nistp384": ("-t", "ecdsa", "-b", "384"),
    "ecdsa-sha2-nistp521": ("-t", "ecdsa", "-b", "521"),
    "ssh-rsa": ("-t", "rsa", "-b", "2048"),
}
MINE, OTHER = host_key(0), host_key(1)


def keygen(*words: str | Path) -> str:
    done = subprocess.run(["ssh-keygen", *map(str, words)], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.mark.parametrize("kind", KEY_TYPES)
def test_each_kind_is_read_as_ssh_keygen_writes_it(tmp_path: Path, kind: str) -> None:
    keygen("-q", "-N", "", "-C", "root@gpu07 of rack 3", "-f", tmp_path / "key", *KINDS[kind])
    text = (tmp_path / "key.pub").read_text()
    key = HostKey.parse(text)
    assert (key.key_type, key.line) == (kind, " ".join(text.split()[:2]))
    assert key.fingerprint == keygen("-l", "-f", tmp_path / "key.pub").split()[1]
    assert str(key) == f"{kind} {key.fingerprint}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ssh-ed25519",
        "ssh-ed25519 ",
        "ssh-ed25519 AAAA",
        "ssh-ed25519 !!!!",
        f"ssh-rsa {MINE.line.split()[1]}",
        f"ecdsa-sha2-nistp256 {MINE.line.split()[1]}",
        f"{MINE.line[:-4]}",
        f"{MINE.line}AAAA",
        f"ssh-dss {MINE.line.split()[1]}",
        f"gpu07 {MINE.line}",
        f"{MINE.line}\n{OTHER.line}",
        f'command="true" {MINE.line}',
        f"@revoked {MINE.line}",
        MINE.fingerprint,
        f"{MINE.line} {'x' * LINE_CHARACTERS}",
        "ssh-ed25519 \ud800",
        "\0",
    ],
)
def test_what_is_not_one_public_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        HostKey.parse(text)


def test_a_short_rsa_key_is_read_only_if_it_is_one() -> None:
    with pytest.raises(ValueError, match="not a key of type ssh-rsa"):
        HostKey.parse("ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAAQA=")


@given(st.text() | st.builds(lambda kind, rest: f"{kind} {rest}", st.sampled_from(KEY_TYPES), st.text()))
def test_any_text_is_a_key_or_a_value_error(text: str) -> None:
    for read in (HostKey.parse, parse_many):
        try:
            read(text)
        except ValueError as error:
            assert str(error)


@given(st.binary(max_size=80), st.sampled_from(KEY_TYPES))
def test_any_bytes_after_a_type_are_a_key_or_a_value_error(blob: bytes, kind: str) -> None:
    key = HostKey(kind, blob)
    try:
        assert HostKey.parse(key.line) == key
    except ValueError:
        assert key.fingerprint == fingerprint(blob)


def test_many_lines_of_every_form_give_each_key_once() -> None:
    text = "\r\n".join(
        [
            "# 10.0.0.7:22 SSH-2.0-OpenSSH_9.2",
            f"10.0.0.7 {MINE.line}",
            "",
            "-----BEGIN SSH HOST KEY KEYS-----",
            f"{MINE.line} root@gpu07",
            f"{OTHER.line}",
            "-----END SSH HOST KEY KEYS-----",
            f"gpu07,[gpu07]:2222\t{OTHER.line} comment",
        ]
    )
    assert parse_many(text) == (MINE, OTHER)
    assert parse_many("\n# nothing\n") == ()


@pytest.mark.parametrize("line", ["login:", f"@revoked * {MINE.line}", f"@cert-authority * {MINE.line}", "gpu07 AAAA"])
def test_one_line_that_is_no_key_refuses_all_and_is_named(line: str) -> None:
    with pytest.raises(ValueError, match="line 2"):
        parse_many(f"{MINE.line}\n{line}\n")


def test_a_made_key_is_one_that_ssh_keygen_reads(tmp_path: Path) -> None:
    pair = generate()
    file = tmp_path / "key"
    file.touch(0o600)
    file.write_text(pair.private.reveal())
    assert keygen("-y", "-f", file).split()[:2] == pair.public.line.split()
    assert pair.public.fingerprint == keygen("-l", "-f", file).split()[1]
    assert generate().public != pair.public


def test_the_private_half_is_not_shown_by_accident() -> None:
    pair = generate()
    secret = pair.private.reveal()
    assert all(line not in f"{pair} {pair!r}" for line in secret.splitlines())
    with pytest.raises(TypeError):
        pickle.dumps(pair)


@pytest.mark.parametrize("before", ["", "gpu01 "])
def test_a_key_of_a_type_that_sshd_no_longer_offers_is_ignored(before: str) -> None:
    """``ssh-keygen -A`` of Debian 11 generates such a key, and a console prints the keys of all files."""
    assert parse_many(f"{before}ssh-dss AAAAB3NzaC1kc3MAAACBAMz1 root@gpu01\n{MINE.line}\n") == (MINE,)
