"""The systemd units of a layer: their state, and the last lines that failed ones logged."""

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

LAST_LINES = 2  #: of the program's own output that are shown: its very last line may only point to its help
JOURNAL_LINES = 25  #: of a failed unit: systemd's messages about five starts, and the program's own between them

MOST_DIGITS = 10  #: of a number that is accepted

QUOTED_LINES = 12  #: our choice: of a journal that is quoted; systemd's own messages about a start are six
QUOTED_CHARACTERS = 300  #: of such a line that are shown
LINE_BYTES = 1000  #: and that are read, so that a secret is masked as long as it is whole
NAMES_BYTES = 520  #: before it: two names of units
MOST_NEEDED = 2  #: failed units that another one needs: what is behind the first

_FAILED = "systemctl list-units --state=failed,activating --plain --no-legend --no-pager"
_EACH = f"""\
while read -r u rest; do
  timeout -k 1 5 journalctl -q -u "$u" -n {JOURNAL_LINES} -o cat --no-pager </dev/null | sed "s/^/$u: /"
done; exit 0"""

_STATES = ("LoadState", "ActiveState", "SubState", "Result")

#: systemd's own messages about a unit; everything else in its journal comes from the program.
_SYSTEMD = Pattern(
    r"\S+\.(service|socket|mount|timer): |(Start|Stopp|Reload|Finish|Listen|Clos|Mount|Unmount)(ed|ing) "
    r"|Failed to (start|listen|mount) |Dependency failed "
)
_ENDED = Pattern(
    r"\S+\.(service|socket|mount|timer): (Failed at step |Failed to load |Failed to run |\w+ process exited, )"
)


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit as ``systemctl show`` describes it."""

    name: str
    load: str  #: loaded, not-found, masked …
    active: str  #: active, activating, inactive, failed …
    sub: str  #: running, dead, auto-restart …
    result: str  #: how it ended: success, exit-code, timeout …
    queued: bool = False  #: a start or stop of it is pending, waiting for other units, as at boot
    restarts: int = 0  #: how often systemd has restarted it since it was last started by hand or at boot

    @property
    def failed(self) -> bool:
        """Whether it failed, or is being restarted because it did. One that is starting for the first time has not
        failed.
        """
        ended = self.sub.startswith("auto-restart") and self.result not in {"", "success"}
        return self.active == "failed" or ended or (self.active == "activating" and self.restarts > 0)

    def __str__(self) -> str:
        why = f", {self.result}" if self.result not in {"", "success"} else ""
        again = f", restarts: {self.restarts}" if self.failed and self.restarts else ""
        return f"{self.name} is {self.active} ({self.sub}{why}{again})"


@dataclass(frozen=True, slots=True)
class Units:
    """The units of these names."""

    names: tuple[str, ...]

    @property
    def states(self) -> Probe:
        """The probe for their states."""
        return Probe(f"systemctl show -p Id,LoadState,ActiveState,SubState,Result,Job,NRestarts -- {words(self.names)}")

    @property
    def journals(self) -> Probe:
        """The probe for the journals of those that failed or are being restarted, as ``UNIT: line``."""
        return Probe(f"{_FAILED} -- {words(self.names)} |\n{_EACH}", root=True)

    def unit(self, ctx: AuditContext, name: str) -> Unit:
        """One of them. Raises ``Unread`` where systemd reports nothing about it."""
        for block in ctx.text(self.states).split("\n\n"):
            shown = parse_show(block)
            if shown.get("Id") == name:
                load, active, sub, result = (shown.get(key, "") for key in _STATES)
                queued, restarts = shown.get("Job", "") not in {"", "0"}, _count(shown.get("NRestarts", ""))
                return Unit(name, load, active, sub, result, queued, restarts)
        raise Unread(f"systemd reports nothing about {name}")

    def journal(self, ctx: AuditContext, name: str) -> tuple[str, ...]:
        """The last lines of a failed unit's journal; empty where it was not probed (no sudo)."""
        if self.journals not in ctx.facts:
            return ()
        rows = (line.partition(": ") for line in ctx.facts[self.journals].text.splitlines())
        return tuple(text for who, _, text in rows if who == name and text.strip())

    def last_words(self, ctx: AuditContext, name: str) -> tuple[str, ...]:
        """The last output of a failed unit's program since its last start; without any, systemd's message on how it
        ended.
        """
        return last_words(self.journal(ctx, name))

    def limited(self, ctx: AuditContext, name: str) -> str:
        """The line that says that systemd has stopped restarting a failed unit, or nothing."""
        unit = self.unit(ctx, name)
        if unit.active != "failed":
            return ""
        if unit.result == "start-limit-hit":
            return f"{name}: start-limit-hit"
        lines = reversed(self.journal(ctx, name))
        return next((line for line in lines if "tart request repeated too quickly" in line), "")


def last_words(lines: Sequence[str]) -> tuple[str, ...]:
    """In a unit's journal, the last output of its program since its last start; without any, systemd's message on how
    it ended.
    """
    starts = [number for number, line in enumerate(lines) if line.startswith("Starting ")]
    lines = lines[starts[-1] :] if starts else lines
    own = tuple(line for line in lines if not _SYSTEMD.match(line))
    return (own or tuple(line for line in lines if _ENDED.match(line)))[-LAST_LINES:]


def known_cause(ctx: AuditContext, lines: Sequence[str], *besides: str) -> Iterator[str]:
    """The line of a unit's journal by which another rule than these is recognised, and how to read what it says."""
    name, line = ctx.named("\n".join(lines)) or ("", "")
    if name and name not in besides:
        words = line.splitlines()[-1].strip()
        place = "" if any(words in each for each in last_words(lines)) else f"{words}: "
        yield f"{place}see `hostwright doctor --explain {name}`"


def unit_journals(units: Sequence[str]) -> Probe:
    """The probe for the last lines of these units' journals, whatever state they are in, and of those failed ones
    without which they do not start, as ``NAMED UNIT: line``.
    """
    script = sh_file(
        __file__, "unitjournals.sh", units=tuple(units), lines=QUOTED_LINES, width=LINE_BYTES, needed=MOST_NEEDED
    )
    most = max(1, len(units)) * (1 + MOST_NEEDED) * QUOTED_LINES * (LINE_BYTES + NAMES_BYTES)
    return Probe(script, root=True, cap_bytes=most)


def read_journals(text: str) -> tuple[UnitJournal, ...]:
    """The journals in the answer to ``unit_journals``, bounded and safe to show."""
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
