"""Hosts whose layers must be laid anew, each in another state: one command brings all of them back, unattended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.conftest import on
from tests.lab.rebuild.bench import Bench, Told
from tests.lab.rebuild.states import LAID_ANEW, State, break_all, kinds, require_back

HOSTS = tuple(state.host for state in LAID_ANEW)
EACH = pytest.mark.parametrize("state", LAID_ANEW, ids=lambda state: state.host)


@pytest.fixture(scope="module")
def told(bench: Bench) -> Iterator[Told]:
    """The hosts broken, and rebuilt by one command."""
    with bench.clones(kinds(LAID_ANEW)):
        break_all(bench, LAID_ANEW)
        yield bench.rebuild(HOSTS)


@pytest.fixture(scope="module")
def after(bench: Bench, told: Told) -> dict[str, dict[str, object]]:
    """What an audit says of the hosts afterwards."""
    assert set(told.rebuilds) == set(HOSTS)
    return bench.audit(HOSTS)


@EACH
def test_it_is_back_by_the_way_that_its_state_asks_for(bench: Bench, told: Told, state: State) -> None:
    require_back(bench, told, state)
    assert told.rebuilds[state.host]["reasons"]


@EACH
def test_an_audit_finds_nothing_on_it(after: dict[str, dict[str, object]], state: State) -> None:
    assert after[state.host]["deviations"] == []
    assert [one for one in after[state.host]["findings"] if one["grave"]] == []  # type: ignore[attr-defined]


def test_the_command_says_that_all_are_back(told: Told) -> None:
    assert (told.status, told.errors) == (0, {})


def test_the_new_key_of_the_wiped_host_is_the_known_one(bench: Bench, told: Told) -> None:
    assert told.rebuilds["wiped"]["ways"][0] == "trust"
    key = on(bench.machine("wiped"), "cat /etc/ssh/ssh_host_ed25519_key.pub").split()[1]
    address = str(bench.machine("wiped").address)
    lines = [line.split() for line in bench.lab.known_hosts.read_text().splitlines()]
    assert [words[2] for words in lines if address in words[0].split(",")] == [key]


def test_the_records_of_this_machine_name_the_phases(bench: Bench, told: Told) -> None:
    report = bench.invoke.json("rebuild", "--report", "--hosts", ",".join(HOSTS), status=0)
    assert {one["host"] for one in report["last"]} == set(HOSTS)
    by_phase = {one["name"]: one for one in report["phases"]}
    for phase in {name for host in HOSTS for name in told.phases(host)}:
        values = [told.phases(host)[phase] for host in HOSTS if phase in told.phases(host)]
        assert by_phase[phase]["number"] == len(values)
        assert by_phase[phase]["longest_s"] == pytest.approx(max(values))
