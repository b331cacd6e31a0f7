"""Tests of the journals of failed units: also of units that they need, limited in size, and safe to print."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hostwright.audit.failures import units
from hostwright.audit.failures.units import read_journals, unit_journals
from tests.unit.support.shell import program, run

SHOWN = "Requires=docker.socket containerd.service\\nRequisite=\\nBindsTo=\\n"


def asked(tmp_path: Path, *names: str, journal: str = 'echo "$4 failed"; echo "last of $4"') -> str:
    program(
        tmp_path / "bin",
        "systemctl",
        f"case $1 in show) printf '{SHOWN}' ;; list-units) "
        'for unit; do case $unit in containerd.*) echo "$unit loaded failed failed x" ;; esac; done ;; esac',
    )
    program(tmp_path / "bin", "journalctl", f"set -- $*; {journal.replace('$4', '$3')}")
    done: subprocess.CompletedProcess[bytes] = run(unit_journals(names).script, path=tmp_path / "bin")
    assert done.returncode == 0, done.stderr
    return done.stdout.decode("utf-8", "replace")


def test_a_unit_is_quoted_after_the_failed_ones_that_it_needs(tmp_path: Path) -> None:
    found = read_journals(asked(tmp_path, "docker.service"))
    assert [(one.named, one.unit, one.last) for one in found] == [
        ("docker.service", "containerd.service", "containerd.service failed last of containerd.service"),
        ("docker.service", "docker.service", "docker.service failed last of docker.service"),
    ]


def test_a_name_with_backslashes_is_asked_and_told_as_it_is(tmp_path: Path) -> None:
    name = r"systemd-fsck@dev-disk-by\x2duuid-3f.service"
    assert [one.unit for one in read_journals(asked(tmp_path, name)) if one.named == name][-1] == name


def test_a_journal_without_end_is_bounded_on_the_host_and_here(tmp_path: Path) -> None:
    long = asked(tmp_path, "docker.service", journal="head -c 100000 /dev/zero | tr '\\0' x; echo; echo end")
    probe = unit_journals(["docker.service"])
    assert len(long) < 5 * units.LINE_BYTES < probe.cap_bytes
    for one in read_journals("a.service a.service: line\n" * 1000 + long):
        assert len(one.lines) <= units.QUOTED_LINES
        assert all(len(line) <= units.QUOTED_CHARACTERS for line in one.lines)
        assert len(one.last) <= units.LAST_LINES * (units.QUOTED_CHARACTERS + 1)


def test_what_a_host_logs_cannot_write_to_a_terminal() -> None:
    (one,) = read_journals("a.service a.service: \x1b[2J\x1b]0;mine\x07red\u202e\r\nno journal's line\n")
    assert one.lines == ("\ufffd[2J\ufffd]0;mine\ufffdred\ufffd",)


def test_the_last_words_are_those_of_the_program_since_its_last_start() -> None:
    rows = (
        "Starting A...",
        "old",
        "a.service: Failed with result 'exit-code'.",
        "Starting A...",
        "new",
        "newer",
        "a.service: Main process exited, code=exited, status=1/FAILURE",
    )
    (one,) = read_journals("".join(f"a.service a.service: {row}\n" for row in rows))
    assert one.last == "new newer"
