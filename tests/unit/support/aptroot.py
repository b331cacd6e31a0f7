"""Runs this machine's apt and dpkg on a temporary root directory, with generated repositories in files or served on
127.0.0.1.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType

import pytest

from hostwright.resources.packages.dpkg import DPKG, parse_dpkg
from tests.unit.support.shell import ask, program

ARCHITECTURE = "amd64"
PAST = "20200101T000000!"  #: gpg's creation time of expired keys


class AptRoot:
    """Directories of apt and dpkg; ``config`` is the value of ``APT_CONFIG`` with which apt uses them."""

    def __init__(self, folder: Path):
        self.root = folder / "root"
        self.etc = self.root / "etc/apt"
        for name in ("sources.list.d", "apt.conf.d", "preferences.d", "trusted.gpg.d"):
            (self.etc / name).mkdir(parents=True)
        for name in ("var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/log/apt", "var/lib/dpkg/info",
                     "var/lib/dpkg/updates", "var/lib/dpkg/triggers"):  # fmt: skip
            (self.root / name).mkdir(parents=True)
        self.dpkg = self.root / "var/lib/dpkg"
        (self.dpkg / "status").touch()
        self.config = folder / "apt.conf"
        self.config.write_text(
            f'Dir "{self.root}";\nDir::State::status "{self.dpkg}/status";\nDir::Bin::dpkg "{folder}/bin/dpkg";\n'
            'APT::Sandbox::User "";\nAPT::Architecture "amd64";\nAPT::Architectures { "amd64"; };\n'
            'Acquire::Languages "none";\nAcquire::http::Timeout "2";\nAcquire::https::Timeout "2";\n'
            'Dir::Log "/dev/null";\n#clear APT::NeverAutoRemove;\n'
        )
        (folder / "bin").mkdir()
        self.calls = folder / "calls"
        self.calls.touch()
        dpkg = folder / "bin/dpkg"
        dpkg.write_text(f'#!/bin/sh\necho "dpkg $*" >>{self.calls}\n')
        dpkg.chmod(0o755)

    def source(self, text: str, name: str = "a.list") -> str:
        """Write a source list; return its path."""
        path = self.etc / "sources.list.d" / name
        path.write_text(text)
        return str(path)

    def configure(self, text: str) -> None:
        """Add a file to apt's configuration."""
        (self.etc / "apt.conf.d/90test").write_text(text)

    def status(self, *stanzas: str) -> None:
        """Write dpkg's database."""
        (self.dpkg / "status").write_text("".join(f"{stanza.strip()}\n\n" for stanza in stanzas))

    @property
    def unpacked(self) -> list[str]:
        """The names of the package files that apt passed to dpkg for unpacking."""
        words = " ".join(line for line in self.calls.read_text().splitlines() if "--unpack" in line).split()
        return sorted(Path(word).name.partition("_")[0] for word in words if word.endswith(".deb"))


def installed(name: str, version: str = "1", state: str = "install ok installed", **fields: str) -> str:
    """One stanza of dpkg's database."""
    lines = [f"Package: {name}", f"Status: {state}", "Architecture: amd64", "Maintainer: a <a@b.example>",
             f"Version: {version}", "Description: d"]  # fmt: skip
    return "\n".join(lines + [f"{field.replace('_', '-')}: {value}" for field, value in fields.items()])


def deb(folder: Path, name: str, version: str = "1", **fields: str) -> Path:
    """Build a small package file."""
    tree = folder / f"tree-{name}-{version}"
    (tree / "DEBIAN").mkdir(parents=True)
    more = "".join(f"{field.replace('_', '-')}: {value}\n" for field, value in fields.items())
    (tree / "DEBIAN/control").write_text(
        f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: a <a@b.example>\n{more}Description: d\n"
    )
    (tree / f"usr/share/{name}").mkdir(parents=True)
    (tree / f"usr/share/{name}/file").write_text(version)
    path = folder / f"{name}_{version}_amd64.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, path], check=True, capture_output=True)
    return path


def repository(
    folder: Path,
    *packages: Path,
    suite: str = "stable",
    signer: Key | None = None,
    others: Mapping[str, Sequence[Path]] = MappingProxyType({}),
    **release: str,
) -> Path:
    """Create a repository with these packages (``deb [trusted=yes] file:FOLDER SUITE main``), and ``others`` by
    component.

    ``release``: fields of its Release file, such as ``Valid_Until``.
    """
    indexes = {name: _index(folder, suite, name, chosen) for name, chosen in {"main": packages, **others}.items()}
    fields = {"Origin": "Lab", "Label": "Lab", "Suite": suite, "Codename": suite, "Date": formatdate(usegmt=True)}
    fields |= {"Architectures": "amd64", "Components": " ".join(indexes)}
    fields |= {k.replace("_", "-"): v for k, v in release.items()}
    lines = "".join(f"{key}: {value}\n" for key, value in fields.items()) + "SHA256:\n"
    for name, text in indexes.items():
        lines += f" {hashlib.sha256(text).hexdigest()} {len(text)} {name}/binary-amd64/Packages\n"
    (folder / f"dists/{suite}/Release").write_text(lines)
    if signer:
        signer.sign(folder / f"dists/{suite}/Release", folder / f"dists/{suite}/InRelease")
    return folder


