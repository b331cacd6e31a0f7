"""Locks over real SSH: reported to other runs, and released with the run however it ends; operators' locks stay."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hostwright.apply.locking import hostlocks, operatorlock, runlock
from hostwright.apply.locking.runlock import HostLock
from hostwright.apply.rollout.connections import Connections
from hostwright.cli.tasks import keep
from hostwright.common.errors import AS_DESIRED, FAILED, HostError, Locked
from hostwright.common.request import Request
from hostwright.common.secret import Secret
from hostwright.fleet import Fleet, TargetHost
from hostwright.plan.host import locks
from hostwright.plan.host.locks import Holder, OperatorLock
from lab.config import HostOptions, Lab, Machine
from lab.machine import exec_in, power_off, start, wait_for_ssh
from lab.network import cut_network, restore_network
from tests.lab.conftest import Guest, on
from tests.places import PROJECT

ELSEWHERE = replace(locks.holder("run-b", "gpu01", datetime.now(UTC)), owner="bob@elsewhere", machine="elsewhere")

#: A separate controller: takes the lock, prints a line, and never ends.
CONTROLLER = """\
import sys, time
from datetime import UTC, datetime
from pathlib import Path
from hostwright.plan.host import locks
from hostwright.fleet import Fleet
from hostwright.apply.locking.runlock import HostLock
target = Fleet.load(Path(sys.argv[1])).targets(sys.argv[2])[0]
with target.connect() as shell, HostLock.acquire(
    shell, locks.holder("run-c", target.name, datetime.now(UTC))
) as lock:
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def unlocked(gpu01: Machine) -> Iterator[None]:
    """Removes the operator's lock before and after the body."""
    on(gpu01, "rm -f /var/lib/hostwright/lock.json")
    yield
    on(gpu01, "rm -f /var/lib/hostwright/lock.json")


def ours(run: str = "run-a", host: str = "gpu01") -> Holder:
    return locks.holder(run, host, datetime.now(UTC))


def take(stack: ExitStack, target: TargetHost, holder: Holder, **more: Any) -> HostLock:
    """Take the lock of a host over a separate connection."""
    shell = stack.enter_context(target.connect())
    return stack.enter_context(HostLock.acquire(shell, holder, **more))


def held(target: TargetHost) -> Holder | None:
    """Return the holder of a host's lock, as a read-only verb reports it."""
    with target.connect() as shell:
        return locks.run_lock(operatorlock.probe_locks(shell))


