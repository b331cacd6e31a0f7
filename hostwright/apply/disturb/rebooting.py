"""Reboot a host and wait until it is really back: a new boot id, ssh, and systemd settled.

Uptime is not used (it survives in a container, and a clock can jump), only the kernel's ``boot_id``. What is seen on
the way is shown, and the last of it stands in the error of a host that does not come back.
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
#: bare metal takes up to half an hour through its firmware; the 600 s of Ansible's reboot module are too few for it
REBOOT_TIMEOUT_S = 1800.0
SETTLE_S = 300.0  #: how long systemd may at least take to start its units after ssh answers, however late that was
POLL_S = 1.0  #: between two probes
PROBE_TIMEOUT_S = 20.0
ORDER_TIMEOUT_S = 60.0
NAMED_JOBS = 3  #: how many jobs of systemd a sentence names

#: The order must outlive the channel that gives it: sshd goes down while the host reboots. Without an accuracy of its
#: own, systemd may be a minute late with a timer (AccuracySec in systemd.timer(5)).
_ORDER = """\
if [ -d /run/systemd/system ]; then
  systemd-run --quiet --collect --on-active=1 --timer-property=AccuracySec=100ms systemctl reboot
else ( sleep 1; sync; reboot ) >/dev/null 2>&1 & fi
"""

#: The boot id, whether systemd has settled (a word of is-system-running, nothing where there is no systemd or it would
#: not tell us), and a line for each job that it works on. ``is-system-running --wait`` would tell no jobs, and systemd
#: before 240 does not know it.
_PROBE = """\
printf '%%s ' %s; cat /proc/sys/kernel/random/boot_id
[ "$(id -u)" = 0 ] || [ -S /run/dbus/system_bus_socket ] || exit 0
echo "state $(systemctl is-system-running 2>/dev/null)"
systemctl list-jobs --no-legend --no-pager 2>/dev/null | while read -r id unit type state _; do
  if [ "$state" = running ]; then echo "job $type $unit"; fi
done
"""

#: systemd's words for a host that is on its way up or down, and for one that somebody must look after at its console.
_UNSETTLED = ("initializing", "starting", "stopping", "unknown")
_STUCK = "maintenance"


class NotBack(HostError):
    """A host went down, or was told to, and does not answer: none of our jobs runs on it any more."""


@dataclass(frozen=True, slots=True)
class BootState:
    """A host that answers: its boot id, the state of its systemd, and the jobs that systemd is running."""

    boot_id: str
    state: str = ""
    jobs: tuple[str, ...] = ()

    @property
    def waits_for(self) -> str:
        """What systemd waits for, in words; empty when it waits for nothing."""
        rest = len(self.jobs) - NAMED_JOBS
        named = ", ".join(self.jobs[:NAMED_JOBS]) + (f" and {rest} more" if rest > 0 else "")
        return f", and systemd waits for: {named}" if named else ""


def read_reboot_timeout(host: Host) -> float:
    """How many seconds a host may take to come back from a reboot. Raises ``InputError`` where it is no duration."""
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
    """Reboot the host behind ``shell``; a new root shell on it, and the seconds that it took.

    ``connect`` opens one; ``timeout_s`` bounds the wait (the firmware of bare metal takes many minutes). ``reason``
    stands in sentences. Raises ``NotBack`` with the host's last known state when it does not come back, ``HostError``
    when it does not settle, and ``HostKeyMismatch`` at once when it comes back with another key.
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
    """A root shell on a host that somebody else started ``after`` something ("a power cycle"), once it has settled.

    ``boot_id`` is the boot before, where it is known; a host that is still in it is waited for. Raises as ``reboot``.
    """
    way = _Awaited(host.name, str(host.port or 22), after, boot_id, ordered=True)
    watch = _Watch(way, connect, emit=emit, clock=clock or Clock())
    return watch.until_back(timeout_s)


