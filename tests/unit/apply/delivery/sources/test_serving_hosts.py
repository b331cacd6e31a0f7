"""The program by which a host serves others: a real process, asked by curl, wget, and whoever means no good."""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from hostwright.apply.delivery import pulling
from hostwright.apply.delivery.sources import servers
from tests.lab.sshd import free_port
from tests.unit.support.hostjobs import until

HERE = "127.0.0.1"
TOKEN = "q" * 32
CONTENT = random.Random(1).randbytes(2_000_000)  # noqa: S311 - the same in each process
SUM = hashlib.sha256(CONTENT).hexdigest()
PROGRAMS = {"pull": Path(pulling.__file__).with_name("pull.pl"), "serve": Path(servers.__file__).with_name("serve.pl")}
#: what Debian's perl-base has, which every host has
BASE = {"strict", "warnings", "Errno", "Fcntl", "POSIX", "Socket"}


@dataclass
class Serving:
    process: subprocess.Popen[bytes]
    port: int
    folder: Path

    def curl(self, *words: str, path: str = SUM, token: str = TOKEN) -> tuple[int, bytes]:
        """Status and content, as curl has them; it shows nothing of the token to other processes."""
        config = f'header = "Authorization: Bearer {token}"\n'.encode() if token else b""
        out = self.folder / "out"
        done = subprocess.run(
            ["curl", "--silent", "--noproxy", "*", "--path-as-is", "--config", "-", "--max-time", "60",
             "--output", out, "--write-out", "%{http_code}", *words, f"http://{HERE}:{self.port}/{path}"],
            input=config, capture_output=True, check=False,
        )  # fmt: skip
        content = out.read_bytes() if out.exists() else b""
        out.unlink(missing_ok=True)
        return int(done.stdout or b"0"), content

    def connect(self) -> socket.socket:
        return socket.create_connection((HERE, self.port), 60)

    def request(self, start: int = 0) -> bytes:
        ranged = f"Range: bytes={start}-\r\n" if start else ""
        return f"GET /{SUM} HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n{ranged}\r\n".encode()


