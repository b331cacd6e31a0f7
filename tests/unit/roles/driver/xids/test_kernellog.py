"""The kernel's log: from the journal and rsyslog's files, in both of their ways of writing the time."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.standard.roles.driver.xids.kernellog import KERNEL_LOG, MAX_LINES, WINDOW, KernelLine, kernel_lines
from tests.unit.support.shell import program

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus."


def lines(*body: str, zone: str = "+0000", now: datetime = NOW) -> tuple[KernelLine, ...]:
    return kernel_lines("\n".join([zone, *body]) + "\n", now)


@pytest.mark.parametrize(
    "raw",
    [
        f"2026-11-21T11:00:00+0000 gpu01 kernel: {XID}",
        f"2026-11-21T12:00:00+01:00 gpu01 kernel: {XID}",
        f"2026-11-21T11:00:00.000000+00:00 gpu01 kernel: [ 4909.922970] {XID}",
        f"2026-11-21T11:00:00Z gpu01 kernel: [ 4909.922970][ T1234] {XID}",
        f"Nov 21 11:00:00 gpu01 kernel: [ 4909.922970] {XID}",
    ],
)
def test_journal_and_syslog_lines_are_parsed_alike(raw: str) -> None:
    assert lines("source file", raw) == (KernelLine(NOW - timedelta(hours=1), XID),)


def test_a_time_without_zone_is_the_hosts() -> None:
    (line,) = lines(f"Nov 21 11:00:00 gpu01 kernel: {XID}", zone="+0530")
    assert line.at == datetime(2026, 11, 21, 5, 30, tzinfo=UTC)
    (line,) = lines(f"Nov 21 01:00:00 gpu01 kernel: {XID}", zone="-0800")
    assert line.at == datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


def test_without_the_offset_it_is_utc_and_no_line_is_lost() -> None:
    (line,) = kernel_lines(f"Nov 21 11:00:00 gpu01 kernel: {XID}", NOW)
    assert line.at == NOW - timedelta(hours=1)


def test_the_year_is_the_last_that_is_not_in_the_future() -> None:
    january = datetime(2026, 1, 2, tzinfo=UTC)
    (line,) = lines(f"Dec 30 11:00:00 gpu01 kernel: {XID}", now=january)
    assert line.at == datetime(2025, 12, 30, 11, tzinfo=UTC)
    (line,) = lines(f"Jan  1 01:00:00 gpu01 kernel: {XID}", zone="+0900", now=datetime(2025, 12, 31, 17, tzinfo=UTC))
    assert line.at == datetime(2025, 12, 31, 16, tzinfo=UTC)


def test_a_clock_that_is_ahead_does_not_make_it_last_years() -> None:
    (line,) = lines(f"Nov 21 12:10:00 gpu01 kernel: {XID}")
    assert line.at == NOW + timedelta(minutes=10)


def test_a_day_that_no_year_has_is_a_line_without_time() -> None:
    assert lines(f"Feb 30 11:00:00 gpu01 kernel: {XID}")[0].at is None
    (line,) = lines(f"Feb 29 11:00:00 gpu01 kernel: {XID}", now=datetime(2028, 3, 1, tzinfo=UTC))
    assert line.at == datetime(2028, 2, 29, 11, tzinfo=UTC)


def test_lines_in_journal_and_file_count_once() -> None:
    found = lines(
        "source journal",
        f"2026-11-21T11:00:00+0000 gpu01 kernel: {XID}",
        f"2026-11-21T11:00:00+0000 gpu01 kernel: {XID}",
        "source file",
        f"Nov 21 10:30:00 gpu01 kernel: [   1.000000] {XID}",
        f"Nov 21 11:00:02 gpu01 kernel: [ 900.000000] {XID}",
        f"Nov 21 11:00:02 gpu01 kernel: [ 900.000001] {XID}",
    )
    assert [line.at for line in found] == [NOW - timedelta(minutes=90), *[NOW - timedelta(hours=1)] * 2]


def test_what_is_older_than_seven_days_is_history() -> None:
    found = lines(
        f"2026-11-14T11:59:59+0000 gpu01 kernel: {XID}",
        "2026-11-14T12:00:00+0000 gpu01 kernel: NVRM: kept",
        f"Nov 13 11:00:00 gpu01 kernel: {XID}",
    )
    assert [line.text for line in found] == ["NVRM: kept"]
    assert timedelta(days=7) == WINDOW


def test_kernel_lines_are_sorted_and_the_newest_are_kept() -> None:
    body = [f"2026-11-21T11:{n // 60:02}:{n % 60:02}+0000 h kernel: NVRM: {n}" for n in range(MAX_LINES + 10)]
    found = lines(*reversed(body))
    assert [line.text for line in found] == [f"NVRM: {n}" for n in range(10, MAX_LINES + 10)]


def test_who_quotes_a_line_does_not_become_the_kernel() -> None:
    (line,) = lines(f'2026-11-21T11:00:00+0000 gpu01 kernel: audit: comm="x kernel: {XID}"')
    assert line.text.startswith("audit: ")


def test_garbage_is_a_line_without_time() -> None:
    found = lines("\x1b[2Jwhat", "9999-99-99T99:99:99+0000 h kernel: NVRM: x", "0001-01-01T00:00:00+2359 h kernel: y")
    assert {line.at for line in found} == {None}
    assert kernel_lines("", NOW) == ()
    assert lines(zone="+9999")[0].at is None, "an offset that is none is a line"


@given(st.text(), st.datetimes(timezones=st.just(UTC)))
def test_no_text_and_no_time_upsets_it(text: str, now: datetime) -> None:
    for line in kernel_lines(text, now):
        assert line.at is None or line.at.tzinfo is UTC


@given(st.from_regex(r"\A[A-Z][a-z]{2} [ 0-9]\d \d\d:\d\d:\d\d h kernel: x\Z"))
def test_every_traditional_time_has_a_past_or_none(raw: str) -> None:
    for line in lines(raw):
        assert line.at is None or NOW - WINDOW <= line.at <= NOW + timedelta(days=1)


FORGED = f"2026-11-21T11:30:00+0000 gpu01 ncat[4711]: {XID.replace('3b', '5e')}"


class Machine:
    """A host whose journal and log files stand in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def journal(self, text: str, status: int = 0) -> None:
        """What the kernel wrote; of all that is in its buffer somebody else's stands there, too."""
        (self.folder / "journal").write_text(text)
        script = f'case "$*" in *" SYSLOG_FACILITY=0"*) ;; *) echo "{FORGED}"; exit;; esac\n'
        script += f'case "$*" in *"-n 1"*) head -n 1 {self.folder}/journal; exit;; esac; cat {self.folder}/journal'
        program(self.folder / "bin", "journalctl", f"{script}; exit {status}")

    def ask(self) -> tuple[int, str]:
        script = KERNEL_LOG.script.replace("/var/log/", f"{self.folder}/")
        path = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "LC_ALL": "C", "TZ": "UTC"}
        done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=False, env=path)
        assert done.stderr == b""
        return done.returncode, done.stdout.decode(errors="replace")

    def lines(self) -> list[str]:
        status, text = self.ask()
        assert status == 0
        return [line.text for line in kernel_lines(text, NOW)]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    found = Machine(tmp_path)
    found.journal("", status=1)
    return found


