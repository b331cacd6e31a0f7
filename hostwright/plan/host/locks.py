"""Locks on hosts as values: what they say, the questions that read them, the scripts that change them, who may do what.

A *run's* lock is ``flock`` on ``/run/hostwright/run.lock``: it ends with the run, however that ends, and
``hostwright.apply.locking.runlock`` keeps it. ``run.json`` beside it only says whose it is.

An *operator's* lock is a file, ``/var/lib/hostwright/lock.json``, that outlives reboots and ends at its time. Times are
those of the controllers: the clock of a host that is being repaired may be a year off.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, Field, ValidationError

from hostwright.common.command import Command
from hostwright.common.durations import seconds
from hostwright.common.errors import InputError
from hostwright.common.input.adapter import adapter
from hostwright.common.operator import machine_id, operator, pid_alive, process_start
from hostwright.common.quoting import sh_file
from hostwright.plan.model import Answer, Facts, Probe

RUN_DIR = "/run/hostwright"
STATE_DIR = "/var/lib/hostwright"
LAPSES_S = 15  #: a run's lock ends so long after the last sign of life of its controller: a network cut, a closed lid
STALE_S = 8.0  #: two signs of life that did not come: the lock will lapse soon
MOVED_STATUS = 75  #: exit status (EX_TEMPFAIL) of a script whose lock is not the one any more that was decided about
DEFAULT_FOR = (
    "8h"  #: a working day: who needs a host for longer says so, and nobody's forgotten lock outlives the night
)
RECORD_CAP_BYTES = 8 * 1024  #: four times what our own records can be long

#: One line; nothing that steers a terminal. What does not fit is not ours.
_Line = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^\P{C}*$")]


@dataclass(frozen=True, slots=True)
class Holder:
    """Whose a run's lock is. ``machine`` and ``pid`` with ``started`` name the controller's process, so that another
    run on the same machine sees whether it lives."""

    owner: _Line  #: user@machine
    run: _Line
    host: _Line  #: as the owner's inventory names it
    machine: _Line
    pid: Annotated[int, Field(ge=1)]
    started: Annotated[str, Field(max_length=100)]
    since: AwareDatetime  #: by the controller's clock
    lapses_s: Annotated[float, Field(gt=0)] = LAPSES_S
    schema: Literal[1] = 1

    def to_json(self) -> str:
        """The record's one line."""
        return adapter(Holder).dump_json(self).decode()

    def __str__(self) -> str:
        return f"{self.owner} works on it since {moment(self.since)} (run {self.run})"


@dataclass(frozen=True, slots=True)
class OperatorLock:
    """A host that nobody shall change for a while: who says so, why, and until when."""

    owner: _Line
    reason: _Line
    host: _Line  #: as the owner's inventory names it
    since: AwareDatetime
    until: AwareDatetime
    schema: Literal[1] = 1

    def to_json(self) -> str:
        """The lock file's one line."""
        return adapter(OperatorLock).dump_json(self).decode()

    def expired(self, now: datetime) -> bool:
        """Whether its time is over."""
        return now >= self.until

    def __str__(self) -> str:
        if self is UNREADABLE:
            return f"locked, but its lock file {STATE_DIR}/lock.json cannot be read"
        return f"locked by {self.owner} since {moment(self.since)} until {moment(self.until)}: {self.reason}"


#: What a lock file that is not ours, torn, or of a later version is taken for: it locks, for somebody meant it to.
UNREADABLE: Final = OperatorLock(
    "", "", "", datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
)  #: told from others by identity

#: The operator's lock as it is, after a line that says that there is one; where nobody may look, there may be one.
LOCK = Probe(
    f"if [ -d {STATE_DIR} ] && {{ [ ! -x {STATE_DIR} ] || [ -e {STATE_DIR}/lock.json ]; }}\n"
    f"then echo there; cat {STATE_DIR}/lock.json; fi",
    cap_bytes=RECORD_CAP_BYTES,
    shared=True,
)

#: When a process began: field 22 of proc(5), counted from behind the program's name, which may hold anything.
START_OF = "sed 's/.*) //' \"/proc/$pid/stat\" 2>/dev/null | cut -d' ' -f20"

#: The record of the run's lock while it is held, after a line that says how many seconds ago, by the host's clock, its
#: controller was heard. Whether it is, is read off the process that keeps it, which disturbs
#: nobody. A trial ``flock``, even a shared one, could turn away a run that begins in that moment, and it needs root:
#: the lock's file is closed to other users, for with flock(2) they could block every run. ``/proc/locks`` does not
#: show, in a container, a lock whose flock(1) has ended. Under ``hidepid`` a login user sees nothing; the lock counts.
RUN_LOCK = Probe(
    f"if [ -e {RUN_DIR}/run.pid ] && read -r pid started <{RUN_DIR}/run.pid"
    f' && [ -n "$started" ] && [ "$({START_OF})" = "$started" ]; then '
    f"echo heard $(( $(date +%s) - $(stat -c %Y {RUN_DIR}/run.json) )); cat {RUN_DIR}/run.json; fi",
    cap_bytes=RECORD_CAP_BYTES,
    shared=True,
)


def holder(run: str, host: str, now: datetime, owner: str = "") -> Holder:
    """This process as the holder of a host's lock, in the name of ``owner``, by default of who runs it."""
    pid = os.getpid()
    return Holder(owner or operator(), run, host, machine_id(), pid, process_start(pid), now.replace(microsecond=0))


