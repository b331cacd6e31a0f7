"""Kernel settings that a lab needs: raised on start, restored when the last lab is removed."""

from __future__ import annotations

import json
from pathlib import Path

from lab.locking import locked
from lab.records import write_atomically

#: kernel setting → minimum value. With a lower inotify value, units fail from about 22 hosts on.
NEEDED = {"net/ipv4/ip_forward": 1, "fs/inotify/max_user_instances": 2048}


def raise_all(root: Path) -> None:
    """Raise the settings in `NEEDED` that are too low, and record the old values in ``root`` for `restore_all`."""
    memory = root / "sysctl.json"
    with locked("machine"):  # several labs may start at the same time
        before: dict[str, int] = json.loads(memory.read_text()) if memory.exists() else {}
        low = {name: value for name in NEEDED if (value := _file(name)) < NEEDED[name]}
        # An earlier lab may have raised the current value, so the recorded value takes precedence.
        write_atomically(memory, json.dumps({**low, **before}))
        for name in low:
            _path(name).write_text(str(NEEDED[name]))


def restore_all(root: Path) -> None:
    """Restore the settings that `raise_all` changed, if no lab is left. Settings changed meanwhile are kept."""
    memory = root / "sysctl.json"
    with locked("machine"):
        if any(root.glob("*/lab.json")) or not memory.exists():
            return
        for name, value in json.loads(memory.read_text()).items():
            if _file(name) == NEEDED[name]:
                _path(name).write_text(str(value))
        memory.unlink()


def _file(name: str) -> int:
    return int(_path(name).read_text())


def _path(name: str) -> Path:
    return Path("/proc/sys", name)
