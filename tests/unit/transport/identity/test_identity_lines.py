"""Replacement of a server's lines in a known_hosts file: lines of other hosts never change."""

from __future__ import annotations

import base64
import hmac
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.transport.identity.hostkeys import KnownHosts
from hostwright.transport.identity.keys import HostKey
from hostwright.transport.identity.lines import contradicting, fits, having, without
from tests.unit.support.hostkeys import host_key

FILE = Path("known_hosts")
OLD, NEW, OTHER, FOURTH = (host_key(number) for number in range(4))
KEYS = (OLD, NEW, OTHER, FOURTH)
NAMES = ("gpu07", "[gpu07]:2222", "gpu08", "10.0.0.7", "[10.0.0.7]:2222", "gpu070")


def hashed(name: str, salt: bytes = b"s" * 20) -> str:
    digest = hmac.digest(salt, name.encode(), "sha1")
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


def edited(text: str | bytes, name: str = "gpu07", keys: tuple[HostKey, ...] = (NEW,)) -> bytes:
    content = text.encode() if isinstance(text, str) else text
    return having(FILE, without(FILE, content, name, keys), name, keys)


def given_to(content: bytes, name: str, marker: str = "") -> list[bytes]:
    return sorted(one.blob for one in KnownHosts.parse(FILE, content).lookup(name) if one.marker == marker)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"gpu07 {NEW.line}\n"),
        (f"gpu07 {OLD.line}\n", f"gpu07 {NEW.line}\n"),
        (f"gpu07 {OLD.line}", f"gpu07 {NEW.line}\n"),
        (f"GPU07 {OLD.line} mine\r\n", f"gpu07 {NEW.line}\n"),
        (f"gpu07,10.0.0.7 {OLD.line} mine\n", f"10.0.0.7 {OLD.line} mine\ngpu07 {NEW.line}\n"),
        (f"  a,GPU07,b\t{OLD.line}  x \n", f"  a,b\t{OLD.line}  x \ngpu07 {NEW.line}\n"),
        (f"gpu07 {NEW.line} kept\n", f"gpu07 {NEW.line} kept\n"),
        (f"gpu07 {NEW.line} kept\ngpu07 {OLD.line}\n", f"gpu07 {NEW.line} kept\n"),
        (f"gpu07,!gpu08 {OLD.line}\n", f"gpu07 {NEW.line}\n"),
        ("gpu07 ssh-ed25519 damaged!\n", f"gpu07 {NEW.line}\n"),
        (f"gpu08 {OLD.line}", f"gpu08 {OLD.line}\ngpu07 {NEW.line}\n"),
        (f"# a note\n\n[gpu07]:2222 {OLD.line}\n", f"# a note\n\n[gpu07]:2222 {OLD.line}\ngpu07 {NEW.line}\n"),
        (f"gpu* {NEW.line}\n", f"gpu* {NEW.line}\n"),
        (f"*,!gpu07 {OLD.line}\n", f"*,!gpu07 {OLD.line}\ngpu07 {NEW.line}\n"),
        (
            f"@revoked * {OLD.line}\n@cert-authority * {OTHER.line}\ngpu07 {OLD.line}\n",
            f"@revoked * {OLD.line}\n@cert-authority * {OTHER.line}\ngpu07 {NEW.line}\n",
        ),
    ],
)
def test_only_the_line_of_this_server_is_another_one_afterwards(before: str, after: str) -> None:
    assert edited(before) == after.encode()


def test_bytes_that_are_no_text_stay_as_they_are() -> None:
    before = b"\xff\xfe\n\xc3,gpu07," + f"b {OLD.line} ".encode() + b"\xe2\x28\n"
    assert (
        edited(before)
        == b"\xff\xfe\n\xc3," + f"b {OLD.line} ".encode() + b"\xe2\x28\n" + f"gpu07 {NEW.line}\n".encode()
    )


def test_a_name_that_was_hashed_is_hashed_again() -> None:
    after = edited(f"{hashed('gpu07')} {OLD.line}\n{hashed('gpu08')} {OLD.line}\n")
    assert b"gpu07" not in after
    assert hashed("gpu07").encode() not in after
    assert given_to(after, "gpu07") == [NEW.blob]
    assert given_to(after, "gpu08") == [OLD.blob]


