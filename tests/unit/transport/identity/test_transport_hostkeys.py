"""known_hosts files: every form written by OpenSSH, many lines, and invalid files."""

from __future__ import annotations

import base64
import hmac
import stat
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.transport.identity import hashednames
from hostwright.transport.identity.hostkeys import (
    HostKeyMismatch,
    Known,
    KnownHosts,
    entry_name,
    find,
    fingerprint,
    remember,
)
from hostwright.transport.identity.judging import Judgement
from hostwright.transport.identity.keys import HostKey
from hostwright.transport.login.cache import FileCache
from hostwright.transport.routing.sshconfig import Endpoint, Trust

KEY, OTHER = b"\0\0\0\x0bssh-ed25519" + b"k" * 36, b"\0\0\0\x0bssh-ed25519" + b"o" * 36
RSA = b"\0\0\0\x07ssh-rsa" + b"r" * 36


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def hashed(name: str, salt: bytes = b"s" * 20) -> str:
    return f"|1|{b64(salt)}|{b64(hmac.digest(salt, name.encode(), 'sha1'))}"


def known(tmp_path: Path, *lines: str, host: str = "gpu01", port: int = 22) -> Known:
    file = tmp_path / "known_hosts"
    file.write_text("\n".join(lines) + "\n")
    return find(host, port, [tmp_path / "missing", file], FileCache(KnownHosts.read))


def judged(found: Known, blob: bytes) -> bool:
    """Whether this key is known, according to the code that verifies connections."""
    trust = Trust(algorithms=("ssh-ed25519",))
    endpoint = Endpoint("gpu01", 22, "root", (), False, True, (), (), "", None, trust=trust)
    return Judgement("gpu01", endpoint, found, HostKey("ssh-ed25519", blob)).accepted()


def accepts(found: Known, blob: bytes) -> bool:
    try:
        return judged(found, blob)
    except HostKeyMismatch:
        return False


@pytest.mark.parametrize(
    ("names", "host", "port"),
    [
        ("gpu01", "gpu01", 22),
        ("gpu01,10.0.0.1", "10.0.0.1", 22),
        ("GPU01", "gpu01", 22),
        ("gpu01", "GPU01", 22),
        ("[gpu01]:2222", "gpu01", 2222),
        ("gpu*", "gpu01", 22),
        ("gpu0?", "gpu01", 22),
        ("*,!gpu02", "gpu01", 22),
        ("[gpu01]:*", "gpu01", 2222),
        (hashed("gpu01"), "gpu01", 22),
        (hashed("[gpu01]:2222"), "gpu01", 2222),
        ("fe80::1%eth0", "fe80::1%eth0", 22),
    ],
)
def test_each_form_of_a_name_is_found(tmp_path: Path, names: str, host: str, port: int) -> None:
    found = known(tmp_path, f"{names} ssh-ed25519 {b64(KEY)} a comment", host=host, port=port)
    assert accepts(found, KEY)
    assert not accepts(found, OTHER)
    assert found.key_types == ("ssh-ed25519",)


@pytest.mark.parametrize(
    "names", ["gpu02", "gpu0", "*,!gpu01", "[gpu01]:2222", "[g]pu01", hashed("gpu02"), "|1|x|y", "|2|a|b"]
)
def test_a_line_for_another_host_is_not_taken(tmp_path: Path, names: str) -> None:
    found = known(tmp_path, f"{names} ssh-ed25519 {b64(KEY)}")
    assert found.entries == ()
    assert not accepts(found, KEY)


def test_a_line_without_the_port_accepts_but_never_contradicts(tmp_path: Path) -> None:
    found = known(tmp_path, f"gpu01 ssh-ed25519 {b64(KEY)}", port=2222)
    assert accepts(found, KEY)
    assert found.expected("ssh-ed25519") is None


def test_changed_key_is_named_with_its_line(tmp_path: Path) -> None:
    found = known(tmp_path, "# mine", f"gpu01 ssh-rsa {b64(RSA)}", "", f"gpu01 ssh-ed25519 {b64(KEY)}")
    expected = found.expected("ssh-ed25519")
    assert expected is not None
    assert expected.where == f"{tmp_path}/known_hosts:4"
    other = found.expected("ecdsa-sha2-nistp256")
    assert other is not None
    assert other.number == 2


def test_a_revoked_key_is_not_accepted_even_when_it_is_also_known(tmp_path: Path) -> None:
    line = f"ssh-ed25519 {b64(KEY)}"
    found = known(tmp_path, f"gpu01 {line}", f"@revoked * {line}")
    with pytest.raises(HostKeyMismatch, match=f"which {tmp_path}/known_hosts:2 revokes"):
        judged(found, KEY)
    with pytest.raises(HostKeyMismatch, match=f"known_hosts:1 has {fingerprint(KEY)}|{fingerprint(KEY)}"):
        judged(found, OTHER)


def test_an_authority_is_seen_and_accepts_nothing(tmp_path: Path) -> None:
    found = known(tmp_path, f"@cert-authority *.example ssh-ed25519 {b64(KEY)}", host="gpu01.example")
    assert found.by_authority is not None
    assert not accepts(found, KEY)
    assert found.key_types == ()
    assert found.expected("ssh-ed25519") is None


def test_the_fingerprint_is_the_one_of_ssh_keygen(tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "key"], check=True)
    encoded = (tmp_path / "key.pub").read_text().split()[1]
    printed = subprocess.run(["ssh-keygen", "-lf", tmp_path / "key.pub"], check=True, capture_output=True, text=True)
    assert fingerprint(base64.b64decode(encoded)) == printed.stdout.split()[1]


