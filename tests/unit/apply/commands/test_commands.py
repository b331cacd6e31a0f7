"""One command on many hosts, over a real sshd: what reaches the program, what comes back, and that nothing is left.

Cases from elsewhere: commands that run on after Ctrl-C (ansible 23958, 87327) and after a time limit that counted as
success (salt 47235, 61505), words that a shell takes apart again (pyinfra 576, 1646), hosts that nobody reached and an
exit status of 0 (salt 37802), streams that mix so that equal outputs differ (clustershell 83).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from hostwright.apply.commands import remote, running
from hostwright.apply.commands.remote import CommandResult, Lifeline, RemoteCommand, run_command
from hostwright.apply.events import Event, RoleStarted
from hostwright.apply.journal.reading import Runs
from hostwright.apply.locking.runlock import HostLock
from hostwright.apply.run import RunResults
from hostwright.common.errors import Locked, Refused, Unreachable
from hostwright.common.places import state_root
from hostwright.common.request import Request
from hostwright.fleet import Fleet, Listener
from hostwright.plan.host import locks
from tests.unit.support.sshsite import processes, ssh_site, until

MARK = f"41000.{os.getpid()}"  #: in the command line of no other test process's commands
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root's sshd lets root log in")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    with ssh_site(tmp_path / "site", "gpu01", "gpu02", gone=("gpu03",)):
        monkeypatch.chdir(tmp_path / "site")
        yield tmp_path / "site"


def ran(*words: str, hosts: str = "gpu01", **how: object) -> RunResults[CommandResult]:
    fleet = Fleet.load()
    return fleet.run(fleet.targets(hosts), RemoteCommand(words, **how))  # type: ignore[arg-type]


def one(ended: RunResults[CommandResult]) -> CommandResult:
    assert not ended.results.errors
    (result,) = ended.results.values
    return result


@pytest.mark.usefixtures("site")
def test_several_words_reach_the_program_as_they_are() -> None:
    words = ("a b", "$HOME", "*", ";", "`id`", "--", "-n", "it's", "\\", "é", "")
    result = one(ran("printf", "%s\\n", *words))
    assert result.stdout.split("\n") == [*words, ""]
    assert (result.status, result.end, result.stderr) == (0, "exited", "")


@pytest.mark.usefixtures("site")
def test_one_word_is_a_line_for_a_shell() -> None:
    result = one(ran("echo one two | wc -w; echo oh >&2; exit 9"))
    assert (result.stdout.strip(), result.stderr, result.status) == ("2", "oh\n", 9)


@pytest.mark.usefixtures("site")
def test_every_host_has_its_result_and_one_that_is_gone_fails_alone() -> None:
    ended = ran("uname", hosts="all")
    assert [(result.host, result.stdout) for result in ended.results.values] == [
        ("gpu01", "Linux\n"),
        ("gpu02", "Linux\n"),
    ]
    (error,) = ended.results.errors
    assert isinstance(error, Unreachable) and error.host == "gpu03"
    assert ended.status == 1


@pytest.mark.usefixtures("site")
def test_a_program_that_is_not_there_has_failed() -> None:
    ended = ran("no-such-program")
    assert (one(ended).status, ended.status) == (127, 1)
    assert "no-such-program" in one(ended).stderr


@pytest.mark.usefixtures("site")
def test_a_command_without_root_cannot_become_root() -> None:
    assert one(ran("grep", "NoNewPrivs", "/proc/self/status")).stdout.split() == ["NoNewPrivs:", "1"]
    assert one(ran("id", "-u")).stdout != "0\n"


@pytest.mark.usefixtures("site")
def test_where_there_is_no_setpriv_perl_does_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Ubuntu 18.04."""
    written = remote.sh_file
    monkeypatch.setattr(remote, "sh_file", lambda *a, **b: written(*a, **b).replace("command -v setpriv", "false"))
    assert one(ran("grep", "NoNewPrivs", "/proc/self/status")).stdout.split() == ["NoNewPrivs:", "1"]
    assert one(ran("no-such-program")).status == 127
    assert one(ran("printf", "%s|", "-e", "a b")).stdout == "-e|a b|"
    monkeypatch.setattr(
        remote, "sh_file", lambda *a, **b: written(*a, **b).replace("command -v", "false").replace("uname -m", "false")
    )
    (error,) = ran("true", "now").results.errors
    assert isinstance(error, Refused) and "setpriv" in error.sentence


