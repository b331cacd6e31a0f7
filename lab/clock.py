"""Wrong clock for a running host, through a preloaded library that this machine compiles from `clock.c`."""

from __future__ import annotations

import hashlib
import shutil
import struct
import tempfile
import time
from pathlib import Path

from lab.config import Machine
from lab.machine import console, exec_in
from lab.programs import run

_SOURCE = Path(__file__).with_suffix(".c")
_HOME = "opt/hostwright-lab/clock"
_SHIFT = f"{_HOME}/shift"
_PRELOAD = "etc/ld.so.preload"
#: compiler flags that avoid libc symbols missing on older hosts
_FLAGS = (
    *(
        "-std=gnu11",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-nonnull-compare",
        "-shared",
        "-fPIC",
        "-nostdlib",
        "-s",
    ),
    *("-fno-stack-protector", "-U_FORTIFY_SOURCE", "-fcf-protection=none", f'-DSHIFT_FILE="/{_SHIFT}"'),
)


def library(cache: Path) -> Path:
    """Return the path of the preloaded library in ``cache``. A missing library is compiled."""
    key = hashlib.sha256(_SOURCE.read_bytes() + repr(_FLAGS).encode()).hexdigest()[:12]
    target = cache / "clock" / f"clock-{key}.so"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as work:
            run(["gcc", *_FLAGS, "-o", f"{work}/clock.so", _SOURCE])
            Path(work, "clock.so").rename(target)
    return target


def put_off(machine: Machine, shift_s: int) -> None:
    """Shift the clock of a running host by ``shift_s`` for systemd and programs that start later.

    Waits for the end of the boot, because a systemd that re-executes during the boot loses its jobs.
    """
    exec_in(machine, ["systemctl", "is-system-running", "--wait"])
    home = machine.merged / _HOME
    home.mkdir(parents=True, exist_ok=True)
    ready = home / ".clock.so.new"
    shutil.copyfile(library(machine.lab.cache), ready)
    ready.rename(home / "clock.so")  # running programs may have mapped the old file, which must not be overwritten
    _write(machine, shift_s)
    preload = machine.merged / f"{_PRELOAD}.new"
    preload.write_text(f"/{_HOME}/clock.so\n")
    preload.rename(machine.merged / _PRELOAD)
    console(machine, "systemctl", "daemon-reexec")


def put_right(machine: Machine) -> None:
    """Undo `put_off` in all programs. Does nothing on a host that has been reinstalled or thawed since."""
    (machine.merged / _PRELOAD).unlink(missing_ok=True)
    if (machine.merged / _SHIFT).exists():
        _write(machine, 0)


def _write(machine: Machine, shift_s: int) -> None:
    """Write ``shift_s``. An existing file is overwritten in place, because running programs have mapped the file."""
    path = machine.merged / _SHIFT
    with path.open("r+b" if path.exists() else "wb", buffering=0) as file:
        file.write(struct.pack("=qq", shift_s, int(time.time())))
