"""The systemd units of a role: their states, and the last journal lines of failed units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hostwright.audit.judging.context import AuditContext, Unread
from hostwright.common.errors import UnitJournal
from hostwright.common.quoting import sh_file, words
from hostwright.common.text import one_line, printable
from hostwright.common.untrusted import Pattern
from hostwright.plan.model import Probe
from hostwright.resources.system.services import parse_show

#: maximum number of last lines to show of a program's output. A single line could be only a hint to use ``--help``.
LAST_LINES = 2
#: maximum number of journal lines to read of a failed unit, enough for systemd's messages about five starts
JOURNAL_LINES = 25

MOST_DIGITS = 10  #: minimum number of digits for rejecting a number that systemctl prints

#: maximum number of journal lines to show of a unit (our choice). Each start of a unit adds six lines of systemd.
QUOTED_LINES = 12
QUOTED_CHARACTERS = 300  #: maximum number of characters to show of a journal line
#: maximum number of bytes to read of a journal line. A secret that is cut off would not be masked.
LINE_BYTES = 1000
NAMES_BYTES = 520  #: maximum size in bytes of the two unit names at the beginning of a journal line
MOST_NEEDED = 2  #: maximum number of a unit's failed dependencies whose journals are read

_FAILED = "systemctl list-units --state=failed,activating --plain --no-legend --no-pager"
_EACH = f"""\
while read -r u rest; do
  timeout -k 1 5 journalctl -q -u "$u" -n {JOURNAL_LINES} -o cat --no-pager </dev/null | sed "s/^/$u: /"
done; exit 0"""

_STATES = ("LoadState", "ActiveState", "SubState", "Result")

#: pattern of systemd's own messages in a unit's journal
_SYSTEMD = Pattern(
    r"\S+\.(service|socket|mount|timer): |(Start|Stopp|Reload|Finish|Listen|Clos|Mount|Unmount)(ed|ing) "
    r"|Failed to (start|listen|mount) |Dependency failed "
)
_ENDED = Pattern(
    r"\S+\.(service|socket|mount|timer): (Failed at step |Failed to load |Failed to run |\w+ process exited, )"
)


@dataclass(frozen=True, slots=True)
class Unit:
    """The state of one systemd unit, as ``systemctl show`` prints it."""

    name: str
    load: str  #: load state of the unit, such as ``loaded`` or ``not-found``
    active: str  #: state of the unit, such as ``active`` or ``failed``
    sub: str  #: detailed state of the unit, such as ``running`` or ``dead``
    result: str  #: result of the unit's last run, such as ``success`` or ``exit-code``
    queued: bool = False  #: whether a start or stop of the unit waits for other units
    restarts: int = 0  #: number of automatic restarts of the unit since the last start by a user

    @property
    def failed(self) -> bool:
        """Whether the unit failed, or is being restarted after a failure."""
        ended = self.sub.startswith("auto-restart") and self.result not in {"", "success"}
        return self.active == "failed" or ended or (self.active == "activating" and self.restarts > 0)

    def __str__(self) -> str:
        why = f", {self.result}" if self.result not in {"", "success"} else ""
        again = f", restarts: {self.restarts}" if self.failed and self.restarts else ""
        return f"{self.name} is {self.active} ({self.sub}{why}{again})"


@dataclass(frozen=True, slots=True)
class Units:
    """The probes for the systemd units ``names``, and methods that read the answers."""

    names: tuple[str, ...]

    @property
    def states(self) -> Probe:
        """The probe that prints the states of the units, in the format of ``systemctl show``."""
        return Probe(f"systemctl show -p Id,LoadState,ActiveState,SubState,Result,Job,NRestarts -- {words(self.names)}")

    @property
    def journals(self) -> Probe:
        """The probe that prints the journals of failed or restarting units, as lines ``UNIT: text``."""
        return Probe(f"{_FAILED} -- {words(self.names)} |\n{_EACH}", root=True)

    def unit(self, ctx: AuditContext, name: str) -> Unit:
        """Return the state of the unit ``name``. Raises ``Unread`` if systemd reports no such unit."""
        for block in ctx.text(self.states).split("\n\n"):
            shown = parse_show(block)
            if shown.get("Id") == name:
                load, active, sub, result = (shown.get(key, "") for key in _STATES)
                queued, restarts = shown.get("Job", "") not in {"", "0"}, _count(shown.get("NRestarts", ""))
                return Unit(name, load, active, sub, result, queued, restarts)
        raise Unread(f"systemd reports no state of the unit {name}")

    def journal(self, ctx: AuditContext, name: str) -> tuple[str, ...]:
        """Return the last journal lines of the failed unit ``name``; empty if the journal was not probed (without
        sudo).
        """
        if self.journals not in ctx.facts:
            return ()
        rows = (line.partition(": ") for line in ctx.facts[self.journals].text.splitlines())
        return tuple(text for who, _, text in rows if who == name and text.strip())

    def last_words(self, ctx: AuditContext, name: str) -> tuple[str, ...]:
        """Return the last output of the program of the failed unit ``name``, from the unit's journal."""
        return last_words(self.journal(ctx, name))

    def limited(self, ctx: AuditContext, name: str) -> str:
        """Return the journal line in which systemd reports that it stops restarting the unit ``name``, or an empty
        text.
        """
        unit = self.unit(ctx, name)
        if unit.active != "failed":
            return ""
        if unit.result == "start-limit-hit":
            return f"{name}: start-limit-hit"
        lines = reversed(self.journal(ctx, name))
        return next((line for line in lines if "tart request repeated too quickly" in line), "")


