"""Memory, CPU and process limits for Docker containers on lab hosts, if this machine has the cgroup controllers.

A boot unit in the host makes controllers of cgroup v1 writable. Without controllers, the unit records the reason on the
host, and tests that need limits are skipped.
"""

from __future__ import annotations

from pathlib import Path

_SCRIPT = Path(__file__).parent / "sh" / "limits.sh"
_PROGRAM = "opt/hostwright-lab/limits"
_UNIT = "hostwright-lab-limits.service"
#: path on a host of a file that records whether Docker can limit containers
NOTE = "/run/hostwright-lab/limits"
_IN_FORCE = "in force"

_TEXT = f"""\
[Unit]
Description=Hostwright lab: control groups for the containers of this host
DefaultDependencies=no
Before=sysinit.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/{_PROGRAM}
"""


def install(root: Path) -> None:
    """Write the boot unit for limits into ``root``, the root filesystem of a host that is off."""
    program = root / _PROGRAM
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(_SCRIPT.read_text())
    program.chmod(0o755)
    (root / "etc/systemd/system" / _UNIT).write_text(_TEXT)
    wanted = root / "etc/systemd/system/sysinit.target.wants" / _UNIT
    wanted.parent.mkdir(parents=True, exist_ok=True)
    wanted.unlink(missing_ok=True)
    wanted.symlink_to(f"/etc/systemd/system/{_UNIT}")


def why_not(note: str) -> str:
    """Return the reason why Docker cannot limit containers; else empty. ``note``: text of the host's boot unit."""
    note = note.strip() or "not in force: the host noted nothing at boot"
    return "" if note.startswith(_IN_FORCE) else note
