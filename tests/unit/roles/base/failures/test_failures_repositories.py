"""Keyrings that expired, lack or cannot be read, and proxies, are seen before apt fails for them.

Reports: openSUSE/snapper#1019, aptly-dev/aptly#916, keybase/client#9626, swift/swift#120 and jstkdng/ueberzugpp#285
(expired keys), kpcyrd/acme-redirect#36 (one expired and one renewed key), Debian/apt#103 (a proxy that wants a login),
Debian/apt#42, element-hq/element-web#3573 (a proxy that refuses to tunnel). Keys are made by the real gpg, and read by
our own reader; apt is the real one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.plan.model import Answer
from hostwright.resources.packages.openpgp import expired_on
from hostwright.standard.roles.base.failures.trust import KEYRINGS, PROXIES
from tests.unit.support.auditcontexts import NOW, evidence

OURS = "/etc/apt/sources.list.d/nvidia-container-toolkit.list"
LIST = "/etc/apt/sources.list.d/theirs.list"
FIRST = b"\x98\x06\x04\x00\x00\x00\x01\x01"  #: the packet of a key, as RFC 4880 has it (5.5.2)


class Gpg:
    """The real gpg in a home of its own, with a clock that stands where it is set."""

    def __init__(self, home: Path):
        self.home = home
        home.mkdir(mode=0o700)

    def __call__(self, *words: str, at: str = "20200101T000000") -> bytes:
        command = ["gpg", "--homedir", str(self.home), "--batch", "-q", "--pinentry-mode", "loopback"]
        command += ["--passphrase", "", "--faked-system-time", f"{at}!", *words]
        return subprocess.run(command, check=True, capture_output=True).stdout

    def key(self, name: str, kind: str = "ed25519", lasts: str = "1y") -> str:
        self("--quick-generate-key", name, kind, "sign", lasts)
        rows = self("--with-colons", "--list-keys", name).decode().splitlines()
        return next(row.split(":")[9] for row in rows if row.startswith("fpr"))


@pytest.fixture(scope="module")
def gpg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gpg]:
    if shutil.which("gpg") is None:
        pytest.skip("this machine has no gpg")
    run = Gpg(tmp_path_factory.mktemp("gpg") / "home")
    yield run
    subprocess.run(["gpgconf", "--homedir", str(run.home), "--kill", "all"], check=False, capture_output=True)


@pytest.mark.parametrize("kind", ["ed25519", "rsa2048"])
def test_the_day_on_which_a_key_expired_is_read_from_its_bytes(gpg: Gpg, kind: str) -> None:
    gpg.key(f"Expired {kind}", kind)
    ring = gpg("--export", f"Expired {kind}")
    assert expired_on(ring, NOW) == datetime(2020, 12, 31, tzinfo=UTC)
    assert expired_on(ring, datetime(2020, 6, 1, tzinfo=UTC)) is None


def test_a_key_that_was_renewed_counts_though_its_first_signature_says_otherwise(gpg: Gpg) -> None:
    fingerprint = gpg.key("Renewed")
    gpg("--quick-set-expire", fingerprint, "20y", at="20200601T000000")
    assert expired_on(gpg("--export", fingerprint), NOW) is None


def test_a_key_without_an_end_and_a_ring_with_one_that_counts_are_good(gpg: Gpg) -> None:
    gpg.key("For ever", lasts="0")
    gpg.key("Long gone")
    assert expired_on(gpg("--export", "For ever"), NOW) is None
    assert expired_on(gpg("--export", "Long gone", "For ever"), NOW) is None
    assert expired_on(gpg("--export", "Long gone"), NOW) is not None


def test_a_signing_subkey_that_expired_does_not_take_its_key_along(gpg: Gpg) -> None:
    fingerprint = gpg.key("With subkeys", lasts="20y")
    gpg("--quick-add-key", fingerprint, "ed25519", "sign", "1y")
    assert expired_on(gpg("--export", fingerprint), NOW) is None


@given(body=st.binary(max_size=40), ring=st.binary(max_size=200))
def test_garbage_raises_nothing_but_a_value_error(body: bytes, ring: bytes) -> None:
    for signature in (body, b"\x04" + body, b"\x04\x13\x01\x08" + body):
        with suppress(ValueError):
            expired_on(FIRST + bytes((0x88, len(signature))) + signature, NOW)
    with suppress(ValueError):
        expired_on(ring, NOW)


@pytest.mark.parametrize(
    "signature",
    [
        b"\x04",  # without a type
        b"\x04\x13\x01\x08\x00\x01\x05",  # a subpacket that ends after its length
        b"\x04\x13\x01\x08\x00\x0b\x0a\x09" + b"\xff" * 9,  # it counts for longer than there are years
    ],
)
def test_a_damaged_signature_says_nothing_of_its_key(signature: bytes) -> None:
    ring = FIRST + bytes((0x88, len(signature))) + signature
    with pytest.raises(ValueError, match="damaged"):
        expired_on(ring, NOW)
    assert evidence("foreign-keyring", {KEYRINGS: answer(LIST, "/a.gpg", ring.hex())}) == []


def answer(file: str, ring: str, state: str) -> str:
    lines = [f"deb [signed-by={ring}] https://theirs.example/apt ./"]
    if file.endswith(".sources"):
        lines = ["Types: deb", "URIs: https://theirs.example/apt", "Suites: ./", f"Signed-By: {ring}"]
    rows = (f"source\t{file}\t{number}\t{line}\n" for number, line in enumerate(lines, 1))
    return f"{''.join(rows)}ring\t{ring}\t{state}\n"


@pytest.mark.parametrize(
    ("file", "ring", "needed"),
    [
        (OURS, "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg", True),
        ("/etc/apt/sources.list.d/debian.sources", "/usr/share/keyrings/debian-archive-keyring.gpg", True),
        ("/etc/apt/sources.list", "/usr/share/keyrings/ubuntu-archive-keyring.gpg", True),
        (LIST, "/etc/apt/keyrings/theirs.gpg", False),
    ],
)
@pytest.mark.parametrize("state", ["missing", "unreadable", "expired"])
def test_only_lists_that_are_needed_are_failures(gpg: Gpg, file: str, ring: str, state: str, *, needed: bool) -> None:
    name = "Expired key of a list"
    if state == "expired" and name.encode() not in gpg("--list-keys", "--with-colons"):
        gpg.key(name)
    shown = gpg("--export", name).hex() if state == "expired" else state
    rule = ("repository-key-expired" if state == "expired" else "keyring-unreadable") if needed else "foreign-keyring"
    seen = {KEYRINGS: answer(file, ring, shown)}
    if file == OURS and state != "expired":
        assert evidence(rule, seen) == [], "a state of the role, which the plan shows and provision mends"
        return
    (line,) = evidence(rule, seen)
    assert re.match(rf"{file}:[12]: .*https://theirs.example/apt.*: {ring} ", line)
    others = {"repository-key-expired", "keyring-unreadable", "foreign-keyring"} - {rule}
    assert [evidence(other, seen) for other in others] == [[], []]


def test_one_good_keyring_of_two_is_enough() -> None:
    seen = answer(LIST, "/a.gpg,/b.gpg", "").partition("ring")[0] + "ring\t/a.gpg\tmissing\nring\t/b.gpg\t99\n"
    assert evidence("foreign-keyring", {KEYRINGS: seen}) == []


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    """What stands for /etc/apt, which the real apt reads."""
    if shutil.which("apt-get") is None:
        pytest.skip("this machine has no apt")
    for folder in ("etc/sources.list.d", "etc/apt.conf.d", "state/lists/partial", "cache/archives/partial"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "apt.conf").write_text(
        f'Dir::Etc "{tmp_path}/etc"; Dir::State "{tmp_path}/state"; Dir::Cache "{tmp_path}/cache";'
        'Dir::Etc::parts "apt.conf.d"; Dir::Etc::sourcelist "sources.list"; APT::Sandbox::User "root";'
        "#clear Acquire::http::Proxy; #clear Acquire::https::Proxy;"
    )
    return tmp_path


def ask(etc: Path, script: str, **more: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    env |= {"APT_CONFIG": str(etc / "apt.conf"), **more}
    done = subprocess.run(["/bin/sh"], input=script, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_sources_in_both_styles_name_their_keyrings(gpg: Gpg, etc: Path) -> None:
    gpg.key("Of a list")
    (etc / "armored.asc").write_bytes(gpg("--armor", "--export", "Of a list"))
    (etc / "etc/sources.list").write_text(
        f"# deb [signed-by=/x.gpg] http://x.example/ ./\n"
        f"deb [signed-by={etc}/armored.asc] http://ada:hunter2@one.example/apt ./\ndeb http://none.example/ ./\n"
    )
    (etc / "etc/sources.list.d/a.sources").write_text(
        f"Types: deb\nURIs: http://off.example/\nSuites: ./\nSigned-By: {etc}/no.gpg\nEnabled: no\n\n"
        f"Types: deb\nURIs: http://two.example/\nSuites: stable\nComponents: main\nSigned-By: {etc}/gone.gpg\n"
    )
    # nobody else reads pytest's files
    script = KEYRINGS.script.replace('setpriv --reuid=_apt --regid="$group" --clear-groups', "")
    said = ask(etc, script.replace("/etc/apt/", f"{etc}/etc/"))
    lines = evidence("foreign-keyring", {KEYRINGS: said})
    assert "hunter2" not in "".join(lines)
    ring = f"{etc}/armored.asc"
    assert lines == [
        f"{etc}/etc/sources.list:2: deb [signed-by={ring}] http://one.example/apt ./: {ring} holds only keys that"
        " expired, the last on 2020-12-31",
        f"{etc}/etc/sources.list.d/a.sources:8: URIs: http://two.example/: {etc}/gone.gpg is missing",
    ]


@pytest.mark.parametrize("kind", ["pipe", "device", "endless", "kernel's"])
def test_what_is_no_keyring_is_not_read_to_its_end(etc: Path, kind: str) -> None:
    ring = etc / "theirs.gpg"
    if kind == "pipe":
        os.mkfifo(ring)
    elif kind == "endless":
        ring.touch()
        os.truncate(ring, 2**40)
    else:
        ring.symlink_to("/dev/zero" if kind == "device" else "/proc/kmsg")
    (etc / "etc/sources.list").write_text(f"deb [signed-by={ring}] http://one.example/apt ./\n")
    script = KEYRINGS.script.replace("command -v setpriv", "false")  # nobody else reads pytest's files
    said = ask(etc, script.replace("/etc/apt/", f"{etc}/etc/"))
    assert said.splitlines()[-1] == f"ring\t{ring}\t"


@pytest.mark.parametrize(("mode", "fault"), [(0o600, "unreadable 600"), (0o640, "unreadable 640"), (0o644, "99")])
def test_a_keyring_that_apts_user_cannot_read_is_found(etc: Path, mode: int, fault: str) -> None:
    if os.getuid() != 0 or subprocess.run(["id", "_apt"], capture_output=True, check=False).returncode != 0:
        pytest.skip("nobody to try it as")
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        ring = Path(place) / "theirs.gpg"
        ring.write_bytes(b"\x99")
        ring.chmod(mode)
        (etc / "etc/sources.list").write_text(f"deb [arch=amd64 signed-by={ring}] http://one.example/apt ./\n")
        said = ask(etc, KEYRINGS.script.replace("/etc/apt/", f"{etc}/etc/"))
        bare = ask(etc, KEYRINGS.script.replace("/etc/apt/", f"{etc}/etc/").replace("command -v setpriv", "false"))
    assert said.splitlines()[-1] == f"ring\t{ring}\t{fault}"
    assert bare.splitlines()[-1] == f"ring\t{ring}\t99", "a host without setpriv does not tell"


class Proxy(BaseHTTPRequestHandler):
    """One that wants a login, or has none of its own; what it is told is kept."""

    status, told = 407, []  # type: ignore[var-annotated]

    def do_GET(self) -> None:
        self.told.append((self.path, self.headers.get("Proxy-Authorization")))
        self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_CONNECT = do_GET  # noqa: N815 - as http.server wants it

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def proxy() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), Proxy)
    Proxy.told.clear()
    Proxy.status = 407
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def source(etc: Path, scheme: str = "http") -> None:
    (etc / "etc/sources.list").write_text(f"deb {scheme}://mirror.example/apt ./\n")


@pytest.mark.parametrize("where", ["configured", "environment"])
def test_a_proxy_that_wants_a_login_is_named_without_the_one_that_it_got(
    etc: Path, proxy: HTTPServer, where: str
) -> None:
    source(etc)
    address = f"http://ada:hunter2@127.0.0.1:{proxy.server_port}"
    more = {}
    if where == "configured":
        (etc / "etc/apt.conf.d/95proxy").write_text(f'Acquire::http::Proxy "{address}";\n')
    else:
        more["http_proxy"] = address
    said = ask(etc, PROXIES.script, **more)
    assert "hunter2" not in said
    (line,) = evidence("proxy-refuses", {PROXIES: said})
    assert line.startswith(f"the proxy http://127.0.0.1:{proxy.server_port} refuses: ")
    assert "407" in line
    assert {path for path, _ in Proxy.told} == {"http://mirror.example/apt/./InRelease"}, "nobody else is asked"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_dead_proxy_is_named(etc: Path, scheme: str) -> None:
    source(etc, scheme)
    (etc / "etc/apt.conf.d/95proxy").write_text(f'Acquire::{scheme}::Proxy "http://ada:hunter2@127.0.0.1:9";\n')
    said = ask(etc, PROXIES.script)
    assert "hunter2" not in said
    (line,) = evidence("proxy-refuses", {PROXIES: said})
    assert line.startswith("the proxy http://127.0.0.1:9 does not answer: ")


@pytest.mark.parametrize(
    "message",
    [
        "Could not resolve 'proxy.example'",  # its name is in no DNS; the next is of a DNS that does not answer
        "Temporary failure resolving 'proxy.example'",
        "Cannot initiate the connection to proxy.example:3128 (192.0.2.1). - connect (101: Network is unreachable)",
        "Could not connect to proxy.example:3128 (192.0.2.1), connection timed out",
    ],
)
def test_every_way_in_which_apt_says_that_a_proxy_is_not_to_be_had_is_known(message: str) -> None:
    said = f"proxy http http://proxy.example:3128\nErr:1 http://mirror.example/apt ./ InRelease\n  {message}\n"
    assert evidence("proxy-refuses", {PROXIES: said}) == [
        f"the proxy http://proxy.example:3128 does not answer: {message}"
    ]


@pytest.mark.parametrize("login", ["ada@example.org:hunter2", "ada:x@hunter2", "ada:x/hunter2"])
def test_a_login_with_signs_that_should_have_been_encoded_is_not_shown(etc: Path, login: str) -> None:
    source(etc)
    said = ask(etc, PROXIES.script, http_proxy=f"http://{login}@127.0.0.1:9")
    assert said.startswith("proxy http http://127.0.0.1:9\n")
    assert "hunter2" not in said
    (etc / "etc/sources.list").write_text(
        f"deb [signed-by={etc}/gone.gpg] http://{login.replace('/', '@')}@one.example/apt ./\n"
    )
    (line,) = evidence("foreign-keyring", {KEYRINGS: ask(etc, KEYRINGS.script.replace("/etc/apt/", f"{etc}/etc/"))})
    assert line.startswith(f"{etc}/etc/sources.list:1: deb [signed-by={etc}/gone.gpg] http://one.example/apt ./: ")


def test_a_proxy_that_passes_a_servers_answer_on_is_none_of_the_problem(etc: Path, proxy: HTTPServer) -> None:
    source(etc)
    Proxy.status = 404
    said = ask(etc, PROXIES.script, http_proxy=f"http://127.0.0.1:{proxy.server_port}")
    assert said.startswith("proxy http ")
    assert evidence("proxy-refuses", {PROXIES: said}) == []


@pytest.mark.parametrize("setting", ["", 'Acquire::http::Proxy "DIRECT";\n'])
def test_a_host_without_a_proxy_asks_nobody(etc: Path, setting: str) -> None:
    source(etc)
    (etc / "etc/apt.conf.d/95proxy").write_text(setting)
    assert ask(etc, PROXIES.script, **({"http_proxy": "http://127.0.0.1:9"} if setting else {})) == ""
    assert evidence("proxy-refuses", {PROXIES: Answer(0, "")}) == []
