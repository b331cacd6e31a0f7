"""Case: one large file is copied to many hosts."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from benchmarks.cases.case import Cost, Table, Wanted
from benchmarks.figures.goals import Goal
from benchmarks.figures.statistics import Figures
from benchmarks.measuring.command import PROJECT, Command, Done
from benchmarks.measuring.machine import own_program
from benchmarks.peers import tools
from benchmarks.peers.tools import HERE, Tools
from benchmarks.places.hosts import Hosts, run_own
from benchmarks.places.places import Places
from hostwright.common.errors import LabError
from hostwright.common.quoting import sh
from lab.machine import console

NAME = "copy"
TITLE = "A large file to 8 and to 24 hosts"
ABOUT = """\
A file of random bytes, to hosts that do not have it: by `hostwright provision` of a role that brings only it, by
nginx on the controller and `curl` on the hosts, and, on 8 hosts, by `rsync --whole-file`, the quickest of the tools
that push (both with `sha256sum -c` on the host, as Hostwright does). Hosts and controller share one disk and two
cores. Egress is what went out through the controller's cable, in copies of the file. One round."""
BOUND_S = 400.0
SIZES = (8, 24)
TABLE = Table(memory=True, extra={"copies": "copies sent", "mb_per_s": "MB/s, all hosts together"})
OURS, NGINX, RSYNC = "hostwright provision", "nginx and curl", "rsync"
#: number of hosts → size in bytes of the file to copy. Larger files would measure the disk.
BYTES = {8: 500_000_000, 24: 150_000_000}
#: estimated seconds of a contender, scaled from measurements with files of 1.4 and 0.3 GB
COSTS = (
    Cost(OURS, 8, 10, rounds=1), Cost(NGINX, 8, 15, rounds=1), Cost(RSYNC, 8, 27, rounds=1),
    Cost(OURS, 24, 9, rounds=1), Cost(NGINX, 24, 13, rounds=1),
)  # fmt: skip
REST_S = 130.0
SMALLER = 100_000_000  #: size in bytes of the file to copy to other numbers of hosts
ROOM = 1.5  #: ratio of required free disk space to the total size of all copied files
MB = 1e6


@dataclass(frozen=True, slots=True)
class File:
    """File to copy to a number of hosts, and site with the role that installs this file."""

    path: Path
    size: int
    sha256: str
    site: Path  #: directory of the site whose role installs the file


@dataclass(frozen=True, slots=True)
class Ready:
    """Hosts of the case, and the file to copy for each number of hosts."""

    hosts: Hosts
    names: tuple[str, ...]
    files: dict[int, File]
    folder: Path

    def tools(self, size: int) -> Tools:
        """Return the commands of other tools for the first ``size`` hosts."""
        folder = self.folder / f"peers-{size}"
        folder.mkdir(exist_ok=True)
        file = self.files[size].path
        return tools.of(self.hosts, self.names[:size], {"files": str(file.parent), "file": file.name}, folder)


def bytes_of(size: int) -> int:
    """Return the size of the file to copy to ``size`` hosts."""
    return BYTES.get(size, SMALLER)


@contextmanager
def setup(places: Places, wanted: Wanted) -> Iterator[Ready]:
    """Create a file to copy, and a Hostwright site, for each number of hosts."""
    hosts, folder = places.hosts(), places.folder(NAME)
    sizes = wanted.of(SIZES)
    needed = max(bytes_of(size) * size for size in sizes)
    if (free := shutil.disk_usage(hosts.lab.state).free) < ROOM * needed:
        raise LabError(f"{free / 1e9:.0f} GB are free, and {ROOM * needed / 1e9:.0f} are needed: free some, or HOSTS=4")
    names = hosts.clones(max(sizes))
    made = {size: _file(hosts, folder, names[:size]) for size in sizes}
    yield Ready(hosts, names, made, folder)
    hosts.remove(names)  # other cases cannot use hosts with a release record for the stack of this case


def _file(hosts: Hosts, folder: Path, names: Sequence[str]) -> File:
    place = folder / f"files-{len(names)}" / "files"
    place.mkdir(parents=True)
    path, digest, size = place / "bulk.bin", hashlib.sha256(), bytes_of(len(names))
    with path.open("wb") as file:
        for _ in range(0, size, 1 << 20):
            block = os.urandom(1 << 20)
            digest.update(block)
            file.write(block)
    site = folder / f"site-{len(names)}"
    run_own(["init", str(site)], hosts.environment)
    shutil.copytree(PROJECT / "benchmarks/site/roles/bulk", site / "roles/bulk")
    write_inventory(site / "inventory", hosts, names, path, digest.hexdigest())
    environment = {**hosts.environment, "HOSTWRIGHT_ARTIFACTS": str(folder / "artifacts")}
    run_own(["--site", str(site), "mirror", "--stack", "bulk", "--from", str(place)], environment)
    return File(path, path.stat().st_size, digest.hexdigest(), site)


