"""The fleet: every room reads its own variables once, before any host is touched; and its API, without the command
line, with hosts that refuse the connection."""

from __future__ import annotations

import doctest
import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hostwright import fleet as api
from hostwright.apply.delivery.sources.settings import read_file_settings
from hostwright.apply.disturb.draining import read_hooks
from hostwright.apply.disturb.rebooting import read_reboot_timeout
from hostwright.apply.events import Event, HostEnded
from hostwright.apply.journal.reading import Runs
from hostwright.apply.locking import locallocks
from hostwright.apply.notifying import settle
from hostwright.common.errors import InputError, InputErrors, Mistakes
from hostwright.common.places import state_root
from hostwright.common.quoting import sh
from hostwright.common.request import Request
from hostwright.fleet import Fleet, Listener
from hostwright.plan.host.locks import OperatorLock
from hostwright.rebuild.orders import Order
from hostwright.rebuild.ways.means import Means, read_means


def fleet(folder: Path, **variables: Any) -> Fleet:
    (folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"gpu01": variables, "gpu02": {}}}}))
    return Fleet.load(folder)


WRONG = {
    "artifacts": "fetch",
    "hostwright_drain": ["a", "list"],
    "hostwright_reboot_timeout": "soon",
    "hostwright_bmc_usr": "admin",
    "hostwright_install": {"disk": "/dev/sda"},
    "hostwright_reinstall": {"comand": "true"},
    "hostwright_host_keys": 7,
    "hostwright_gpus": "eight",
    "hostwright_gpu_model": 8,
}


@pytest.mark.parametrize(("name", "value"), WRONG.items())
def test_a_wrong_variable_is_an_error_when_its_host_is_selected(tmp_path: Path, name: str, value: Any) -> None:
    with pytest.raises(InputErrors, match=name):
        fleet(tmp_path, **{name: value}).targets("all")


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    some = {name: WRONG[name] for name in WRONG if name != "hostwright_install"}  # excluded by the other
    with pytest.raises(InputErrors) as caught:
        fleet(tmp_path, **some, cuda={"keep_repositry": True}).targets("all")
    with pytest.raises(InputErrors) as caught_of_rooms:
        fleet(tmp_path, **some).targets("all")
    assert "keep_repository" in str(caught.value)
    said = str(caught_of_rooms.value)
    assert [name for name in some if name not in said] == []


def test_a_host_without_variables_has_defaults(tmp_path: Path) -> None:
    target = fleet(tmp_path).targets("gpu02")[0]
    assert read_means(target.host) == Means(None, None, None, "")
    assert (read_file_settings(target.host).way, read_hooks(target.host)) == ("pull", None)
    assert read_reboot_timeout(target.host) == 1800


def test_mistakes_are_collected_without_repetition() -> None:
    mistakes = Mistakes()
    mistakes.refuse()
    for error in (InputError("one"), InputErrors([InputError("one"), InputError("two", "hosts.yml:3")])):
        with mistakes:
            raise error
    with pytest.raises(ZeroDivisionError), mistakes:
        raise ZeroDivisionError
    with pytest.raises(InputErrors) as caught:
        mistakes.refuse()
    assert str(caught.value) == "one\nhosts.yml:3: two"


# Without the command line


@pytest.fixture
def silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    """A rack of two hosts at a port where nobody listens; the current directory holds its inventory."""
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        where = {"ansible_host": "127.0.0.1", "ansible_port": closed.getsockname()[1]}
        (tmp_path / "inventory").mkdir()
        hosts = {"gpu03": {}, "gpu05": {}}
        (tmp_path / "inventory" / "hosts.yml").write_text(json.dumps({"rack3": {"hosts": hosts, "vars": where}}))
        yield Fleet.load(tmp_path / "inventory")


@pytest.mark.usefixtures("silent")
def test_the_example_of_the_documentation_runs() -> None:
    ran = doctest.testmod(api, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert (ran.failed, ran.attempted > 5) == (0, True)


def test_reading_methods_return_results_and_record_no_run(silent: Fleet) -> None:
    targets = silent.targets("all")
    for results in (silent.plan(targets), silent.ways_back(targets), silent.locks(targets)):
        assert [error.host for error in results.errors] == ["gpu03", "gpu05"]
        assert results.values == ()
    assert [host.status for host in silent.audit(targets).hosts] == ["unread", "unread"]
    assert {name: one.way for name, one in silent.decide(targets).of.items()} == dict.fromkeys(
        targets.by_name, "hand over"
    )
    assert Runs(state_root()).list() == []


def test_a_run_is_recorded_emits_events_and_selects_locked_hosts(silent: Fleet) -> None:
    now = datetime.now(UTC)
    lock = OperatorLock("ada@desk", "RMA", "gpu05", now, now + timedelta(hours=1))
    locallocks.put(state_root(), silent.path, lock, now=now)
    heard: list[Event] = []
    change = Request(drain=True, max_fail="10%")
    targets = silent.targets("gpu05", ["base"])
    ended = silent.provision(targets, change, view=Listener(heard.append))
    (error,) = ended.results.errors
    assert (ended.status, "set aside on this machine, locked by ada@desk" in error.sentence) == (3, True)
    assert [(event.host, event.result) for event in heard if isinstance(event, HostEnded)] == [("gpu05", "locked")]
    (run,) = Runs(state_root()).list()
    assert (run.run, run.header.verb, run.status) == (ended.run, "provision", 3)
    assert run.header.options == {"hosts": "gpu05", "roles": "base", "drain": True, "max_fail": "10%"}
    assert [target.name for target in silent.targets("@locked")] == ["gpu05"]
    with pytest.raises(InputError, match="@failed"):
        silent.targets("@failed")


def test_a_command_is_told_of_a_run(silent: Fleet, tmp_path: Path) -> None:
    command = sh("cat >>%s; echo >>%s; pwd >%s", *(tmp_path / name for name in ("told", "told", "folder")))
    silent.request = Request(notify=command)
    ended = silent.verify(silent.targets("all"))
    settle()
    last = json.loads((tmp_path / "told").read_text().splitlines()[-1])
    assert (last["event"], last["run"], last["status"]) == ("end", ended.run, 1)
    assert last["results"] == {"gpu03": "unreachable", "gpu05": "unreachable"}
    assert (tmp_path / "folder").read_text() == f"{silent.site.root}\n"


def test_following_a_host_that_does_not_answer_is_its_error_and_no_run(silent: Fleet) -> None:
    results = silent.follow(silent.targets("gpu05"))
    assert [error.host for error in results.errors] == ["gpu05"]
    assert Runs(state_root()).list() == []


def test_removal_touches_no_host_whose_records_could_not_be_read(silent: Fleet) -> None:
    targets = silent.targets("all")
    removal = silent.removal(targets)
    ended = silent.remove(targets, removal)
    assert [error.host for error in ended.results.errors] == ["gpu03", "gpu05"]
    assert all("refuses the connection" in error.sentence for error in ended.results.errors)


def test_bad_options_are_refused_before_a_run_begins(silent: Fleet) -> None:
    targets = silent.targets("all")
    with pytest.raises(InputError, match="--canary"):
        silent.provision(targets, Request(canary="some"))
    with pytest.raises(InputError, match="no BMC"):
        silent.power(targets, Order("cycle"))
    assert Runs(state_root()).list() == []
