"""Compiler for the stand-ins' C code, whose output runs on distributions older than this machine's.

A program linked against glibc 2.36 requires symbols that Debian 11's 2.31 lacks. So the stand-ins are linked against a
*stub* of libc: a shared object with only the old symbols that they use, at the names and versions that every x86-64
glibc exports. A newer function is then an undefined reference at build time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.programs import run

#: version of glibc's first symbols on x86-64; all later releases export them
OLDEST = "GLIBC_2.2.5"
_SYMBOLS = Path(__file__).parent / "src" / "driver" / "libc-symbols.txt"
_ENTRY = Path(__file__).parent / "src" / "driver" / "start.c"
#: no stack protector, no fortify, no CET: each requires a newer symbol or note
_FLAGS = (
    "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Wno-format-truncation", "-fvisibility=hidden", "-fno-stack-protector",
    "-U_FORTIFY_SOURCE", "-fcf-protection=none", "-fno-asynchronous-unwind-tables", "-nostdlib", "-s",
)  # fmt: skip


class Compiler:
    """Compiles into `work`, where it first creates the stub libraries."""

    def __init__(self, work: Path):
        self.work = work
        self.stubs = [_stub(work, soname, names) for soname, names in _symbols().items()]

    def program(self, name: str, sources: Sequence[Path], defines: Mapping[str, str]) -> Path:
        """Compile an executable with the usual dynamic loader and libraries of x86-64 Linux."""
        out = self.work / name
        run(["gcc", *_FLAGS, "-fno-pie", "-no-pie", *_defines(defines), "-o", out, _ENTRY, *sources, *self.stubs])
        return out

    def library(self, name: str, soname: str, sources: Sequence[Path], defines: Mapping[str, str]) -> Path:
        """Compile a shared object with the file name `name` and the soname `soname`."""
        out = self.work / name
        options = ["-shared", "-fPIC", f"-Wl,-soname,{soname}", "-Wl,--no-undefined", "-Wl,--as-needed"]
        run(["gcc", *_FLAGS, *options, *_defines(defines), "-o", out, *sources, *self.stubs])
        return out


def _defines(defines: Mapping[str, str]) -> list[str]:
    """Return options for C string macros. The values are file names and versions, without quotes."""
    return [f'-D{name}="{value}"' for name, value in defines.items()]


def _symbols() -> dict[str, list[str]]:
    """Return library → its old symbols."""
    symbols: dict[str, list[str]] = defaultdict(list)
    for line in _SYMBOLS.read_text().splitlines():
        if line and not line.startswith("#"):
            soname, *names = line.split()
            symbols[soname] += names
    return symbols


def _stub(work: Path, soname: str, names: Sequence[str]) -> Path:
    """Link a shared object that exports empty functions with these names at the oldest version."""
    source, version, out = (work / f"{soname}.{kind}" for kind in ("c", "map", "stub"))
    source.write_text("".join(f"void {name}(void) {{}}\n" for name in names))
    version.write_text(f"{OLDEST} {{ global: *; }};\n")
    options = ["-shared", "-nostdlib", "-fPIC", "-fno-builtin", "-w", f"-Wl,-soname,{soname}"]
    run(["gcc", *options, f"-Wl,--version-script={version}", "-o", out, source])
    return out