@pytest.mark.parametrize("names", ["gpu*", "gpu07,gpu*", "gpu0?,!gpu08", "*"])
def test_a_line_for_many_hosts_is_named_and_stays(names: str) -> None:
    content = f"gpu08 {OLD.line}\n{names} {OLD.line}\n".encode()
    edit = without(FILE, content, "gpu07", (NEW,))
    assert [entry.where for entry in edit.in_the_way] == ["known_hosts:2"]
    assert (edit.content, edit.gone) == (content, ())


def test_shortened_line_never_becomes_hashed_or_marked() -> None:
    trap = hashed("gpu08")
    after = edited(f"gpu07,{trap} {OLD.line}\ngpu07,@revoked {OLD.line} {OTHER.line}\ngpu07,#x,gpu09 {OLD.line}\n")
    assert given_to(after, "gpu08") == []
    assert given_to(after, "gpu09") == [OLD.blob]
    assert given_to(after, "gpu07") == [NEW.blob]


@pytest.mark.parametrize("name", ["", "a b", "a,b", "*", "gpu0?", "!a", "|1|a|b", "#a", "@revoked", "a\nb", 'a"b'])
def test_what_would_be_more_than_one_name_is_never_written(name: str) -> None:
    assert not fits(name)


@pytest.mark.parametrize(
    "name", ["gpu07", "[gpu07]:2222", "fe80::1%eth0", "[fe80::1%eth0]:22022", "gpu07.rack-3.example"]
)
def test_names_and_addresses_are_written(name: str) -> None:
    assert fits(name)


names = st.lists(
    st.sampled_from((*NAMES, *(name.upper() for name in NAMES), "!gpu08", "!gpu07", "gpu9*", "|1|x", "#y", "é")),
    min_size=1,
    max_size=4,
).map(",".join)
patterns = st.sampled_from(("*", "gpu0?", "*,!gpu07", "gpu07,gpu*", "[*]:2222"))
line = st.one_of(
    st.builds(
        lambda marker, who, key, rest: f"{marker}{who} {key.line}{rest}".encode(),
        st.sampled_from(("", "", "", "@revoked ", "@cert-authority ")),
        names | names | patterns | st.sampled_from(NAMES).map(hashed),
        st.sampled_from(KEYS),
        st.sampled_from(("", " mine", "\r", " \xa0 x")),
    ),
    st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"")),
    st.sampled_from(
        (b"", b"# gpu07", b"gpu07", b"gpu07 ssh-ed25519", b"gpu07 ssh-ed25519 !", b"\tgpu08\tssh-rsa\tAAAA")
    ),
)
files = st.builds(
    lambda lines, end: b"\n".join(lines) + end, st.lists(line, max_size=12), st.sampled_from((b"", b"\n"))
)
wanted = st.lists(st.sampled_from(KEYS), max_size=2).map(tuple)


@given(files, st.sampled_from(NAMES), wanted)
def test_no_other_hosts_line_is_lost_or_changed(content: bytes, name: str, keys: tuple[HostKey, ...]) -> None:
    """For any file, every other name keeps its keys, and lines of other servers remain unchanged."""
    edit = without(FILE, content, name, keys)
    after = having(FILE, edit, name, keys)
    for other in NAMES:
        if other != name:
            assert given_to(after, other) == given_to(content, other)
    for marker in ("@revoked", "@cert-authority"):
        for one in NAMES:
            assert given_to(after, one, marker) == given_to(content, one, marker)
    concerned = {entry.number for entry in contradicting(FILE, content, name, keys)}
    untouched = [text for number, text in enumerate(content.split(b"\n"), 1) if number not in concerned]
    rest = iter(after.split(b"\n"))
    assert all(text in rest for text in untouched if text), "an untouched line is gone, or in another place"


@given(files, st.sampled_from(NAMES), wanted)
def test_afterwards_the_server_has_the_new_keys_and_no_other(
    content: bytes, name: str, keys: tuple[HostKey, ...]
) -> None:
    edit = without(FILE, content, name, keys)
    after = having(FILE, edit, name, keys)
    assert set(given_to(after, name)) == {key.blob for key in keys} | {entry.blob for entry in edit.in_the_way}
    again = without(FILE, after, name, keys)
    assert again.gone == ()
    assert having(FILE, again, name, keys) == after
