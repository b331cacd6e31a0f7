"""Debian packages from this machine's apt, unpacked without installation."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from lab.config import cache_directory


def unpack(name: str, packages: tuple[str, ...]) -> Path:
    """Return the unpacked files of Debian packages, in the folder ``name`` of the lab's cache."""
    folder = cache_directory() / name
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        command = ["apt-get", "download", *packages]
        if subprocess.run(command, cwd=made, capture_output=True, check=False).returncode:
            subprocess.run(["apt-get", "update"], capture_output=True, check=True)
            subprocess.run(command, cwd=made, capture_output=True, check=True)
        for package in Path(made).glob("*.deb"):
            subprocess.run(["dpkg", "-x", str(package), f"{made}/all"], check=True)
        Path(made, "all").rename(folder)
    return folder
