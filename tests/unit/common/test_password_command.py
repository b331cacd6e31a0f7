"""Secrets that commands print: when a command runs, what its secret is, and what its errors contain."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostwright.common.errors import HostError
from hostwright.common.input.passwordcommand import PrintedSecret, at_hand, first_line, get_all
from hostwright.common.quoting import sh
from hostwright.common.secret import Secret


def counting(tmp_path: Path) -> str:
    return sh('echo run >>%s; echo "pw of $HOSTWRIGHT_HOST"', str(tmp_path / "runs"))


def runs(tmp_path: Path) -> int:
    file = tmp_path / "runs"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_the_command_is_run_once_and_only_when_it_is_needed(tmp_path: Path) -> None:
    secret = PrintedSecret(counting(tmp_path), "gpu01", "x_command")
    assert (bool(secret), str(secret), repr(secret), f"{secret}") == (True, "***", "***", "***")
    assert secret == PrintedSecret(counting(tmp_path), "gpu01", "x_command")
    assert len({secret, PrintedSecret(counting(tmp_path), "gpu02", "x_command"), Secret("pw of gpu01")}) == 3
    assert (at_hand(secret), runs(tmp_path)) == (False, 0)
    assert [secret.reveal(), secret.reveal()] == ["pw of gpu01"] * 2
    assert (at_hand(secret), runs(tmp_path)) == (True, 1)


def test_a_command_that_fails_is_the_error_of_its_host_and_is_not_run_again(tmp_path: Path) -> None:
    command = sh("echo run >>%s; echo hunter2; echo 'gpg: no hunter2 key' >&2; exit 2", str(tmp_path / "runs"))
    secret = PrintedSecret(command, "gpu01", "hostwright_become_password_command")
    for _ in range(2):
        with pytest.raises(HostError) as caught:
            secret.reveal()
        assert str(caught.value) == (
            "gpu01: the command of hostwright_become_password_command printed no password: "
            "the command ended with status 2: gpg: no *** key"
        )
    assert runs(tmp_path) == 1


def test_a_host_name_is_never_part_of_the_command(tmp_path: Path) -> None:
    name = f"gpu01;touch {tmp_path}/evil;$(touch {tmp_path}/evil)"
    assert first_line('printf "%s\\n" "$HOSTWRIGHT_HOST"', name) == name
    assert not (tmp_path / "evil").exists()


def test_many_are_run_side_by_side_and_one_that_fails_stops_no_other(tmp_path: Path) -> None:
    secrets = [PrintedSecret(counting(tmp_path), f"gpu{number:02}", "x_command") for number in range(10)]
    bad = PrintedSecret("exit 1", "gpu10", "x_command")
    get_all([None, Secret("plain"), bad, *secrets])
    assert (runs(tmp_path), all(map(at_hand, secrets)), at_hand(bad)) == (10, True, False)
    get_all(secrets)
    assert runs(tmp_path) == 10
