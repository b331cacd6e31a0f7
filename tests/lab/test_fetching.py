"""Downloads over real HTTP: interrupted ones resume, changed files start again, mirrors replace each other.

Also tests the program with which a host downloads for itself, by curl and by wget.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hostwright.apply.delivery.fetching import fetch_script
from hostwright.common.errors import ArtifactError
from hostwright.stack.store.artifacts import Store
from hostwright.stack.store.hostcache import host_path
from hostwright.stack.store.mirroring import Mirrored, mirror
from tests.unit.stack.test_artifacts import Artifact, Quiet, sum_of

CONTENT = os.urandom(3_000_000)


@dataclass
class Vendor:
    """Behaviour of the server.

    ``cut`` is the number of bodies that end half-way; ``requests`` has the Range header of each request.
    """

    content: bytes = CONTENT
    ranges: bool = True
    tag: str | None = '"one"'
    cut: int = 0
    busy: int = 0
    requests: list[str | None] = field(default_factory=list)
    url: str = ""


class Handler(BaseHTTPRequestHandler):
    vendor: Vendor

    def do_GET(self) -> None:
        vendor, wanted = self.vendor, self.headers.get("Range")
        vendor.requests.append(wanted)
        if vendor.busy or self.path != "/file":
            vendor.busy -= bool(vendor.busy)
            self.send_error(503 if self.path == "/file" else 404)
            return
        start = 0
        if wanted and vendor.ranges and self.headers.get("If-Range") in (None, vendor.tag):
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
        if start >= len(vendor.content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(vendor.content)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = vendor.content[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(vendor.content) - 1}/{len(vendor.content)}")
        if vendor.tag:
            self.send_header("ETag", vendor.tag)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if vendor.cut:
            vendor.cut -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def vendor() -> Iterator[Vendor]:
    one = Vendor()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Ours", (Handler,), {"vendor": one}))
    one.url = f"http://127.0.0.1:{server.server_address[1]}/file"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield one
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", (tmp_path / "stacks",))


def artifact(vendor: Vendor, *, sha256: str | None = sum_of(CONTENT), size: int | None = None) -> Artifact:
    return Artifact("driver", "driver.run", (f"{vendor.url}-none", vendor.url), sha256, size)


def bring(store: Store, one: Artifact) -> Mirrored:
    (done,) = mirror([one], store, lock=store.lock_file("tf"), progress=Quiet())
    assert done.path.read_bytes() == CONTENT
    return done


@pytest.mark.parametrize("ranges", [True, False])
def test_a_transfer_that_breaks_off_goes_on(vendor: Vendor, store: Store, ranges: bool) -> None:
    vendor.cut, vendor.ranges = 2, ranges
    assert bring(store, artifact(vendor)).came == "fetched"
    assert vendor.requests[1:] == [None, "bytes=1500000-", "bytes=2250000-" if ranges else "bytes=1500000-"]


def test_a_later_run_goes_on_too(vendor: Vendor, store: Store) -> None:
    vendor.cut = 100
    vendor.ranges = False
    with pytest.raises(ArtifactError, match="bytes read"):
        bring(store, artifact(vendor))
    vendor.cut, vendor.ranges = 0, True
    vendor.requests.clear()
    bring(store, artifact(vendor))
    assert vendor.requests[1] == "bytes=1500000-"
    assert not (store.root / "incoming" / sum_of(CONTENT)).exists()


def test_without_a_sum_a_file_that_changed_begins_anew(vendor: Vendor, store: Store) -> None:
    vendor.content, vendor.cut, vendor.ranges = b"x" * 2_000_000, 100, False
    with pytest.raises(ArtifactError):
        bring(store, artifact(vendor, sha256=None))
    vendor.content, vendor.cut, vendor.ranges, vendor.tag = CONTENT, 0, True, '"two"'
    vendor.requests.clear()
    assert bring(store, artifact(vendor, sha256=None)).pinned
    assert vendor.requests[1] == "bytes=1000000-"


def test_without_a_sum_and_without_a_tag_nothing_is_continued(vendor: Vendor, store: Store) -> None:
    vendor.tag, vendor.cut = None, 1
    bring(store, artifact(vendor, sha256=None))
    assert vendor.requests[1:] == [None, None]


def test_a_part_that_is_complete_or_too_long(vendor: Vendor, store: Store) -> None:
    folder = store.root / "incoming" / sum_of(CONTENT)
    folder.mkdir(parents=True)
    for content in (CONTENT, CONTENT + b"more", b"x" * len(CONTENT)):
        (folder / "driver.run.part").write_bytes(content)
        if content[:1] == b"x":
            with pytest.raises(ArtifactError, match="the file was removed"):
                bring(store, artifact(vendor))
            assert not (folder / "driver.run.part").exists()
        else:
            bring(store, artifact(vendor)).path.unlink()
            folder.mkdir(exist_ok=True)


def test_a_busy_server_is_asked_again(vendor: Vendor, store: Store) -> None:
    vendor.busy = 1
    assert bring(store, Artifact("driver", "driver.run", (vendor.url,), sum_of(CONTENT), None)).came == "fetched"


def test_another_length_is_refused_before_it_is_fetched(vendor: Vendor, store: Store) -> None:
    with pytest.raises(ArtifactError) as caught:
        bring(store, artifact(vendor, size=17))
    assert "the server responded with 404" in str(caught.value)
    assert "has 3,000,000 bytes, but the stack specifies 17" in str(caught.value)


def test_a_wrong_sum_names_both(vendor: Vendor, store: Store) -> None:
    with pytest.raises(ArtifactError) as caught:
        bring(store, artifact(vendor, sha256="3" * 64))
    assert sum_of(CONTENT) in str(caught.value)
    assert "3" * 64 in str(caught.value)


def test_a_server_that_is_not_there(store: Store) -> None:
    with pytest.raises(ArtifactError, match="Connection refused"):
        bring(store, Artifact("driver", "driver.run", ("http://127.0.0.1:9/file",), "4" * 64, None))


# Downloads by the host itself


@pytest.fixture(params=["curl", "wget"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A PATH with only one of the two programs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("sh", "mkdir", "rm", "mv", "chmod", "sync", "sha256sum", request.param):
        found = shutil.which(tool)
        assert found, f"{tool} is needed: apt install {tool}"
        (folder / tool).symlink_to(found)
    return str(folder)


def fetch(one: Artifact, cache: Path, path: str) -> subprocess.CompletedProcess[str]:
    script = fetch_script(one, str(cache))
    return subprocess.run(["/bin/sh"], input=script, env={"PATH": path}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("file", ["driver.run", "a 'b' \"$(c)\"\n-d"])
def test_a_host_fetches_goes_on_and_does_it_once(vendor: Vendor, tmp_path: Path, path: str, file: str) -> None:
    one = Artifact("driver", file, (f"{vendor.url}-none", vendor.url), sum_of(CONTENT), None)
    final = Path(host_path(one, f"{tmp_path}/the cache"))
    final.parent.mkdir(parents=True)
    final.with_name(f"{file}.part").write_bytes(CONTENT[:1_000_000])
    done = fetch(one, tmp_path / "the cache", path)
    assert done.returncode == 0, done.stderr
    assert final.read_bytes() == CONTENT
    assert [entry.name for entry in final.parent.iterdir()] == [file]
    asked = len(vendor.requests)
    assert fetch(one, tmp_path / "the cache", path).returncode == 0
    assert len(vendor.requests) == asked


def test_a_host_begins_anew_where_a_part_is_damaged(vendor: Vendor, tmp_path: Path, path: str) -> None:
    one = Artifact("driver", "driver.run", (vendor.url,), sum_of(CONTENT), None)
    final = Path(host_path(one, str(tmp_path)))
    final.parent.mkdir(parents=True)
    for damaged in (b"x" * 1_000_000, b"x" * len(CONTENT), b"x" * (len(CONTENT) + 5)):
        final.with_name("driver.run.part").write_bytes(damaged)
        done = fetch(one, tmp_path, path)
        assert done.returncode == 0, done.stderr
        assert final.read_bytes() == CONTENT
        final.unlink()


def test_a_host_never_keeps_a_wrong_file(vendor: Vendor, tmp_path: Path, path: str) -> None:
    one = Artifact("driver", "driver.run", (vendor.url,), hashlib.sha256(b"else").hexdigest(), None)
    done = fetch(one, tmp_path, path)
    assert done.returncode == 1
    assert "none of the URLs gave ./driver.run with the sha256" in done.stderr
    assert list(Path(host_path(one, str(tmp_path))).parent.iterdir()) == []
