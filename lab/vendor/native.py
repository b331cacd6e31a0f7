"""Compiles the C of the stand-ins so that it runs on distributions older than the machine that compiles it.

A program linked against glibc 2.36 asks for symbols that Debian 11's 2.31 does not have. The stand-ins are linked
against a *stub* of libc instead: a shared object that has nothing but the old symbols that they use, by the name and
version under which every x86-64 glibc exports them. A newer function is then an undefined reference at build time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.programs import run

#: version of glibc's first symbols on x86-64; all later ones keep them
OLDEST = "GLIBC_2.2.5"
_SYMBOLS = Path(__file__).parent / "src" / "driver" / "libc-symbols.txt"
_ENTRY = Path(__file__).parent / "src" / "driver" / "start.c"
#: no stack protector, no fortify, no CET: each of them would ask for a newer symbol or note
_FLAGS = (
    "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Wno-format-truncation", "-fvisibility=hidden", "-fno-stack-protector",
    "-U_FORTIFY_SOURCE", "-fcf-protection=none", "-fno-asynchronous-unwind-tables", "-nostdlib", "-s",
)  # fmt: skip


class Compiler:
    """Compiles into `work`; makes the stub libraries there once."""

    def __init__(self, work: Path):
        self.work = work
        self.stubs = [_stub(work, soname, names) for soname, names in _symbols().items()]

    def program(self, name: str, sources: Sequence[Path], defines: Mapping[str, str]) -> Path:
        """Compile an executable; its interpreter and libraries are the ordinary ones of x86-64 Linux."""
        out = self.work / name
        run(["gcc", *_FLAGS, "-fno-pie", "-no-pie", *_defines(defines), "-o", out, _ENTRY, *sources, *self.stubs])
        return out

    def library(self, name: str, soname: str, sources: Sequence[Path], defines: Mapping[str, str]) -> Path:
        """Compile a shared object called `name` whose soname is `soname`."""
        out = self.work / name
        options = ["-shared", "-fPIC", f"-Wl,-soname,{soname}", "-Wl,--no-undefined", "-Wl,--as-needed"]
        run(["gcc", *_FLAGS, *options, *_defines(defines), "-o", out, *sources, *self.stubs])
        return out


def _defines(defines: Mapping[str, str]) -> list[str]:
    """Return C string macros: the values are file names and versions, which hold no quote."""
    return [f'-D{name}="{value}"' for name, value in defines.items()]


def _symbols() -> dict[str, list[str]]:
    """Read which library exports which of the old symbols."""
    symbols: dict[str, list[str]] = defaultdict(list)
    for line in _SYMBOLS.read_text().splitlines():
        if line and not line.startswith("#"):
            soname, *names = line.split()
            symbols[soname] += names
    return symbols


def _stub(work: Path, soname: str, names: Sequence[str]) -> Path:
    """Link a shared object that exports empty functions of these names at the oldest version."""
    source, version, out = (work / f"{soname}.{kind}" for kind in ("c", "map", "stub"))
    source.write_text("".join(f"void {name}(void) {{}}\n" for name in names))
    version.write_text(f"{OLDEST} {{ global: *; }};\n")
    options = ["-shared", "-nostdlib", "-fPIC", "-fno-builtin", "-w", f"-Wl,-soname,{soname}"]
    run(["gcc", *options, f"-Wl,--version-script={version}", "-o", out, source])
    return out
