"""Lists of many hosts: equal texts appear once, the last line is the total, and names, paths and commands are never
broken."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from hostwright.apply.journal.reading import RunHeader, RunSummary
from hostwright.apply.journal.runs import HostRun, RecordedRun
from hostwright.apply.locking.hostlocks import HostLocks
from hostwright.apply.rollout.following import Followed
from hostwright.apply.rollout.rollout import Results
from hostwright.audit.history import HistoryEvent, HostHistory
from hostwright.cli import console
from hostwright.cli.console import Adviser
from hostwright.cli.tasks.site import hosts, variables
from hostwright.cli.views import history
from hostwright.cli.views.followed import show_followed
from hostwright.cli.views.locks import show_locks
from hostwright.cli.views.power import show_powered
from hostwright.cli.views.reaching.keys import show_keys
from hostwright.cli.views.runs import runs_table, show_run
from hostwright.common.errors import Unreachable
from hostwright.common.request import Request
from hostwright.inventory import fold
from hostwright.plan.host.locks import OperatorLock
from hostwright.rebuild.bmc import BmcError, Power, Status
from hostwright.rebuild.newkeys import KeyResults, Told
from hostwright.rebuild.orders import Powered
from hostwright.transport.identity.keys import HostKey
from hostwright.transport.identity.trusting import Replaced

NOW = datetime(2030, 3, 1, 12, tzinfo=UTC)
FLEET = [f"node{number:03}" for number in range(1, 100, 2)]
LONG = "a100-rack12-07.research.example.org"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID0Fl7l3eLK+d4Ez/PEEPGzn7MBQubH104CYzFf9H3gs"


@pytest.fixture
def on_screen(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], io.StringIO]:
    """Return the output on a terminal of this width."""

    def made(width: int) -> io.StringIO:
        screen = io.StringIO()

        def console_of(**_: Any) -> Console:
            out = Adviser(stderr=False)
            out.file, out.width = screen, width
            return out

        monkeypatch.setattr(console, "make_console", console_of)
        return screen

    return made


def lock(host: str, reason: str = "RMA") -> HostLocks:
    return HostLocks(host, OperatorLock("ada@desk", reason, "gpu01", NOW, NOW + timedelta(hours=8)), None, None)


def test_locks_of_a_fleet_are_few_lines_and_the_locked_hosts_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    free = [HostLocks(name, None, None, None) for name in FLEET]
    was = HostLocks("gpu09", None, lock("gpu09").lock, None)
    errors = (Unreachable("off", "no route"),)
    show_locks(Results((lock("gpu01"), *free, lock("gpu02"), lock("gpu03", "burn-in"), was), errors), as_json=False)
    out, err = capsys.readouterr()
    until = "locked by ada@desk since 2030-03-01 12:00 UTC until 2030-03-01 20:00 UTC"
    assert out.splitlines() == [
        "50 hosts  not locked",
        f"gpu[01-02] (2 hosts)  {until}: RMA",
        f"gpu03  {until}: burn-in",
        f"gpu09  unlocked; it was {until}: RMA",
        "55 hosts: 50 not locked, 3 locked, 1 unlocked, 1 unreachable",
    ]
    assert err == "off: no route\n"


def powered(host: str, order: str = "status", state: Power = Power.ON, **more: str) -> Powered:
    status = Status(state, "PowerEdge R7525", "Dell Inc.", "7XK0001", "2.12.4", "OK", **more)
    return Powered(host, order, Power.ON, status, (), f"ipmitool -I lanplus -H bmc-{host} -U admin sol activate")


def test_power_shows_columns_that_say_something_and_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    values = (powered("gpu01"), powered("gpu02", state=Power.OFF))
    show_powered(Results(values, (BmcError("gpu03", "its BMC does not answer"),)), as_json=False)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "host power health model serial BIOS",
        "gpu01 on OK Dell Inc. PowerEdge R7525 7XK0001 2.12.4",
        "gpu02 off OK Dell Inc. PowerEdge R7525 7XK0001 2.12.4",
        "console of gpu02: ipmitool -I lanplus -H bmc-gpu02 -U admin sol activate",
        "3 hosts: 1 on, 1 off, 1 BMC not reached",
    ]


def test_in_a_narrow_terminal_no_name_is_broken_and_no_command(
    on_screen: Callable[[int], io.StringIO],
) -> None:
    screen = on_screen(60)
    show_powered(Results((powered(LONG, state=Power.OFF), powered("h.example.org")), ()), as_json=False)
    lines = screen.getvalue().splitlines()
    assert lines[0] == f"{LONG}  off"
    assert f"console of {LONG}: ipmitool -I lanplus -H bmc-{LONG} -U admin sol activate" in lines
    assert [line for line in lines if len(line) > 60 and "ipmitool" not in line] == []


def test_who_switched_hosts_off_is_told_no_console(capsys: pytest.CaptureFixture[str]) -> None:
    show_powered(Results((powered("gpu01", "off", Power.OFF), powered("gpu02", "off", Power.OFF)), ()), as_json=False)
    out = capsys.readouterr().out
    assert "ipmitool" not in out and " before " in out
    assert out.splitlines()[-1] == "2 hosts: 2 off"


def told(host: str, result: str = "known") -> Told:
    return Told(result, Replaced(host, (), (HostKey.parse(KEY),), (Path("known_hosts"),)), "its console")


def test_keys_that_were_known_are_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    results = KeyResults((*map(told, FLEET), told("gpu01", "trusted")), (Unreachable("off", "no route"),))
    show_keys(results, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "50 hosts  already known; nothing was changed",
        "52 hosts: 50 already known, 1 trusted anew, 1 unreachable",
    ]


def test_a_history_uses_the_words_of_an_audit() -> None:
    events = (
        HistoryEvent(NOW, "status", "", "", None, "desired"),
        HistoryEvent(NOW, "status", "", "", "desired", "unread", note="no route"),
    )
    shown = HostHistory("gpu01", "unread", NOW, NOW, events)
    head, first, second = lines_of([shown])
    assert head.startswith("gpu01  could not be read  audited once, 2030-03-01")
    assert first.endswith("  as desired")
    assert second.endswith("  as desired → could not be read (no route)")


def test_histories_that_read_alike_are_shown_once() -> None:
    events = (HistoryEvent(NOW, "status", "", "", None, "desired"),)
    later = NOW + timedelta(seconds=1)  # the next host of the same audit
    histories = [HostHistory(name, "desired", NOW, NOW, events) for name in ("gpu01", "gpu02", "gpu04")]
    histories.insert(2, HostHistory("gpu03"))
    histories.append(HostHistory("gpu05", "desired", later, later, (replace(events[0], at=later),)))
    shown = lines_of(histories)
    assert [line.partition("  audited")[0] for line in shown if not line.startswith(" ")] == [
        "gpu[01-02,04-05] (4 hosts)  as desired",
        "gpu03  not audited yet",
    ]
    assert len(shown) == 3


def test_what_an_audit_found_in_a_layer_is_one_line_and_with_details_one_each() -> None:
    found = [
        HistoryEvent(NOW, "status", "", "", "desired", "drift"),
        *(HistoryEvent(NOW, "deviation", "cuda", f"link {name}", None, "absent", "there", "drift") for name in "abc"),
        HistoryEvent(NOW, "finding", "cuda", "nvcc-not-found", None, "grave"),
        HistoryEvent(NOW, "finding", "gpu", "xid-fatal", None, "grave"),
        HistoryEvent(NOW, "layer", "cuda", "", "desired", "drift"),
        HistoryEvent(NOW, "reading", "cuda", "nvcc", "V11.2", ""),
    ]
    host = HostHistory("gpu01", "drift", NOW, NOW, tuple(found))
    stamp = 2 + len("2030-03-01 12:00  ")
    assert [line[stamp:] for line in lines_of([host])[1:]] == [
        "as desired → drifted",
        "cuda: desired → drift; not as desired: link a, link b, 1 more; found: nvcc-not-found; nvcc: V11.2 → nothing",
        "gpu xid-fatal: found (grave)",
    ]
    assert len(lines_of([host], details=True)) == 1 + len(found)


def test_the_only_change_of_a_layer_is_told_in_full() -> None:
    events = (
        HistoryEvent(NOW, "deviation", "cuda", "link /x", None, "absent", "there", "drift"),
        HistoryEvent(NOW, "layer", "cuda", "", "desired", "drift"),
    )
    (_, line) = lines_of([HostHistory("gpu01", "drift", NOW, NOW, events)])
    assert line.endswith("  cuda: desired → drift; link /x: absent, not there (drift)")


def test_a_replaced_card_is_told_with_its_new_numbers_to_the_end() -> None:
    old = "Tesla T4, serial 1322222222222, GPU-c0ffee3d-0000-4000-8000-000000000000, VBIOS 90.04.96.00.9F"
    new = old.replace("132", "999").replace("c0ffee", "decafe")
    events = (HistoryEvent(NOW, "card", "gpu", "0000:3d:00.0", old, new),)
    line = " ".join(" ".join(lines_of([HostHistory("gpu01", "desired", NOW, NOW, events)])[1:]).split())
    assert line.endswith(
        "card 0000:3d:00.0: serial 1322222222222 → 9992222222222, GPU-c0ffee3d-0000-4000-8000-000000000000 →"
        " GPU-decafe3d-0000-4000-8000-000000000000"
    )


def lines_of(histories: list[HostHistory], *, details: bool = False) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=200).print(*history.timelines(histories, details=details), sep="\n")
    return out.getvalue().splitlines()


def run_of(names: list[str], **results: int) -> RunSummary:
    run = "20300301t120000-abcd"
    header = RunHeader(run, "provision", tuple(names), "inventory", operator="ada@desk")
    return RunSummary(run, Path("/x"), header, NOW.isoformat(), "ended", 1, "", 3.0, results)


def test_runs_fit_80_columns_and_break_no_name_and_no_result() -> None:
    summaries = [
        run_of([LONG, "h.example.org"], failed=2),
        run_of(FLEET, changed=38, failed=7, unreachable=5),
        run_of(["gpu01", "gpu02"], pending=2),
    ]
    screen = Console(file=io.StringIO(), width=80)
    screen.print(runs_table(summaries, {summaries[0].run: "abcd"}))
    lines = screen.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    assert "  2 hosts  " in text and "  50 hosts  " in text and "gpu[01-02]  " in text
    assert all(part in text for part in ("38 changed,", "7 failed,", "5 unreachable", "2 reboot pending"))


def test_a_run_ends_with_what_came_of_it_and_what_failed_is_nearest() -> None:
    hosts_of = tuple(HostRun(name, result) for name, result in (("gpu01", "failed"), ("gpu02", "changed")))
    summary = run_of(["gpu01", "gpu02"], changed=1, failed=1)
    screen = Console(file=io.StringIO(), width=200)
    show_run(screen, summary, RecordedRun(summary.run, summary.header, hosts_of), outputs=False)
    lines = [line for line in screen.file.getvalue().splitlines() if line]  # type: ignore[attr-defined]
    assert lines[-3:] == ["gpu02  changed", "gpu01  failed", "20300301t120000-abcd: 1 changed, 1 failed"]


@pytest.fixture
def inventory(tmp_path: Path) -> Request:
    """Return 50 hosts, one of which has its own variable."""
    names = {name: {} for name in FLEET} | {LONG: {"base_timezone": "UTC", "rack": 3}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": {"rack3": {"hosts": names}}}}))
    return Request("all", inventory=(str(tmp_path),))


def test_variables_of_hosts_that_are_alike_are_shown_once_and_can_be_pasted(
    inventory: Request, capsys: pytest.CaptureFixture[str]
) -> None:
    assert variables(inventory) == 0
    out = capsys.readouterr().out
    heads = [line for line in out.splitlines() if "  stack " in line]
    assert heads == [f"# {LONG}  stack tensorflow-2.9", "# 50 hosts  stack tensorflow-2.9"]
    assert out.count("\n# node[001,") == 1
    first, second = (yaml.safe_load(f"# {part}") for part in out.split("# 50 hosts"))
    assert (first["rack"], "rack" in second) == (3, False)


def test_a_heading_of_variables_that_is_too_long_for_the_terminal_stays_a_comment(
    inventory: Request, on_screen: Callable[[int], io.StringIO]
) -> None:
    screen = on_screen(50)
    assert variables(inventory) == 0
    heads = [line for line in screen.getvalue().splitlines() if line.startswith("# ") and "node[" not in line]
    assert heads[:2] == [f"# {LONG}", "# stack tensorflow-2.9"]
    assert "# 50 hosts  stack tensorflow-2.9" in heads


def test_of_many_hosts_whose_run_was_followed_the_number_comes_first_and_what_failed_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ended = [Followed(name, "a-run", "ada") for name in FLEET]
    failed = Followed(LONG, "a-run", "ada", failed=("driver",))
    idle = [Followed(f"idle{number:02}") for number in range(1, 100, 2)]
    assert show_followed(Results((failed, *ended, *idle), ()), as_json=False) == 1
    first, second, names, last = capsys.readouterr().out.splitlines()
    assert (first, second) == ("50 hosts: no run in progress", f"{len(FLEET)} hosts: run a-run of ada: ended")
    assert names == f"  {fold(FLEET)}"
    assert last == f"{LONG}: run a-run of ada: failed in driver"


def test_hosts_are_listed_in_columns_and_counted_at_the_end(
    inventory: Request, on_screen: Callable[[int], io.StringIO]
) -> None:
    screen = on_screen(80)
    assert hosts(inventory) == 0
    lines = screen.getvalue().splitlines()
    assert f"{LONG}  {LONG}" in lines and "  stack tensorflow-2.9, groups rack3" in lines
    assert hosts(Request("all,!" + LONG, inventory=inventory.inventory)) == 0
    lines = screen.getvalue().splitlines()[len(lines) :]
    assert lines[0].split() == ["host", "address", "stack", "groups"]
    rows = [line for line in lines if line.startswith("node") and "tensorflow-2.9" in line]
    assert (len(rows), len({line.index("tensorflow-2.9") for line in rows})) == (50, 1)
    last = next(number for number, line in enumerate(lines) if line.startswith("50 hosts:"))
    assert [line for line in lines[last + 1 :] if not line.startswith("    ")] == [], "but for the rest of the names"
    assert "all" not in "".join(rows)
