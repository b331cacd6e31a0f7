"""Signs of a host as a whole: its clock, its release record, and the last job that ran on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import LAST_JOBS, FailureRule, ForPeople, Sign, Unread, ended
from hostwright.resources import RELEASE, Probe, jobs, release
from hostwright.roles import sh_file

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

CLOCK = Probe("date +%s")
PRELOAD = "/etc/ld.so.preload"  #: libraries that the loader puts before those of every program
#: what the loader prints about them for each program
PRELOADED = Probe(sh_file(__file__, "sh/preloaded.sh", file=PRELOAD))
AHEAD_S = 60  #: a larger difference cannot be explained by network latency
BEHIND_S = 150  #: the host was probed before ``AuditContext.now``, by up to the longest time of all its answers (75 s)


def clock_off(ctx: AuditContext) -> Iterator[str]:
    """The host's clock is a minute ahead of this machine's, or two and a half behind."""
    answer = ctx.text(CLOCK).strip()
    if not (answer.isascii() and answer.isdigit() and len(answer) < 12):
        raise Unread("date does not say the time")
    ahead = int(answer) - ctx.now.timestamp()
    if ahead > AHEAD_S or ahead < -BEHIND_S:
        way = "ahead of" if ahead > 0 else "behind"
        yield f"its clock is {abs(ahead):.0f} s {way} this machine's"


def preload_missing(ctx: AuditContext) -> Iterator[str]:
    """/etc/ld.so.preload names a library that the loader does not load: it is missing, or is none of this machine's."""
    yield from dict.fromkeys(line for line in ctx.text(PRELOADED).splitlines() if f" from {PRELOAD} " in line)


def record_lost(ctx: AuditContext) -> Iterator[str]:
    """Nothing differs from the stack, and /var/lib/hostwright/release.json is missing or cannot be read."""
    answer = ctx.answer(RELEASE)
    if not any(ctx.changes.values()) and not release.read(ctx.facts):
        yield f"{release.PATH} is " + ("damaged" if answer.ok else "not there")


def job_failed(ctx: AuditContext) -> Iterator[str]:
    """The last job of a role ended with an error or was cut off, and that role's layer still differs from the stack."""
    ctx.require(jobs.RUNNING)
    at_work = {job.id for job in jobs.running(ctx.facts)}
    for job in ended(ctx.text(LAST_JOBS)):
        if job.status != 0 and job.id not in at_work and ctx.differs(job.role):
            yield str(job)


HOST_RULES = (
    FailureRule(
        "clock-behind",
        r"is not valid yet \(invalid for another [0-9][0-9dhmins ]{1,40}\)",
        "the host's clock is behind, by LATE or more: what was signed since is not valid to it, nor are certificates",
        "Set it (timedatectl set-ntp true, or chronyc makestep), look at timedatectl and the hardware's clock"
        " (hwclock), and do again what failed; the repository and its key are well",
        "apt-pkg/deb/debmetaindex.cc, Date; apt-secure(8); pythops/jetson-image#118",
        names=(r"invalid for another (?P<late>[0-9][0-9dhmins ]{1,40})\)",),
        transient=False,
    ),
    FailureRule(
        "clock-off",
        r"[Cc]ertificate is not yet valid|not yet valid: current time \S+ is before|uses not yet valid certificate"
        r"|Superblock last (?:mount|write) time [^\n]+(?:\n[^\n]*)?is in the future"
        r"|certificate is not yet activated|time stamp .+ is [0-9]{4,12}[0-9.]* s in the future",
        "the host's clock, or this machine's, is wrong: certificates and apt's Release files are then not valid",
        "Let the host keep time (timedatectl set-ntp true, or chrony) and look at timedatectl on both machines",
        "apt-secure(8); RFC 5280, validity of certificates",
        sign=Sign("base", clock_off, (CLOCK,), grave=False),
        unless=r"by less than a day",
    ),
    FailureRule(
        "preload-missing",
        r"ERROR: ld\.so: object '[^'\n]{1,300}' from (?:/etc/ld\.so\.preload|LD_PRELOAD) cannot be preloaded",
        "WHERE names the library OBJECT, which cannot be loaded, so that every program prints a line about it: programs"
        " that take any output of another for a failure do not work, such as Docker, which calls iptables",
        "Take the line out of WHERE, or bring the library back if something needs it (what it was for says who wrote"
        " it: vGPU software, jemalloc, a security agent); then start what failed again, such as docker",
        "ld.so(8), FILES; Project-HAMi/HAMi#777",
        names=(r"ld\.so: object '(?P<object>[^'\n]{1,300})' from (?P<where>\S{1,100}) cannot",),
        sign=Sign("base", preload_missing, (PRELOADED,)),
        treatment=ForPeople(),
        weight="general",
    ),
    FailureRule(
        "release-record-lost",
        "",
        "the host is as desired and its release record does not say so, so that no audit can tell drift from intent",
        "Provision again: it changes nothing else and writes the record",
        "hostwright's own record",
        sign=Sign("base", record_lost, (RELEASE,), grave=False, provision=True),
    ),
    FailureRule(
        "job-failed",
        "",
        "the last provisioning run of a layer failed on this host or was cut off, and the layer still differs from the"
        " stack",
        "Read the whole log (`invoke runs.show`, or /var/lib/hostwright/jobs/JOB/log on the host), fix the cause and"
        " provision again",
        "hostwright's own jobs",
        sign=Sign("base", job_failed, (LAST_JOBS, jobs.RUNNING), grave=False, provision=True),
    ),
)
