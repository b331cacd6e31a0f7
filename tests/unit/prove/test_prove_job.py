"""Tests of the job of proofs: its processes end with it, and no files remain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hostwright.plan.model import StepResult
from hostwright.prove.job import HOTTEST, OUT_BYTES, ProgramEnd, ended, job_plan
from hostwright.prove.model import Program
from hostwright.prove.reading import read
from tests.unit.support.proofs import END, NONCE, TICKS, proof, run, run_job

HOT = "printf 'GPU-1\\t91\\t90\\n'"
COOL = "printf 'GPU-1\\t61\\t90\\nGPU-2\\t55\\t90\\nnoise\\nGPU-3\\thot\\t90\\n'"
COPIED = ("install", "-m", "700", "{source}", "{program}")  # stand-in for a compiler of scripts
ENOUGH_S = 8  #: for a program to start on a loaded machine
SLEEPS = "import time\ntime.sleep(600)\n"


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_program_gets_its_arguments_and_a_directory_that_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "import json, os, sys\n"
        "place = os.getcwd()\n"
        "assert os.environ['HOME'] == os.environ['TMPDIR'] == place and os.listdir(place) == []\n"
        "open('left', 'w').close(); os.mkdir('folder')\n"
        "print(json.dumps([place, json.load(open(sys.argv[1])), os.environ['SPEED']]))\n"
    )
    program = Program("a.py", source, ("python3",), {"b": [1, "ü $(id)"], "a": None}, (), (("SPEED", "a b'c"),))
    (end,) = run(tmp_path, monkeypatch, proof("", program=program))
    place, arguments, speed = json.loads(next(line for line in end.text.split("\n") if line.startswith("[")))
    assert (arguments, speed, end.status) == ({"b": [1, "ü $(id)"], "a": None}, "a b'c", 0)
    assert Path(place).is_relative_to(tmp_path)
    assert not Path(place).exists() and not Path(place).parent.exists()


def test_what_a_program_says_at_its_end_is_kept_short_and_without_our_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "import sys\nfor n in range(100000): print('x' * 50, file=sys.stderr)\nraise ValueError('no luck')\n"
    (end,) = run(tmp_path, monkeypatch, proof(source))
    assert (end.status, end.stderr[-1]) == (1, "ValueError: no luck")
    assert len(end.stderr) == 15
    assert not any(str(tmp_path) in line for line in end.stderr)


def test_output_without_end_is_cut_at_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (end,) = run(tmp_path, monkeypatch, proof("import sys\nwhile True: sys.stdout.write('y' * 999 + chr(10))\n"))
    assert end.status not in (0, None)
    assert len(end.text) <= OUT_BYTES + 2


def test_a_proof_that_does_not_end_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(['setsid', 'sh', '-c', 'trap \"\" TERM; sleep 600 & wait'])\n"
        "print(child.pid, flush=True)\n" + SLEEPS
    )
    end, after = run(tmp_path, monkeypatch, proof(source, time_limit_s=ENOUGH_S), proof(TICKS + END, "next"))
    assert end.status in (124, 137) and end.took_s >= ENOUGH_S
    assert not alive(int(end.text.split()[0]))
    assert read(after.text).ended and after.status == 0


def test_what_a_proof_that_passes_leaves_running_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (
        "from subprocess import DEVNULL, Popen\n"
        "print(Popen(['setsid', 'sleep', '600'], stdout=DEVNULL).pid, flush=True)\n" + END
    )
    (end,) = run(tmp_path, monkeypatch, proof(source))
    assert (end.status, read(end.text).ended) == (0, True)
    assert not alive(int(end.text.split()[0]))


def test_a_card_that_is_too_hot_stops_the_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (end,) = run(tmp_path, monkeypatch, proof(SLEEPS), watch=HOT)
    assert end.stopped == "GPU-1 is at 91 °C, and a proof stops at 90 °C"
    assert [(one.name, one.device, one.number) for one in end.hottest] == [(HOTTEST, "GPU-1", 91.0)]


def test_the_hottest_of_each_card_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (end,) = run(tmp_path, monkeypatch, proof(TICKS + END), watch=COOL)
    assert (end.stopped, end.status) == ("", 0)
    assert {one.device: one.number for one in end.hottest} == {"GPU-1": 61.0, "GPU-2": 55.0}


def test_cards_whose_temperature_nobody_knows_stop_the_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (end,) = run(tmp_path, monkeypatch, proof(SLEEPS), watch="echo 'nvidia-smi has failed'; exit 9")
    assert end.stopped == "the temperature of the cards could not be read five times in a row"


def test_a_watch_cannot_print_what_runs_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = "printf 'GPU-1`touch %s`\\t99\\t1\\n$(id)\\t99\\t1\\n' " + str(tmp_path / "owned")
    (end,) = run(tmp_path, monkeypatch, proof(TICKS + END), watch=watch + "\n" + COOL)
    assert end.stopped == "" and not (tmp_path / "owned").exists()


def test_a_program_is_compiled_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    works = Program("a.c", '#!/bin/sh\n[ -s "$1" ] && echo \'{"end": true}\'\n', compiler=COPIED)
    fails = Program("b.c", "int main({", compiler=("sh", "-c", 'echo "$0:1:9: error: no" >&2; exit 1', "{source}"))
    good, bad = run(tmp_path, monkeypatch, proof("", "good", program=works), proof("", "bad", program=fails))
    assert (good.status, read(good.text).ended, good.unbuilt) == (0, True, False)
    assert (bad.status, bad.unbuilt, bad.stderr) == (None, True, ("b.c:1:9: error: no",))


def test_lines_of_the_job_itself_are_no_output_of_the_program() -> None:
    text = f"a\n{NONCE} status 3\n{NONCE} took 1500\n{NONCE} status x\n{NONCE} hottest GPU-1 999999\nb"
    assert ended(StepResult(0, "clock.ticks", 0, 9.0, text), NONCE) == ProgramEnd(3, 1.5, "a\nb")


def test_nothing_is_known_of_a_step_that_said_nothing() -> None:
    assert ended(StepResult(0, "clock.ticks", 255, 2.0, ""), NONCE) == ProgramEnd(None, 2.0, "")


def test_a_job_that_is_told_to_stop_takes_its_program_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = tmp_path / "pid"
    source = f"import os\nopen({str(marker)!r}, 'w').write(str(os.getpid()))\n" + SLEEPS
    watch = f"[ ! -s {marker} ] || kill $(cat {marker}); {COOL}"
    result = run_job(tmp_path, monkeypatch, proof(source), watch=watch)
    end = ended(result.steps[0], NONCE)
    assert end.status == 143 and not alive(int(marker.read_text()))
    assert list((tmp_path / "work").rglob("proof.*")) == []


def test_each_proof_is_a_change_that_stands_alone() -> None:
    plan = job_plan([proof("", "a"), proof("", "b")], NONCE, "")
    assert [(change.what, change.alone) for change in plan.changes] == [("clock.a", True), ("clock.b", True)]  # type: ignore[union-attr]
    assert plan.role == "prove"