def eventually(condition: Callable[[], bool], within_s: float = 60.0) -> float:
    """Wait until a condition holds; return the seconds."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < within_s, f"not within {within_s} s"
        time.sleep(0.1)
    return time.monotonic() - begun


def record_is_gone(machine: Machine) -> bool:
    return exec_in(machine, ["test", "-e", "/run/hostwright/run.json"]).returncode != 0


# The run's lock


def test_the_second_operator_is_told_who_works_on_the_host_since_when(target: TargetHost, gpu01: Machine) -> None:
    first = ours()
    with ExitStack() as stack:
        lock = take(stack, target, first)
        with pytest.raises(Locked, match=rf"in use by {first.owner} since {locks.moment(first.since)} \(run run-a\)"):
            take(stack, target, ELSEWHERE)
        assert held(target) == replace(first, since=first.since.replace(microsecond=0))
        lock.check()
        assert on(gpu01, "stat -c '%a %U' /run/hostwright/run.lock /run/hostwright/run.json") == "600 root\n644 root\n"
    with ExitStack() as stack:
        take(stack, target, ELSEWHERE, wait_s=60).check()


def test_no_other_user_of_the_host_can_keep_runs_out(target: TargetHost, gpu01: Machine) -> None:
    with ExitStack() as stack:
        take(stack, target, ours())
    with target.connect() as shell:
        assert shell.session.run("flock -n /run/hostwright/run.lock true", timeout_s=20).status != 0
        assert b"Permission denied" in shell.session.run("flock -n /run/hostwright/run.lock true", timeout_s=20).stderr


def test_a_connection_that_is_closed_gives_the_lock_back(target: TargetHost) -> None:
    with ExitStack() as stack:
        shell = stack.enter_context(target.connect())
        lock = HostLock.acquire(shell, ours())
        shell.close()
        eventually(lambda: lock.lost)
        take(stack, target, ELSEWHERE, wait_s=60).check()


def test_a_controller_that_is_killed_keeps_nobody_waiting(lab: Lab, target: TargetHost) -> None:
    words = [sys.executable, "-c", CONTROLLER, str(lab.inventory.parent), "gpu01"]
    with subprocess.Popen(words, cwd=PROJECT, stdout=subprocess.PIPE) as controller, ExitStack() as stack:
        assert controller.stdout is not None
        stack.callback(controller.kill)
        assert controller.stdout.readline() == b"held\n"
        with pytest.raises(Locked, match=rf"end its process {controller.pid} on "):
            take(stack, target, ours())
        controller.send_signal(signal.SIGKILL)
        controller.wait()
        take(stack, target, ours()).check()


def test_a_controller_that_is_stopped_loses_the_lock(lab: Lab, target: TargetHost, gpu01: Machine) -> None:
    """As when a laptop is suspended: the connection stays open without data."""
    words = [sys.executable, "-c", CONTROLLER, str(lab.inventory.parent), "gpu01"]
    with subprocess.Popen(words, cwd=PROJECT, stdout=subprocess.PIPE) as controller, ExitStack() as stack:
        assert controller.stdout is not None
        assert controller.stdout.readline() == b"held\n"
        os.kill(controller.pid, signal.SIGSTOP)
        waited_s = eventually(lambda: record_is_gone(gpu01))
        assert waited_s > locks.LAPSES_S - 2 * runlock.BEAT_S
        take(stack, target, ELSEWHERE).check()
        controller.kill()


def test_run_retakes_its_lock_after_a_network_cut(target: TargetHost, gpu01: Machine) -> None:
    with ExitStack() as stack:
        lock = take(stack, target, ours())
        cut_network(gpu01)
        try:
            eventually(lambda: lock.lost)
            known = lock._keeper._heard_s + locks.LAPSES_S - runlock.MARGIN_S + time.time() - runlock.now_s()
            eventually(lambda: record_is_gone(gpu01))
            let_in = float(on(gpu01, "stat -c %.Y /run/hostwright"))
            assert known < let_in, "we knew before the host let others in"
        finally:
            restore_network(gpu01)
        with pytest.raises(HostError, match="the host's lock was lost"):
            lock.check()
        take(stack, target, ours()).check()


def test_a_short_cut_of_the_network_costs_no_lock(target: TargetHost, gpu01: Machine) -> None:
    with ExitStack() as stack:
        lock = take(stack, target, ours())
        cut_network(gpu01)
        on(gpu01, "sleep 1")
        restore_network(gpu01)
        with pytest.raises(Locked):
            take(stack, target, ELSEWHERE)
        lock.check()


def test_a_run_takes_over_the_lock_of_its_own_lost_connection(
    target: TargetHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller reconnects before the lock expires, while the host still waits for the old connection."""
    monkeypatch.setattr(runlock, "BEAT_S", 60.0)  # the run sends no further heartbeat
    holder, told = ours(), list[str]()
    with ExitStack() as stack:
        take(stack, target, holder)
        take(stack, target, holder, notify=told.append).check()
    assert told


def test_a_keeper_that_is_killed_on_the_host_is_noticed(target: TargetHost, gpu01: Machine) -> None:
    with ExitStack() as stack:
        lock = take(stack, target, ours())
        on(gpu01, "read -r pid start </run/hostwright/run.pid; kill -9 $pid")
        eventually(lambda: lock.lost)
        assert not record_is_gone(gpu01)
        assert held(target) is None, "what it left says nothing"
        take(stack, target, ELSEWHERE, wait_s=60).check()


def test_sudo_with_a_password_and_a_terminal_of_its_own(lab: Lab, guest: Guest) -> None:
    options = HostOptions(profile="small", sudo="password", sudo_password="pw-$x'7f3a")
    machine = guest("locks01", options)
    on(machine, "echo 'Defaults use_pty' >/etc/sudoers.d/pty; chmod 440 /etc/sudoers.d/pty")
    (plain,) = Fleet.load(lab.inventory.parent).targets("locks01")
    with plain.connect(Secret(options.sudo_password)) as shell:
        with HostLock.acquire(shell, ours(host="locks01")) as lock:
            eventually(lambda: lock._keeper._sent > 2)
            lock.check()
            assert options.sudo_password not in on(
                machine, "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ | tr '\\0' ' '"
            )
        eventually(lambda: record_is_gone(machine))
        lock = HostLock.acquire(shell, ours(host="locks01"))
    eventually(lambda: record_is_gone(machine))
    assert lock.lost


# The operator's lock