QUIET = "2026-11-21T10:00:00+0000 gpu01 kernel: Linux version 5.10\n"
IN_JOURNAL = f"2026-11-21T11:00:00+0000 gpu01 kernel: {XID}\n"
IN_FILE = "Nov 20 11:00:00 gpu01 kernel: [ 1.000000] NVRM: API mismatch: the client has the version 470\n"


def test_a_host_without_any_log_says_that_it_cannot_be_read(machine: Machine) -> None:
    assert machine.ask()[0] == 1


def test_a_journal_without_the_kernel_is_no_log(machine: Machine) -> None:
    machine.journal("")
    assert machine.ask()[0] == 1


def test_truncated_journal_is_not_a_quiet_one(machine: Machine) -> None:
    machine.journal(QUIET, status=124)
    assert machine.ask()[0] == 1


def test_a_quiet_host_has_nothing_to_say_and_says_so(machine: Machine) -> None:
    machine.journal(QUIET)
    assert machine.lines() == []


def test_a_file_alone_is_enough(machine: Machine) -> None:
    (machine.folder / "kern.log").write_text(IN_FILE)
    assert machine.lines() == ["NVRM: API mismatch: the client has the version 470"]


def test_all_sources_are_read_and_only_what_is_of_gpus(machine: Machine) -> None:
    machine.journal(QUIET + IN_JOURNAL)
    (machine.folder / "kern.log.1").write_text(
        "Nov 19 11:00:00 gpu01 kernel: [ 1.0] nvidia: Required key not available\n"
    )
    (machine.folder / "kern.log").write_text(IN_FILE + "Nov 20 11:00:00 gpu01 kernel: usb 1-1: new device")
    assert [text[:12] for text in machine.lines()] == ["nvidia: Requ", "NVRM: API mi", "NVRM: Xid (P"]


@pytest.mark.parametrize(
    "line",
    [
        f"Nov 21 11:30:00 gpu01 kernel: [ 1.0] {XID}",  # from /dev/log, with the kernel's facility and tag
        f"Nov 21 11:30:00 gpu01 mallory: {XID}",
        f"Nov 20 11:30:00 gpu01 mallory: {XID}",  # systemd/systemd#5640: programs' messages in kern.log
        f"Nov 20 11:30:00 gpu01 mallory[1]: x kernel: {XID}",
        f"since 2026-11-22T00:00:00+0000 kernel: {XID}",
        "source journal",
    ],
)
def test_what_users_write_into_a_file_is_not_the_kernels(machine: Machine, line: str) -> None:
    machine.journal(QUIET)
    (machine.folder / "kern.log").write_text(f"{line}\n")
    assert machine.lines() == []


def test_what_the_file_has_from_before_the_journal_counts(machine: Machine) -> None:
    machine.journal(QUIET)
    (machine.folder / "kern.log").write_text(f"Nov 21 09:59:59 gpu01 kernel: [ 1.0] {XID}\n")
    assert machine.lines() == [XID]


def test_a_flood_neither_fills_the_answer_nor_washes_away_an_xid(machine: Machine) -> None:
    flood = "".join(
        f"2026-11-21T11:00:00+0000 gpu01 kernel: NVRM: rm_init_adapter failed {'x' * 900} {n}\n" for n in range(9000)
    )
    machine.journal(IN_JOURNAL + flood)
    status, text = machine.ask()
    assert status == 0
    assert len(text) < KERNEL_LOG.cap_bytes / 3
    found = kernel_lines(text, NOW)
    assert len(found) == 201
    assert sum("Xid" in line.text for line in found) == 1


def test_the_last_line_of_a_file_that_is_being_written_is_whole(machine: Machine) -> None:
    (machine.folder / "kern.log").write_text(IN_FILE.rstrip("\n"))
    assert machine.lines() == ["NVRM: API mismatch: the client has the version 470"]


def test_a_log_that_is_no_text_is_survived(machine: Machine) -> None:
    (machine.folder / "kern.log").write_bytes(b"NVRM\x00\xff\xfe\x1b[2J\n\n" * 100)
    assert machine.ask()[0] == 0
    assert len(kernel_lines(machine.ask()[1], NOW)) <= 200
