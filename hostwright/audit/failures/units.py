"""The systemd units of a layer: their states, and the last journal lines of failed units."""

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

LAST_LINES = 2  #: maximum lines shown of a program's own output: the very last line may only refer to its help
#: maximum journal lines read of a failed unit: systemd's messages about five starts, and the program's output
JOURNAL_LINES = 25

MOST_DIGITS = 10  #: a number with this many digits is rejected

QUOTED_LINES = 12  #: maximum journal lines shown of a unit (our choice); systemd itself logs six about a start
QUOTED_CHARACTERS = 300  #: maximum characters shown of each of these lines
LINE_BYTES = 1000  #: bytes read of each of these lines: more than are shown, so that a secret is masked as a whole
NAMES_BYTES = 520  #: maximum bytes of the two unit names before each of these lines
MOST_NEEDED = 2  #: maximum number of failed dependencies of a unit whose journals are read

_FAILED = "systemctl list-units --state=failed,activating --plain --no-legend --no-pager"
_EACH = f"""\
while read -r u rest; do
  timeout -k 1 5 journalctl -q -u "$u" -n {JOURNAL_LINES} -o cat --no-pager </dev/null | sed "s/^/$u: /"
done; exit 0"""

_STATES = ("LoadState", "ActiveState", "SubState", "Result")

#: systemd's own messages about a unit; the program prints all other lines of its journal
_SYSTEMD = Pattern(
    r"\S+\.(service|socket|mount|timer): |(Start|Stopp|Reload|Finish|Listen|Clos|Mount|Unmount)(ed|ing) "
    r"|Failed to (start|listen|mount) |Dependency failed "
)
_ENDED = Pattern(
    r"\S+\.(service|socket|mount|timer): (Failed at step |Failed to load |Failed to run |\w+ process exited, )"
)


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit as ``systemctl show`` reports it."""

    name: str
    load: str  #: loaded, not-found, masked …
    active: str  #: active, activating, inactive, failed …
    sub: str  #: running, dead, auto-restart …
    result: str  #: how the unit ended: success, exit-code, timeout …
    queued: bool = False  #: a start or stop is pending until other units are done, as at boot
    restarts: int = 0  #: automatic restarts since the last start by hand or at boot

    @property
    def failed(self) -> bool:
        """Whether the unit failed, or is being restarted after a failure.

        A unit that starts for the first time has not failed.
        """
        ended = self.sub.startswith("auto-restart") and self.result not in {"", "success"}
        return self.active == "failed" or ended or (self.active == "activating" and self.restarts > 0)

    def __str__(self) -> str:
        why = f", {self.result}" if self.result not in {"", "success"} else ""
        again = f", restarts: {self.restarts}" if self.failed and self.restarts else ""
        return f"{self.name} is {self.active} ({self.sub}{why}{again})"


@dataclass(frozen=True, slots=True)
class Units:
    """The systemd units with these names."""

    names: tuple[str, ...]

    @property
    def states(self) -> Probe:
        """The probe for the states of the units."""
        return Probe(f"systemctl show -p Id,LoadState,ActiveState,SubState,Result,Job,NRestarts -- {words(self.names)}")

    @property
    def journals(self) -> Probe:
        """The probe for the journals of units that failed or are being restarted, as ``UNIT: line``."""
        return Probe(f"{_FAILED} -- {words(self.names)} |\n{_EACH}", root=True)

    def unit(self, ctx: AuditContext, name: str) -> Unit:
        """The state of one unit. Raises ``Unread`` if systemd reports nothing about it."""
        for block in ctx.text(self.states).split("\n\n"):
            shown = parse_show(block)
            if shown.get("Id") == name:
                load, active, sub, result = (shown.get(key, "") for key in _STATES)
                queued, restarts = shown.get("Job", "") not in {"", "0"}, _count(shown.get("NRestarts", ""))
                return Unit(name, load, active, sub, result, queued, restarts)
        raise Unread(f"systemd reports nothing about {name}")

    def journal(self, ctx: AuditContext, name: str) -> tuple[str, ...]:
        """The last lines of a failed unit's journal; empty if it was not probed (no sudo)."""
        if self.journals not in ctx.facts:
            return ()
        rows = (line.partition(": ") for line in ctx.facts[self.journals].text.splitlines())
        return tuple(text for who, _, text in rows if who == name and text.strip())

    def last_words(self, ctx: AuditContext, name: str) -> tuple[str, ...]:
        """``last_words`` of a failed unit's journal."""
        return last_words(self.journal(ctx, name))

    def limited(self, ctx: AuditContext, name: str) -> str:
        """The line that reports that systemd stopped restarting a failed unit, or an empty text."""
        unit = self.unit(ctx, name)
        if unit.active != "failed":
            return ""
        if unit.result == "start-limit-hit":
            return f"{name}: start-limit-hit"
        lines = reversed(self.journal(ctx, name))
        return next((line for line in lines if "tart request repeated too quickly" in line), "")


def last_words(lines: Sequence[str]) -> tuple[str, ...]:
    """The program's last output since the last start in a unit's journal; else systemd's last message."""
    starts = [number for number, line in enumerate(lines) if line.startswith("Starting ")]
    lines = lines[starts[-1] :] if starts else lines
    own = tuple(line for line in lines if not _SYSTEMD.match(line))
    return (own or tuple(line for line in lines if _ENDED.match(line)))[-LAST_LINES:]


def known_cause(ctx: AuditContext, lines: Sequence[str], *besides: str) -> Iterator[str]:
    """A reference to the rule that matches a unit's journal, unless the rule is in ``besides``.

    The matching line is yielded before it, unless ``last_words`` already contains that line.
    """
    name, line = ctx.named("\n".join(lines)) or ("", "")
    if name and name not in besides:
        words = line.splitlines()[-1].strip()
        place = "" if any(words in each for each in last_words(lines)) else f"{words}: "
        yield f"{place}see `hostwright doctor --explain {name}`"


def unit_journals(units: Sequence[str]) -> Probe:
    """The probe for the last journal lines of these units, whatever their state, as ``NAMED UNIT: line``.

    Journals of failed units that a named unit needs to start are included.
    """
    script = sh_file(
        __file__, "unitjournals.sh", units=tuple(units), lines=QUOTED_LINES, width=LINE_BYTES, needed=MOST_NEEDED
    )
    most = max(1, len(units)) * (1 + MOST_NEEDED) * QUOTED_LINES * (LINE_BYTES + NAMES_BYTES)
    return Probe(script, root=True, cap_bytes=most)


def read_journals(text: str) -> tuple[UnitJournal, ...]:
    """The journals in the output of ``unit_journals``, limited in size and safe to print."""
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
