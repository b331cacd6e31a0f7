"""Ctrl-C while a host sends false SSH data, at each stage of a connection: the verb ends at once, and reports it.

The verb and the server run in their own processes. The tests wait only for conditions.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hostwright.apply.rollout.rollout import UNENDED, Interrupted, Results
from hostwright.cli.exits import run, shown
from hostwright.cli.views.shared import show_errors
from hostwright.common.errors import FAILED, INTERRUPTED, HostError, Stopped
from hostwright.common.interruption import on_interrupt
from tests.lab.liars import sshliar
from tests.lab.liars.quietsite import write_site
from tests.lab.sshd import make_key
from tests.unit.support.heard import heard

EVERYTHING = "HOSTWRIGHT_FUZZ" in os.environ
ROOT = Path(__file__).parents[3]
#: seconds; 2 are our own for threads that hang, the others are a machine's under load. What hangs has 60 s at least.
SOON_S = 40.0
LOOKS = 10  #: consecutive idle checks, after which a verb is idle

STAGES = (
    *("not a word", "a greeting that drips", "keys are never exchanged", "the login is never answered"),
    *("a channel is never opened", "a command is never answered", "a command never begins"),
    *("output and then silence", "output that drips"),
)
READING = (
    *("plan", "audit", "doctor", "verify", "rebuild --check", "rollback --check", "remove --check", "lock --list"),
    "trust",
)
BEFORE_LOGIN = STAGES[:3]  #: the stages that `trust` reaches
CONNECTING = STAGES[:4]  #: before any work can begin
CASES = [
    (stage, verb)
    for number, verb in enumerate(READING)
    for place, stage in enumerate(BEFORE_LOGIN if verb == "trust" else STAGES)
    if EVERYTHING or verb == "plan" or (place - number) % len(STAGES) == 0
]


@contextmanager
def lied_to(kind: str, verb: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Start a verb; return it with the file that appears once it receives false data."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOSTWRIGHT_STATE": str(folder / "state")}
    key = make_key(folder / "id")
    server_command = [sys.executable, "-m", sshliar.__name__, kind, str(folder)]
    with socket.socket() as closed, subprocess.Popen(server_command, env=environment) as server:
        closed.bind(("127.0.0.1", 0))  # which never listens
        try:
            awaited(folder / "port", server)
            port = int((folder / "port").read_text())
            write_site(folder / "site", port, folder / "known_hosts", key)
            add_gone(folder / "site/inventory/hosts.yml", closed.getsockname()[1])
            # in a job that a shell runs in the background, Ctrl-C would be ignored
            hearing = ["env", "--default-signal=INT", sys.executable, "-m", "hostwright"]
            command = [*hearing, *verb.split(), "--hosts", "all"]
            with subprocess.Popen(
                command,
                cwd=folder / "site",
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            ) as process:
                try:
                    yield process, folder / "reached"
                finally:
                    process.kill()
        finally:
            server.kill()


def add_gone(hosts: Path, port: int) -> None:
    """Add a host before the lying one that refuses the connection, and so fails before Ctrl-C."""
    inventory = json.loads(hosts.read_text())
    others = inventory["all"]["hosts"]
    inventory["all"]["hosts"] = {"gone": {**others["liar"], "ansible_port": port}, **others}
    hosts.write_text(json.dumps(inventory))


def awaited(path: Path, process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    while not path.exists():
        assert process.poll() is None, process.stdout and process.stdout.read()
        time.sleep(0.02)


def awaited_idle(path: Path, process: subprocess.Popen[str]) -> None:
    """Wait until the liar is reached and all threads are waiting, in several consecutive checks."""
    awaited(path, process)
    waiting = 0
    while waiting < LOOKS:
        time.sleep(0.02)
        states = [stat.read_text().rpartition(") ")[2][0] for stat in Path(f"/proc/{process.pid}/task").glob("*/stat")]
        waiting = waiting + 1 if states and set(states) == {"S"} else 0


@pytest.mark.parametrize(("stage", "verb"), CASES)
def test_one_ctrl_c_ends_a_verb_that_reads(stage: str, verb: str, tmp_path: Path) -> None:
    with lied_to(stage, verb, tmp_path) as (process, reached):
        awaited_idle(reached, process)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=SOON_S)
        assert process.returncode == INTERRUPTED, output
        assert "Traceback" not in output
        assert "stopped; nothing was changed" in output
        if verb == "rebuild --check":  # which retries for some time
            assert "not done when the operator stopped" in output
        else:
            assert re.search(r"gone\b[^,]*refuses the connection", output), output
        assert ("`hostwright runs.show --run " in output) is (verb == "verify"), "what is recorded says where"


@contextmanager
def provisioning(stage: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], list[str], threading.Event]]:
    """Start ``provision`` against a liar after another host has failed; return its output, and whether it stops."""
    with lied_to(stage, "provision", folder) as (process, reached):
        awaited(reached, process)
        said, refused = threading.Event(), threading.Event()
        output: list[str] = []

        def read() -> None:
            for line in process.stdout or ():
                output.append(line)
                if "stopping" in line:
                    said.set()
                if "gone  unreachable: " in line:
                    refused.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        assert refused.wait(SOON_S), output
        yield process, output, said
        process.wait(SOON_S)
        reader.join()


@pytest.mark.parametrize("stage", CONNECTING if EVERYTHING else CONNECTING[1:2])
def test_provision_does_not_wait_for_a_host_that_it_only_connects_to(stage: str, tmp_path: Path) -> None:
    with provisioning(stage, tmp_path) as (process, output, _):
        process.send_signal(signal.SIGINT)
    text = "".join(output)
    assert process.returncode == FAILED, text
    table = text[text.index("host  result\n") :]
    assert re.search(r"^liar +stopped", table, re.MULTILINE), table
    assert re.search(r"^liar: stopped during the first connection; nothing was changed", table, re.MULTILINE)


LATER = STAGES[len(CONNECTING) :]


@pytest.mark.parametrize("stage", LATER if EVERYTHING else LATER[1:2])
def test_provision_stops_gently_and_with_a_second_ctrl_c_at_once(stage: str, tmp_path: Path) -> None:
    with provisioning(stage, tmp_path) as (process, output, said):
        process.send_signal(signal.SIGINT)
        assert said.wait(SOON_S), output
        assert process.poll() is None, "it waits for what runs on the hosts"
        process.send_signal(signal.SIGINT)
    assert process.returncode == INTERRUPTED, output
    text = "".join(output)
    assert "Traceback" not in text
    table = text[text.index("host  result\n") :]
    assert re.search(r"^liar +stopped", table, re.MULTILINE), table
    assert re.search(r"^gone +unreachable", table, re.MULTILINE), table
    assert re.search(r"^liar: cut off before its end; a running job continues", table, re.MULTILINE)
    assert re.search(r"^gone: .*refuses the connection", table, re.MULTILINE)
    assert re.search(r"every step: hostwright runs\.show --run [0-9a-z-]+", table)
    assert re.search(
        r"Jobs that run on the hosts go on; `hostwright provision --resume \S+` re-attaches to them", table
    )


def test_ctrl_c_pressed_twice_in_a_hurry_takes_nothing_of_the_end_away(tmp_path: Path) -> None:
    with lied_to("a command is never answered", "plan", tmp_path) as (process, reached):
        awaited_idle(reached, process)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=SOON_S)
        assert process.returncode == INTERRUPTED, output
        assert "Traceback" not in output
        assert re.search(r"gone\b.*refuses the connection", output), output
        assert output.rstrip().endswith("stopped; nothing was changed")


#: verbs that contact no host: they are stopped while an inventory program runs
KEPT = ("hosts", "vars --hosts all", "stacks", "audit --offline", "audit.history --hosts all", "rebuild --report")


@pytest.mark.parametrize("verb", KEPT if EVERYTHING else KEPT[:2])
def test_ctrl_c_ends_a_verb_that_asks_no_host(verb: str, tmp_path: Path) -> None:
    (tmp_path / "inventory/stacks").mkdir(parents=True)
    (tmp_path / "tasks.py").write_text("from hostwright.cli.tasks import *  # noqa: F403\n")
    program = tmp_path / "inventory/hosts.sh"
    program.write_text("#!/bin/sh\ntouch ../begun begun\nexec sleep 600\n")
    program.chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOSTWRIGHT_STATE": str(tmp_path / "state")}
    command = ["env", "--default-signal=INT", sys.executable, "-m", "hostwright", *verb.split()]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            awaited(tmp_path / "begun", process)
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=SOON_S)
        finally:
            process.kill()
    assert (process.returncode, output.strip().splitlines()[-1]) == (INTERRUPTED, "stopped; nothing was changed")
    assert "Traceback" not in output


# ---------------------------------------------------------------- in this process


@pytest.fixture
def interruptible() -> Iterator[None]:
    with heard(signal.SIGINT):
        yield


STOPPED_EARLY: Results[str] = Results(
    ("gpu01",), (HostError("gpu02", "no room"), *(Stopped(f"gpu{number}", UNENDED) for number in range(10, 40)))
)


@pytest.mark.usefixtures("interruptible")
def test_what_was_known_is_shown_although_ctrl_c_is_pressed_meanwhile(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> Results[str]:
        raise Interrupted(STOPPED_EARLY)

    def show(results: Results[str]) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        show_errors(results.errors)

    def verb() -> int:
        shown(work, show)
        raise AssertionError("it was not ended")

    assert run(verb) == INTERRUPTED
    assert capsys.readouterr().err.splitlines() == [
        f"gpu[10-39]: {UNENDED}",
        "gpu02: no room",
        "stopped; nothing was changed",
    ]


@pytest.mark.usefixtures("interruptible")
def test_an_output_that_nobody_reads_is_ended_by_pressing_on(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> Results[str]:
        raise Interrupted(STOPPED_EARLY)

    def show(_: Results[str]) -> None:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("it was not ended")

    assert run(lambda: len(shown(work, show).values)) == INTERRUPTED
    assert capsys.readouterr().err == "stopped; nothing was changed\n"


@pytest.mark.usefixtures("interruptible")
def test_a_verb_whose_errors_nobody_showed_has_them_shown_and_says_what_it_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def verb() -> int:
        with on_interrupt("interrupted. The file was written"):
            raise Interrupted(Results((), (HostError("gpu02", "no room"),)))

    assert run(verb) == INTERRUPTED
    assert capsys.readouterr().err == "gpu02: no room\ninterrupted. The file was written\n"