def probe_boot(session: Session) -> BootState:
    """The boot state of a host. Raises ``Unreachable`` where it does not answer, or its answer is cut off."""
    mark = new_nonce()
    output = session.run("/bin/sh", stdin=sh(_PROBE, mark).encode(), timeout_s=PROBE_TIMEOUT_S, cap_bytes=256 * 1024)
    text = output.stdout.decode("utf-8", errors="replace")
    boot = re.search(rf"^{mark} ([0-9a-f-]{{36}})$", text, re.MULTILINE)
    if not boot:
        raise Unreachable(session.host.name, "it answers but does not report its boot id", passing=True)
    state = re.search(r"^state ([a-z]+)$", text, re.MULTILINE)
    jobs = re.findall(r"^job (\S+) (\S+)$", text, re.MULTILINE)
    return BootState(boot[1], state[1] if state else "", tuple(f"{kind} {unit}" for kind, unit in jobs))


@dataclass(frozen=True, slots=True)
class _Awaited:
    """Which host is waited for, after what, its boot before that (empty: unknown), and whether it needs no order."""

    host: str
    port: str
    after: str
    boot_id: str
    ordered: bool = False


class _Watch:
    """Probes a host again and again, from the order to reboot until it has settled, and keeps the last answer."""

    def __init__(self, way: _Awaited, connect: Callable[[], RootShell], *, emit: Emit, clock: Clock) -> None:
        self._host, self._port, self._after, self._boot_id = way.host, way.port, way.after, way.boot_id
        self._connect = connect
        self._emit = emit
        self._clock = clock
        self._ordered = way.ordered  #: whether the host took the order; a lost connection does not tell
        self._shell: RootShell | None = None
        self._seen: BootState | None = None  #: the last look, ``None`` when the host did not answer it
        self._back_s: float | None = None  #: when it answered in its new boot for the first time
        self._what, self._since = "nothing of it", clock.time_of_day()

    def order(self, shell: RootShell) -> None:
        """Give the order to reboot, unless the host has taken it. Given twice in one boot, it does no harm."""
        if self._ordered:
            return
        try:
            shell.run(_ORDER, timeout_s=ORDER_TIMEOUT_S, failure="the order to reboot could not be given")
        except Unreachable:
            return  # it may be going down already: the boot id will tell
        self._ordered = True

    def until_back(self, timeout_s: float) -> RootShell:
        """A root shell on the host in its new boot, settled."""
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
        """Look once, and show what there is to see; the root shell, when the host has settled."""
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
            with suppress(HostError):  # sudo may have gone down already
                self.order(self._shell)
            self._close()  # the host takes it down, perhaps without closing it
            return None
        return self._shell if self._judge(self._seen) else None

    def _judge(self, seen: BootState) -> bool:
        """Whether a host in its new boot has settled."""
        if self._back_s is None:
            self._back_s = self._clock.now_s()
        if seen.state == _STUCK:
            raise HostError(
                self._host,
                f"it came back from {self._after} in maintenance mode: something that it needs to start "
                "failed; look at its console, and at journalctl -b -p err",
            )
        if seen.state in _UNSETTLED:
            jobs = f" ({len(seen.jobs)} job{'s' * (len(seen.jobs) > 1)})" if seen.jobs else ""
            self.show(f"booted, systemd is {seen.state}{jobs}")
            return False
        return True

    def _silence(self, error: Unreachable) -> str:
        """What it means that no session could be had."""
        cause = error.__cause__
        if isinstance(cause, ConnectionRefusedError):
            return f"port {self._port} refuses connections"
        if isinstance(cause, TimeoutError):
            return f"down (no answer on port {self._port})"
        if isinstance(cause, OSError) and cause.strerror:
            return f"down ({cause.strerror})"
        return error.sentence

    def _given_up(self, timeout_s: float) -> str:
        """The sentence for a host that nobody waits for any more."""
        last = f"{self._what} since {self._since}"
        if self._seen is None:
            again = " and went away again" if self._back_s is not None else ""
            came = "it came back" if again else "it did not come back"
            return f"{came}{again} within {shown_limit(timeout_s)} of {self._after}; last seen: {last}"
        if self._back_s is None:
            how = f"it did not go down for {self._after} within {shown_limit(timeout_s)}"
        else:
            how = f"it came back from {self._after} and did not settle"
        return f"{how}; last seen: {last}{self._seen.waits_for}"

    def show(self, what: str) -> None:
        """Keep a state, and show it when it is another one than before."""
        if what != self._what:
            self._what, self._since = what, self._clock.time_of_day()
            self._emit(Waiting(self._host, what))

    def _close(self) -> None:
        if self._shell is not None:
            self._shell.close()
            self._shell = None