def _index(folder: Path, suite: str, component: str, packages: Sequence[Path]) -> bytes:
    """Write the package list of a component, and copy these packages into the pool."""
    index = folder / f"dists/{suite}/{component}/binary-amd64"
    (folder / "pool").mkdir(parents=True, exist_ok=True)
    index.mkdir(parents=True, exist_ok=True)
    stanzas = []
    for package in packages:
        data = package.read_bytes()
        (folder / "pool" / package.name).write_bytes(data)
        control = subprocess.run(["dpkg-deb", "-f", package], check=True, capture_output=True, text=True).stdout
        sha = hashlib.sha256(data).hexdigest()
        stanzas.append(f"{control}Filename: pool/{package.name}\nSize: {len(data)}\nSHA256: {sha}\n")
    text = "\n".join(stanzas).encode()
    (index / "Packages").write_bytes(text)
    return text


class Key:
    """A signing key for repositories; ``expired``: it has expired since it signed."""

    def __init__(self, folder: Path, *, expired: bool = False):
        self.home = folder
        folder.mkdir(mode=0o700)
        self.time = ["--faked-system-time", PAST] if expired else []
        self._gpg("--passphrase", "", "--quick-generate-key", "Lab <lab@b.example>", "ed25519", "sign", "1d")
        self.ring = folder / "ring.gpg"
        self.ring.write_bytes(self._gpg("--export"))

    def sign(self, release: Path, target: Path) -> None:
        """Sign a Release file."""
        target.unlink(missing_ok=True)
        self._gpg("--clearsign", "--output", str(target), str(release))

    def _gpg(self, *arguments: str) -> bytes:
        command = ["gpg", "--homedir", str(self.home), "--batch", "--quiet", *self.time, *arguments]
        return subprocess.run(command, check=True, capture_output=True).stdout

    def close(self) -> None:
        """Stop the agent that gpg started."""
        subprocess.run(["gpgconf", "--homedir", str(self.home), "--kill", "all"], check=False, capture_output=True)


class Server:
    """The settings of a server on 127.0.0.1: it serves files below ``folder``, or responds with ``status`` to every
    request.

    ``hangs``: it accepts connections but does not respond until it is closed. ``asked`` are the requested paths and
    addresses.
    """

    def __init__(self, folder: Path, status: int = 200, *, hangs: bool = False):
        asked = self.asked = list[str]()
        over = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                if hangs:
                    over.wait(60)
                    return
                path = folder / self.path.split("127.0.0.1")[-1].partition("/")[2].lstrip("/")
                found = status == 200 and path.is_file()
                self.send_response(status if status != 200 else 200 if found else 404)
                data = path.read_bytes() if found else b""
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_CONNECT(self) -> None:
                self.do_GET()

            def log_message(self, *arguments: object) -> None:
                pass

        self.over = over
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop the server."""
        self.over.set()
        self.server.shutdown()
        self.server.server_close()


@contextmanager
def served(folder: Path, status: int = 200, *, hangs: bool = False) -> Iterator[Server]:
    """Run a server while the block runs."""
    server = Server(folder, status, hangs=hangs)
    try:
        yield server
    finally:
        server.close()


def in_days(days: float) -> str:
    """A date in the format of a Release file."""
    return formatdate(time.time() + days * 86400, usegmt=True)


def work_for_real(apt: AptRoot, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let dpkg work on apt's root; requires root."""
    monkeypatch.setenv("APT_CONFIG", str(apt.config))
    root = f"--root={apt.root} --log=/dev/null --force-bad-path --force-script-chrootless"
    program(folder / "bin", "dpkg", f'echo "dpkg $*" >>{apt.calls}; exec /usr/bin/dpkg {root} "$@"')
    program(folder / "bin", "dpkg-query", f'exec /usr/bin/dpkg-query --admindir={apt.dpkg} "$@"')
    monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")


def states(apt: AptRoot) -> dict[str, str]:
    """Package name → dpkg's abbreviation of its state."""
    _, text = ask(DPKG.script)
    return {name: row.state.strip() for name, row in parse_dpkg(text).items()}


def environment(apt: AptRoot) -> dict[str, str]:
    """The environment in which apt's programs use this root."""
    return {**os.environ, "APT_CONFIG": str(apt.config)}
