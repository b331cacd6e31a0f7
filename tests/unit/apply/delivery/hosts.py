"""Hosts that are this machine: each with an address of its own (127.0.0.0/8) and a folder for its files, real programs
(sh, perl, openssl) behind the same shell that a host over SSH has."""

from __future__ import annotations

import hashlib
import os
import pwd
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from hostwright.apply import events
from hostwright.apply.delivery import pulling
from hostwright.apply.delivery.batch import WantedFile
from hostwright.apply.delivery.delivery import Delivery
from hostwright.apply.delivery.sources import servers
from hostwright.apply.delivery.sources.handout import Handout
from hostwright.apply.delivery.sources.settings import FileSettings
from hostwright.apply.host.connection import HostConnection, Patience
from hostwright.inventory import Host
from hostwright.stack.stack import Artifact, Stack
from hostwright.stack.store.hostcache import host_path
from hostwright.transport.exchange import Ends
from hostwright.transport.local import LocalSession
from hostwright.transport.root.rootshell import RootShell
from tests.unit.support.hostjobs import until
from tests.unit.support.runs import run_of
from tests.unit.transport.test_become import stand_in

HERE = "127.0.0.1"
CONTENT = random.Random(1).randbytes(3_000_000)  # noqa: S311 - the same in each process
PATIENCE = Patience(0.5, 2.0)


def artifact_of(content: bytes, name: str = "cuda", **more: object) -> Artifact:
    values = {"name": name, "file": f"{name}.deb", "sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    return Artifact.model_validate({**values, **more})


@dataclass
class LoopHost:
    """One host. ``ends`` are those of its connections."""

    name: str
    address: str
    cache: str
    ends: Ends
    said: list[events.Event] = field(default_factory=list)
    sessions: list[LocalSession] = field(default_factory=list)
    heard: Callable[[events.Event], None] = lambda event: None
    delivery: Delivery | None = None

    def connect(self) -> RootShell:
        session = LocalSession(Host(self.name), pwd.getpwuid(os.getuid()))
        session.ends = self.ends
        self.sessions.append(session)
        return RootShell(session)

    def emit(self, event: events.Event) -> None:
        self.said.append(event)
        self.heard(event)

    def connection(self) -> HostConnection:
        return HostConnection(self.name, self.connect, emit=self.emit, patience=PATIENCE)

    def file(self, artifact: Artifact) -> Path:
        return Path(host_path(artifact, self.cache))

    def part(self, artifact: Artifact, content: bytes) -> Path:
        path = self.file(artifact).with_name(f"{artifact.file}.part")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    @property
    def came(self) -> list[Mapping[str, int]]:
        """Of each file that was brought: the bytes by source."""
        return [event.sent for event in self.said if isinstance(event, events.Delivering) and event.sent]

    @property
    def notes(self) -> list[str]:
        return [event.text for event in self.said if isinstance(event, events.Note)]


@dataclass
class LoopFleet:
    """Some of them, with the files of a stack."""

    folder: Path
    hosts: list[LoopHost]
    files: dict[str, tuple[Artifact, bytes]] = field(default_factory=dict)

    def add(self, content: bytes = CONTENT, name: str = "cuda", **more: object) -> Artifact:
        artifact = artifact_of(content, name, **more)
        (self.folder / artifact.file).write_bytes(content)
        self.files[name] = (artifact, content)
        return artifact

    def locate(self, artifact: Artifact) -> Path:
        return self.folder / artifact.file

    def stack(self) -> Stack:
        artifacts = {name: artifact.model_dump() for name, (artifact, _) in self.files.items()}
        return Stack.model_validate({"name": "loop", "distributions": {"debian": ["12"]}, "artifacts": artifacts})

    def handout(self, settings: Mapping[str, FileSettings] | None = None, **more: float) -> Handout:
        every = {host.name: (settings or {}).get(host.name, FileSettings()) for host in self.hosts}
        return Handout("run", {name: one for name, one in every.items() if one.way == "pull"}, **more)

    def deliver(
        self, host: LoopHost, handout: Handout | None, settings: FileSettings | None = None, private: Sequence[str] = ()
    ) -> Delivery:
        """A delivery of all files to one host, which is begun."""
        files = {name: self.folder / self.files[name][0].file for name in private}
        run = run_of(emit=host.emit, locate=self.locate, handout=handout, files=files)
        settings = replace(settings or FileSettings(), cache=host.cache)
        host.delivery = Delivery(host.connection(), run, settings, self.stack())
        host.delivery.start([WantedFile("cuda", artifact) for artifact, _ in self.files.values()])
        return host.delivery

    def artifacts(self) -> list[Artifact]:
        return [artifact for artifact, _ in self.files.values()]

    def check(self, host: LoopHost) -> None:
        """All files are there as they should be, and nothing else."""
        for artifact, content in self.files.values():
            path = host.file(artifact)
            assert path.read_bytes() == content
            assert [entry.name for entry in path.parent.iterdir()] == [artifact.file]


def altered(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """Let hosts fetch by a script with other text around the program."""
    before = pulling.pull_script
    monkeypatch.setattr(pulling, "pull_script", lambda *given: before(*given).replace(old, new))


@contextmanager
def fleet_of(number: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopFleet]:
    """So many hosts; their servers run as whoever runs the tests, without systemd."""
    folder = Path(tempfile.mkdtemp(prefix="hwfleet-"))
    folder.chmod(0o755)
    (folder / "bin").mkdir()
    stand_in(folder / "bin", monkeypatch)
    script = servers.PeerServer.script

    def plainly(server: servers.PeerServer, address: str) -> str:
        text = script(server, address).replace("/run/systemd/system", str(folder / "no-systemd"))
        return text.replace("setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --inh-caps=-all -- ", "")

    monkeypatch.setattr(servers.PeerServer, "script", plainly)
    hosts = [
        LoopHost(f"gpu{n:02}", f"127.0.9.{n}", f"{folder}/host {n}", Ends(HERE, f"127.0.9.{n}"))
        for n in range(1, number + 1)
    ]
    try:
        yield LoopFleet(folder, hosts)
    finally:
        # A shell that was cut off runs to the end of its script, and may make a file meanwhile.
        until(lambda: _removed(folder), "the hosts' folder is removed")


def _removed(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()
