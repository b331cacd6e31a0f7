"""Reboots: the order, and the wait for a host that goes down, comes back, or does neither. No test waits itself."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hostwright.apply.disturb import rebooting
from hostwright.apply.disturb.rebooting import REBOOT_TIMEOUT_S, BootState, probe_boot, read_reboot_timeout, reboot
from hostwright.apply.events import Event, Waiting
from hostwright.common.durations import Clock
from hostwright.common.errors import BecomeError, HostError, InputError, Stopped, Unreachable
from hostwright.common.input.yamlfile import Origin
from hostwright.inventory import Host, Value
from hostwright.transport import Output
from hostwright.transport.identity.hostkeys import HostKeyMismatch
from hostwright.transport.root import rootshell
from hostwright.transport.root.rootshell import RootShell
from tests.unit.support.shell import program

OLD, NEW, NEWER = (f"{digit}0000000-0000-4000-8000-000000000000" for digit in "123")
REASON = "driver 460 is loaded and 470 is installed"


class Time:
    """A clock that moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.s = 0.0

    def sleep(self, seconds: float) -> None:
        self.s += seconds

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.s, self.sleep, lambda: f"07:{int(self.s) // 60:02}:{int(self.s) % 60:02}")


@dataclass
class FakeSession:
    """Answers the look with what it was given, and takes the order."""

    answers: list[BootState | HostError]
    order: int | HostError = 0
    orders: int = 0
    closed: bool = False
    host: Host = field(default_factory=lambda: Host("gpu01"))
    endpoint: str = "root@10.0.0.1:22"

    def run(self, command: str, *, stdin: bytes, **limits: Any) -> Output:
        assert not self.closed
        text = stdin.decode()
        if "systemd-run" in text:
            self.orders += 1
            if isinstance(self.order, HostError):
                raise self.order
            return Output(self.order, b"", b"Failed to start transient timer unit\n", False, 0.0)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, HostError):
            raise answer
        mark = text.splitlines()[0].split()[-3].rstrip(";")
        jobs = "".join(f"job {one}\n" for one in answer.jobs)
        return Output(0, f"banner\n{mark} {answer.boot_id}\nstate {answer.state}\n{jobs}".encode(), b"", False, 0.0)

    def close(self) -> None:
        self.closed = True


def down(cause: Exception | None = None, sentence: str = "no connection") -> Unreachable:
    error = Unreachable("gpu01", sentence, passing=True)
    error.__cause__ = cause
    return error


REFUSED = down(ConnectionRefusedError(111, "Connection refused"))
NO_ROUTE = down(OSError(113, "No route to host"))
SILENT = down(TimeoutError())
RUNNING = BootState(NEW, "running")


@dataclass
class Course:
    """One reboot: what each attempt to connect gives, and what came of it."""

    attempts: list[FakeSession | HostError]
    first: FakeSession = field(default_factory=lambda: FakeSession([BootState(OLD, "running")]))
    time: Time = field(default_factory=Time)
    events: list[Event] = field(default_factory=list)
    opened: list[FakeSession] = field(default_factory=list)

    def connect(self) -> RootShell:
        one = self.attempts.pop(0) if len(self.attempts) > 1 else self.attempts[0]
        if isinstance(one, HostError):
            raise one
        self.opened.append(one)
        return RootShell(one)  # type: ignore[arg-type]

    def run(self, timeout_s: float = 1800.0) -> tuple[FakeSession, float]:
        shell, took_s = reboot(
            RootShell(self.first),  # type: ignore[arg-type]
            self.connect,
            timeout_s=timeout_s,
            reason=REASON,
            emit=self.events.append,
            clock=self.time.clock,
        )
        return shell.session, took_s  # type: ignore[return-value]

    def fail(self, timeout_s: float = 1800.0) -> str:
        with pytest.raises(HostError) as caught:
            self.run(timeout_s)
        assert all(session.closed for session in self.opened)
        return caught.value.sentence

    @property
    def shown(self) -> list[str]:
        return [event.what for event in self.events if isinstance(event, Waiting)]


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rootshell, "wrap", lambda user, root, password, **_: f"{user}\n{root}".encode())


def still_up() -> FakeSession:
    return FakeSession([BootState(OLD, "stopping")])


def test_host_is_back_with_new_boot_id_ssh_and_settled_systemd() -> None:
    starting = BootState(NEW, "starting", ("start a.service", "start b.mount"))
    back = FakeSession(
        [starting, starting, BootState(NEW, "starting", ("start a.service",)), BootState(NEW, "starting"), RUNNING]
    )
    course = Course([still_up(), still_up(), NO_ROUTE, SILENT, SILENT, REFUSED, back])
    session, took_s = course.run()
    assert session is back
    assert not back.closed
    assert all(one.closed for one in (course.first, *course.opened[:-1]))
    assert took_s == course.time.s == 10
    assert course.first.orders == 1
    assert course.shown == [
        "going down",
        "going down: sshd answers, still the old boot",
        "down (No route to host)",
        "down (no answer on port 22)",
        "port 22 refuses connections",
        "booted, systemd is starting (2 jobs)",
        "booted, systemd is starting (1 job)",
        "booted, systemd is starting",
    ]


