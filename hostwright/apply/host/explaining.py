"""Adds details to a failure: the journal of a failed systemd unit, known problems of the host, and the next command.

This module does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hostwright.common.errors import Examination, Finding, HostError, SeveralFailed, StepFailed, UnitJournal
from hostwright.common.untrusted import Pattern

#: maximum number of systemd units whose journals are read for a failed step (our choice). A step ends at the first unit
#: that fails.
MOST_UNITS = 3

#: regular expression for the name of a systemd unit, from systemd.unit(5)
_NAME = r"[A-Za-z0-9_][A-Za-z0-9:_.\\@-]{0,200}"
_WHOLE = rf"{_NAME}\.(?:service|socket|mount|automount|swap|timer|path|target|slice|scope|device)"
#: patterns of messages from systemctl (since 2014) and Hostwright that name a systemd unit
_NAMED = (
    Pattern(rf"\b[Jj]ob for ({_WHOLE})\b"),
    Pattern(rf"\bsystemctl status (?:-l )?({_WHOLE})\b"),
    Pattern(rf"\bjournalctl (?:-[a-z]+ )*-[a-z]*u ({_NAME})"),
)
_OF_USERS = Pattern(rf"\b(?:systemctl|journalctl) --user (?:[a-z-]+ )*({_WHOLE})\b")
_UNIT = Pattern(_WHOLE)
#: pattern of the last journal line of a unit whose dependency failed. The dependency's journal contains the cause.
_ANOTHERS = Pattern(r"^Dependency failed for |failed with result 'dependency'")
_POINTER = Pattern(r"""\s*See ["'](?:systemctl|journalctl) [^\n]{0,600}?for details\.""")
_BEGINS = Pattern(r"""See ["'](?:systemctl|journalctl) """)


def units_named(output: str) -> tuple[str, ...]:
    """Return the systemd units whose journals ``output`` refers to, without units of a user's service manager.

    >>> units_named('Job for a.service failed. See "systemctl status a.service" and "journalctl -xe" for details.')
    ('a.service',)
    """
    if "journalctl" not in output:
        return ()
    names = [match[1].rstrip(".") for pattern in _NAMED for match in pattern.finditer(output)]
    users = {match[1] for match in _OF_USERS.finditer(output)}
    whole = (name if _UNIT.fullmatch(name) else f"{name}.service" for name in names)
    return tuple(dict.fromkeys(unit for unit in whole if unit not in users))[:MOST_UNITS]


def units_of(error: HostError) -> tuple[str, ...]:
    """Return the systemd units whose journals may show the cause of ``error``."""
    parts = error.errors if isinstance(error, SeveralFailed) else (error,)
    steps = (part.step for part in parts if isinstance(part, StepFailed))
    return tuple(dict.fromkeys(unit for step in steps for unit in step.units))[:MOST_UNITS]


def last_line(lines: Sequence[str]) -> str:
    """Return the last line of a step's output. If that line only refers to a journal, the previous line is added."""
    last = lines[-1].strip() if lines else "it printed nothing"
    return f"{lines[-2].strip()} {last}" if len(lines) > 1 and _BEGINS.match(last) else last


def tell_cause(
    error: HostError, found: Examination | None, explain: Callable[[str], Finding | None], *, again: str, record: str
) -> None:
    """Add the result of the host's examination and the next command to the message of ``error``.

    The next command is ``again``, which repeats the run, if a fix is known; else ``record``, which shows the whole
    output. Either may be empty.
    """
    if isinstance(error, SeveralFailed):
        for part in error.errors:
            if isinstance(part, HostError):
                tell_cause(part, found, explain, again=again, record=record)
        error.retell(error.joined())
        return
    known = None
    if isinstance(error, StepFailed):
        known = _tell_step(error, found, explain)
    if then := again if known else record:
        # If only the operator can fix the known problem, the command must come after the fix.
        word = "then" if known and not known.provision else "next"
        error.retell(f"{error.sentence}; {word}: {then}")


def _tell_step(
    error: StepFailed, found: Examination | None, explain: Callable[[str], Finding | None]
) -> Finding | None:
    """Add the last journal lines of the failed units to the message of ``error``. Return the known problem found in the
    step's output, in these journals or on the host.
    """
    step, sentence = error.step, error.sentence
    journals = [journal for journal in found.journals if journal.named in step.units and journal.last] if found else []
    journals = [journal for journal in journals if not _ANOTHERS.search(journal.last)] or journals
    known = explain("\n".join(line for journal in journals for line in journal.lines))
    if told := min(journals, key=lambda journal: _rank(journal, known, explain), default=None):
        sentence = f"{_POINTER.sub('', sentence).rstrip('. ')}; {told.unit} says: {told.last}"
    if known is None and step.known is None and found:
        # A problem that provisioning fixes is the purpose of the step, not the cause of its failure.
        faults = (one for one in found.findings if one.grave and one.layer == step.role and not one.provision)
        known = next(faults, None)
    if known and known.cause not in sentence:
        sentence = f"{sentence.rstrip('.')}. The cause: {known.cause}. {known.cure}"
    error.retell(sentence)
    error.step = replace(step, known=known or step.known)
    return error.step.known


def _rank(journal: UnitJournal, known: Finding | None, explain: Callable[[str], Finding | None]) -> tuple[bool, bool]:
    return known is None or explain("\n".join(journal.lines)) != known, journal.unit == journal.named
