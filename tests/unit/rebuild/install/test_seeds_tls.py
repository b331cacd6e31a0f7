"""Seeds over HTTPS: whom a client must trust, what is kept of it and how, and what comes of those who do not."""

from __future__ import annotations

import gzip
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import requests

from hostwright.common.errors import HostwrightError, InputError
from hostwright.rebuild.install import serving
from hostwright.rebuild.install.seeds.rendering import Seed, render_seed
from hostwright.rebuild.install.seeds.serving import SeedServer
from hostwright.rebuild.install.serving import SeedServers
from hostwright.rebuild.install.tls import authority as authorities
from hostwright.rebuild.install.tls.authority import Authority, open_authority, subject_hash
from hostwright.transport.serving import answering
from tests.lab.sshd import free_port
from tests.unit.rebuild.install.test_seeds_attacks import (
    HERE,
    HOST,
    PATIENCE_S,
    SEED,
    attack,
    ended,
    places_given,
    port,
    taken,
    until,
)
from tests.unit.support.seeds import KEYS, MINIMUM, install


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return open_authority(tmp_path)


@pytest.fixture
def server(authority: Authority) -> Iterator[SeedServer]:
    with SeedServer(HERE, 0, authority.context(HERE)) as opened:
        yield opened


def openssl(*arguments: str) -> str:
    return subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=True).stdout.strip()


def test_who_trusts_the_authority_gets_the_seed(server: SeedServer, authority: Authority) -> None:
    url = server.publish("gpu07", SEED, only_from=None)
    assert url.startswith("https://127.0.0.1:")
    assert (
        requests.get(f"{url}/user-data", verify=str(authority.certificate_file), timeout=PATIENCE_S).text == "the seed"
    )
    assert server.wait_fetched("gpu07", PATIENCE_S)
    assert server.failures("gpu07") == frozenset()


def test_who_does_not_is_told_of(server: SeedServer) -> None:
    url = server.publish("gpu07", SEED, only_from=None)
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(f"{url}/user-data", timeout=PATIENCE_S)
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{url.replace('https', 'http')}/user-data", timeout=PATIENCE_S)
    until(lambda: server.failures("gpu07") == {"127.0.0.1: tlsv1 alert unknown ca", "127.0.0.1: http request"})
    assert server.fetched("gpu07") == frozenset()


def test_it_vouches_for_the_servers_address_alone(authority: Authority) -> None:
    with SeedServer(HERE, 0, authority.context("127.0.0.2")) as server:
        url = server.publish("gpu07", SEED, only_from=None)
        with pytest.raises(requests.exceptions.SSLError, match="IP address mismatch"):
            requests.get(f"{url}/user-data", verify=str(authority.certificate_file), timeout=PATIENCE_S)


def test_an_address_of_ipv6(authority: Authority) -> None:
    with SeedServer("::1", 0, authority.context("::1")) as server:
        url = server.publish("gpu07", SEED, only_from=None)
        answer = requests.get(f"{url}/user-data", verify=str(authority.certificate_file), timeout=PATIENCE_S)
        assert answer.text == "the seed"


def test_a_peer_that_shakes_no_hands_holds_up_nobody(server: SeedServer, authority: Authority) -> None:
    url = server.publish("gpu07", SEED, only_from=None)
    silent = [socket.create_connection((HERE, port(server)), PATIENCE_S) for _ in range(20)]
    with socket.create_connection((HERE, port(server)), PATIENCE_S, ("127.0.7.7", 0)) as raw:
        trusting = ssl.create_default_context(cafile=str(authority.certificate_file))
        with trusting.wrap_socket(raw, server_hostname=HERE) as connection:
            connection.sendall(f"GET /{url.rsplit('/', 1)[1]}/user-data HTTP/1.0\r\n\r\n".encode())
            assert b"".join(iter(lambda: connection.recv(4096), b"")).endswith(b"the seed")
    for one in silent:
        one.close()


HELLO = bytes.fromhex("1603010200010001fc0303")  #: how a handshake begins


