"""Reads the state of a host's Docker for failure rules: engine, runtimes, daemon.json and command line."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hostwright.failures import Unread
from hostwright.resources import JsonMerged, Probe
from hostwright.roles import Pattern
from hostwright.standard.roles.container.engine import DAEMON_JSON, ENGINES
from hostwright.standard.roles.container.running import LOCAL_API, LOCAL_DOCKER

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

UNIT = "docker.service"

#: shell condition that is true if the Docker daemon runs. The condition starts no process, because each audit evaluates
#: it several times.
ACTIVE = (
    '{ pid=; read -r pid; [ -n "$pid" ] && [ -d "/proc/$pid" ]; } 2>/dev/null </run/docker.pid'
    f" || systemctl is-active --quiet {UNIT}"
)
#: probe that prints ``runtime NAME`` and ``cgroup DRIVER``. It never connects to a stopped daemon's socket, because a
#: connection would start the daemon.
INFO = Probe(
    f"{ACTIVE} || exit 3\n"
    f"{{ {LOCAL_API}/info || timeout -k 1 5 {LOCAL_DOCKER} info --format '{{{{json .}}}}'; }} |\n"
    """  grep -oE '"CgroupDriver":"[^"]+"|"[A-Za-z0-9._-]+":[{]"(path|runtimeArgs|runtimeType)":' |\n"""
    """  sed -E 's/^"CgroupDriver":"(.*)"$/cgroup \\1/; s/^"([^"]+)":.*/runtime \\1/'""",
    root=True,
)

#: probe that prints dockerd's command line, and the options in /etc/default/docker
COMMAND = Probe(
    f"systemctl show -p ExecStart -p FragmentPath -p DropInPaths -- {UNIT} &&"
    " { grep -s '^DOCKER_OPTS=' /etc/default/docker; exit 0; }"
)

#: probe that prints ``FILE:WORDS`` for files that set another daemon for root's ``docker``
CONTEXT = Probe(
    """grep -HosE '"currentContext"[[:space:]]*:[[:space:]]*"[^"]{1,200}"' /root/.docker/config.json\n"""
    "grep -HosE '^[[:space:]]*(export )?DOCKER_(HOST|CONTEXT)=[^[:space:];]{1,200}' /etc/environment"
    " /etc/profile /etc/profile.d/*.sh /root/.profile /root/.bashrc /root/.bash_profile; exit 0",
    root=True,
)
_OWN = Pattern(r".*(?:\"default\"|=['\"]?(?:default|unix:///(?:var/)?run/docker\.sock)['\"]?)")

SETTINGS = JsonMerged(DAEMON_JSON, "{}").probes()[:2]  #: probes for metadata and text of daemon.json

#: dockerd option → key in daemon.json, where the names differ (moby: NamedOption)
_KEYS = {
    "host": "hosts", "H": "hosts", "label": "labels", "log-opt": "log-opts", "exec-opt": "exec-opts",
    "storage-opt": "storage-opts", "insecure-registry": "insecure-registries", "registry-mirror": "registry-mirrors",
    "dns-opt": "dns-opts", "authorization-plugin": "authorization-plugins", "default-ulimit": "default-ulimits",
    "add-runtime": "runtimes", "D": "debug", "l": "log-level", "s": "storage-driver", "b": "bridge", "G": "group",
    "p": "pidfile", "g": "graph",
}  # fmt: skip

_MERGED = {"runtimes"}  #: options that both daemon.json and dockerd's command line may set (moby/moby#37871)

_STARTED = Pattern(r"argv\[\]=(.*?) ; ignore_errors=")
_FILES = Pattern(r"(?m)^(?:FragmentPath|DropInPaths)=(.*)$")
_ASSIGNED = Pattern(r"(?m)^DOCKER_OPTS=(.*)$")


@dataclass(frozen=True, slots=True)
class Engine:
    """Container runtimes and cgroup driver of the running Docker daemon."""

    runtimes: tuple[str, ...]
    cgroup_driver: str


class NotJson(Exception):
    """Error for a daemon.json that is not a JSON object, with the reason as text."""


def engine_package(ctx: AuditContext) -> str:
    """Return name and version of the installed Docker package; empty without one. Raises ``Unread`` if the packages are
    unknown.
    """
    rows = (ctx.packages.get(name) for name in ENGINES)
    return next((f"{row.name} {row.version}" for row in rows if row and row.present), "")


def engine(ctx: AuditContext) -> Engine:
    """Return the state of the Docker daemon. Raises ``Unread`` if the daemon does not run or respond."""
    rows = [line.partition(" ")[::2] for line in ctx.text(INFO).splitlines()]
    runtimes = tuple(value.strip() for key, value in rows if key == "runtime" and value.strip())
    drivers = [value.strip() for key, value in rows if key == "cgroup"]
    if not runtimes or not drivers:
        raise Unread("the command `docker info` lists no container runtimes")
    return Engine(runtimes, drivers[0])


def led_elsewhere(ctx: AuditContext) -> Iterator[str]:
    """Docker is installed, and root's config.json or a start file of root sets another context or DOCKER_HOST."""
    if engine_package(ctx):
        yield from (line for line in ctx.text(CONTEXT).splitlines() if not _OWN.fullmatch(line))


