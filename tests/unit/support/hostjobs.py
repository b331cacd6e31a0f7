"""Jobs on this machine instead of a host: the scripts of ``hostwright.apply.jobs.jobs``, run by the real /bin/sh."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hostwright.apply.jobs import jobs, scripting
from hostwright.apply.jobs.scripting import LogReader
from hostwright.common.quoting import sh
from hostwright.plan.host import jobs as hostjobs
from hostwright.plan.model import Answer, Change, Facts, RolePlan, RoleResult, Step
from tests.unit.support.known import KNOWN


def lay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put jobs, working directories and locks below ``tmp_path``; disable systemd."""
    monkeypatch.setattr(hostjobs, "JOBS_DIR", str(tmp_path / "jobs"))
    monkeypatch.setattr(hostjobs, "WORK_DIRS", (str(work_dir(tmp_path)),))
    monkeypatch.setattr(scripting, "LOCK_DIR", str(tmp_path / "locks"))
    altered(monkeypatch, "start_script", "/run/systemd/system", str(tmp_path / "no-systemd"))
    return tmp_path / "jobs"


def work_dir(tmp_path: Path) -> Path:
    """The working directory of jobs set by ``lay``; separate, because other tests' jobs may still run."""
    return tmp_path / "hostwright" / "work"


def altered(monkeypatch: pytest.MonkeyPatch, name: str, old: str, new: str, before: str = "") -> None:
    """Replace text in the script that a function of ``jobs`` returns, and insert ``before`` at its beginning."""
    script = getattr(jobs, name)

    def replaced(*arguments: object) -> str:
        text: str = script(*arguments)
        assert old in text
        return before + text.replace(old, new)

    monkeypatch.setattr(jobs, name, replaced)


def make(*scripts: str, name: str = "run1-cuda-aa", tries: int = 1) -> jobs.Job:
    changes = tuple(Change(f"thing {n}", "a", "b", (Step(script, tries=tries),)) for n, script in enumerate(scripts))
    return jobs.Job(name, RolePlan("cuda", (), changes), "NONCE", "run1", "jane@laptop", KNOWN.retry_rules)


def start_steps(
    plan: RolePlan, folder: Path, to: Path | None = None, remaining_s: Sequence[float] = ()
) -> subprocess.Popen[bytes]:
    """Start a role's program like the job's wrapper: in its folder, appending to its log."""
    folder.mkdir(exist_ok=True)
    for name, text in {**scripting.files(plan, "NONCE", KNOWN.retry_rules, remaining_s), "log": ""}.items():
        (folder / name).write_text(text)
    with (to or folder / "log").open("ab") as log:
        return subprocess.Popen(
            ["/bin/sh", folder / "run"], env={**os.environ, "JOB": str(folder)}, stdout=log, stderr=log
        )


def run_steps(plan: RolePlan, folder: Path) -> RoleResult:
    """Run a role's program to its end; return its status and log."""
    status = start_steps(plan, folder).wait(timeout=60)
    reader = LogReader(plan.role, [change.what for change, _ in plan.steps], "NONCE")
    reader.feed((folder / "log").read_bytes())
    return reader.result(status)


def shell(text: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["/bin/sh"], input=text.encode(), capture_output=True, check=False, timeout=60)


def start(job: jobs.Job) -> None:
    done = shell(jobs.start_script(job))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def watch(job: jobs.Job, from_byte: int = 1) -> tuple[bytes, int | None]:
    watched = shell(jobs.watch_script(job.id, "W", from_byte))
    assert watched.returncode == 0
    return watched.stdout, jobs.status_in(watched.stderr, "W")


def outputs(log: bytes) -> list[str]:
    reader = LogReader("cuda", [], "NONCE")
    reader.feed(log)
    return [step.output for step in reader.results]


def until(condition: Callable[[], object], what: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"never happened: {what}"
        time.sleep(0.01)


def ask(place: Path, systemd: Path | None = None) -> tuple[hostjobs.RunningJob, ...]:
    script = hostjobs.RUNNING.script.replace("/var/lib/hostwright/jobs", str(place))
    script = script.replace("/run/systemd/system", str(systemd or place.parent / "no-systemd"))
    path = f"PATH={systemd}:$PATH\n" if systemd else ""
    return hostjobs.running(Facts({hostjobs.RUNNING: Answer(0, shell(path + script).stdout.decode())}))


def processes(session: int) -> list[str]:
    """The command lines of a session's processes."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, sid = stat.read_text().rpartition(")")[2].split()[:4]
            if int(sid) == session and state != "Z":
                found.append((stat.parent / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def waiting(flag: Path) -> str:
    """A script that runs until ``flag`` exists."""
    return sh("until [ -e %s ]; do sleep 0.02; done", flag)


def entry(place: Path, name: str, **content: str) -> None:
    (place / name).mkdir(parents=True)
    for file, text in content.items():
        (place / name / file).write_text(text)


def systemd(tmp_path: Path, active: bool, refuses: bool = False) -> Path:
    folder = tmp_path / "systemd"
    folder.mkdir()
    says = "echo DefaultOOMPolicy=stop" if active else f"exit {0 if active else 3}"
    programs = {
        "systemctl": f"case $1 in is-active) exit {0 if active else 3};; *) {says};; esac",
        "systemd-run": "echo no bus >&2; exit 1" if refuses else f"printf '%s\\n' \"$*\" >>{folder}/asked",
    }
    for name, script in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return folder