def write_inventory(folder: Path, hosts: Hosts, names: Sequence[str], file: Path, sha256: str) -> None:
    """Write to ``folder`` an inventory of the hosts ``names``, and a stack that contains only ``file``."""
    addresses = {one.name: {"ansible_host": str(one.address)} for one in hosts.machines(names)}
    common = {
        "ansible_user": "ops",
        "ansible_ssh_private_key_file": str(hosts.lab.private_key),
        "hostwright_known_hosts": str(hosts.lab.known_hosts),
        "stack": "bulk",
    }
    stack = {
        "description": "one large file",
        "roles": ["bulk"],
        "distributions": {"debian": ["11"]},
        "requirements": {"machine": "x86_64", "free_bytes": 2 * file.stat().st_size, "memory_bytes": 100_000_000},
        "bulk": {"artifact": "bulk"},
        "artifacts": {"bulk": {"file": file.name, "urls": [file.as_uri()], "sha256": sha256}},
    }
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": addresses, "vars": common}}))
    (folder / "stacks/bulk.yml").write_text(yaml.safe_dump(stack))


def check(ready: Ready) -> str:
    """Return an empty text, because each command compares checksums."""
    return ""


def facts(ready: Ready) -> dict[str, str]:
    """Return the size of the copied file for each number of hosts."""
    return {f"{size} hosts": f"a file of {file.size / 1e9:.1f} GB" for size, file in ready.files.items()}


def commands(ready: Ready) -> Sequence[Command]:
    """Return the commands of all measured tools for all numbers of hosts."""
    return [finished(ready, size, command) for size in ready.files for command in at(ready, size)]


def at(ready: Ready, size: int) -> list[Command]:
    """Return the commands of all measured tools for ``size`` hosts."""
    file, peers = ready.files[size], ready.tools(size)
    environment = {**ready.hosts.environment, "HOSTWRIGHT_ARTIFACTS": str(ready.folder / "artifacts")}
    words = (own_program("hostwright"), "--site", str(file.site), "provision", "--hosts", "all", "--yes")
    quiet = sh("sudo install -d -o ops /opt/bulk && echo %s /opt/bulk/file >/tmp/sum", file.sha256 + " ")
    verified = "sha256sum -c --quiet /tmp/sum"
    ready_there = f'ssh -F "$1" "$2" {sh("%s", quiet)}'
    rsync = (
        f'{ready_there} && rsync --whole-file -e "ssh -F $1" "$3" "$2":/opt/bulk/file && '
        f'exec ssh -F "$1" "$2" {verified}'
    )
    return [
        replace(peers.base, contender=OURS, words=words, env=environment),
        pulling(ready, size, peers),
        peers.each(RSYNC, rsync, str(file.path)),
    ]


def pulling(ready: Ready, size: int, peers: Tools) -> Command:
    """Return a command in which ``size`` hosts download the file with curl from nginx on the controller."""
    file = ready.files[size]
    prefix = file.path.parent.parent
    (prefix / "temp").mkdir(exist_ok=True)
    url = f"http://{ready.hosts.desk.place.address}:8099"
    script = str(HERE / "script/pull.sh")
    conf = str(HERE / "script/nginx.conf")
    words = (
        "sh",
        script,
        str(tools.AT_ONCE),
        str(peers.ssh_config),
        str(prefix),
        conf,
        url,
        file.path.name,
        file.sha256,
    )
    stdin = "".join(f"{name}\n" for name in peers.names).encode()
    return replace(peers.base, contender=NGINX, words=words, stdin=stdin)


def finished(ready: Ready, size: int, command: Command) -> Command:
    """Extend ``command`` with a deletion of the file before the run, and with a check of all hosts after the run.

    The bytes that the controller sends are counted.
    """
    file, names = ready.files[size], ready.names[:size]

    def before() -> None:
        clear(ready.hosts, names)

    def check(done: Done) -> str:
        return command.check(done) or lacking(ready.hosts, names, file)

    def counted(done: Done) -> dict[str, float]:
        sent = done.sample.sent_bytes or 0
        return {"copies": sent / file.size, "mb_per_s": file.size * size / MB / done.sample.wall_s}

    return replace(command, before=before, check=check, counted=counted)


def clear(hosts: Hosts, names: Sequence[str]) -> None:
    """Delete the file from all places where a measured tool puts it, and flush the disk."""
    for machine in hosts.machines(names):
        console(machine, "sh", "-c", "rm -rf /opt/bulk /var/cache/hostwright/artifacts /tmp/sum")
    os.sync()


def lacking(hosts: Hosts, names: Sequence[str], file: File) -> str:
    """Return an error text with the hosts that lack an identical copy of ``file``; else empty."""
    script = sh('test "$(sha256sum </opt/bulk/file)" = %s', f"{file.sha256}  -")
    found = []
    for machine in hosts.machines(names):
        try:
            console(machine, "sh", "-c", script)
        except LabError:
            found.append(machine.name)
    return f"the file is not whole on {', '.join(found)}" if found else ""


def ratio(size: int) -> Callable[[Figures], float]:
    """Return a function for the ratio of Hostwright's throughput to nginx's, with ``size`` hosts."""
    return lambda found: found.ratio(OURS, NGINX, size, "mb_per_s")


def copies(size: int) -> Callable[[Figures], float]:
    """Return a function for the ratio of the controller's sent bytes to the file's size, with ``size`` hosts."""
    return lambda found: found.median(OURS, size, "copies")


def goals() -> Sequence[Goal]:
    """Return the goals for Hostwright's throughput relative to nginx, and for the controller's sent bytes."""
    return (
        Goal("8 hosts: throughput / nginx pull's", 0.8, ratio(8), "×", at_least=True),
        *(Goal(f"{size} hosts: controller egress, in copies of the file", 4, copies(size)) for size in SIZES),
    )


PLOTTED = (OURS, NGINX, RSYNC)