@pytest.mark.parametrize("content", [b"", b"\x16", HELLO, b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", b"\0" * 100])
def test_a_handshake_that_is_none_leaves_its_place(
    server: SeedServer, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr(answering, "REQUEST_TIMEOUT_S", 0.3)
    server.publish("gpu07", SEED, only_from=None, path="gpu07")
    with socket.create_connection((HERE, port(server)), PATIENCE_S) as silent:
        silent.sendall(content)
        assert ended(silent)
    until(lambda: taken(server) == (0, 0))
    assert server.fetched("gpu07") == frozenset()


def test_a_handshake_in_drips_is_closed_by_the_deadline(server: SeedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "REQUEST_LONGEST_S", 0.3)
    given = places_given(monkeypatch)
    server.publish("gpu07", SEED, only_from=None, path="gpu07")
    with socket.create_connection((HERE, port(server)), PATIENCE_S) as slow:
        until(lambda: given == [True])
        with pytest.raises(ConnectionError):
            slow.sendall(HELLO)
            while True:
                slow.sendall(b"\0")
                time.sleep(0.01)
    until(lambda: taken(server) == (0, 0))


def test_strangers_who_shake_no_hands_hold_no_place_of_the_host(server: SeedServer) -> None:
    server.publish("gpu07", SEED, only_from=HOST, path="gpu07")
    with ExitStack() as connections:
        attack(server, connections, [f"127.1.{number}.1" for number in range(80)], HELLO)
        until(lambda: taken(server)[1] <= answering.STRANGERS_AT_ONCE)
        assert taken(server)[0] == 0
    assert server.failures("gpu07") == frozenset()


def test_a_seed_that_nobody_reads_is_cut_and_never_in_the_clear(
    server: SeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadline ends a connection from another thread than the one that sends the seed over TLS."""
    monkeypatch.setattr(answering, "REQUEST_LONGEST_S", 6.0)  # time for the handshake and the request
    secret = b"the seed" * 2**20
    server.publish("gpu07", Seed({"user-data": secret}, "", "user-data"), only_from=None, path="gpu07")
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    arriving, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = trusting.wrap_bio(arriving, leaving)
    received = b""
    with socket.create_connection((HERE, port(server)), PATIENCE_S) as slow:
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                slow.sendall(leaving.read())
                answer = slow.recv(65536)
                assert answer, "the server has closed the connection"
                arriving.write(answer)
        tls.write(b"GET /gpu07/user-data HTTP/1.0\r\n\r\n")
        slow.sendall(leaving.read())
        until(lambda: taken(server) == (0, 0))  # cut in the middle, for nobody reads
        with suppress(ConnectionError):
            while content := slow.recv(65536):
                received += content
    assert received
    assert b"the seed" not in received
    assert server.fetched("gpu07") == frozenset()


def test_nothing_old_is_spoken(server: SeedServer, authority: Authority) -> None:
    server.publish("gpu07", SEED, only_from=None)
    old = ssl.create_default_context(cafile=str(authority.certificate_file))
    with pytest.warns(DeprecationWarning):
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with (
        socket.create_connection((HERE, port(server)), PATIENCE_S) as raw,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        old.wrap_socket(raw, server_hostname=HERE)
    until(lambda: server.failures("gpu07") == {"127.0.0.1: unsupported protocol"})


def test_it_is_made_once_and_its_key_is_ours_alone(authority: Authority, tmp_path: Path) -> None:
    again = open_authority(tmp_path)
    assert again.certificate == authority.certificate
    modes = {path.name: path.stat().st_mode & 0o777 for path in authority.folder.iterdir() if path.name[0] != "."}
    assert modes == {"authority.pem": 0o600, "hostwright-ca.pem": 0o644, "hostwright-ca.cpio.gz": 0o644}
    assert authority.folder.stat().st_mode & 0o777 == 0o700
    assert "PRIVATE" not in authority.certificate_file.read_text()
    assert b"PRIVATE" not in gzip.decompress(authority.part.read_bytes())
    authority.context(HERE)
    assert len(list(authority.folder.iterdir())) == 4  # no server's key stays there, but the lock does


def test_files_for_others_are_made_again_where_they_are_missing(authority: Authority, tmp_path: Path) -> None:
    part = authority.part.read_bytes()
    authority.part.unlink()
    authority.certificate_file.write_text("something else")
    open_authority(tmp_path)
    assert authority.part.read_bytes() == part
    assert "BEGIN CERTIFICATE" in authority.certificate_file.read_text()


def test_a_key_that_others_can_read_or_that_is_none_is_refused(authority: Authority, tmp_path: Path) -> None:
    file = authority.folder / "authority.pem"
    content = file.read_text()
    file.chmod(0o640)
    with pytest.raises(HostwrightError, match=r"authority.pem is accessible to other users, who could impersonate"):
        open_authority(tmp_path)
    file.chmod(0o600)
    for wrong in ("", content.partition("-----BEGIN CERTIFICATE")[0], content.replace("A", "B")):
        file.write_text(wrong)
        with pytest.raises(HostwrightError, match="does not contain a key and its certificate"):
            open_authority(tmp_path)
    other = open_authority(tmp_path / "other").folder / "authority.pem"
    key, certificate = content.partition("-----BEGIN CERTIFICATE")[0], other.read_text()
    file.write_text(key + certificate[certificate.index("-----BEGIN CERTIFICATE") :])
    with pytest.raises(HostwrightError, match="contains a certificate of another key"):
        open_authority(tmp_path)


def test_one_that_expires_is_refused_before_it_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorities, "AUTHORITY_LASTS", timedelta(days=29))
    with pytest.raises(
        HostwrightError, match=r"is valid only until 20[0-9-]{8}: remove the file, run the command again, and give"
    ):
        open_authority(tmp_path)


def test_it_is_valid_for_hosts_whose_clocks_are_behind(authority: Authority) -> None:
    assert authority.certificate.not_valid_before_utc == datetime(2000, 1, 1, tzinfo=UTC)
    left = authority.certificate.not_valid_after_utc - datetime.now(UTC)
    assert timedelta(days=1824) < left < timedelta(days=1826)


def test_openssl_finds_it_by_its_name_and_lets_it_vouch_for_no_name(authority: Authority, tmp_path: Path) -> None:
    file = str(authority.certificate_file)
    assert openssl("x509", "-in", file, "-noout", "-hash") == subject_hash(authority.certificate)
    key, request, issued, extensions = (str(tmp_path / name) for name in ("key", "request", "issued", "extensions"))
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
    for names, expected in (
        ("IP:10.0.0.1", 0),
        ("DNS:mirror.example.org", 2),
        ("DNS:mirror.example.org,IP:10.0.0.1", 2),
    ):
        Path(extensions).write_text(f"subjectAltName={names}\n")
        openssl("req", "-new", "-key", key, "-subj", "/CN=x", "-out", request)
        signing = ["-CA", file, "-CAkey", str(authority.folder / "authority.pem"), "-extfile", extensions]
        openssl("x509", "-req", "-in", request, *signing, "-out", issued)
        checked = subprocess.run(["openssl", "verify", "-CAfile", file, issued], capture_output=True, check=False)
        assert checked.returncode == expected, (names, checked.stderr)


def test_a_port_has_one_protocol(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(serving, "state_root", lambda: tmp_path)
    serve = f"{HERE}:{free_port()}"
    with SeedServers() as servers:
        with servers.place("gpu07", install(serve=serve, https=True)) as place:
            assert place.url == f"https://{serve}/gpu07"
            assert place.authority is not None
            seed = render_seed(install(), host="gpu07", keys=KEYS, url=place.url)
            assert f"ds=nocloud-net;s=https://{serve}/gpu07/" in seed.command_line
            sentence = place.on_the_wire(seed)
            assert sentence.startswith(f"its seed goes over HTTPS: pass {place.authority.part} to its installer")
            place.publish(SEED)
            with pytest.raises(requests.exceptions.SSLError):
                requests.get(f"{place.url}/user-data", timeout=PATIENCE_S)
            until(lambda: bool(place.came()))
            assert "(it came, but HTTPS failed with 127.0.0.1: tlsv1 alert unknown ca: does it get" in place.came()
        with (
            pytest.raises(InputError, match="is used for seeds with both http and https"),
            servers.place("x", install(serve=serve)),
        ):
            pass


def test_without_https_nothing_is_made_and_the_risk_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(serving, "state_root", lambda: tmp_path)
    place = serving.Place("gpu07", "http://10.0.0.1:8098/gpu07")
    debian = render_seed(install(os="debian"), host="gpu07", keys=KEYS, url=place.url)
    again = render_seed(install(os="debian"), host="gpu07", keys=KEYS, url=place.url)
    ubuntu = render_seed(install(), host="gpu07", keys=KEYS, url=place.url)
    assert place.on_the_wire(ubuntu) == serving.PLAIN
    assert re.search(r"with preseed/url/checksum=[0-9a-f]{32} among its kernel's arguments", place.on_the_wire(debian))
    assert debian.checksum == again.checksum
    assert list(tmp_path.iterdir()) == []


def test_an_installer_that_is_told_to_trust_everybody_is_no_https() -> None:
    argument = "debian-installer/allow_unauthenticated_ssl=true"
    with pytest.raises(InputError, match="makes the installer trust any server: remove it"):
        install(os="debian", https=True, kernel_arguments=[argument])
    assert install(os="debian", kernel_arguments=[argument]).kernel_arguments == (argument,)
    assert "https" not in MINIMUM
