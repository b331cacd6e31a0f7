"""The kernel settings that a lab needs: former values are recorded, and restored when the last lab is gone."""

from __future__ import annotations

import json
from pathlib import Path

from lab.locking import locked
from lab.records import write_atomically

#: setting → least value. Without the inotify setting, units fail from about 22 hosts on.
NEEDED = {"net/ipv4/ip_forward": 1, "fs/inotify/max_user_instances": 2048}


def raise_all(root: Path) -> None:
    """Raise settings that are too low; former values are kept in ``root`` until `restore_all`."""
    memory = root / "sysctl.json"
    with locked("machine"):  # labs come up side by side
        before: dict[str, int] = json.loads(memory.read_text()) if memory.exists() else {}
        low = {name: value for name in NEEDED if (value := _file(name)) < NEEDED[name]}
        # An already recorded setting keeps its first value: the present one may be ours.
        write_atomically(memory, json.dumps({**low, **before}))
        for name in low:
            _path(name).write_text(str(NEEDED[name]))


def restore_all(root: Path) -> None:
    """Restore what `raise_all` changed, once no lab is left, unless somebody has changed it again since."""
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
