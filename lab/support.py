"""Checks whether this machine can run a lab."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from hostwright.common.errors import LabError
from lab.mounts import mount_overlay, unmount
from lab.programs import attempt

_CAP_SYS_ADMIN = 21  # number of the capability (capabilities(7))
_CAP_NET_ADMIN = 12


def require_support(root: Path) -> None:
    """Raise `LabError` unless this machine can boot hosts with disks below ``root``. Changes nothing."""
    if sys.platform != "linux":
        raise LabError("the lab requires Linux, because its hosts boot in systemd-nspawn; run it on Linux")
    if os.geteuid() != 0:
        raise LabError("the lab requires root, because it creates mounts and network namespaces; run it with sudo")
    _require_capabilities()
    _require_cgroups()
    _require_overlay(root)


def _require_capabilities() -> None:
    status = Path("/proc/self/status").read_text()
    effective = int(next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), 16)
    for number, name in ((_CAP_SYS_ADMIN, "CAP_SYS_ADMIN"), (_CAP_NET_ADMIN, "CAP_NET_ADMIN")):
        if not effective >> number & 1:
            raise LabError(
                f"systemd-nspawn cannot run here: the capability {name} is missing, probably in a container; "
                "use a machine or a VM, or start the container with --privileged"
            )


def _require_cgroups() -> None:
    if not os.access("/sys/fs/cgroup", os.W_OK) or os.statvfs("/sys/fs/cgroup").f_flag & os.ST_RDONLY:
        writable = any(os.access(path, os.W_OK) for path in Path("/sys/fs/cgroup").glob("*/"))
        if not writable:
            raise LabError(
                "systemd-nspawn cannot run here: /sys/fs/cgroup is read-only, as in an unprivileged container; "
                "use a machine or a VM, or start the container with --privileged --cgroupns=host"
            )


def _require_overlay(root: Path) -> None:
    """Raise `LabError` if the filesystem of ``root`` does not support overlays. Only a test mount proves this."""
    if "overlay" not in Path("/proc/filesystems").read_text():
        attempt(["modprobe", "overlay"])
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=".trial-") as name:
        trial = Path(name)
        for part in ("lower", "upper", "work", "merged"):
            (trial / part).mkdir()
        try:
            mount_overlay(trial / "lower", trial / "upper", trial / "work", trial / "merged")
        except LabError as error:
            raise LabError(
                f"the lab cannot mount an overlay filesystem in {root} ({error}); "
                "load the overlay module, or set HOSTWRIGHT_LAB_STATE to a directory on ext4 or xfs"
            ) from error
        finally:
            unmount(trial / "merged")