def verb(lab: Lab, capsys: pytest.CaptureFixture[str], name: str, **given: Any) -> tuple[int, str]:
    """Run a verb; return its exit status and all output."""
    own = {option: given.pop(option) for option in ("reason", "for_", "list") if option in given}
    status = getattr(keep, name)(Request("gpu01", inventory=(str(lab.inventory.parent),), **given), **own)
    printed = capsys.readouterr()
    return status, printed.out + printed.err


def test_an_operator_locks_a_host_and_unlocks_it(
    lab: Lab, target: TargetHost, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, unlocked: None
) -> None:
    status, said = verb(lab, capsys, "lock", reason="RMA 4711", for_="3d")
    assert (status, "gpu01  locked by" in said, "RMA 4711" in said) == (AS_DESIRED, True, True)
    assert verb(lab, capsys, "lock", reason="RMA 4712")[0] == AS_DESIRED, "one's own lock is replaced"
    monkeypatch.setattr(hostlocks, "operator", lambda: "bob@elsewhere")
    for name, given in (("lock", {"reason": "mine"}), ("unlock", {})):
        status, said = verb(lab, capsys, name, **given)
        assert (status, "RMA 4712" in said, "--force" in said) == (FAILED, True, True)
    status, said = verb(lab, capsys, "lock", list=True, json=True)
    (host,) = json.loads(said)["hosts"]
    assert (status, host["lock"]["reason"], host["run"]) == (AS_DESIRED, "RMA 4712", None)
    assert verb(lab, capsys, "unlock", force=True)[0] == AS_DESIRED
    assert verb(lab, capsys, "unlock") == (AS_DESIRED, "gpu01  not locked\n")


def test_a_locked_host_is_looked_at_as_ever_and_refuses_changes(
    target: TargetHost, gpu01: Machine, unlocked: None
) -> None:
    now = datetime.now(UTC)
    lock = OperatorLock("alice@desk", "RMA", "gpu01", now, now + timedelta(hours=1))
    with ExitStack() as stack:
        take(stack, target, ours())
        shell = stack.enter_context(target.connect())
        operatorlock.put_lock(shell, lock)
        before = on(gpu01, "cat /run/hostwright/run.json /var/lib/hostwright/lock.json; stat -c %i /run/hostwright/*")
        assert Connections(None).plan(target).host == "gpu01"
        facts = operatorlock.probe_locks(shell)
        assert "invoke unlock --hosts gpu01" in locks.refusal(facts, now)
        assert locks.refusal(facts, lock.until) == "", "at its end"
        after = on(gpu01, "cat /run/hostwright/run.json /var/lib/hostwright/lock.json; stat -c %i /run/hostwright/*")
        assert after == before


def test_of_two_operators_at_once_one_wins_and_the_other_is_told(target: TargetHost, unlocked: None) -> None:
    now = datetime.now(UTC)
    names = ("alice@desk", "bob@lap")
    meeting = threading.Barrier(len(names))

    def put(owner: str) -> str:
        with target.connect() as shell:
            meeting.wait()
            try:
                lock = OperatorLock(owner, "mine", "gpu01", now, now + timedelta(hours=1))
                operatorlock.put_lock(shell, lock)
            except Locked as error:
                return error.sentence
            return "won"

    for _ in range(5):
        with ThreadPoolExecutor(2) as pool:
            said = dict(zip(names, pool.map(put, names), strict=True))
        winner = next(name for name in names if said[name] == "won")
        loser = next(name for name in names if name != winner)
        assert f"locked by {winner}" in said[loser]
        with target.connect() as shell:
            facts = operatorlock.take_lock_off(shell, winner)
        found = locks.operator_lock(facts)
        assert found is not None
        assert found.owner == winner


def test_operators_lock_survives_a_power_cut(lab: Lab, guest: Guest) -> None:
    machine = guest("locks02", HostOptions(profile="small"))
    (target,) = Fleet.load(lab.inventory.parent).targets("locks02")
    now = datetime.now(UTC).replace(microsecond=0)
    lock = OperatorLock("alice@desk", "RMA", "locks02", now, now + timedelta(days=3))
    with target.connect() as shell:
        run = HostLock.acquire(shell, ours(host="locks02"))
        operatorlock.put_lock(shell, lock)
        power_off(machine)
        eventually(lambda: run.lost)
    start(machine)
    wait_for_ssh(machine)
    with target.connect() as shell:
        facts = operatorlock.probe_locks(shell)
        assert locks.operator_lock(facts) == lock
        assert locks.run_lock(facts) is None
        with HostLock.acquire(shell, ours(host="locks02")) as again:
            again.check()
