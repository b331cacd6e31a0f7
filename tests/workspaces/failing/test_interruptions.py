"""Whoever makes a workspace is killed, stopped or not alone: one workspace in the end, and no second."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from tests.workspaces.failing.bench import HOST, Bench

UP = ("--host", HOST, "--user", "alice", "--image", "lab/jupyter:1")
TIMES = 10


def one_workspace(bench: Bench) -> None:
    """Exactly one, whole: its container and nothing beside it, its network, its files, and an empty plan."""
    rows = bench.has()
    assert [row.split()[0] for row in rows if row.startswith("/workspace-")] == ["/workspace-alice-jupyter"], rows
    assert bench.containers() == {"alice-jupyter": "running"}
    assert [row for row in rows if row.startswith("network")] == ["network hostwright-alice"]
    assert bench.on("ls /var/lib/hostwright/workspaces").split() == ["alice-jupyter"]
    assert not [row for row in rows if row.endswith(".new")]
    assert bench.file.read_text().count("alice-jupyter:") == 1
    assert bench.say("plan", "--hosts", HOST, "--roles", "workspaces")[0] == 0


def test_a_controller_killed_at_random_moments_leaves_one_workspace(bench: Bench) -> None:
    seed = int(os.environ.get("HOSTWRIGHT_SEED") or time.time())
    print(f"HOSTWRIGHT_SEED={seed} repeats these moments")
    chance = random.Random(seed)  # noqa: S311 - the seed is printed, for a repetition
    began = time.monotonic()
    assert bench.up()[0] == 0
    whole_s = time.monotonic() - began
    moments = []
    for _ in range(TIMES):
        bench.wiped()
        run = bench.begin("workspace.up", *UP)
        moments.append(round(chance.uniform(0, whole_s), 2))
        try:
            run.wait(moments[-1])
        except subprocess.TimeoutExpired:
            bench.kill(run)
        else:
            run.communicate()
        status, text = bench.up()
        assert status == 0, f"killed after {moments}\n{text[-3000:]}"
        one_workspace(bench)
    print(f"killed after {moments} of {whole_s:.1f} s")


def test_a_controller_killed_in_a_change_keeps_the_token_and_the_files(bench: Bench) -> None:
    assert bench.up()[0] == 0
    bench.on("echo mine >/srv/workspaces/alice/alice-jupyter/notes")
    token = bench.on("cat /var/lib/hostwright/workspaces/alice-jupyter/token")
    run = bench.begin("workspace.up", *UP, "--memory", "256m")
    bench.on(
        "for i in $(seq 600); do docker inspect workspace-alice-jupyter.old >/dev/null 2>&1 && break; sleep 0.1; done"
    )
    bench.kill(run)
    status, text = bench.up("alice", "lab/jupyter:1", "--memory", "256m")
    assert status == 0, text
    one_workspace(bench)
    assert bench.on("docker inspect -f '{{.HostConfig.Memory}}' workspace-alice-jupyter").strip() == str(256 << 20)
    assert bench.on("cat /var/lib/hostwright/workspaces/alice-jupyter/token") == token
    assert bench.on("cat /srv/workspaces/alice/alice-jupyter/notes") == "mine\n"


def test_ctrl_c_ends_the_run_and_the_same_command_goes_on(bench: Bench) -> None:
    run = bench.begin("workspace.up", "--host", HOST, "--user", "alice", "--image", "lab/slow:1")
    bench.on("for i in $(seq 600); do docker inspect workspace-alice-jupyter >/dev/null 2>&1 && break; sleep 0.1; done")
    os.killpg(run.pid, signal.SIGINT)
    time.sleep(1)  # between two presses of a person
    os.killpg(run.pid, signal.SIGINT)
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 130, output
    assert "Press Ctrl-C again to leave at once" in output
    assert "Traceback" not in output
    status, text = bench.up("alice", "lab/slow:1")
    assert status == 0, text
    one_workspace(bench)


def test_ctrl_c_in_exec_ends_it_and_leaves_the_workspace(bench: Bench) -> None:
    assert bench.up()[0] == 0
    run = bench.begin("workspace.exec", "--name", "alice-jupyter", "--command", "sleep 7777")
    bench.on("for i in $(seq 600); do pgrep -fx 'sleep 7777' >/dev/null && break; sleep 0.1; done")
    os.killpg(run.pid, signal.SIGINT)
    output, _ = run.communicate(timeout=90)
    assert run.returncode == 130, output
    assert "Traceback" not in output
    assert bench.containers() == {"alice-jupyter": "running"}


def test_two_controllers_on_one_host_make_each_workspace_once(bench: Bench) -> None:
    runs = [
        bench.begin("workspace.up", "--host", HOST, "--user", user, "--image", "lab/jupyter:1")
        for user in ("alice", "bob")
    ]
    with ThreadPoolExecutor(2) as pool:
        outputs = list(pool.map(lambda run: run.communicate(timeout=300)[0], runs))
    for run, output in zip(runs, outputs, strict=True):
        assert run.returncode == 0 or "in use by" in output, output
    assert any(run.returncode == 0 for run in runs), outputs
    assert {"alice-jupyter:", "bob-jupyter:"} <= set(bench.file.read_text().split())
    assert bench.provision()[0] == 0
    assert bench.containers() == {"alice-jupyter": "running", "bob-jupyter": "running"}


def test_eight_that_write_the_inventory_at_once_lose_none(bench: Bench) -> None:
    runs = [bench.begin("workspace.up", *UP, "--name", f"run-{number}", "--no-provision") for number in range(8)]
    outputs = [run.communicate(timeout=300)[0] for run in runs]
    assert [run.returncode for run in runs] == [0] * 8, outputs
    assert sum(f"run-{number}:" in bench.file.read_text() for number in range(8)) == 8
