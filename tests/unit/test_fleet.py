"""The fleet: every room reads its own variables once, before any host is touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hostwright.apply.host.variables import read_apply_variables
from hostwright.common.errors import InputError, InputErrors, Mistakes
from hostwright.fleet import Fleet
from hostwright.rebuild.ways.means import Means, read_means


def fleet(folder: Path, **variables: Any) -> Fleet:
    (folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"gpu01": variables, "gpu02": {}}}}))
    return Fleet.load(folder)


WRONG = {
    "artifacts": "pull",
    "hostwright_drain": ["a", "list"],
    "hostwright_reboot_timeout": "soon",
    "hostwright_bmc_usr": "admin",
    "hostwright_install": {"disk": "/dev/sda"},
    "hostwright_reinstall": {"comand": "true"},
    "hostwright_host_keys": 7,
    "hostwright_gpus": "eight",
}


@pytest.mark.parametrize(("name", "value"), WRONG.items())
def test_a_wrong_variable_of_any_room_is_an_error_when_hosts_are_named(tmp_path: Path, name: str, value: Any) -> None:
    with pytest.raises(InputErrors, match=name):
        fleet(tmp_path, **{name: value}).members("all")


def test_all_mistakes_of_all_rooms_come_at_once(tmp_path: Path) -> None:
    some = {name: WRONG[name] for name in WRONG if name != "hostwright_install"}  # excluded by the other
    with pytest.raises(InputErrors) as caught:
        fleet(tmp_path, **some, cuda_keep_repositry=True).members("all")
    with pytest.raises(InputErrors) as caught_of_rooms:
        fleet(tmp_path, **some).members("all")
    assert "keep_repository" in str(caught.value)
    said = str(caught_of_rooms.value)
    assert [name for name in some if name not in said] == []


def test_a_host_without_such_variables_has_what_is_usual(tmp_path: Path) -> None:
    member = fleet(tmp_path).members("gpu02")[0]
    assert read_means(member.host) == Means(None, None, None, "", None)
    usual = read_apply_variables(member.host)
    assert (usual.direct, usual.hooks, usual.reboot_timeout_s) == (False, None, 1800)


def test_mistakes_are_gathered_once_each_and_other_errors_pass() -> None:
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
