"""The output of ``invoke rebuild``: texts of hosts and BMCs are never markup."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from hostwright.apply.rollout.limits import Limits
from hostwright.apply.rollout.rollout import Results, roll_out
from hostwright.cli.views.rebuilding.rebuilds import (
    decisions_table,
    rebuilds_table,
    show_decisions,
    show_rebuilt,
)
from hostwright.common.errors import Locked, Unreachable
from hostwright.inventory.patterns import fold
from hostwright.rebuild.rebuild import OUTCOMES
from hostwright.rebuild.run import ENDED, Decisions, Rebuilt
from hostwright.rebuild.ways.ways import Decision, decide
from tests.unit.support.rebuilds import rebuild, silent

SAID = "HTTP 500 for [/redfish/v1/Systems/1] [error] \x1b[31m[/dev/sda]"
SHOWN = "HTTP 500 for [/redfish/v1/Systems/1] [error]"


def shown(table: object) -> str:
    out = io.StringIO()
    Console(file=out, width=400).print(table)
    return out.getvalue()


def test_what_a_bmc_says_is_shown_as_it_is() -> None:
    decision = decide(silent(power="unknown", power_sentence=SAID))
    text = shown(decisions_table({"gpu07": decision, "gpu08": decision}))
    assert SHOWN in text
    assert "[/dev/sda]" in text
    assert "\x1b" not in text
    assert "gpu[07-08]" in text


def test_decisions_for_hosts_too_many_for_a_column_stand_below_each_other() -> None:
    decision = Decision("repair", ("the layer cuda differs",), ("drain", "verify"), ("relayer",), ends=("ada",))
    names = [f"node{number:03}" for number in range(1, 100, 3)]
    lines = shown(decisions_table(dict.fromkeys(names, decision), columns=80)).splitlines()
    assert [lines[0], "".join(line.strip() for line in lines[1:-4]), *lines[-4:]] == [
        "33 hosts: repair",
        fold(names),
        "  because the layer cuda differs",
        "  ends the jobs of ada",
        "  steps: drain → verify",
        "  if that fails: relayer",
    ]
    idle = shown(decisions_table(dict.fromkeys(names, Decision("nothing", ("as desired",))), columns=80))
    assert idle.splitlines() == ["33 hosts: nothing", "  because as desired"]


@pytest.mark.parametrize("columns", [100, 120, 200])
def test_the_name_of_a_host_is_in_one_piece(columns: int) -> None:
    name = "a100-rack12-07.research.example.org"
    decision = Decision("repair", ("the layers cuda and driver differ from its stack",), ("drain", "verify"))
    out = io.StringIO()
    Console(file=out, width=columns).print(decisions_table({name: decision}, columns=columns))
    assert name in out.getvalue()


def test_why_a_host_is_not_back_is_shown_as_it_is() -> None:
    text = shown(rebuilds_table((rebuild("repair", outcome="failed", sentence=SAID),)))
    assert SHOWN in text
    assert "\x1b" not in text


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_rebuild_that_failed_counts_as_a_failure_of_the_run(outcome) -> None:
    done = roll_out(
        ["gpu01", "gpu02"], lambda name: rebuild("repair", outcome=outcome, name=name),
        limits=Limits(canary=1, batch=1, max_fail=0), emit=lambda _: None, stop=lambda: None, on_interrupt=lambda: None,
        result=lambda one: ENDED[one.outcome],
    )  # fmt: skip
    assert [one.host for one in done.values] == (["gpu01"] if ENDED[outcome] == "failed" else ["gpu01", "gpu02"])


def test_what_failed_ends_with_the_next_command(capsys: pytest.CaptureFixture[str]) -> None:
    records = (rebuild("repair", outcome="failed", name="gpu01"), rebuild("repair", name="gpu02"))
    refused = (Unreachable("gpu03", "refused"), Locked("gpu04", "ann works on it"))
    show_rebuilt((), Rebuilt("run-1", {}, Results(records, ()), refused, 1), as_json=False)
    assert capsys.readouterr().out.rstrip().splitlines()[-1] == "next: invoke doctor --hosts gpu01"
    show_rebuilt((), Rebuilt("run-1", {}, Results(records[1:], ()), (), 0), as_json=False)
    assert "next:" not in capsys.readouterr().out


def test_a_diagnosis_ends_with_what_it_comes_to_and_the_next_command(capsys: pytest.CaptureFixture[str]) -> None:
    of = {
        "gpu01": Decision("repair", ("drift",)),
        "gpu02": Decision("nothing", ("as desired",)),
        "gpu03": Decision("nothing", ("locked",), refusal="it is locked"),
        "gpu04": Decision("power cycle", ("it hangs",)),
    }
    errors = (Unreachable("gpu05", "refused"),)
    show_decisions((), Decisions(of, errors), start="relayer", as_json=False)
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "5 hosts: 1 to repair, 1 as desired, 1 left alone, 1 to power cycle, 1 not diagnosed, see above",
        "next: invoke rebuild --hosts 'gpu[01,04]' --from relayer",
    ]


def test_hosts_to_which_the_same_happened_share_a_line_and_each_phase_stands_once() -> None:
    long = "a100-rack12-07.research.example.org"
    records = (
        rebuild("hand over", outcome="handed over", name="gpu03", sentence="a card is broken"),
        rebuild("repair", name=long, phases={"diagnose": 2.0, "provision": 84.0}),
        rebuild("repair", name="h.example.org", phases={"diagnose": 9.0, "provision": 40.0}),
    )
    assert [" ".join(line.split()) for line in shown(rebuilds_table(records)).splitlines()] == [
        "host outcome way longest",
        f"{long},h.example.org (2 hosts) rebuilt repair 1 min 26 s",
        "gpu03 handed over hand over 0.0 s",
        *("", "phase hosts longest", "diagnose 2 9.0 s", "provision 2 1 min 24 s"),
        "gpu03: a card is broken",
    ]
    out = io.StringIO()
    Console(file=out, width=80).print(rebuilds_table(records))
    assert any(long in line for line in out.getvalue().splitlines()), "no name is broken"