@pytest.mark.parametrize("state", ["running", "degraded", "offline", ""])
def test_settled_or_missing_systemd_is_not_waited_for(state: str) -> None:
    course = Course([FakeSession([BootState(NEW, state)])])
    assert course.run()[1] == 0


@pytest.mark.parametrize("state", ["initializing", "starting", "stopping", "unknown"])
def test_a_systemd_that_has_not_settled_is_waited_for(state: str) -> None:
    assert Course([FakeSession([BootState(NEW, state), RUNNING])]).run()[1] == 1


def test_a_login_that_is_refused_while_the_host_boots_is_waited_for() -> None:
    nologin = down(sentence="the login at root@10.0.0.1:22 was refused")
    course = Course([nologin, FakeSession([RUNNING])])
    course.run()
    assert course.shown[-1] == "the login at root@10.0.0.1:22 was refused"


def test_a_host_that_boots_twice_is_waited_for_twice() -> None:
    first = FakeSession([BootState(NEW, "starting"), down(sentence="the connection was lost")])
    course = Course([first, REFUSED, FakeSession([BootState(NEWER, "running")])])
    session, _ = course.run()
    assert first.closed
    assert session is course.opened[-1]


def test_connection_lost_on_reboot_is_no_error_if_boot_id_changes() -> None:
    course = Course([NO_ROUTE, FakeSession([RUNNING])], FakeSession([BootState(OLD)], order=down()))
    assert course.run()[1] == 1


@pytest.mark.parametrize("status", [129, 137, 143, -1])
def test_reboot_command_cut_short_is_no_error_if_boot_id_changes(status: int) -> None:
    course = Course([NO_ROUTE, FakeSession([RUNNING])], FakeSession([BootState(OLD)], order=status))
    assert course.run()[1] == 1


def test_an_order_that_may_not_have_arrived_is_given_again_once() -> None:
    old = [still_up(), still_up(), still_up()]
    old[0].order = down()
    course = Course([*old, FakeSession([RUNNING])], FakeSession([BootState(OLD)], order=down()))
    course.run()
    assert [one.orders for one in (course.first, *old)] == [1, 1, 1, 0]


def test_an_order_that_the_host_does_not_take_is_an_error() -> None:
    course = Course([RUNNING], FakeSession([BootState(OLD)], order=1))  # type: ignore[list-item]
    assert course.fail() == "the reboot could not be ordered: Failed to start transient timer unit"


def test_host_without_root_while_going_down_is_waited_for() -> None:
    old = still_up()
    old.order = BecomeError("gpu01", "sudo failed: System is going down")
    course = Course([old, FakeSession([RUNNING])], FakeSession([BootState(OLD)], order=down()))
    assert course.run()[1] == 1


def test_a_changed_host_key_is_an_error_at_once() -> None:
    course = Course([NO_ROUTE, HostKeyMismatch("gpu01", "the host key changed"), FakeSession([RUNNING])])
    assert course.fail() == "the host key changed"
    assert course.time.s == 1


def test_a_host_that_never_goes_down_is_told_from_one_that_does() -> None:
    jobs = tuple(f"stop {name}.service" for name in ("docker", "nfs", "a", "b", "c"))
    course = Course([FakeSession([BootState(OLD, "stopping", jobs)]) for _ in range(62)])
    assert course.fail(60) == (
        f"the host did not go down for a reboot ({REASON}) within 60 s; last state: going down: sshd answers, still "
        "the old boot since 07:00:00, and systemd waits for: stop docker.service, stop nfs.service, stop a.service and "
        "2 more"
    )


def test_host_that_stays_away_is_reported_with_its_last_sign() -> None:
    course = Course([still_up(), NO_ROUTE, REFUSED])
    assert course.fail() == (
        f"the host did not come back within 30 min of a reboot ({REASON}); last state: port 22 refuses connections "
        "since 07:00:02"
    )
    assert course.time.s == 1800


def test_unsettled_systemd_is_reported_with_its_running_jobs() -> None:
    back = FakeSession([BootState(NEW, "starting", ("start mnt-data.mount",))])
    course = Course([*[NO_ROUTE] * 59, back])
    assert course.fail(60) == (
        f"the host came back from a reboot ({REASON}), but did not finish booting; last state: booted, systemd "
        "is starting (1 job) since 07:00:59, and systemd waits for: start mnt-data.mount"
    )
    assert course.time.s == 59 + rebooting.SETTLE_S, "however late it came, it has its time to start"