@contextmanager
def serving(
    folder: Path,
    *,
    uploads: int = 2,
    rate: int = 0,
    idle_s: int = 60,
    ports: str = "0",
    address: str = HERE,
    changes: tuple[tuple[str, str], ...] = (),
    files: tuple[str, ...] = (),
) -> Iterator[Serving]:
    program = servers.program()
    for old, new in changes:
        assert old in program
        program = program.replace(old, new)
    path = folder / SUM / "cuda.deb"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(CONTENT)
    process = subprocess.Popen(
        ["perl", "-e", program, "--", address, ports, str(uploads), str(rate), str(idle_s), str(path), *files],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    with suppress(BrokenPipeError):
        process.stdin.write(f"{TOKEN}\n".encode())
        process.stdin.flush()
    line = process.stdout.readline().split()
    try:
        yield Serving(process, int(line[1]) if line[:1] == [b"serving"] else 0, folder)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            with suppress(BrokenPipeError):
                stream.close()  # type: ignore[union-attr]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    with serving(tmp_path) as one:
        yield one


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_programs_are_correct_perl_and_need_nothing_but_perl_base(name: str) -> None:
    text = PROGRAMS[name].read_text()
    done = subprocess.run(["perl", "-cw", PROGRAMS[name]], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, f"{PROGRAMS[name]} syntax OK\n")
    assert set(re.findall(r"^use ([A-Za-z]+)", text, re.MULTILINE)) <= BASE
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("dpkg") is None, reason="perl-base is Debian's")
@pytest.mark.parametrize("name", PROGRAMS)
def test_perl_base_is_enough(name: str) -> None:
    base = next(Path("/usr/lib").glob("*/perl-base"))
    done = subprocess.run(
        ["perl", "-e", "@INC = (shift); require shift; exit", str(base), "Errno.pm"], capture_output=True, check=False
    )
    assert done.returncode == 0
    command = ["perl", "-e", "BEGIN { @INC = ($ENV{BASE}) } exit 0; " + PROGRAMS[name].read_text()]
    done = subprocess.run(
        command, env={"BASE": str(base), "PATH": os.environ["PATH"]}, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_curl_and_wget_get_the_file(server: Serving) -> None:
    assert server.curl() == (200, CONTENT)
    out, config = server.folder / "wgot", server.folder / "wgetrc"
    config.write_text(f"header = Authorization: Bearer {TOKEN}\nuse_proxy = off\n")
    out.write_bytes(CONTENT[:700_000])
    url = f"http://{HERE}:{server.port}/{SUM}"
    subprocess.run(["wget", "-q", "--config", config, "--continue", "--tries=1", "-O", out, url], check=True)
    assert out.read_bytes() == CONTENT


@pytest.mark.parametrize("start", [1, 1_234_567, len(CONTENT) - 1])
def test_it_continues_what_was_begun(server: Serving, start: int) -> None:
    assert server.curl("--range", f"{start}-") == (206, CONTENT[start:])


@pytest.mark.parametrize("text", [f"{len(CONTENT)}-", "-5", "0-5", "0-,7-", "x-"])
def test_it_serves_no_other_range(server: Serving, text: str) -> None:
    assert server.curl("--header", f"Range: bytes={text}")[0] == 416


@pytest.mark.parametrize("token", ["", "x", "q" * 31, "q" * 33, "p" + "q" * 31, "q" * 31 + "p"])
def test_it_serves_nothing_without_the_token(server: Serving, token: str) -> None:
    assert server.curl(token=token) == (403, b"")


@pytest.mark.parametrize(
    "path",
    ["", "etc/passwd", "../../etc/passwd", f"../{SUM}", f"{SUM}/../{SUM}", f"{SUM}/cuda.deb", SUM.upper(), f"{SUM}?x",
     f"{SUM}%00", f"/{SUM}", f"{SUM}/"],
)  # fmt: skip
def test_paths_lead_nowhere_else(server: Serving, path: str) -> None:
    assert server.curl(path=path)[0] in (400, 404)


def test_it_serves_only_files_that_are_named(server: Serving) -> None:
    """A private file may lie beside them."""
    private = hashlib.sha256(b"private").hexdigest()
    (server.folder / private).mkdir()
    (server.folder / private / "x").write_bytes(b"private")
    assert server.curl(path=private)[0] == 404


def test_what_is_named_and_not_there_yet_or_is_a_link_is_not_served(tmp_path: Path) -> None:
    names = [hashlib.sha256(text).hexdigest() for text in (b"later", b"link", b"pipe", b"folder")]
    paths = [tmp_path / name / "file" for name in names]
    for path in paths:
        path.parent.mkdir()
    paths[1].symlink_to("/etc/passwd")
    os.mkfifo(paths[2])
    paths[3].mkdir()
    with serving(tmp_path, files=tuple(map(str, paths))) as server:
        assert [server.curl(path=name)[0] for name in names] == [404, 404, 416, 416]
        paths[0].write_bytes(b"later")
        assert server.curl(path=names[0]) == (200, b"later")


@pytest.mark.parametrize(
    "text",
    [
        b"POST /x HTTP/1.1\r\n\r\n", b"HEAD / HTTP/1.1\r\n\r\n", b"GET /\r\n\r\n", b"\0\xff\r\n\r\n", b"\r\n\r\n",
        b"GET /%b HTTP/2.0\r\n\r\n" % SUM.encode(), b"GET http://x/%b HTTP/1.1\r\n\r\n" % SUM.encode(),
    ],
)  # fmt: skip
def test_what_is_no_request_of_ours_gets_a_line(server: Serving, text: bytes) -> None:
    with server.connect() as one:
        one.sendall(text)
        assert one.recv(100).startswith(b"HTTP/1.1 400 ")
    assert server.curl() == (200, CONTENT)


def test_a_token_that_is_given_twice_is_none(server: Serving) -> None:
    with server.connect() as one:
        line = f"Authorization: Bearer {TOKEN}\r\n"
        one.sendall(f"GET /{SUM} HTTP/1.1\r\n{line}{line}\r\n".encode())
        assert one.recv(100).startswith(b"HTTP/1.1 403 ")


def test_it_makes_so_many_uploads_and_no_more(tmp_path: Path) -> None:
    with serving(tmp_path, uploads=2, rate=20_000) as server:  # slow enough that they last
        held = [server.connect() for _ in range(2)]
        for one in held:
            one.sendall(server.request())
            assert one.recv(12) == b"HTTP/1.1 200"
        assert server.curl()[0] == 503
        held[0].close()
        until(lambda: server.curl("--range", f"{len(CONTENT) - 10}-")[0] == 206, "a place is free again")
        held[1].close()


def test_it_keeps_to_its_rate(tmp_path: Path) -> None:
    """Counted in bytes that came, not in time: in the first seconds no more than the rate allows."""
    with serving(tmp_path, rate=200_000) as server, server.connect() as one:
        began, got = time.monotonic(), 0
        one.sendall(server.request())
        while got < 400_000:
            got += len(one.recv(65536))
            assert got <= 200_000 * (time.monotonic() - began) + 100_000


def test_its_rate_is_shared(tmp_path: Path) -> None:
    with serving(tmp_path, rate=1_000_000) as server:
        both = [server.connect() for _ in range(2)]
        for one in both:
            one.sendall(server.request())
        got = [0, 0]
        while max(got) < 1_000_000:
            for number, one in enumerate(both):
                got[number] += len(one.recv(20_000))
        assert min(got) > 100_000
        for one in both:
            one.close()


def test_strangers_take_no_places(server: Serving) -> None:
    """Who says nothing, half a request or drips is cut, and others are served meanwhile."""
    held = []
    for number in range(60):
        with suppress(OSError):
            held.append(server.connect())
            held[-1].sendall(b"GET /x HTTP/1.1\r\nX: y\r\n" if number % 2 else b"")
    until(lambda: server.curl() == (200, CONTENT), "strangers are cut")
    for one in held:
        one.close()


@pytest.mark.parametrize("source", ["127.0.7.7", HERE])
def test_who_says_nothing_loses_to_who_comes(server: Serving, source: str) -> None:
    """Twelve connections that say nothing stopped it for as long as somebody opened new ones."""
    held = [socket.create_connection((HERE, server.port), 60, (source, 0)) for _ in range(12)]
    assert server.curl("--max-time", "2") == (200, CONTENT)
    for one in held:
        one.close()


def test_many_who_say_nothing_lose_to_the_next_one(server: Serving) -> None:
    held = [socket.create_connection((HERE, server.port), 60, (f"127.0.8.{n + 1}", 0)) for n in range(40)]
    assert server.curl("--max-time", "2") == (200, CONTENT)
    for one in held:
        one.close()


def test_a_request_without_end_is_cut(server: Serving) -> None:
    with server.connect() as one, pytest.raises(ConnectionError):
        while True:
            one.sendall(b"X" * 4096)


def test_an_upload_of_which_nobody_takes_a_byte_ends(tmp_path: Path) -> None:
    changes = (
        ("my $STALLED_S = 20;", "my $STALLED_S = 1;"),
        ("my $PIECE_BYTES = 1024 * 1024;", "my $PIECE_BYTES = 4096;"),
    )
    with serving(tmp_path, uploads=1, changes=changes) as server, socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect((HERE, server.port))
        one.sendall(server.request())
        until(lambda: server.curl() == (200, CONTENT), "the upload ends")


def test_an_upload_that_drips_ends(tmp_path: Path) -> None:
    big = tmp_path / ("b" * 64) / "big.deb"
    big.parent.mkdir()
    with big.open("wb") as file:
        file.truncate(256 << 20)  # more than the buffers of a connection hold
    changes = (("my $WINDOW_S = 60;", "my $WINDOW_S = 2;"),)
    with serving(tmp_path, uploads=1, changes=changes, files=(str(big),)) as server, socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect((HERE, server.port))
        one.sendall(server.request().replace(SUM.encode(), b"b" * 64))
        deadline = time.monotonic() + 60
        while server.curl()[0] == 503:
            assert one.recv(128)
            assert time.monotonic() < deadline
        assert server.curl() == (200, CONTENT)


def test_it_ends_with_its_input(server: Serving) -> None:
    assert server.process.stdin
    with server.connect() as one:
        one.sendall(server.request())
        server.process.stdin.close()
        assert server.process.wait(60) == 0
    with pytest.raises(OSError, match="refused"):
        server.connect()


def test_it_ends_when_nobody_asks_for_long(tmp_path: Path) -> None:
    with serving(tmp_path, idle_s=1) as server:
        assert server.process.wait(60) == 0


def test_more_input_changes_nothing(server: Serving) -> None:
    assert server.process.stdin
    server.process.stdin.write(b"x" * 100_000)
    server.process.stdin.flush()
    assert server.curl() == (200, CONTENT)


def test_it_says_why_it_cannot(tmp_path: Path) -> None:
    port = free_port()
    with socket.create_server((HERE, port)):
        with serving(tmp_path, ports=str(port)) as server:
            assert server.process.wait(60) == 4
        with serving(tmp_path, ports=f"{port}-{port + 20}") as server:
            assert port < server.port <= port + 20
    with serving(tmp_path, address="192.0.2.1") as server:
        assert server.process.wait(60) == 4


def test_it_serves_without_sendfile_too(tmp_path: Path) -> None:
    with serving(tmp_path, changes=(("eq 'x86_64'", "eq 'another'"),)) as server:
        assert server.curl() == (200, CONTENT)
        assert server.curl("--range", "1000-") == (206, CONTENT[1000:])


def test_an_address_of_ipv6(tmp_path: Path) -> None:
    with serving(tmp_path, address="::1") as server, socket.create_connection(("::1", server.port), 20) as one:
        one.sendall(server.request())
        assert one.recv(12) == b"HTTP/1.1 200"


def test_the_token_is_in_no_argument_and_no_output(server: Serving) -> None:
    server.curl()
    arguments = Path(f"/proc/{server.process.pid}/cmdline").read_bytes()
    environment = Path(f"/proc/{server.process.pid}/environ").read_bytes()
    assert TOKEN.encode() not in arguments + environment
