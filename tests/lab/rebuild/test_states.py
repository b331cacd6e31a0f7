"""Hosts whose layers must be installed again, each in another state: one unattended command restores all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.conftest import on
from tests.lab.rebuild.bench import Bench, Roles, Told
from tests.lab.rebuild.states import RELAYERED, WIPED, State, break_all, kinds, require_back

Broken = tuple[State, ...]
#: (states of hosts, roles of these hosts); no roles: their whole stack
SEVERAL = [
    pytest.param((WIPED, ("base", "driver")), id="wiped, driver alone"),
    pytest.param((WIPED, ()), id="wiped", marks=pytest.mark.long),
    pytest.param((RELAYERED, ()), id="relayered", marks=pytest.mark.long),
]


@pytest.fixture(scope="module", params=SEVERAL)
def case(request: pytest.FixtureRequest) -> tuple[Broken, Roles]:
    """The states of the hosts that one command restores, and the hosts' roles."""
    states, roles = request.param
    return states, roles


@pytest.fixture(scope="module")
def broken(case: tuple[Broken, Roles]) -> Broken:
    return case[0]


@pytest.fixture(scope="module")
def told(bench: Bench, case: tuple[Broken, Roles]) -> Iterator[Told]:
    """The hosts, broken and rebuilt with one command."""
    broken, roles = case
    with bench.clones(kinds(broken), roles):
        break_all(bench, broken)
        yield bench.rebuild(names(broken))


def names(broken: Broken) -> tuple[str, ...]:
    return tuple(state.host for state in broken)


def test_each_is_back_by_the_way_that_its_state_asks_for(bench: Bench, told: Told, broken: Broken) -> None:
    assert set(told.rebuilds) == set(names(broken))
    for state in broken:
        require_back(bench, told, state)
        assert told.rebuilds[state.host]["reasons"]


def test_an_audit_finds_nothing_on_them(bench: Bench, told: Told, broken: Broken) -> None:
    assert set(told.rebuilds) == set(names(broken))
    for host, found in bench.audit(names(broken)).items():
        assert (host, found["deviations"]) == (host, [])
        assert (host, [one for one in found["findings"] if one["grave"]]) == (host, [])  # type: ignore[attr-defined]


def test_the_command_says_that_all_are_back(told: Told) -> None:
    assert (told.status, told.errors) == (0, {})


def test_the_new_key_of_a_wiped_host_is_the_known_one(bench: Bench, told: Told, broken: Broken) -> None:
    known = [line.split() for line in bench.lab.known_hosts.read_text().splitlines()]
    for host in names(broken):
        assert ("trust" in told.rebuilds[host]["ways"]) == (broken is WIPED)
        key = on(bench.machine(host), "cat /etc/ssh/ssh_host_ed25519_key.pub").split()[1]
        address = str(bench.machine(host).address)
        assert [words[2] for words in known if address in words[0].split(",")] == [key]


def test_the_records_of_this_machine_name_the_phases(bench: Bench, told: Told, broken: Broken) -> None:
    hosts = names(broken)
    report = bench.invoke.json("rebuild", "--report", "--hosts", ",".join(hosts), status=0)
    assert {one["host"] for one in report["last"]} == set(hosts)
    by_phase = {one["name"]: one for one in report["phases"]}
    for phase in {name for host in hosts for name in told.phases(host)}:
        values = [told.phases(host)[phase] for host in hosts if phase in told.phases(host)]
        assert by_phase[phase]["number"] == len(values)
        assert by_phase[phase]["longest_s"] == pytest.approx(max(values))
