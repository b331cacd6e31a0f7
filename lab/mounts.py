"""Mount and unmount filesystems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.programs import attempt, run


def mount_points() -> list[Path]:
    """Return the mount points of this machine in mount order."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    # the kernel escapes only these characters (proc_pid_mountinfo(5))
    escapes = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}
    points = []
    for line in lines:
        point = line.split()[4]
        for escape, character in escapes.items():
            point = point.replace(escape, character)
        points.append(Path(point))
    return points


def mounted(path: Path) -> bool:
    """Return whether ``path`` itself is a mount point."""
    return path in mount_points()


def mount_overlay(lower: Path, upper: Path, work: Path, target: Path, *, between: Sequence[Path] = ()) -> None:
    """Mount an overlay at ``target`` with ``upper`` for writes above ``lower``.

    ``work`` is the overlay's working directory. ``between``: read-only layers above ``lower``, topmost first.
    """
    layers = ":".join(str(layer) for layer in (*between, lower))
    options = f"lowerdir={layers},upperdir={upper},workdir={work}"
    run(["mount", "-t", "overlay", "hostwright-lab", "-o", options, target])


def mount_disk(image: Path, size_bytes: int, target: Path) -> None:
    """Mount the ext4 filesystem in the sparse file ``image`` at ``target``. A missing file is created."""
    if not image.exists():
        fresh = image.with_suffix(".new")
        with fresh.open("wb") as file:
            file.truncate(size_bytes)
        run(["mkfs.ext4", "-q", fresh])
        fresh.rename(image)
    run(["mount", "-o", "loop", image, target])


def unmount(path: Path) -> None:
    """Unmount all filesystems at ``path``, even filesystems in use."""
    while mounted(path):
        run(["umount", "--lazy", path])


def unmount_below(directory: Path) -> None:
    """Unmount all filesystems below ``directory``, in reverse mount order."""
    for point in reversed(mount_points()):
        if point.is_relative_to(directory):
            attempt(["umount", "--lazy", point])