def test_ten_thousand_hashed_lines_are_split_once_and_no_key_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "known_hosts"
    salts = [number.to_bytes(20, "big") for number in range(10_000)]
    file.write_text("".join(f"{hashed(f'h{n}', salt)} ssh-ed25519 {b64(KEY)}\n" for n, salt in enumerate(salts)))
    reads: list[Path] = []

    def read(path: Path) -> KnownHosts:
        reads.append(path)
        return KnownHosts.read(path)

    files = FileCache(read)
    real = base64.b64decode
    threads = [threading.Thread(target=find, args=(f"h{n}", 22, [file], files)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    decoded: list[object] = []
    monkeypatch.setattr("base64.b64decode", lambda *a, **k: decoded.append(a) or real(*a, **k))
    assert accepts(find("h9999", 22, [file], files), KEY)
    assert reads == [file]
    assert len(decoded) == 1


def test_a_name_is_compared_with_each_hashed_line_once_however_often_it_is_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = "".join(f"{hashed(f'h{n}', n.to_bytes(20, 'big'))} ssh-ed25519 {b64(KEY)}\n" for n in range(50))
    known_hosts = KnownHosts.parse(Path("known_hosts"), content.encode())
    hashes: list[bytes] = []
    real = hashednames._sha1
    monkeypatch.setattr(hashednames, "_sha1", lambda data: hashes.append(data) or real(data))
    for name in ("h7", "h7", "h8", "h7", "h8"):
        assert [entry.number for entry in known_hosts.lookup(name)] == [int(name[1:]) + 1]
    assert len(hashes) == 2 * 2 * 50  # an HMAC has an inner and an outer hash


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    files = FileCache(KnownHosts.read)
    file = tmp_path / "known_hosts"
    file.write_text("")
    assert not accepts(find("gpu01", 22, [file], files), KEY)
    remember(file, "gpu01", "ssh-ed25519", KEY)
    assert accepts(find("gpu01", 22, [file], files), KEY)


def test_a_new_key_is_appended_once_in_a_private_file(tmp_path: Path) -> None:
    file = tmp_path / "new" / "known_hosts"
    threads = [threading.Thread(target=remember, args=(file, f"h{n % 5}", "ssh-ed25519", KEY)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(file.read_text().splitlines()) == [f"h{n} ssh-ed25519 {b64(KEY)}" for n in range(5)]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_new_key_goes_on_a_line_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text("old ssh-ed25519 AAAA")
    remember(file, "gpu01", "ssh-ed25519", KEY)
    assert file.read_text() == f"old ssh-ed25519 AAAA\ngpu01 ssh-ed25519 {b64(KEY)}\n"


def test_ssh_keygen_finds_what_was_written(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    remember(file, entry_name("gpu01", 2222), "ssh-ed25519", KEY)
    subprocess.run(["ssh-keygen", "-F", "[gpu01]:2222", "-f", file], check=True, capture_output=True)


@settings(deadline=None)
@given(st.binary(max_size=2000))
def test_any_bytes_are_read_without_an_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.mktemp("any") / "known_hosts"
    file.write_bytes(content + b"\ngpu01 ssh-ed25519 " + b64(KEY).encode() + b"\n")
    assert accepts(find("gpu01", 22, [file], FileCache(KnownHosts.read)), KEY)


_PARTS = st.sampled_from(["a", "b", "7", ".", "-", "example"])
_FEW_NAMES = st.lists(_PARTS, min_size=1, max_size=3).map(lambda parts: "x" + "".join(parts))


@st.composite
def _hashed_names(draw: st.DrawFn) -> str:
    """Hashed names, some of them damaged: other salt lengths, invalid or non-canonical base64."""
    salt = draw(st.binary(min_size=20, max_size=20) | st.binary(max_size=70))
    digest = hmac.digest(salt, draw(_FEW_NAMES).encode(), "sha1")
    text = f"|{draw(st.sampled_from('1112'))}|{b64(salt)}|{b64(digest[: draw(st.sampled_from([20, 20, 20, 19]))])}"
    at = draw(st.none() | st.integers(0, len(text) - 1))
    return text if at is None else text[:at] + draw(st.sampled_from("|=A/+B9 ")) + text[at + 1 :]


@settings(deadline=None, max_examples=60)
@given(st.lists(_hashed_names(), min_size=1, max_size=20), _FEW_NAMES)
def test_hashed_lines_are_those_that_ssh_keygen_finds(names: list[str], name: str) -> None:
    content = "".join(f"{one} ssh-ed25519 {b64(KEY)}\n" for one in names)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "known_hosts"
        file.write_text(content)
        printed = subprocess.run(["ssh-keygen", "-F", name, "-f", file], check=False, capture_output=True, text=True)
        numbers = [entry.number for entry in KnownHosts.read(file).lookup(name)]
    assert numbers == [int(line.split()[-1]) for line in printed.stdout.splitlines() if line.startswith("#")]


_NAMES = st.text(st.characters(codec="ascii", categories=["L", "N"], include_characters="-."), min_size=1, max_size=30)


@settings(deadline=None)
@given(
    st.builds(entry_name, _NAMES, st.integers(1, 65535)),
    st.lists(_NAMES, max_size=5),
    st.booleans(),
    st.binary(min_size=1),
)
def test_what_is_written_for_a_host_is_found_for_it_alone(
    name: str, others: list[str], hash_it: bool, blob: bytes
) -> None:
    names = hashed(name) if hash_it else ",".join([*others, name])
    content = f"{names} ssh-ed25519 {b64(blob)}\n"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "known_hosts"
        file.write_text(content)
        known_hosts = KnownHosts.read(file)
    assert [entry.blob for entry in known_hosts.lookup(name)] == [blob] * (
        1 if hash_it else 1 + [other.lower() for other in others].count(name)
    )
    assert not list(known_hosts.lookup(name + "x" + "".join(others)))
