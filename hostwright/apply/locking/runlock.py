"""The lock of a run on a host, held as long as the run works on the host.

A small program for root on the host holds the lock, over an exec channel of the run's connection. The program ends with
its standard input, for example when the connection is lost, or after ``LAPSES_S`` without a heartbeat. It answers each
heartbeat, so that the controller can compute until when the program holds the lock.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from hostwright.common.errors import HostError, HostwrightError, Locked, Unreachable
from hostwright.common.untrusted import guarded, whole
from hostwright.plan import probing
from hostwright.plan.host import locks
from hostwright.plan.host.locks import LAPSES_S, Holder
from hostwright.transport.root.rootshell import RootShell

#: seconds between two heartbeats of a run to a host. Three heartbeats may be late before the lock expires.
BEAT_S = 4.0
#: seconds before the expiry of a lock from which the lock counts as lost. The last commands must end before the expiry.
MARGIN_S = 1.0
ANSWER_S = 30.0  #: time limit in seconds for the start of the lock program on a busy host (our estimate)
FIRST_WAIT_S = 1  #: seconds of the first wait for a lock, enough if the lock is just being released
ROUND_S = 15  #: seconds of each later wait for a lock, after which the lock's holder is checked again
LAPSE_WAIT_S = 20.0  #: seconds to wait for the lock of a run that is dead or sends no heartbeats
#: seconds to wait for another worker of the same run. A worker without heartbeats releases its hosts after 45 s.
OWN_WAIT_S = 60.0
RELEASE_S = 3.0
#: time limit in seconds of the SSH channel that holds a lock, longer than any run. poll(2) allows at most 24 days.
LONGEST_S = 20 * 86400.0

#: shell program that holds a host's lock. $1 is the directory, $2 the nonce, $3 the record, $4 the seconds to wait and
#: $5 the seconds without a heartbeat after which the lock expires. Child processes must not keep the lock (file
#: descriptor 9) or the SSH channel open.
_KEEP = "; ".join(
    [
        'set -u; trap \'\' PIPE; umask 022; mkdir -p "$1" && cd "$1" || exit 3',
        'umask 077; exec 9>>run.lock; umask 022; status=0; flock -w "$4" 9 || status=$?',
        'if [ "$status" = 1 ]; then age=$(( $(date +%s) - $(stat -c %Y run.json 2>/dev/null || date +%s) ))',
        'printf "%s busy %s %s\\n" "$2" "$age" "$(head -c 8192 run.json 2>/dev/null | tr -d "\\n")"; exit 0; fi',
        '[ "$status" = 0 ] || exit 3',
        "read -r now idle </proc/uptime; now=${now%%.*}; free=; read -r free <run.lock",
        "if [ -e run.json ]; then free=$now; fi",
        "rm -f run.json; pid=$$; printf '%s %s\\n' $$ \"$(" + locks.START_OF + ')" >run.pid',
        "printf '%s\\n' \"$3\" >run.json.new; mv -f run.json.new run.json",
        'printf "%s held %s\\n" "$2" "${free:+$((now - free))}"',
        'while beat=$(exec 9>&- 2>/dev/null; exec timeout "$5" head -n 1) && [ -n "$beat" ]',
        'do touch run.json; printf \'%s beat %s\\n\' "$2" "$beat" || break; done',
        "read -r now idle </proc/uptime; echo ${now%%.*} >run.lock; rm -f run.pid run.json",
    ]
)


@dataclass(frozen=True, slots=True)
class Busy:
    """Another holder of a host's lock, and the age in seconds of the holder's last heartbeat, by the host's clock."""

    held: Holder | None
    age_s: float


