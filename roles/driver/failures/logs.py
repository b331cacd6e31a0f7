"""Signs from logs of the driver's build and installer on a host. The logs are read only if the driver differs from the
stack.

The logs are searched in this order: DKMS's make.log if the running kernel has no module; the log of the driver role's
last failed job; the log of NVIDIA's installer, unless a job of the role ended after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hostwright.failures import LAST_JOBS, AuditContext, Sign, logs
from hostwright.resources import Probe, jobs
from hostwright.roles import sh
from hostwright.standard.roles.driver.failures.state import build_errors, wanted_version
from hostwright.standard.roles.driver.states.steps import LOG

LAYER = "driver"

#: probe that prints version and end of the installer's log, unless a job of the driver role ended later
INSTALLER_LOG = Probe(
    sh('f=%s; [ -s "$f" ] || exit 0\nfor s in %s/*/status; do\n', LOG, jobs.JOBS_DIR)
    + """  if [ "$s" -nt "$f" ] && grep -qs '"role": "driver"' "${s%status}job.json"; then exit 0; fi
done
grep -m 1 '^installer version: ' "$f"
tail -n 80 "$f" | tail -c 16000; exit 0""",
    root=True,
)
LOG_PROBES = (INSTALLER_LOG, LAST_JOBS, jobs.RUNNING)

_VERSION = "installer version: "
_COMPLETE = "is now complete"  #: text in the last line of the installer's log after success
BUILD_FAILED = "dkms-build"  #: name of the rule for compiler messages that no other rule covers

When = Callable[[AuditContext], bool]


def always(ctx: AuditContext) -> bool:  # noqa: ARG001
    """Return true, as the condition of a rule that needs only its message in a log."""
    return True


def log_cause(ctx: AuditContext) -> tuple[str, str]:
    """Return the rule for the driver role's newest log, and the log line that matches the rule.

    Rule and line are empty without a match, or if the driver is as the stack requires. Raises ``Unread`` if a log
    cannot be read, or while a job runs on the host.
    """
    return logs.log_cause(ctx, LAYER, _texts)


def from_log(ctx: AuditContext, name: str) -> Iterator[str]:
    """Yield the line in the driver role's newest log that matches the rule ``name``. Yields nothing if the driver is as
    the stack requires. Raises ``Unread`` as ``log_cause`` does.
    """
    return logs.from_log(ctx, LAYER, name, _texts)


def in_log(name: str, *, when: When = always, grave: bool = True, provision: bool = False) -> Sign:
    """Return the symptom of the rule ``name``: a message in a log.

    The rule applies if ``when`` holds and the driver differs from the stack.
    """

    def seen(ctx: AuditContext) -> Iterator[str]:
        """The layer differs from the stack, and its newest log (of its last job, of the installer, or DKMS's make.log)
        contains the message.
        """
        line = tuple(from_log(ctx, name))
        if line and when(ctx):
            yield from line

    return Sign(LAYER, seen, LOG_PROBES, grave, provision)


def _texts(ctx: AuditContext, role: str) -> Iterator[tuple[str, str]]:
    """Yield each log of the role, the most precise first, with the rule for messages that no other rule matches."""
    if errors := build_errors(ctx):
        yield "\n".join(errors), BUILD_FAILED
    yield from logs.last_job(ctx, role)
    yield _installers(ctx.text(INSTALLER_LOG), wanted_version(ctx)), ""


def _installers(log: str, version: str) -> str:
    of, _, _ = log.removeprefix(_VERSION).partition("\n") if log.startswith(_VERSION) else (version, "", "")
    return "" if of.strip() != version or _COMPLETE in log or "ERROR: " not in log else log[log.index("ERROR: ") :]