def last_words(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the last output of a unit's program since the last start of the unit, from the journal ``lines``.

    If the program printed nothing, return systemd's last message about the unit.
    """
    starts = [number for number, line in enumerate(lines) if line.startswith("Starting ")]
    lines = lines[starts[-1] :] if starts else lines
    own = tuple(line for line in lines if not _SYSTEMD.match(line))
    return (own or tuple(line for line in lines if _ENDED.match(line)))[-LAST_LINES:]


def known_cause(ctx: AuditContext, lines: Sequence[str], *besides: str) -> Iterator[str]:
    """Yield a reference to the failure rule that matches a unit's journal ``lines``, unless ``besides`` names the rule.

    The matching line comes first, unless ``last_words`` already contains it.
    """
    name, line = ctx.named("\n".join(lines)) or ("", "")
    if name and name not in besides:
        words = line.splitlines()[-1].strip()
        place = "" if any(words in each for each in last_words(lines)) else f"{words}: "
        yield f"{place}see `hostwright doctor --explain {name}`"


def unit_journals(units: Sequence[str]) -> Probe:
    """Return the probe that prints the last journal lines of ``units`` in any state, as lines ``NAMED UNIT: text``.

    ``NAMED`` is one of ``units``. ``UNIT`` is the same unit, or a failed unit that the named unit needs to start.
    """
    script = sh_file(
        __file__, "unitjournals.sh", units=tuple(units), lines=QUOTED_LINES, width=LINE_BYTES, needed=MOST_NEEDED
    )
    most = max(1, len(units)) * (1 + MOST_NEEDED) * QUOTED_LINES * (LINE_BYTES + NAMES_BYTES)
    return Probe(script, root=True, cap_bytes=most)


def read_journals(text: str) -> tuple[UnitJournal, ...]:
    """Parse ``text``, the output of the probe ``unit_journals``, into journals of limited size, safe to print."""
    journals: dict[tuple[str, str], list[str]] = {}
    for row in text.splitlines():
        head, colon, line = row.partition(": ")
        named, _, unit = head.partition(" ")
        if colon and unit and line.strip():
            journals.setdefault((printable(named), printable(unit)), []).append(line)
    return tuple(
        UnitJournal(named, unit, tuple(map(_quoted, lines[-QUOTED_LINES:])), " ".join(map(_quoted, last_words(lines))))
        for (named, unit), lines in journals.items()
    )


def _quoted(line: str) -> str:
    return one_line(line.strip())[:QUOTED_CHARACTERS]


def _count(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < MOST_DIGITS else 0
