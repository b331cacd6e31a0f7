"""Processes that compute with other hosts, followed by the program that started them: real processes and sockets."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

from hostwright.standard.roles.base.proofs.sources import python_source
from hostwright.standard.roles.cuda.proofs.programs import hosts
from hostwright.standard.roles.pytorch import proofs as pytorch

#: what starts the process whose text is the argument ``work``
PROGRAM = """
def main(lines, arguments):
    follow_workers(lines, arguments, [sys.executable, "-c", arguments["work"]])


run(main)
"""
SAY = "print({0!r}, flush=True)\n"
STEPS = "".join(SAY.format(json.dumps({"step": step})) for step in range(2))
MEASURED = SAY.format('{"measure": "devices", "value": 2, "unit": "", "device": "cpu"}')
ALONE = SAY.format('{"alone": true}')
WAIT = "import time; time.sleep(60)\n"


def ended(tmp_path: Path, work: str, missing: bool = False) -> tuple[int, list[dict[str, object]], str]:
    """How a program ends whose process does this work: its status, what it printed, and the other host's address."""
    text = python_source(pytorch.__file__, "training.py").partition("PER_DEVICE = ")[0]
    (tmp_path / "program.py").write_text(text + PROGRAM)
    with socket.create_server(("127.0.0.1", 0)) as other, socket.create_server(("127.0.0.1", 0)) as own:
        peers = [f"127.0.0.1:{each.getsockname()[1]}" for each in (own, other)]
        own.close()
        if missing:
            other.close()
        order = {"peers": peers, "index": 0, "port": 0, "start_limit_s": 20, "step_limit_s": 1, "work": work}
        (tmp_path / "order.json").write_text(json.dumps(order))
        words = [sys.executable, tmp_path / "program.py", tmp_path / "order.json"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], peers[1]


def test_what_a_process_measures_is_passed_on(tmp_path: Path) -> None:
    status, rows, _ = ended(tmp_path, STEPS + ALONE + MEASURED + SAY.format('{"end": true}'))
    assert status == 0
    assert rows == [{"measure": "devices", "value": 2, "unit": "", "device": "cpu"}, {"end": True}]


def test_a_host_that_does_not_answer_is_named_with_the_step_in_which_it_is_missed(tmp_path: Path) -> None:
    error = '{"error": "RuntimeError: Connection closed by peer"}'
    status, rows, other = ended(tmp_path, STEPS + SAY.format(error) + "raise SystemExit(1)\n", missing=True)
    assert status == 1
    assert rows == [{"error": f"step 3: no answer from {other} (RuntimeError: Connection closed by peer)"}]


def test_a_step_that_does_not_end_is_ended_and_names_no_host_that_answers(tmp_path: Path) -> None:
    status, rows, _ = ended(tmp_path, STEPS + WAIT)
    assert (status, rows) == (1, [{"error": "step 3: all hosts answer (it did not end in time)"}])


def test_a_process_that_is_killed_is_an_error(tmp_path: Path) -> None:
    status, rows, _ = ended(tmp_path, STEPS + "import os; os.kill(os.getpid(), 9)\n")
    assert status == 1
    assert rows == [{"error": "step 3: all hosts answer (a process of this host ended with status -9)"}]


def test_an_error_after_the_hosts_have_parted_blames_none_of_them(tmp_path: Path) -> None:
    work = ALONE + SAY.format('{"error": "MemoryError: full"}') + "raise SystemExit(1)\n"
    status, rows, _ = ended(tmp_path, work, missing=True)
    assert (status, rows) == (1, [{"error": "RuntimeError: MemoryError: full"}])


def test_the_interface_is_the_one_that_reaches_the_peer() -> None:
    assert hosts.route("127.0.0.2:9") == ("lo", "127.0.0.1")


def test_all_hosts_meet_at_the_first_on_a_port_of_its_own() -> None:
    order = {"peers": ["fd00::1", "10.0.0.2"], "port": 29473, "meeting_port": 29474}
    assert hosts.peers_of(order) == ["[fd00::1]:29473", "10.0.0.2:29473"]
    assert hosts.meeting_of(order) == ("fd00::1", 29474)
    assert hosts.peers_of({"port": 29473}) == []
