"""Reboots a host, and waits for a new boot ID, an SSH connection, and the end of the boot according to systemd.

Only the kernel's ``boot_id`` proves a reboot: uptime does not change in a container, and clocks can jump.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from hostwright.apply.events import Emit, Waiting
from hostwright.common.durations import Clock, seconds
from hostwright.common.errors import HostError, InputError, Unreachable
from hostwright.common.quoting import sh
from hostwright.common.text import shown_limit
from hostwright.inventory import Host
from hostwright.plan.probing import new_nonce
from hostwright.transport import Session
from hostwright.transport.identity.hostkeys import HostKeyMismatch
from hostwright.transport.root.rootshell import RootShell

VARIABLE = "hostwright_reboot_timeout"
#: default time limit in seconds of a reboot. The firmware of a physical server takes up to 30 minutes.
REBOOT_TIMEOUT_S = 1800.0
SETTLE_S = 300.0  #: minimum seconds for systemd to finish booting after the first SSH connection
POLL_S = 1.0
PROBE_TIMEOUT_S = 20.0
ORDER_TIMEOUT_S = 60.0
NAMED_JOBS = 3  #: maximum number of systemd jobs that a message lists

#: shell program that schedules a reboot one second later, since sshd stops during a reboot. By default, a systemd timer
#: may be a minute late (AccuracySec).
_ORDER = """\
if [ -d /run/systemd/system ]; then
  systemd-run --quiet --collect --on-active=1 --timer-property=AccuracySec=100ms systemctl reboot
else ( sleep 1; sync; reboot ) >/dev/null 2>&1 & fi
"""

#: shell program that prints the boot ID, the state of systemd and the running systemd jobs.
#: ``systemctl is-system-running --wait`` would not list the jobs.
_PROBE = """\
printf '%%s ' %s; cat /proc/sys/kernel/random/boot_id
[ "$(id -u)" = 0 ] || [ -S /run/dbus/system_bus_socket ] || exit 0
echo "state $(systemctl is-system-running 2>/dev/null)"
systemctl list-jobs --no-legend --no-pager 2>/dev/null | while read -r id unit type state _; do
  if [ "$state" = running ]; then echo "job $type $unit"; fi
done
"""

#: states of systemd during boot and shutdown. In the state ``_STUCK``, systemd waits for a login at the console.
_UNSETTLED = ("initializing", "starting", "stopping", "unknown")
_STUCK = "maintenance"


class NotBack(HostError):
    """A rebooted host does not answer. No job of Hostwright is running on that host."""


@dataclass(frozen=True, slots=True)
class BootState:
    """The state of a host's boot: its boot ID, the state of systemd, and the running systemd jobs."""

    boot_id: str
    state: str = ""
    jobs: tuple[str, ...] = ()

    @property
    def waits_for(self) -> str:
        """The systemd jobs for which the host's boot still waits, as part of a sentence; empty if none."""
        rest = len(self.jobs) - NAMED_JOBS
        named = ", ".join(self.jobs[:NAMED_JOBS]) + (f" and {rest} more" if rest > 0 else "")
        return f", and systemd waits for: {named}" if named else ""


def read_reboot_timeout(host: Host) -> float:
    """Return the time limit for a reboot of ``host`` in seconds. Raises ``InputError`` for an invalid duration."""
    value = host.get(VARIABLE)
    if value is None:
        return REBOOT_TIMEOUT_S
    try:
        return seconds(value)
    except ValueError as error:
        raise InputError(f"{VARIABLE}: {error}", host.vars[VARIABLE].origin.exact) from error


def reboot(
    shell: RootShell,
    connect: Callable[[], RootShell],
    *,
    timeout_s: float,
    reason: str,
    emit: Emit,
    clock: Clock | None = None,
) -> tuple[RootShell, float]:
    """Reboot the host behind ``shell``. Return a new root shell on the host, and the duration in seconds.

    ``connect`` opens a root shell; ``timeout_s`` limits the wait.

    Raises ``NotBack`` if the host does not come back, ``HostError`` if systemd does not finish booting the host, and
    ``HostKeyMismatch`` if the host key has changed.
    """
    clock = clock or Clock()
    began_s = clock.now_s()
    port, before = shell.session.endpoint.rpartition(":")[2], probe_boot(shell.session).boot_id
    watch = _Watch(_Awaited(shell.host, port, f"a reboot ({reason})", before), connect, emit=emit, clock=clock)
    watch.show("going down")
    watch.order(shell)
    shell.close()
    return watch.until_back(timeout_s), clock.now_s() - began_s


def await_boot(
    host: Host,
    connect: Callable[[], RootShell],
    *,
    after: str,
    boot_id: str = "",
    timeout_s: float,
    emit: Emit,
    clock: Clock | None = None,
) -> RootShell:
    """Wait for a host that was restarted externally. Return a root shell once systemd has finished booting the host.

    ``after`` names the cause, such as "a power cycle". If ``boot_id`` is given, the function waits for a different boot
    ID. Raises the exceptions of ``reboot``.
    """
    way = _Awaited(host.name, str(host.port or 22), after, boot_id, ordered=True)
    watch = _Watch(way, connect, emit=emit, clock=clock or Clock())
    return watch.until_back(timeout_s)


