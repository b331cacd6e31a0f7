"""Variables that are bound once for hosts with equal definitions equal those of each host bound alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.common.canonical import Same, exact
from hostwright.common.errors import InputErrors
from hostwright.common.secret import Secret
from hostwright.inventory import Binder, Host, bind, binding, load
from hostwright.inventory.binder import judge_of, strangers


@dataclass(frozen=True, slots=True)
class Mirror:
    url: str = "http://localhost"


@dataclass(frozen=True, slots=True)
class Cuda:
    version: str = "11.2"
    keep: bool = False
    jobs: float = 4
    extras: tuple[str, ...] = ()
    mirror: Mirror = Mirror()
    token: Secret | None = None


@dataclass(frozen=True, slots=True)
class Chrony:
    pool: str = "pool.example.org"


ROLES: Mapping[str, type] = {"cuda": Cuda, "chrony": Chrony}

VALUES = st.one_of(
    st.sampled_from(["1", "a", 1, 0, True, False, 1.0, 2, None]),
    st.lists(st.sampled_from(["a", "b", 1]), max_size=2),
    st.dictionaries(st.sampled_from(["url", "version", "keep", "jobs", "pool"]), st.sampled_from(["1", 1, True, "a"])),
)
NAMES = [
    *("cuda", "cuda_version", "cuda_keep", "cuda_jobs", "cuda_extras", "cuda_mirror", "cuda_token"),
    *("cuda_token_command", "chrony", "chrony_pool", "chrony_poll", "cdua_version", "rack", "hostwright_own_variables"),
]
VARIABLES = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=3)


def fleet(folder: Path, groups: Mapping[str, Mapping[str, Any]], hosts: Mapping[str, Mapping[str, Any]]) -> list[Host]:
    """Return hosts in groups by the first letter of their names."""
    children = {
        group: {"vars": dict(values), "hosts": {name: dict(own) for name, own in hosts.items() if name[0] == group}}
        for group, values in groups.items()
    }
    (folder / "hosts.yml").write_text(json.dumps({"all": {"children": children}}))
    return list(load(folder).hosts.values())


def alone(host: Host) -> object:
    """Return the variables of a host bound alone, or its mistakes with their places."""
    try:
        return {name: bind(cls, name, host) for name, cls in ROLES.items()}
    except InputErrors as error:
        return str(error)


def shared(binder: Binder, host: Host) -> object:
    try:
        return dict(binder.bind(tuple(ROLES), host))
    except InputErrors as error:
        return str(error)


@settings(max_examples=150, deadline=None)
@given(
    groups=st.fixed_dictionaries({"a": VARIABLES, "b": VARIABLES}),
    hosts=st.dictionaries(st.from_regex("[ab][0-9]", fullmatch=True), VARIABLES, min_size=1, max_size=8),
)
def test_shared_variables_are_those_of_each_host(
    tmp_path_factory: pytest.TempPathFactory, groups: dict[str, Any], hosts: dict[str, Any]
) -> None:
    known, binder = fleet(tmp_path_factory.mktemp("site"), groups, hosts), Binder(ROLES)
    for host in known:
        together, by_itself = shared(binder, host), alone(host)
        assert repr(together) == repr(by_itself)  # a repr distinguishes 1 from True
        assert together == by_itself
        assert list(map(str, binder.strangers(host))) == list(map(str, strangers(host, judge_of(ROLES))))


def test_of_hosts_about_which_the_same_is_written_one_is_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    own = binding.bind
    monkeypatch.setattr(binding, "bind", lambda cls, role, host: asked.append(role) or own(cls, role, host))
    hosts = fleet(tmp_path, {"a": {"cuda_version": "12.1"}}, {f"a{number}": {"rack": number} for number in range(1000)})
    binder = Binder(ROLES)
    bound = [binder.bind(tuple(ROLES), host) for host in hosts]
    assert asked == ["cuda", "chrony"]
    assert len(bound) == 1000
    assert all(one is bound[0] for one in bound)


def test_only_the_role_about_which_hosts_differ_is_bound_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    own = binding.bind
    monkeypatch.setattr(binding, "bind", lambda cls, role, host: asked.append(role) or own(cls, role, host))
    hosts = fleet(tmp_path, {"a": {}}, {f"a{number}": {"chrony_pool": str(number)} for number in range(5)})
    binder = Binder(ROLES)
    assert [binder.bind(tuple(ROLES), host)["chrony"].pool for host in hosts] == list("01234")
    assert asked == ["cuda", *["chrony"] * 5]


def test_a_command_prints_the_secret_of_one_host(tmp_path: Path) -> None:
    groups = {"a": {"cuda_token_command": 'echo "$HOSTWRIGHT_HOST"'}, "b": {"cuda": {"token_command": "hostname"}}}
    hosts = fleet(tmp_path, groups, {"a1": {}, "a2": {}, "b1": {}, "b2": {}})
    binder = Binder(ROLES)
    tokens = [binder.bind(("cuda",), host)["cuda"].token for host in hosts]
    assert tokens[0].reveal() == "a1"
    assert tokens[1].reveal() == "a2"
    assert tokens[2] != tokens[3]


def test_what_is_remembered_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hostwright.inventory.binder.MOST", 3)
    hosts = fleet(tmp_path, {"a": {}}, {f"a{number}": {"chrony_pool": str(number % 5)} for number in range(20)})
    binder = Binder(ROLES)
    assert [binder.bind(("chrony",), host)["chrony"].pool for host in hosts] == list("01234") * 4
    assert len(binder._bound) <= 3
    assert len(binder._whole) <= 3


def test_keys_of_plain_data() -> None:
    mappings = ({"a": 1}, {"a": True}, {"a": 1, "b": 2}, {"b": 2, "a": 1})
    alike = [1, True, 1.0, "1", None, (), [], {}, [1], [True], *mappings]
    keys = [exact(value) for value in alike]
    assert len(set(keys)) == len(alike)
    first, second = object(), object()
    assert Same(first) == Same(first)
    assert Same(first) != Same(second)
