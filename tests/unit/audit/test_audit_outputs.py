"""Tests of an audit's output: complete files or none, one report on standard output, a live screen that ends."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from hostwright.audit.auditing import HostAudited
from hostwright.audit.fleetaudit import Layer, NotChecked
from hostwright.cli.views import progress
from hostwright.cli.views.audits import exit_status
from hostwright.cli.views.progress import Audited, watch
from hostwright.cli.views.reports import Outputs
from hostwright.common.errors import InputError
from tests.unit.support.audits import EACH, fleet, host


class NoMemory:
    """An empty history."""

    def trend(self) -> tuple[()]:
        return ()


def write(files: dict[str, Any]) -> None:
    Outputs(**files).write(fleet(), {}, NoMemory())  # type: ignore[arg-type]


def check(*, as_json: bool = False, watched: bool = False, **files: str) -> None:
    Outputs(**files).check(as_json=as_json, watched=watched)


def test_a_new_file_is_the_operators_alone_and_one_that_is_there_keeps_its_mode(tmp_path: Path):
    names = {name: str(tmp_path / name) for name in ("csv", "junit", "prometheus", "html")}
    write(names)
    assert {path.name for path in tmp_path.iterdir()} == set(names), "nothing is left beside them"
    for path in names.values():
        assert Path(path).stat().st_mode & 0o777 == 0o600
        assert "gpu07" in Path(path).read_text("utf-8")
    (tmp_path / "prometheus").chmod(0o644)
    write(names)
    assert (tmp_path / "prometheus").stat().st_mode & 0o777 == 0o644, "node_exporter reads it as another user"


def test_a_dash_is_standard_output(capsys: pytest.CaptureFixture[str]):
    write({"csv": "-"})
    assert capsys.readouterr().out.startswith("host,status,kind")
    assert Outputs(csv="-").on_stdout
    assert not Outputs(csv="x").on_stdout


@pytest.mark.parametrize(
    "options, part",
    [
        ({"csv": "/nowhere/at/all.csv"}, "no directory /nowhere/at"),
        ({"csv": "-", "junit": "-"}, "only one report"),
        ({"csv": "-", "as_json": True}, "only one report"),
        ({"csv": "-", "watched": True}, "name a file"),
    ],
)
def test_unusable_report_options_are_refused(options: dict[str, Any], part: str):
    with pytest.raises(InputError, match=part):
        check(**options)


def test_a_file_that_cannot_be_replaced_leaves_the_former_one(tmp_path: Path):
    (tmp_path / "fleet.csv").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write({"csv": str(tmp_path / "fleet.csv")})
    assert [path.name for path in tmp_path.iterdir()] == ["fleet.csv"]


def test_the_exit_status_is_that_of_the_worst():
    assert exit_status(fleet(EACH[0], EACH[1])) == 0, "warnings are no difference"
    assert exit_status(fleet(EACH[0], EACH[2])) == 3
    assert exit_status(fleet(EACH[4])) == 3
    assert exit_status(fleet(EACH[2], EACH[5])) == 1
    partly = host("gpu01", "drift", layers={"cuda": "drift", "driver": "unread"})
    assert exit_status(fleet(partly)) == 1
    assert Layer("driver", "unread") in partly.layers


@pytest.mark.parametrize(("check", "status"), [("driver of cards", 3), ("cards", 1)])
def test_cards_are_unread_for_want_of_their_driver_or_because_it_does_not_answer(check: str, status: int):
    skipped = (NotChecked("gpu", check, "nvidia-smi ended with status 127"),)
    differs = replace(host("gpu01", "new", layers={"driver": "new", "gpu": "unread"}), not_checked=skipped)
    assert exit_status(fleet(differs)) == status
    unread = replace(host("gpu01", "unread", layers={"driver": "desired", "gpu": "unread"}), not_checked=skipped)
    assert exit_status(fleet(unread)) == 1


def test_watch_redraws_until_ctrl_c_and_returns_the_last_status(monkeypatch: pytest.MonkeyPatch):
    waited: list[float] = []
    monkeypatch.setattr(progress.time, "sleep", waited.append)
    seen = iter([3, 3, 0])

    def once() -> tuple[int, Text]:
        try:
            return next(seen), Text("audit")
        except StopIteration:
            raise KeyboardInterrupt from None

    assert watch("60s", once) == 0
    assert len(waited) == 3
    assert all(50 < seconds <= 60 for seconds in waited)


def test_a_watch_that_is_ended_before_its_first_audit_is_no_good_one():
    def once() -> tuple[int, Text]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch("60s", once)


def test_a_watch_of_nonsense_is_refused():
    with pytest.raises(InputError, match="expected a duration"):
        watch("soon", lambda: (0, Text("")))


def test_hosts_are_counted_and_the_last_ones_named(monkeypatch: pytest.MonkeyPatch):
    out = progress.console.Console(file=io.StringIO(), force_terminal=True, width=120)
    monkeypatch.setattr(progress.console, "make_console", lambda **_: out)
    with Audited("probing", [host.host for host in EACH]) as emit:
        for audit in EACH[:-1]:
            emit(HostAudited(audit.host, audit))
        description = emit._progress.tasks[0].description
    assert "left: gpu08" in description
    assert "2 desired" in description