def probe_boot(session: Session) -> BootState:
    """Return the boot state of a host. Raises ``Unreachable`` if the host's answer is missing or truncated."""
    mark = new_nonce()
    output = session.run("/bin/sh", stdin=sh(_PROBE, mark).encode(), timeout_s=PROBE_TIMEOUT_S, cap_bytes=256 * 1024)
    text = output.stdout.decode("utf-8", errors="replace")
    boot = re.search(rf"^{mark} ([0-9a-f-]{{36}})$", text, re.MULTILINE)
    if not boot:
        raise Unreachable(session.host.name, "the host answers, but does not report its boot ID", passing=True)
    state = re.search(r"^state ([a-z]+)$", text, re.MULTILINE)
    jobs = re.findall(r"^job (\S+) (\S+)$", text, re.MULTILINE)
    return BootState(boot[1], state[1] if state else "", tuple(f"{kind} {unit}" for kind, unit in jobs))


@dataclass(frozen=True, slots=True)
class _Awaited:
    """A restarted host to wait for. ``boot_id`` was read before the restart, and is empty if unknown. ``ordered`` means
    that the host has accepted the reboot command, or needs none.
    """

    host: str
    port: str
    after: str
    boot_id: str
    ordered: bool = False


class _Watch:
    def __init__(self, way: _Awaited, connect: Callable[[], RootShell], *, emit: Emit, clock: Clock) -> None:
        self._host, self._port, self._after, self._boot_id = way.host, way.port, way.after, way.boot_id
        self._connect = connect
        self._emit = emit
        self._clock = clock
        self._ordered = way.ordered  #: whether the host is known to have accepted the reboot command
        self._shell: RootShell | None = None
        self._seen: BootState | None = None  #: boot state from the latest probe; ``None`` if the host did not answer
        self._back_s: float | None = None  #: time in seconds of the host's first answer after the reboot
        self._what, self._since = "no contact", clock.time_of_day()

    def order(self, shell: RootShell) -> None:
        """Send the reboot command, unless the host has accepted an earlier one."""
        if self._ordered:
            return
        try:
            shell.run(_ORDER, timeout_s=ORDER_TIMEOUT_S, failure="the reboot could not be ordered")
        except Unreachable:
            return  # A later probe of the boot ID shows whether the host accepted the command.
        self._ordered = True

    def until_back(self, timeout_s: float) -> RootShell:
        end_s = self._clock.now_s() + timeout_s
        try:
            while (shell := self._settled()) is None:
                late_s = end_s if self._back_s is None else max(end_s, self._back_s + SETTLE_S)
                if self._clock.now_s() >= late_s:
                    kind = NotBack if self._seen is None else HostError
                    raise kind(self._host, self._given_up(timeout_s))
                self._clock.sleep(POLL_S)
        except BaseException:
            self._close()
            raise
        return shell

    def _settled(self) -> RootShell | None:
        try:
            if self._shell is None:
                self._shell = self._connect()
            self._seen = probe_boot(self._shell.session)
        except HostKeyMismatch:
            raise
        except Unreachable as error:
            self._close()
            self._seen = None
            self.show(self._silence(error))
            return None
        if self._seen.boot_id == self._boot_id:
            self.show("going down: sshd answers, still the old boot")
            with suppress(HostError):  # During a shutdown, sudo may fail before sshd ends.
                self.order(self._shell)
            self._close()  # A host that shuts down may leave the connection open.
            return None
        return self._shell if self._judge(self._seen) else None

    def _judge(self, seen: BootState) -> bool:
        if self._back_s is None:
            self._back_s = self._clock.now_s()
        if seen.state == _STUCK:
            raise HostError(
                self._host,
                f"the host is in maintenance mode after {self._after}, because a required systemd unit failed; check "
                "the host's console and `journalctl -b -p err`",
            )
        if seen.state in _UNSETTLED:
            jobs = f" ({len(seen.jobs)} job{'s' * (len(seen.jobs) > 1)})" if seen.jobs else ""
            self.show(f"booted, systemd is {seen.state}{jobs}")
            return False
        return True

    def _silence(self, error: Unreachable) -> str:
        cause = error.__cause__
        if isinstance(cause, ConnectionRefusedError):
            return f"port {self._port} refuses connections"
        if isinstance(cause, TimeoutError):
            return f"down (no answer on port {self._port})"
        if isinstance(cause, OSError) and cause.strerror:
            return f"down ({cause.strerror})"
        return error.sentence

    def _given_up(self, timeout_s: float) -> str:
        last = f"{self._what} since {self._since}"
        if self._seen is None:
            again = " and went away again" if self._back_s is not None else ""
            came = "the host came back" if again else "the host did not come back"
            return f"{came}{again} within {shown_limit(timeout_s)} of {self._after}; last state: {last}"
        if self._back_s is None:
            how = f"the host did not go down for {self._after} within {shown_limit(timeout_s)}"
        else:
            how = f"the host came back from {self._after}, but did not finish booting"
        return f"{how}; last state: {last}{self._seen.waits_for}"

    def show(self, what: str) -> None:
        if what != self._what:
            self._what, self._since = what, self._clock.time_of_day()
            self._emit(Waiting(self._host, what))

    def _close(self) -> None:
        if self._shell is not None:
            self._shell.close()
            self._shell = None
