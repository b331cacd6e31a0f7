"""Properties of this machine, versions of the measured tools, and a check of the machine's load."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.figures.record import Conditions
from benchmarks.measuring.command import PROJECT

#: maximum load per core at which figures are comparable (our choice)
QUIET = 0.25
_LINE = re.compile(r"^(?P<name>[^:=]+?)\s*[:=]\s*\"?(?P<value>[^\"\n]*)", re.MULTILINE)


def conditions(peers: Mapping[str, str]) -> Conditions:
    """Return the current conditions of a measurement. ``peers``: tool name → version of the tool."""
    load = os.getloadavg()
    return Conditions(
        datetime.now(UTC).replace(microsecond=0).isoformat(),
        _commit(),
        machine(),
        {**_own_versions(), **peers},
        (round(load[0], 2), round(load[1], 2), round(load[2], 2)),
        quiet(load[0], os.cpu_count() or 1),
    )


def quiet(load: float, cores: int) -> bool:
    """Return whether figures are comparable at the load average ``load`` of one minute."""
    return load <= QUIET * cores


def too_loaded(load: float, cores: int) -> str:
    """Return an error text if the load average is too high to start a measurement; else empty."""
    if quiet(load, cores):
        return ""
    return (
        f"the load of this machine is {load:.2f}, and figures mean little above {QUIET * cores:.2f} ({cores} cores): "
        "wait until it is quiet, or give FORCE=1; the page then says that the machine was loaded"
    )


def machine() -> dict[str, str]:
    """Return this machine's processor, cores, memory, kernel, distribution and Python, by name."""
    cpu, memory = fields(Path("/proc/cpuinfo").read_text()), fields(Path("/proc/meminfo").read_text())
    return {
        "processor": cpu.get("model name", platform.machine()),
        "cores": str(os.cpu_count()),
        "memory": f"{int(memory['MemTotal'].split()[0]) / 2**20:.0f} GiB",
        "kernel": platform.release(),
        "distribution": fields(Path("/etc/os-release").read_text()).get("PRETTY_NAME", "unknown"),
        "Python": platform.python_version(),
    }


def fields(text: str) -> dict[str, str]:
    """Parse lines ``name: value`` or ``NAME="value"``. The first value of a name counts."""
    found: dict[str, str] = {}
    for line in _LINE.finditer(text):
        found.setdefault(line["name"].strip(), line["value"].strip())
    return found


def said(words: Sequence[str], pattern: str) -> str:
    """Run ``words``; return the group of ``pattern`` in the output, or ``absent`` without the program."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        return "absent"
    found = re.search(pattern, done.stdout + done.stderr)
    return found[1] if found else "unknown"


def _own_versions() -> dict[str, str]:
    ask: dict[str, Callable[[], str]] = {
        "hostwright": lambda: version("hostwright"),
        "paramiko": lambda: version("paramiko"),
        "fabric": lambda: version("fabric"),
        "OpenSSH": lambda: said(["ssh", "-V"], r"OpenSSH_(\S+?),?\s"),
        "rsync": lambda: said(["rsync", "--version"], r"version (\S+)"),
        "nginx": lambda: said(["nginx", "-v"], r"nginx/(\S+)"),
        "systemd": lambda: said(["systemd-nspawn", "--version"], r"systemd (\d+)"),
    }
    return {name: version_of() for name, version_of in ask.items()}


def _commit() -> str:
    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=PROJECT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain") else "")


def own_program(name: str) -> str:
    """Return the path of ``name`` in the virtual environment of the running Python."""
    return str(Path(sys.executable).with_name(name))