def operator_lock(facts: Facts) -> OperatorLock | None:
    """The operator's lock that a host carries, expired or not; ``UNREADABLE`` when it cannot be understood."""
    text = _lock_text(facts[LOCK])
    if text is None:
        return None
    try:
        return adapter(OperatorLock).validate_json(text, strict=True)
    except ValidationError:
        return UNREADABLE


def run_lock(facts: Facts) -> Holder | None:
    """Whose run works on the host now; ``None`` when nobody's does, or its record says nothing that we understand."""
    return read_holder(facts[RUN_LOCK].text.rpartition("heard")[2].partition("\n")[2])


def living(facts: Facts, ours: Holder) -> Holder | None:
    """The run of somebody else that works on the host now and is heard; ``None`` when there is none.

    One that is not heard any more, or whose process on this machine is dead, has left what it began to others.
    """
    held = run_lock(facts)
    age = facts[RUN_LOCK].text.partition("heard ")[2].partition("\n")[0]
    age_s = float(age) if re.fullmatch(r"-?[0-9]{1,15}", age) else 0.0
    return None if held is None or lapsing(held, age_s, ours) else held


def read_holder(text: str) -> Holder | None:
    """The record of a run's lock; ``None`` when it is not one."""
    try:
        return adapter(Holder).validate_json(text, strict=True)
    except ValidationError:
        return None


def lapsing(held: Holder | None, age_s: float, ours: Holder) -> bool:
    """Whether a run's lock that is held will soon lapse by itself: its controller was killed, or cannot be heard.

    ``age_s`` is how long ago it was heard. A lock of our own run is one of a connection that was lost, or of a worker
    that was: nobody else is given one of its hosts before. A record that nobody can read is one that is being written,
    or removed.
    """
    if held is None or age_s > STALE_S or held.run == ours.run:
        return True
    return held.machine == ours.machine and not pid_alive(held.pid, held.started)


def held_by(held: Holder | None) -> str:
    """The sentence for whoever is turned away by a run's lock."""
    if held is None:
        return "another run works on it, and does not say whose it is: try again in a moment"
    machine = held.owner.rpartition("@")[2]
    return (
        f"{held}: wait until that run ends ({Command('runs.follow')} shows what it does), or end it: it is process "
        f"{held.pid} on {machine}"
    )


def refusal(facts: Facts, now: datetime) -> str:
    """Why an operator's lock forbids changes to a host; empty when none does.

    Its owner is refused as well: a host that is to be sent in, or kept as it is for a measurement, must be safe from
    its owner's own ``--hosts all`` and cron jobs above all. To take one's lock off is one command.
    """
    lock = operator_lock(facts)
    if lock is None or lock.expired(now):
        return ""
    if lock is UNREADABLE:
        return f"{lock}: look at it, and take it off with {Command('unlock', force=True)}"
    unlock = Command("unlock", hosts=lock.host)
    return f"{lock}. To work on it, take the lock off: {unlock} (somebody else's: --force)"


def forbids(lock: OperatorLock | None, who: str, now: datetime) -> str:
    """Why ``who`` may not replace or remove a host's lock without force; empty when he may."""
    if lock is None or lock.expired(now) or lock.owner == who:
        return ""
    return f"{lock}. It is not yours: talk to its owner, or use --force"


def lock_script(lock: OperatorLock, facts: Facts, *, force: bool = False) -> str:
    """A root program that puts a lock on a host: whole and on the disk, or not at all.

    It changes nothing and ends with ``MOVED_STATUS`` when the host's lock is not the one any more that ``facts`` show,
    by which this was decided: of two operators at once, one comes first. ``force`` does not look.
    """
    return _change_script(lock.to_json(), "" if force else _seen(facts))


def unlock_script(facts: Facts, *, force: bool = False) -> str:
    """A root program that takes the lock off a host, if it still is the one in ``facts`` (see ``lock_script``)."""
    return _change_script("", "" if force else _seen(facts))


def _change_script(text: str, seen: str) -> str:
    return sh_file(__file__, "lock.sh", state=STATE_DIR, run=RUN_DIR, moved=MOVED_STATUS, seen=seen, text=text)


def _seen(facts: Facts) -> str:
    text = _lock_text(facts[LOCK])
    return "absent" if text is None else hashlib.sha256(text.encode()).hexdigest()


def _lock_text(answer: Answer) -> str | None:
    mark, _, text = answer.text.partition("\n")
    return text if mark else None


def moment(time: datetime) -> str:
    """A time as operators read it, in every zone the same."""
    try:
        return f"{time.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except OverflowError:  # a host may write the end of the year 9999 in any zone
        return time.isoformat()


def read_duration(text: str, where: str = "--for") -> timedelta:
    """``3d``, ``12h``, ``90m``, ``2w``, ``1d12h`` as a duration. Raises ``InputError`` for anything else.

    A number alone is refused here: who says 3 does not mean seconds.
    """
    try:
        if text.strip().isdecimal():
            raise ValueError
        return timedelta(seconds=seconds(text))
    except ValueError as error:
        raise InputError(f"found {text!r:.60}, expected a duration such as 90m, 12h, 3d, 2w or 1d12h", where) from error