def test_a_host_with_patience_left_may_take_longer_to_settle() -> None:
    back = FakeSession([*[BootState(NEW, "starting")] * 1000, RUNNING])
    assert Course([back]).run()[1] == 1000


def test_a_host_that_came_back_and_went_away_again_is_told_so() -> None:
    course = Course([FakeSession([BootState(NEW, "starting"), down(sentence="the connection was lost")]), NO_ROUTE])
    assert course.fail(400) == (
        f"the host came back and went away again within 6 min 40 s of a reboot ({REASON}); last state: down (No route "
        "to host) since 07:00:02"
    )


def test_maintenance_mode_is_an_error_at_once() -> None:
    assert "in maintenance mode" in Course([FakeSession([BootState(NEW, "maintenance")])]).fail()


def test_a_stopped_run_ends_the_wait_and_leaves_no_connection() -> None:
    assert Course([still_up(), Stopped("gpu01", "stopped by the operator")]).fail() == "stopped by the operator"


class ShellSession:
    """Runs the scripts here, with stand-ins of systemd's programs."""

    host = Host("gpu01")

    def __init__(self, folder: Path):
        self.folder = folder

    def run(self, command: str, *, stdin: bytes, **limits: Any) -> Output:
        text = stdin.decode().replace("/run/dbus/system_bus_socket", str(self.folder / "bus"))
        env = {"PATH": f"{self.folder}/bin:/usr/bin:/bin"}
        done = subprocess.run(["/bin/sh"], input=text.encode(), capture_output=True, check=False, env=env)
        return Output(done.returncode, done.stdout, done.stderr, False, 0.0)


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[Callable[..., BootState]]:
    def ask(state: str, jobs: str = "", user: int = 0) -> BootState:
        program(tmp_path / "bin", "id", f"echo {user}")
        script = f'case $1 in is-system-running) echo {state}; exit 1 ;; *) printf "{jobs}" ;; esac'
        program(tmp_path / "bin", "systemctl", script if state else "exit 1")
        return probe_boot(ShellSession(tmp_path))  # type: ignore[arg-type]

    yield ask


def test_a_look_tells_boot_state_and_jobs(systemd: Callable[..., BootState]) -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    jobs = "123 mnt-data.mount start running\\n 7 x.service stop  waiting\\n 8 y.service stop running\\n"
    assert systemd("starting", jobs) == BootState(boot, "starting", ("start mnt-data.mount", "stop y.service"))
    assert systemd("running", "No jobs running.\\n") == BootState(boot, "running")
    assert systemd("") == BootState(boot)


def test_login_user_without_a_bus_is_told_nothing(systemd: Callable[..., BootState]) -> None:
    assert systemd("unknown", user=1000).state == ""
    assert systemd("unknown").state == "unknown"


def test_an_incomplete_boot_answer_is_an_error() -> None:
    class Half(FakeSession):
        def run(self, command: str, **more: Any) -> Output:
            return Output(0, b"welcome\n", b"", False, 0.0)

    with pytest.raises(Unreachable, match="boot ID"):
        probe_boot(Half([]))  # type: ignore[arg-type]


@pytest.mark.parametrize("systemd", [True, False])
def test_reboot_command_outlives_its_channel_and_runs_at_once(tmp_path: Path, systemd: bool) -> None:
    for name in ("systemd-run", "reboot", "sleep", "sync"):
        program(tmp_path / "bin", name, f'echo {name} "$@" >> {tmp_path}/done')
    if systemd:
        (tmp_path / "system").mkdir()
    script = rebooting._ORDER.replace("/run/systemd/system", str(tmp_path / "system"))
    env = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    done = subprocess.run(["/bin/sh"], input=f"{script}\nwait\n".encode(), capture_output=True, check=False, env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    given = "systemd-run --quiet --collect --on-active=1 --timer-property=AccuracySec=100ms systemctl reboot"
    assert (tmp_path / "done").read_text().splitlines() == ([given] if systemd else ["sleep 1", "sync", "reboot"])


def host(value: object) -> Host:
    return Host("gpu01", vars={rebooting.VARIABLE: Value(value, Origin("hosts.yml", 7, 3), "host")})


def test_each_host_has_its_own_patience() -> None:
    assert read_reboot_timeout(Host("gpu01")) == read_reboot_timeout(host(None)) == REBOOT_TIMEOUT_S == 1800
    assert read_reboot_timeout(host("45m")) == read_reboot_timeout(host(2700)) == 2700


@pytest.mark.parametrize("value", ["soon", True, 0, ["1h"]])
def test_patience_that_is_no_duration_is_a_mistake_with_its_place(value: object) -> None:
    with pytest.raises(InputError, match=r"hosts.yml:7:3: hostwright_reboot_timeout: found .* expected a duration"):
        read_reboot_timeout(host(value))
