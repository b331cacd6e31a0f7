"""Tiny shared objects that carry a soname and say that they are stand-ins, and nothing else.

They are linked without the C library, so one built on a new machine loads on an old host.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from lab.programs import run

NOTE = "hostwright stand-in"


def shared_object(target: Path, soname: str, note: str, source: str = "") -> None:
    """Build a shared object with `soname` at `target`; `source` is C that adds functions to it.

    Each one exports the note as `hostwright_stand_in`, which `strings` and a debugger find.
    """
    text = f'const char hostwright_stand_in[] = "{NOTE}: {note}";\n{source}'
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="hw-so.") as scratch:
        code = Path(scratch) / "stand_in.c"
        code.write_text(text)
        options = ["-shared", "-fPIC", "-O1", "-nostdlib", "-Wl,--hash-style=gnu", f"-Wl,-soname,{soname}"]
        run(["gcc", *options, "-o", target, code])
    target.chmod(0o755)
