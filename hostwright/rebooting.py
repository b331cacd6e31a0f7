"""Reboot a host and wait until it is really back: a new boot id, ssh, and systemd settled.

Uptime is not asked (it survives in a container, and a clock can jump), only the kernel's ``boot_id``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from hostwright.become import wrap
from hostwright.errors import HostError, Unreachable
from hostwright.quoting import sh
from hostwright.secret import Secret
from hostwright.transport import Session

POLL_S = 1.0  #: between two attempts to connect
SETTLE_S = 300.0  #: how long systemd may take to start its units after ssh answers
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"

#: The order must outlive the channel that gives it: sshd goes down while the host reboots.
_REBOOT = """\
sync
if [ -d /run/systemd/system ]; then systemd-run --quiet --collect --on-active=1 systemctl reboot
else ( sleep 1; reboot ) >/dev/null 2>&1 & fi
"""

_SETTLED = "timeout %s systemctl is-system-running --wait 2>/dev/null || true"


def reboot(
    session: Session, connect: Callable[[], Session], *, password: Secret | None, timeout_s: float, reason: str
) -> Session:
    """Reboot the host behind ``session`` and return a new session to it.

    ``connect`` opens one; ``timeout_s`` bounds the whole wait (bare metal takes many minutes to come through its
    firmware). Raises ``HostError`` with the host's last known state when it does not come back.
    """
    name = session.host.name
    before = _boot_id(session)
    session.run("/bin/sh", stdin=wrap("", _REBOOT, password=password), timeout_s=60)
    session.close()
    deadline = time.monotonic() + timeout_s
    last = "it did not go down"
    while time.monotonic() < deadline:
        try:
            fresh = connect()
        except Unreachable as error:
            last = error.sentence
        else:
            try:
                if _boot_id(fresh) != before:
                    fresh.run(sh(_SETTLED, f"{SETTLE_S:g}"), timeout_s=SETTLE_S + 10)
                    return fresh
            except Unreachable as error:
                last = error.sentence
            fresh.close()
        time.sleep(POLL_S)
    raise HostError(name, f"it did not come back within {timeout_s:.0f} s of a reboot ({reason}); last seen: {last}")


def _boot_id(session: Session) -> str:
    return session.run(BOOT_ID, timeout_s=20).stdout.decode("ascii", errors="replace").strip()
