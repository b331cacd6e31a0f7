"""Case: the operator's ``known_hosts`` and ``ssh_config`` are large, as after many years of use."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.cases.case import Cost, Table, Wanted
from benchmarks.figures.goals import Goal
from benchmarks.figures.statistics import Figures
from benchmarks.measuring.command import Command, ended_well
from benchmarks.measuring.machine import own_program
from benchmarks.places.places import Places
from benchmarks.places.replay import REAL_PORT, SERVERS, Replaying

NAME = "client-files"
TITLE = "A 10,000-line known_hosts and a 1,000-stanza ssh_config"
ABOUT = """\
`hostwright run -- true` on loopback hosts whose keys are the last lines of the user's `known_hosts`, with and
without 10,000 lines of others before them and 1,000 stanzas of others in the user's `ssh_config`. The goal is for
all hosts together."""
BOUND_S = 300.0
TABLE = Table(traffic=False)
RUN = "hostwright run"
SMALL, LARGE = "small files", "large files"
SIZES = (1, 100)
LINES, STANZAS = 10_000, 1_000
COSTS = (Cost(RUN, 1, 1.6), Cost(RUN, 100, 5.7))  #: estimated total seconds of a command with both home directories
REST_S = 1.0
#: first words of a command that runs with another ``~/.ssh``, in a mount namespace
AT_HOME = (
    "unshare", "--mount", "sh", "-euc",
    'own=$(getent passwd "$(id -u)" | cut -d: -f6)/.ssh; mkdir -p -m 700 "$own"; mount --bind "$0" "$own"; exec "$@"',
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ready:
    """Home directories with small and with large OpenSSH files, and the inventories."""

    place: Replaying
    homes: dict[str, Path]
    inventories: dict[int, Path]
    environment: dict[str, str]


@contextmanager
def setup(places: Places, wanted: Wanted) -> Iterator[Ready]:
    """Create two home directories, one with small and one with large OpenSSH files."""
    place, folder = places.replaying(), places.folder(NAME)
    sizes = wanted.of(SIZES)
    homes = {}
    for variant, many in ((SMALL, 0), (LARGE, 1)):
        homes[variant] = folder / variant.replace(" ", "-")
        files = homes[variant] / ".ssh"
        files.mkdir(parents=True, mode=0o700)
        own = place.known(max(sizes))
        (files / "known_hosts").write_text("".join([*others(many * LINES), *own]))
        (files / "config").write_text("".join([*stanzas(many * STANZAS), f"Host h*\n IdentityFile {place.key}\n"]))
        (files / "config").chmod(0o600)
    yield Ready(place, homes, {size: inventory(place, folder, size) for size in sizes}, places.hosts().environment)


def inventory(place: Replaying, folder: Path, size: int) -> Path:
    """Write an inventory without host keys; return its path.

    OpenSSH then reads the user's ``known_hosts``.
    """
    hosts = {
        f"h{number:04}": {"ansible_host": place.address(number), "ansible_port": REAL_PORT + number % SERVERS}
        for number in range(1, size + 1)
    }
    common = {"ansible_user": "hwbench", "ansible_ssh_private_key_file": str(place.key)}
    path = folder / f"{size}.yml"
    path.write_text(yaml.safe_dump({"all": {"hosts": hosts, "vars": common}}))
    return path


def others(count: int) -> list[str]:
    """Return ``count`` lines for ``known_hosts`` about hosts outside the benchmark."""
    head = b"\0\0\0\x0bssh-ed25519\0\0\0 "
    keys = (base64.b64encode(head + hashlib.sha256(str(one).encode()).digest()).decode() for one in range(count))
    return [
        f"node{one:05}.example.org,10.9.{one // 256}.{one % 256} ssh-ed25519 {key}\n" for one, key in enumerate(keys)
    ]


def stanzas(count: int) -> list[str]:
    """Return ``count`` stanzas for ``ssh_config`` about hosts outside the benchmark."""
    return [
        f"Host node{one:05} node{one:05}.example.org\n HostName 10.8.{one // 256}.{one % 256}\n User u{one}\n Port 22\n"
        for one in range(count)
    ]


def check(ready: Ready) -> str:
    """Return an empty text, because a command fails by itself without the hosts' keys."""
    return ""


def facts(ready: Ready) -> dict[str, str]:
    """Return the total size of the large ``known_hosts`` and ``ssh_config``."""
    size = sum((ready.homes[LARGE] / ".ssh" / name).stat().st_size for name in ("known_hosts", "config"))
    return {"large files": f"{size / 1000:.0f} kB together"}


def commands(ready: Ready) -> Sequence[Command]:
    """Return a ``hostwright run`` for each number of hosts and each home directory."""
    return [
        Command(
            RUN, size, (*AT_HOME, str(home / ".ssh"), own_program("hostwright"), "run", "--inventory", str(path),
                        "--hosts", "all", "--", "true"),
            variant=variant, env=ready.environment, netns=ready.place.netns, check=ended_well,
        )
        for size, path in ready.inventories.items()
        for variant, home in ready.homes.items()
    ]  # fmt: skip


def more_s(found: Figures, size: int) -> float:
    """Return the additional seconds that the large files cause with ``size`` hosts."""
    return found.median(RUN, size, "wall_s", LARGE) - found.median(RUN, size, "wall_s", SMALL)


def goals() -> Sequence[Goal]:
    """Return the goal for the additional wall time with large files and 100 hosts."""
    return (
        Goal(
            "100 hosts: wall with the large files, beyond the small ones", 0.3, lambda found: more_s(found, 100), " s"
        ),
    )


PLOTTED = (RUN,)
