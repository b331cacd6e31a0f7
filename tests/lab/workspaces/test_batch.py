"""Batch runs on one card: queued, run once to their end, with log and exit status among the user's files."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from tests.lab.workspaces.conftest import Runs
from tests.lab.workspaces.desk import HOST, IMAGE, UIDS, by_uuid


def test_the_second_waits_while_the_first_has_the_card(runs: Runs) -> None:
    assert runs.meanwhile["a-run"] == "running"
    assert runs.meanwhile["b-run"].startswith("queued: batch run a-run has GPU-")
    first, _, printed = runs.log_meanwhile.partition("\n")
    assert json.loads(first)["state"] == "running"
    assert "begun" in printed  # read over another connection than the one that started it
    assert "ended" not in printed


def test_log_and_exit_status_are_kept(runs: Runs) -> None:
    desk = runs.desk
    states = desk.states()
    assert states["a-run"] == "ended with status 3"
    assert states["b-run"] == "ended with status 0"
    records = {name: json.loads(desk.on(f"cat {folder}/batch.json")) for name, folder in runs.folders.items()}
    assert [(records[name]["state"], records[name]["status"]) for name in runs.folders] == [("ended", 3), ("ended", 0)]
    assert not records["a-run"]["out_of_memory"]
    moments = [records["a-run"]["ended"], records["b-run"]["started"]]
    before, after = (datetime.fromisoformat(moment[:19]) for moment in moments)
    assert before <= after
    log = desk.on(f"cat {runs.folders['a-run']}/batch.log")
    assert log.splitlines()[0] == "begun"
    assert log.splitlines()[-1] == "ended"
    assert by_uuid(log) == by_uuid(desk.on("nvidia-smi -L"))[2:]
    assert desk.on(f"cat {runs.folders['b-run']}/batch.log").strip() == str(UIDS["bob"])
    printed = desk.done("workspace.logs", "--name", "a-run")
    assert '"status":3' in printed
    assert printed.splitlines()[-1] == "ended"


def test_its_files_are_the_persons_own(runs: Runs) -> None:
    for name, owner in (("a-run", "alice"), ("b-run", "bob")):
        for file in ("batch.log", "batch.json"):
            stat = runs.desk.on(f"stat -c '%u %g %a' {runs.folders[name]}/{file}").split()
            assert stat == [str(UIDS[owner]), str(UIDS[owner]), "600"]
    assert runs.desk.as_account("alice", f"cat {runs.folders['a-run']}/batch.log").returncode == 0
    assert runs.desk.as_account("bob", f"cat {runs.folders['a-run']}/batch.log").returncode != 0


def test_a_run_that_ended_is_not_planned_again(runs: Runs) -> None:
    assert runs.desk.planned() == []
    assert runs.desk.on(f"cat {runs.folders['a-run']}/times") == "once\n"


def test_the_file_says_what_was_asked(runs: Runs) -> None:
    """The verb writes the same entry as a user would, with the script unchanged."""
    entries = runs.desk.entries()
    assert entries["a-run"]["script"] == runs.script
    assert (entries["b-run"]["command"], entries["b-run"]["gpus"]) == (["sh", "-c", "id -u"], [2])


def test_what_the_image_or_the_world_lacks_is_told_at_once_and_clocks_show_the_zone(runs: Runs, tmp_path: Path) -> None:
    desk, script, folder = runs.desk, tmp_path / "run", "/srv/workspaces/alice/c-run"
    script.write_text("#!/usr/bin/zsh\necho begun\n")
    up = ("workspace.up", "--host", HOST, "--user", "alice", "--kind", "batch", "--name", "c-run", "--image", IMAGE)
    told = f"names the interpreter /usr/bin/zsh, which the image {IMAGE} does not have"
    for words, sentence in (
        (("--script", str(script)), told),
        (("--command", "date", "--env", "TZ=Asia/Tokio"), "did you mean 'Asia/Tokyo'?"),
    ):
        refused = desk(*up, *words)
        assert refused.returncode != 0
        assert sentence in " ".join((refused.stdout + refused.stderr).split())
    desk.done(*up, "--command", "date +%Z%z", "--env", "TZ=Asia/Tokyo")
    desk.await_(f'grep -q \'"state":"ended"\' {folder}/batch.json', "the run does not end")
    assert desk.on(f"cat {folder}/batch.log") == "JST+0900\n"
    desk.done("workspace.down", "--host", HOST, "--name", "c-run")