def settings(ctx: AuditContext) -> Mapping[str, Any]:
    """Return the settings in daemon.json; empty without the file.

    Raises ``Unread`` if the file was not read, and ``NotJson`` if it is not a JSON object.
    """
    stat, text = (ctx.answer(probe) for probe in SETTINGS)
    if not stat.ok or not text.text.strip():
        return {}
    if text.truncated:
        raise Unread(f"{DAEMON_JSON} is too large")
    try:
        document = json.loads(text.text, parse_constant=_no_constant)
    except RecursionError:
        raise NotJson("the JSON is nested too deeply") from None
    except ValueError as error:
        raise NotJson(str(error)) from None
    if not isinstance(document, dict):
        raise NotJson("the JSON is not an object")
    return document


def options(ctx: AuditContext) -> frozenset[str]:
    """Return the options on dockerd's command line as keys of daemon.json.

    Raises ``Unread`` if the command line was not read.
    """
    text = ctx.text(COMMAND)
    start = _STARTED.search(text)
    assigned = [match[1] for match in _ASSIGNED.finditer(text)]
    more = _split(assigned[-1]) if assigned else ""
    line = start[1].replace("${DOCKER_OPTS}", more).replace("$DOCKER_OPTS", more) if start else ""
    return frozenset(filter(None, (_key(word) for word in line.split()[1:])))


def unit_files(ctx: AuditContext) -> tuple[str, ...]:
    """Return the paths of Docker's unit file and drop-ins. Raises ``Unread`` if the unit was not read."""
    return tuple(path for match in _FILES.finditer(ctx.text(COMMAND)) for path in match[1].split())


def said_twice(ctx: AuditContext) -> tuple[str, ...]:
    """Return the keys set by both daemon.json and dockerd's command line, so that dockerd does not start.

    Raises ``Unread`` and ``NotJson`` like ``settings``.
    """
    return tuple(sorted((settings(ctx).keys() & options(ctx)) - _MERGED))


def _no_constant(name: str) -> None:
    """Raise ``ValueError`` for NaN and Infinity, which Python accepts in JSON, but Go does not."""
    raise ValueError(f"{name} is not valid JSON")


def _split(value: str) -> str:
    try:
        return " ".join(shlex.split(value))
    except ValueError:  # systemd also ignores a value with an open quote.
        return ""


def _key(word: str) -> str:
    if word.startswith("--"):
        name = word[2:].partition("=")[0]
    elif word.startswith("-"):
        name = word[1:2]
    else:
        return ""
    return _KEYS.get(name, name)
