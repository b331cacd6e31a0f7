"""A failure told with its cause: what the journal says to which a step's output only points, what is known of that,
what else the host was found to have, and the next command. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hostwright.common.errors import Examination, Finding, HostError, SeveralFailed, StepFailed, UnitJournal
from hostwright.common.untrusted import Pattern

MOST_UNITS = 3  #: our choice: of one step; a step that starts more of them ends at the first that fails

_NAME = r"[A-Za-z0-9_][A-Za-z0-9:_.\\@-]{0,200}"  #: as systemd.unit(5) allows
_WHOLE = rf"{_NAME}\.(?:service|socket|mount|automount|swap|timer|path|target|slice|scope|device)"
#: systemctl's words since 2014, and those of our own steps
_NAMED = (
    Pattern(rf"\b[Jj]ob for ({_WHOLE})\b"),
    Pattern(rf"\bsystemctl status (?:-l )?({_WHOLE})\b"),
    Pattern(rf"\bjournalctl (?:-[a-z]+ )*-[a-z]*u ({_NAME})"),
)
_OF_USERS = Pattern(rf"\b(?:systemctl|journalctl) --user (?:[a-z-]+ )*({_WHOLE})\b")
_UNIT = Pattern(_WHOLE)
#: the last line of a unit that did not start since one that it requires did not: that one's journal says why
_ANOTHERS = Pattern(r"^Dependency failed for |failed with result 'dependency'")
_POINTER = Pattern(r"""\s*See ["'](?:systemctl|journalctl) [^\n]{0,600}?for details\.""")
_BEGINS = Pattern(r"""See ["'](?:systemctl|journalctl) """)


def units_named(output: str) -> tuple[str, ...]:
    """The systemd units whose journal an output says to read; those of a user's own manager are not among them.

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
    """The units whose journal a failure says to read."""
    parts = error.errors if isinstance(error, SeveralFailed) else (error,)
    steps = (part.step for part in parts if isinstance(part, StepFailed))
    return tuple(dict.fromkeys(unit for step in steps for unit in step.units))[:MOST_UNITS]


def last_line(lines: Sequence[str]) -> str:
    """The last line that a step printed, with the one before it where it only points to a journal."""
    last = lines[-1].strip() if lines else "it printed nothing"
    return f"{lines[-2].strip()} {last}" if len(lines) > 1 and _BEGINS.match(last) else last


def tell_cause(
    error: HostError, found: Examination | None, explain: Callable[[str], Finding | None], *, again: str, record: str
) -> None:
    """Tell in the sentence of an error what a look at its host ``found``, and the next command: ``again`` where it is
    known what to do before it, else ``record``, which shows everything that was printed; none where these are empty.
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
        word = "then" if known and not known.provision else "next"  # it would only fail again
        error.retell(f"{error.sentence}; {word}: {then}")


def _tell_step(
    error: StepFailed, found: Examination | None, explain: Callable[[str], Finding | None]
) -> Finding | None:
    """Add what the journals of a step's units say; the known problem that the step, they or the host show."""
    step, sentence = error.step, error.sentence
    journals = [journal for journal in found.journals if journal.named in step.units and journal.last] if found else []
    journals = [journal for journal in journals if not _ANOTHERS.search(journal.last)] or journals
    known = explain("\n".join(line for journal in journals for line in journal.lines))
    if told := min(journals, key=lambda journal: _rank(journal, known, explain), default=None):
        sentence = f"{_POINTER.sub('', sentence).rstrip('. ')}; {told.unit} says: {told.last}"
    if known is None and step.known is None and found:
        # what provisioning fixes is what the step was for, not why it failed
        faults = (one for one in found.findings if one.grave and one.layer == step.role and not one.provision)
        known = next(faults, None)
    if known and known.cause not in sentence:
        sentence = f"{sentence.rstrip('.')}. The cause: {known.cause}. {known.cure}"
    error.retell(sentence)
    error.step = replace(step, known=known or step.known)
    return error.step.known


def _rank(journal: UnitJournal, known: Finding | None, explain: Callable[[str], Finding | None]) -> tuple[bool, bool]:
    """The journal that names the cause comes first, then that of a unit which failed before the one that was named."""
    return known is None or explain("\n".join(journal.lines)) != known, journal.unit == journal.named