@as_root
def test_a_login_user_who_is_root_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    with ssh_site(tmp_path / "site", "gpu01", login=()):
        monkeypatch.chdir(tmp_path / "site")
        ended = ran("touch", str(tmp_path / "trace"))
        (error,) = ended.results.errors
    assert isinstance(error, Refused) and "the login user is root" in error.sentence and "--root" in error.sentence
    assert ended.status == 1
    assert not (tmp_path / "trace").exists()


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize("word", ["sleep MARK", "trap '' TERM; echo begun; sleep MARK & sleep MARK; sleep MARK"])
def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(word: str) -> None:
    ended = ran(word.replace("MARK", MARK), limit_s=6)  # time for a word
    result = one(ended)
    assert (result.end, result.status, ended.status) == ("time limit", None, 1)
    assert result.stdout == ("begun\n" if "begun" in word else "")
    assert processes(MARK) == []


@pytest.mark.usefixtures("site")
def test_output_without_end_is_cut_off_and_its_command_is_ended() -> None:
    ended = ran("yes", MARK)
    result = one(ended)
    assert (result.end, result.status, ended.status) == ("output limit", None, 1)
    assert running.MOST_BYTES - 100 <= len(result.stdout) <= running.MOST_BYTES
    assert until(lambda: not processes(MARK))


@pytest.mark.usefixtures("site")
def test_what_is_kept_of_many_hosts_is_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "ALL_BYTES", 200_000)
    ended = ran("yes", hosts="gpu01,gpu02")
    assert [len(result.stdout) for result in ended.results.values] == [100_000, 100_000]


@pytest.mark.usefixtures("site")
def test_it_is_stopped_on_every_host() -> None:
    """What Ctrl-C calls, in the midst of the command."""
    fleet = Fleet.load()
    targets = fleet.targets("gpu01,gpu02")
    ended: list[RunResults[CommandResult]] = []
    begun = threading.Semaphore(0)
    stops: list[object] = []

    class Noticed(running._Commands):
        def __enter__(self) -> running._Commands:
            stops.append(self.stop)
            return super().__enter__()

    def note(event: Event) -> None:
        if isinstance(event, RoleStarted):
            begun.release()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "_Commands", Noticed)
        command = RemoteCommand((f"echo begun; (trap '' TERM; sleep {MARK}; sleep {MARK}) & sleep {MARK}",))
        thread = threading.Thread(
            target=lambda: ended.append(fleet.run(targets, command, view=Listener(note))), daemon=True
        )
        thread.start()
        assert begun.acquire(timeout=60) and begun.acquire(timeout=60)
        assert until(lambda: len(processes(MARK)) == 4)
        (stop,) = stops
        stop()  # type: ignore[operator]
        thread.join(60)
    (run,) = ended
    assert {(result.end, result.stdout) for result in run.results.values} == {("stopped", "begun\n")}
    assert processes(MARK) == []
    assert run.status == 130


@pytest.mark.usefixtures("site")
def test_the_command_ends_with_the_connection() -> None:
    """As with a controller that is killed, and a network that is gone."""
    fleet = Fleet.load()
    (target,) = fleet.targets("gpu01")
    shell = target.connect()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            run_command(shell, RemoteCommand(("sleep", MARK)), Lifeline(), 1000)
        except Unreachable as error:
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert until(lambda: processes(MARK))
    shell.close()
    thread.join(60)
    assert "the connection was lost" in str(errors[0])
    assert until(lambda: not processes(MARK))


@pytest.mark.usefixtures("site")
def test_one_host_whose_command_hangs_keeps_no_other_from_its_end() -> None:
    """Nobody knew which of 200 hosts it was (ansible 13327)."""
    with TemporaryDirectory() as folder:  # tmp_path is for its owner alone
        Path(folder).chmod(0o777)
        ended = ran(f"mkdir {folder}/first && sleep {MARK}; echo done", hosts="gpu01,gpu02", limit_s=10)
    assert sorted((result.end, result.stdout) for result in ended.results.values) == [
        ("exited", "done\n"),
        ("time limit", ""),
    ]


@pytest.mark.usefixtures("site")
def test_a_command_that_wants_input_finds_none() -> None:
    """It waited for ever, and took more and more memory (ansible 42846)."""
    assert one(ran("cat", "-", limit_s=60)).status == 0


