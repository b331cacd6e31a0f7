"""Stand-in programs of a host, in their own environment."""

from __future__ import annotations

import os
from pathlib import Path


def stub(folder: Path, **programs: str) -> dict[str, str]:
    """The environment in which these programs precede the system's."""
    (folder / "bin").mkdir()
    for name, text in programs.items():
        path = folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    return {"PATH": f"{folder}/bin:{os.environ['PATH']}", "LC_ALL": "C"}
