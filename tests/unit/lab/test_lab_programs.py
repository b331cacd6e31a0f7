"""Programs that the lab runs: one that stops itself is let go on."""

from __future__ import annotations

import pytest

from lab import programs


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "RESUME_S", 0.05)


def test_a_program_that_stops_itself_comes_to_its_end() -> None:
    done = programs.attend(["sh", "-c", "kill -STOP $$; cat; echo end >&2; exit 3"], stdin="what it was given")
    assert (done.returncode, done.stdout, done.stderr) == (3, "what it was given", "end\n")


def test_a_program_that_takes_its_time_is_left_alone() -> None:
    done = programs.attend(["sh", "-c", "read line; sleep 0.3; echo $line; yes | head -c 300000"], stdin="go\n" * 9)
    assert (done.returncode, done.stdout[:3], len(done.stdout)) == (0, "go\n", 300_003)