class HostLock:
    """The lock of a run on a host, held until ``release``. Also a context manager."""

    def __init__(self, keeper: Keeper):
        self._keeper = keeper

    @classmethod
    def acquire(
        cls, shell: RootShell, holder: Holder, *, wait_s: float = 0.0, notify: Callable[[str], None] = lambda _: None
    ) -> HostLock:
        """Acquire the host's lock over ``shell``, on which sudo must have been tried before (see ``RootShell.stream``).

        Raises ``Locked`` with the holder's name if the lock is not free within ``wait_s`` seconds; ``notify`` receives
        a message during the wait. The call always waits for the lock of a dead or silent run (``LAPSE_WAIT_S``), and
        for a worker of the same run (``OWN_WAIT_S``). Raises ``Unreachable`` if the host does not answer, and
        ``HostError`` if the host cannot be locked.
        """
        begun_s = now_s()
        round_s = FIRST_WAIT_S
        while True:
            keeper = Keeper(shell, holder, round_s)
            try:
                busy = keeper.settled(round_s + ANSWER_S)
            except BaseException:  # Without this release, an unused lock would be held for the whole run.
                keeper.stop()
                raise
            if busy is None:
                return cls(keeper)
            left_s = begun_s + max(wait_s, _lapse_s(busy, holder)) - now_s()
            if left_s <= 0:
                raise Locked(holder.host, locks.held_by(busy.held))
            notify(f"waiting for the host's lock: {locks.held_by(busy.held)}")
            round_s = min(math.ceil(left_s), ROUND_S)

    @property
    def free_s(self) -> float:
        """Whole seconds for which no run had held the host's lock before this run acquired it.

        Zero if the last run did not release the lock (it was killed). Infinite if no run held the lock since the host
        booted.
        """
        return self._keeper.free_s

    @property
    def lost(self) -> bool:
        """Whether the host's lock is lost or may be lost. If so, acquire the lock again before further work."""
        return self._keeper.lost

    def check(self) -> None:
        """Raise ``HostError`` if the host's lock is lost or may be lost."""
        if self.lost:
            raise HostError(
                self._keeper.host, f"the host's lock was lost ({self._keeper.why}); nothing more was started; run again"
            )

    def release(self) -> None:
        """Release the lock, and wait up to ``RELEASE_S`` for the host to confirm. Idempotent; never raises."""
        self._keeper.end()

    def __enter__(self) -> HostLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class Keeper:
    """The controller's side of the program that holds a host's lock: the input and output of the program.

    The object is the standard input of the program (``transport.Readable``). An answer of the program proves that the
    lock is held for ``LAPSES_S`` after the heartbeat was sent.
    """

    def __init__(self, shell: RootShell, holder: Holder, wait_s: int):
        self.host = holder.host
        self.why = "its connection is silent"
        self.free_s = 0.0  #: seconds for which no run held the lock before; 0 if the host's answer is unreadable
        self._nonce = probing.new_nonce().encode()
        about = (locks.RUN_DIR, self._nonce.decode(), holder.to_json(), wait_s, LAPSES_S)
        self._change = threading.Condition()
        self._rest = b""
        self._held = self._ending = False
        self._busy: Busy | None = None
        self._error: HostError | None = None  #: error with which the lock program on the host ended
        self._sent = self._heard = 0
        self._sent_s = self._heard_s = -math.inf
        self._thread = threading.Thread(target=self._run, args=(shell, about), name="host-lock", daemon=True)
        self._thread.start()

    def settled(self, timeout_s: float) -> Busy | None:
        """Wait until the lock is acquired, and return ``None``. If another holder has the lock, return that holder.

        Raises ``Unreachable`` if the host does not answer within ``timeout_s``, and the error with which the program
        ended.
        """
        with self._change:
            self._change.wait_for(lambda: self._heard or self._busy or self._error, timeout_s)
            if self._heard:
                return None
            if self._busy:
                return self._busy
            silent = f"the host did not answer within {timeout_s:g} s to a request for its lock"
            raise self._error or Unreachable(self.host, silent, passing=True)

    @property
    def lost(self) -> bool:
        """Whether the host's lock is lost or may be lost."""
        with self._change:
            return self._error is not None or self._ending or now_s() - self._heard_s > LAPSES_S - MARGIN_S

    def stop(self) -> None:
        """Make the program on the host exit, which releases the lock."""
        with self._change:
            self._ending = True
            self._change.notify_all()

    def end(self) -> None:
        """Make the program on the host exit, and wait up to ``RELEASE_S`` for the program to end."""
        self.stop()
        self._thread.join(RELEASE_S)

    def read(self, size: int, /) -> bytes:  # noqa: ARG002 (a heartbeat is shorter than any size)
        """Return a heartbeat at intervals, until ``stop``. Implements ``transport.Readable``."""
        with self._change:
            self._change.wait_for(lambda: self._ending or (self._held and self._heard == self._sent))
            if self._sent:
                self._change.wait_for(lambda: self._ending, BEAT_S)
            if self._ending:
                return b""
            self._sent += 1
            self._sent_s = now_s()
            return b"%d\n" % self._sent

    def _run(self, shell: RootShell, about: tuple[object, ...]) -> None:
        error: HostError
        try:
            with guarded(self.host):
                output = shell.stream(_KEEP, *about, stdin=self, timeout_s=LONGEST_S, on_stdout=self._take)
        except HostError as caught:
            error = caught
        except HostwrightError as caught:
            error = HostError(self.host, f"the host cannot be locked: {caught}")
        else:
            error = shell.failed("the host cannot be locked", output)
        with self._change:
            self._error = error
            self.why = error.sentence if isinstance(error, Unreachable) else "the program that holds the lock has ended"
        self.stop()

    def _take(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[-2 * locks.RECORD_CAP_BYTES :]
        with self._change:
            for line in lines:
                nonce, _, message = line.partition(b" ")
                if nonce == self._nonce:
                    self._hear(message.decode("utf-8", "replace"))
            self._change.notify_all()

    def _hear(self, message: str) -> None:
        word, _, rest = message.partition(" ")
        if word == "held":
            self._held = True
            self.free_s = float(whole(rest) or 0) if rest else math.inf
        elif word == "busy":
            age, _, record = rest.partition(" ")
            if (number := whole(age.removeprefix("-"))) is not None:
                self._busy = Busy(locks.read_holder(record), float(-number if age.startswith("-") else number))
        elif word == "beat" and rest == str(self._sent):
            self._heard, self._heard_s = self._sent, self._sent_s


def _lapse_s(busy: Busy, holder: Holder) -> float:
    """Return the seconds to wait until the lock of another holder, ``busy``, expires; 0 if the lock never expires."""
    if busy.held is not None and busy.held.run == holder.run:
        return OWN_WAIT_S
    return LAPSE_WAIT_S if locks.lapsing(busy.held, busy.age_s, holder) else 0.0


def now_s() -> float:
    """Return the seconds of a clock that also runs during suspend, so that a resumed laptop regards its locks as
    lost.
    """
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
