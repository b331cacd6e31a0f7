"""What installers wrote on a host, as long as it still matters: a log of a failure that was mended since is history.

Of a layer that differs from the stack these are read, and the first in which a known failure is named decides: DKMS's
make.log where the running kernel has no module, the log of the layer's last job where that failed, and NVIDIA's
installer's own where no job of that layer ended after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from hostwright.apply.jobs import jobs
from hostwright.audit.failures.rule import Sign
from hostwright.audit.look import Unread
from hostwright.common.quoting import sh
from hostwright.failures.driver_state import build_errors
from hostwright.failures.host import LAST_JOBS, ended
from hostwright.plan.model import Probe
from hostwright.resources.driver_steps import LOG

if TYPE_CHECKING:
    from hostwright.audit.look import Look

#: The end of the installer's log, unless a job of the role driver has ended since: then that one's log is the news.
INSTALLER_LOG = Probe(
    sh('f=%s; [ -s "$f" ] || exit 0\nfor s in %s/*/status; do\n', LOG, jobs.JOBS_DIR)
    + """  if [ "$s" -nt "$f" ] && grep -qs '"role": "driver"' "${s%status}job.json"; then exit 0; fi
done
tail -n 80 "$f" | tail -c 16000; exit 0""",
    root=True,
)
LOG_PROBES = (INSTALLER_LOG, LAST_JOBS, jobs.RUNNING)

_COMPLETE = "is now complete"  #: the installer's last words when all went well
BUILD_FAILED = "dkms-build"  #: the rule for what the compiler said and no other rule knows

When = Callable[["Look"], bool]


def always(look: Look) -> bool:  # noqa: ARG001
    """No further condition."""
    return True


def told(look: Look, role: str) -> tuple[str, str]:
    """The rule whose message is in the newest log of a layer that differs, and the line; two empty texts for none.

    Raises ``Unread``, also while a job is at work on the host.
    """
    look.answer(jobs.RUNNING)
    if jobs.running(look.facts):
        raise Unread("a job is at work on the host")
    if not look.differs(role):
        return "", ""
    for text, otherwise in _texts(look, role):
        if found := named(text):
            return found
        if otherwise:
            return otherwise, text.partition("\n")[0]
    return "", ""


def named(text: str) -> tuple[str, str] | None:
    """The first rule whose message is in a text, and the line that says so."""
    from hostwright.audit.failures import classify  # it is made of the files that import this one

    failure = classify(text)
    return (failure.rule.name, failure.evidence) if failure else None


def from_log(look: Look, role: str, name: str) -> Iterator[str]:
    """The line by which this rule is told in the newest log of a layer that differs. Raises ``Unread``."""
    rule, line = told(look, role)
    if rule == name:
        yield line


def in_log(
    name: str, *, role: str = "driver", when: When = always, grave: bool = True, provision: bool = False
) -> Sign:
    """The sign of a rule that is told by its message alone, in the log of a layer that still differs."""

    def seen(look: Look) -> Iterator[str]:
        """The layer differs from the stack, and its newest log (of its last job, of the installer, or DKMS's make.log)
        has the message.
        """
        line = tuple(from_log(look, role, name))
        if line and when(look):
            yield from line

    return Sign(role, seen, LOG_PROBES, grave, provision)


def _texts(look: Look, role: str) -> Iterator[tuple[str, str]]:
    """The logs of a layer, the newest and most precise first, each with the rule for what none of them knows."""
    if role == "driver" and (errors := build_errors(look)):
        yield "\n".join(errors), BUILD_FAILED
    yield _last_job(look.text(LAST_JOBS), role), ""
    if role == "driver":
        yield _installers(look.text(INSTALLER_LOG)), ""


def _installers(log: str) -> str:
    """The installer's log from its first error on; empty where it ended well."""
    return "" if _COMPLETE in log or "ERROR: " not in log else log[log.index("ERROR: ") :]


def _last_job(text: str, role: str) -> str:
    """The end of the log of a role's last job where that failed, out of the answer to ``LAST_JOBS``."""
    job = next((one for one in ended(text) if one.role == role), None)
    if job is None or job.status == 0:
        return ""
    own, lines = False, []
    for line in text.splitlines():
        if line.startswith("log "):
            own = line == f"log {job.id}"
        elif own and line.startswith("  "):
            lines.append(line.strip())
    return "\n".join(lines)
