"""Tests of searching home directories: only of accounts with a login shell, with limits on number and time."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostwright.audit.failures import homes
from hostwright.audit.failures.homes import homes_probe
from tests.unit.support.shell import ask


def listed(folder: Path, *accounts: str) -> list[str]:
    """The homes that a script gets on a host with these lines in its passwd file, and without /home."""
    (folder / "passwd").write_text("".join(f"{line}\n" for line in accounts))
    script = homes_probe('for h in $(homes); do echo "$h"; done').script
    status, text = ask(script.replace("/etc/passwd", f"{folder}/passwd").replace("/home/*", f"{folder}/none"))
    assert status == 0
    return [line for line in text.splitlines() if line != f"{folder}/none"]


def test_homes_are_those_of_accounts_with_a_login_shell_each_once(tmp_path: Path) -> None:
    rows = ("ann:x:1:1::/srv/ann:/bin/bash", "bob:x:2:2::/srv/bob:/usr/sbin/nologin", "ben:x:3:3::/srv/ann:/bin/sh")
    assert listed(tmp_path, "broken", *rows, "lost:x:4:4::relative:/bin/sh") == ["/srv/ann"]


def test_so_many_homes_are_looked_into_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(homes, "MAX_HOMES", 3)
    rows = (f"user{number}:x:1:1::/a/user{number}:/bin/sh" for number in range(9))
    assert listed(tmp_path, *rows) == ["/a/user0", "/a/user1", "/a/user2"]


def test_homes_that_do_not_answer_in_time_are_status_124(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(homes, "LOOK_S", 1)
    assert ask(homes_probe("sleep 20").script)[0] == 124
