"""Role with a timer that compares the host with its stack, for hosts that no controller audits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from hostwright.resources import Answers, Directory, File, Probe, Resource, Script, Service, When
from hostwright.roles import EVERY, RoleContext, check_lines, role, sh, user_program
from hostwright.standard.roles.driver.states.gpu_use import reloading

PROGRAM = "/usr/local/lib/hostwright/selfaudit"
RESULT = "/var/lib/hostwright/selfaudit.json"
METRICS = "hostwright.prom"
SERVICE, TIMER = "hostwright-selfaudit.service", "hostwright-selfaudit.timer"
UNITS = "/etc/systemd/system"
STAMP = f"/var/lib/systemd/timers/stamp-{TIMER}"  #: file with the time of the timer's last run as modification time
CALENDAR = "sed -n 's/^OnCalendar=//p' %s | xargs -d '\\n' env SYSTEMD_COLORS=0 systemd-analyze calendar"


@dataclass(frozen=True, slots=True)
class Selfaudit:
    """Variables of the role ``selfaudit``."""

    on_calendar: str = "daily"  #: schedule in systemd's calendar syntax, such as hourly, daily or "Mon *-*-* 04:00"
    #: maximum random delay of the comparison. Hosts then do not all run the comparison at once
    randomized_delay: str = "1h"
    #: directory of node_exporter's textfile collector; empty: no metrics
    textfile_directory: str = "/var/lib/prometheus/node-exporter"


@role(after=[EVERY], uses=["driver"], short="self")
def selfaudit(v: Selfaudit, ctx: RoleContext) -> Iterator[Resource]:
    """Timer that compares the host with its stack and writes the result for people and for Prometheus."""
    metrics = f"{v.textfile_directory}/{METRICS}" if v.textfile_directory else ""
    values = ctx.audit_values
    program = partial(
        ctx.render, "selfaudit/selfaudit.sh.j2", stack=ctx.stack.name, checks=check_lines(values),
        questions=user_program(values), json=sh("%s", RESULT), metrics=sh("%s", metrics),
    )  # fmt: skip
    edition = hashlib.sha256(program(edition="").encode()).hexdigest()[:12]
    yield File(PROGRAM, program(edition=edition), mode="755", check="sh -n %s")

    # The directory is created only if missing because the collector's package changes the directory's owner.
    if metrics:
        missing = Answers(Probe(sh("test ! -e %s", v.textfile_directory)))
        yield When(missing, Directory(v.textfile_directory))
    folders = (RESULT.rpartition("/")[0], *([v.textfile_directory] if metrics else []))
    reload = ("systemctl daemon-reload",)
    service = ctx.render(
        f"selfaudit/{SERVICE}.j2", program=PROGRAM, folders=" ".join(f"-{folder}" for folder in folders)
    )
    yield reloading(File(f"{UNITS}/{SERVICE}", service, then=reload))
    timer = ctx.render(f"selfaudit/{TIMER}.j2", on_calendar=v.on_calendar, randomized_delay=v.randomized_delay)
    yield reloading(File(f"{UNITS}/{TIMER}", timer, check=CALENDAR, then=reload))

    ran = Probe(sh("grep -qF %s %s", f'"edition": "{edition}"', RESULT))
    start = sh("systemctl start -- %s || { journalctl -u %s -n 20 --no-pager; exit 1; }", SERVICE, SERVICE)
    left = (RESULT, STAMP, *([metrics] if metrics else []))
    yield Script("self-audit", "a result of this program", ran, start, timeout_s=180, leaves=left)
    yield reloading(Service(TIMER))
