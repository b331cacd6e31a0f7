"""The lock that a run has on a host for as long as it works there.

A small root program on the host keeps the run's lock, over one exec channel of the run's own connection. It ends, and
the lock with it, when its standard input ends (the run is over, the controller was killed, the connection is gone), or
when no sign of life has come for ``LAPSES_S`` (the network was cut, the laptop's lid closed). It answers each sign of
life, so that the controller knows until when it holds the lock for certain.
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

BEAT_S = 4.0  #: between two signs of life: three may come late before the lock lapses
MARGIN_S = 1.0  #: the lock counts as lost so long before it lapses, for what is begun at the last moment
ANSWER_S = 30.0  #: our estimate: how long a busy host may take to start the program
FIRST_WAIT_S = 1  #: for a lock that is being released at this moment
ROUND_S = 15  #: a longer wait is made of such rounds, each of which finds out anew who holds the lock
LAPSE_WAIT_S = 20.0  #: for the lock of a run that is dead, or cannot be heard
OWN_WAIT_S = 60.0  #: for that of a worker of the same run, which lets go 45 s after nobody could be heard there
RELEASE_S = 3.0
LONGEST_S = 20 * 86400.0  #: a bound for the channel; no run is so long, and poll(2) counts milliseconds up to 24 days

#: $1: folder, $2: nonce, $3: record, $4: seconds to wait, $5: seconds without a sign of life. What it starts must
#: not hold on to the lock (9) or to the channel.
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
    """Somebody else has the lock: who, and how many seconds ago that run was heard, by the host's clock."""

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
        """Take the lock over ``shell``, on which sudo has been tried before (see ``RootShell.stream``).

        Raises ``Locked`` with the holder's name when it is not free within ``wait_s`` seconds; ``notify`` is called
        with a sentence while it waits. The lock of a run that is dead, or not heard any more, lapses, and is waited for
        in any case (``LAPSE_WAIT_S``), and so is one of the same run (``OWN_WAIT_S``). Raises ``Unreachable`` when the
        host does not answer, and ``HostError`` when it cannot be locked.
        """
        begun_s = now_s()
        round_s = FIRST_WAIT_S
        while True:
            keeper = Keeper(shell, holder, round_s)
            try:
                busy = keeper.settled(round_s + ANSWER_S)
            except BaseException:  # whatever it is: a lock that nobody knows of would be held for the whole run
                keeper.stop()
                raise
            if busy is None:
                return cls(keeper)
            left_s = begun_s + max(wait_s, _lapse_s(busy, holder)) - now_s()
            if left_s <= 0:
                raise Locked(holder.host, locks.held_by(busy.held))
            notify(f"waiting for its lock: {locks.held_by(busy.held)}")
            round_s = min(math.ceil(left_s), ROUND_S)

    @property
    def free_s(self) -> float:
        """Whole seconds since the last run released the lock.

        Zero if that run did not release it (it was killed). Infinite if no run had it since the host booted.
        """
        return self._keeper.free_s

    @property
    def lost(self) -> bool:
        """Whether it is no longer certain that the lock is ours: take it again before anything is started."""
        return self._keeper.lost

    def check(self) -> None:
        """Raise ``HostError`` when the lock is lost, so that nothing is begun without it."""
        if self.lost:
            raise HostError(
                self._keeper.host, f"its lock was lost ({self._keeper.why}): nothing more is started here; run again"
            )

    def release(self) -> None:
        """Release the lock, and wait at most ``RELEASE_S`` for the host. Twice does nothing more; it never raises."""
        self._keeper.end()

    def __enter__(self) -> HostLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class Keeper:
    """The program on the host that keeps the lock, as seen from here: what was sent to it, what it has printed.

    It is its own standard input (``transport.Readable``). One sign of life is on its way at any time, so that an answer
    tells when that sign was sent: for ``LAPSES_S`` from then on, the lock is ours.
    """

    def __init__(self, shell: RootShell, holder: Holder, wait_s: int):
        self.host = holder.host
        self.why = "its connection is silent"
        self.free_s = 0.0  #: of an answer that cannot be read
        self._nonce = probing.new_nonce().encode()
        about = (locks.RUN_DIR, self._nonce.decode(), holder.to_json(), wait_s, LAPSES_S)
        self._change = threading.Condition()
        self._rest = b""
        self._held = self._ending = False
        self._busy: Busy | None = None
        self._error: HostError | None = None  #: set when the program has ended, whatever the reason
        self._sent = self._heard = 0
        self._sent_s = self._heard_s = -math.inf
        self._thread = threading.Thread(target=self._run, args=(shell, about), name="host-lock", daemon=True)
        self._thread.start()

    def settled(self, timeout_s: float) -> Busy | None:
        """Wait until the lock is ours, and be ``None``; or somebody else's. Raises what stands in the way."""
        with self._change:
            self._change.wait_for(lambda: self._heard or self._busy or self._error, timeout_s)
            if self._heard:
                return None
            if self._busy:
                return self._busy
            silent = f"it did not answer within {timeout_s:g} s when it was to be locked"
            raise self._error or Unreachable(self.host, silent, passing=True)

    @property
    def lost(self) -> bool:
        """Whether the lock may be somebody else's."""
        with self._change:
            return self._error is not None or self._ending or now_s() - self._heard_s > LAPSES_S - MARGIN_S

    def stop(self) -> None:
        """Let the program end."""
        with self._change:
            self._ending = True
            self._change.notify_all()

    def end(self) -> None:
        """End the program, and wait a little for its end."""
        self.stop()
        self._thread.join(RELEASE_S)

    def read(self, size: int, /) -> bytes:  # noqa: ARG002 (a sign of life is shorter than any size)
        """See ``transport.Readable``: a sign of life now and then, until the end."""
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
            error = HostError(self.host, f"it cannot be locked: {caught}")
        else:
            error = shell.failed("it cannot be locked", output)
        with self._change:
            self._error = error
            self.why = error.sentence if isinstance(error, Unreachable) else "the program that keeps it has ended"
        self.stop()

    def _take(self, data: bytes) -> None:
        """What the program says, in pieces of any size, among what a login shell may print."""
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
    """How long a lock is waited for in any case, since it will lapse by itself."""
    if busy.held is not None and busy.held.run == holder.run:
        return OWN_WAIT_S
    return LAPSE_WAIT_S if locks.lapsing(busy.held, busy.age_s, holder) else 0.0


def now_s() -> float:
    """Seconds that go on while this machine sleeps: a laptop that wakes up has lost its locks."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
