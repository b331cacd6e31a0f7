"""What would be lost for good is asked at a terminal, and refused without one, unless the operator agreed before."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hostwright.apply.host.outcome import Outcome, Settings
from hostwright.apply.rollout.options import ChangeOptions
from hostwright.apply.rollout.recording import RunResults
from hostwright.apply.rollout.rollout import Results
from hostwright.cli.verbs import changes
from hostwright.common.errors import HostError, Refused, Unanswered
from hostwright.fleet import Members
from hostwright.plan.host.release import Run


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(
    monkeypatch: pytest.MonkeyPatch, typed: str | None, *errors: HostError, as_json: bool = False
) -> tuple[int, list[tuple[tuple[str, ...], bool]]]:
    """The exit status, and for each run its hosts and whether the operator had agreed."""
    calls: list[tuple[tuple[str, ...], bool]] = []
    monkeypatch.setattr("sys.stdin", Terminal(typed) if typed is not None else io.StringIO())
    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setattr(changes, "show_outcomes", lambda *_, **__: None)

    def once(members: Members, change: ChangeOptions) -> RunResults[Outcome]:
        calls.append((tuple(member.name for member in members), change.yes))
        failed = () if change.yes else errors
        return RunResults("run", Results((), failed), 1 if failed else 0)

    chosen: Any = tuple(SimpleNamespace(name=name) for name in ("gpu01", "gpu02"))
    status = changes._run("provision", once, Members(chosen), ChangeOptions(), as_json=as_json)
    return status, calls


LOST = Unanswered("gpu02", "the driver 460.32.03 would be lost")
BOTH = ("gpu01", "gpu02")


def test_yes_goes_on_with_the_hosts_that_were_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "yes\n", LOST) == (0, [(BOTH, False), (("gpu02",), True)])


@pytest.mark.parametrize("typed", ["y\n", "no\n", "\n", "", None])
def test_anything_else_and_no_terminal_change_nothing_more(monkeypatch: pytest.MonkeyPatch, typed: str | None) -> None:
    assert run(monkeypatch, typed, LOST) == (1, [(BOTH, False)])


def test_json_is_never_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "yes\n", LOST, as_json=True) == (1, [(BOTH, False)])


def test_a_host_that_failed_otherwise_still_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "yes\n", LOST, Refused("gpu01", "a rule"))[0] == 1


def test_a_host_is_not_touched_unless_the_operator_agreed() -> None:
    settings = Settings(run=Run("run"), emit=lambda _: None, locate=lambda _: Path())
    with pytest.raises(Unanswered, match="would be lost, and nothing brings that back"):
        settings.agree("gpu02", ("the driver 460.32.03",))
    replace(settings, yes=True).agree("gpu02", ("the driver 460.32.03",))
    settings.agree("gpu02", ())
