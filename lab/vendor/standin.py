"""Minimal shared objects with a soname, which identify themselves as stand-ins.

They are linked without the C library, so that an object built on a new machine loads on an old host.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from lab.programs import run

NOTE = "hostwright stand-in"


def shared_object(target: Path, soname: str, note: str, source: str = "") -> None:
    """Build a shared object with `soname` at `target`; `source` is C code with additional functions.

    Each object exports the note as `hostwright_stand_in`, for `strings` and debuggers.
    """
    text = f'const char hostwright_stand_in[] = "{NOTE}: {note}";\n{source}'
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hw-so.") as scratch:
        code = Path(scratch) / "stand_in.c"
        code.write_text(text)
        options = ["-shared", "-fPIC", "-O1", "-nostdlib", "-Wl,--hash-style=gnu", f"-Wl,-soname,{soname}"]
        run(["gcc", *options, "-o", target, code])
    target.chmod(0o755)