@pytest.mark.usefixtures("site")
def test_255_is_the_commands_own_status() -> None:
    """Of ssh it means that there was no connection (clustershell 117, 224)."""
    result = one(ran("exit 255"))
    assert (result.status, result.end) == (255, "exited")


@pytest.mark.usefixtures("site")
def test_passwords_of_the_inventory_are_masked_on_record() -> None:
    """They were printed (ntc-ansible 163)."""
    file = Path("inventory/hosts.yml")
    file.write_text(file.read_text().replace('"ansible_timeout"', '"db_password": "hunter2hunter2", "ansible_timeout"'))
    ended = ran("echo hunter2hunter2")
    assert one(ended).stdout == "hunter2hunter2\n"
    text = (Runs(state_root()).find(ended.run).folder / "journal.jsonl").read_text()
    assert "hunter2hunter2" not in text and "echo ***" in text


@pytest.mark.usefixtures("site")
def test_it_is_on_record_with_its_output_and_moves_no_selection() -> None:
    ended = ran("echo hello; echo oh >&2; exit 4", hosts="gpu01,gpu03")
    run = Runs(state_root()).load(ended.run)
    assert run.header.verb == "run"
    assert run.header.options["command"] == "echo hello; echo oh >&2; exit 4"
    first, second = run.hosts
    assert (first.result, first.sentence) == ("failed", "exit 4")
    ((step,),) = [role.steps for role in first.roles]
    assert (step.status, step.output) == (4, "hello\noh")
    assert second.result == "unreachable"
    assert Runs(state_root()).find(ended.run).status == 1
    fleet = Fleet.load()
    with pytest.raises(Exception, match="no run on this inventory is recorded"):
        fleet.targets("@failed")


@pytest.mark.usefixtures("site")
def test_few_may_fail() -> None:
    fleet = Fleet.load()
    change = Request(canary="1")
    ended = fleet.run(fleet.targets("gpu01,gpu02"), RemoteCommand(("false", "now")), change)
    assert ended.results.untouched == ("gpu02",)
    assert ended.status == 1


@pytest.fixture
def root_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(locks, "RUN_DIR", str(tmp_path / "run"))
    with ssh_site(tmp_path / "site", "gpu01", login=()):
        monkeypatch.chdir(tmp_path / "site")
        yield tmp_path / "site"


@pytest.mark.usefixtures("root_site")
@as_root
def test_as_root_it_has_the_hosts_lock(tmp_path: Path) -> None:
    ended = ran(f"id -u; cat {tmp_path}/run/run.json", root=True)
    result = one(ended)
    assert result.stdout.startswith("0\n") and ended.run in result.stdout
    assert (ended.status, result.status) == (0, 0)
    assert until(lambda: not (tmp_path / "run/run.json").exists())


@pytest.mark.usefixtures("root_site")
@as_root
@pytest.mark.parametrize("status", [77, 129, 137, 143, 255])
def test_as_root_every_status_is_the_commands_own(status: int) -> None:
    assert one(ran(f"exit {status}", root=True)).status == status


@pytest.mark.usefixtures("root_site")
@as_root
def test_as_root_it_is_ended_too() -> None:
    assert one(ran(f"sleep {MARK}", root=True, limit_s=1)).end == "time limit"
    assert processes(MARK) == []


@pytest.mark.usefixtures("root_site")
@as_root
def test_as_root_a_host_that_somebody_locked_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "refusal", lambda *_: "locked by ann@desk: RMA")
    ended = ran("true", "now", root=True)
    (error,) = ended.results.errors
    assert isinstance(error, Locked)
    fleet = Fleet.load(request=Request(force=True))
    assert fleet.run(fleet.targets("gpu01"), RemoteCommand(("true", "now"), root=True)).status == 0


@pytest.mark.usefixtures("root_site")
@as_root
def test_as_root_a_host_that_a_run_works_on_is_refused() -> None:
    fleet = Fleet.load()
    (target,) = fleet.targets("gpu01")
    with target.connect() as shell:
        shell.run(":", timeout_s=10, failure="no")
        with HostLock.acquire(shell, locks.holder("another-run", "gpu01", datetime.now(UTC))):
            (error,) = ran("true", "now", root=True).results.errors
    assert isinstance(error, Locked)
