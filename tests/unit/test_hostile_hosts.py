"""Every verb that asks hosts, beside a host that lies about SSH itself: the host's error, and work that is counted."""

from __future__ import annotations

import os
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hostwright.apply.host.connection import Patience
from hostwright.audit import auditing
from hostwright.fleet import Fleet, Targets
from hostwright.plan import observing
from hostwright.plan.roles.site import Site
from hostwright.transport import Allowance
from tests.lab.liars import sshliar
from tests.lab.liars.quietsite import write_site
from tests.lab.liars.sshliar import Liar
from tests.lab.sshd import make_key
from tests.unit.support import counting
from tests.unit.support.counting import COMMAND, CONNECTION

EVERYTHING = "HOSTWRIGHT_FUZZ" in os.environ
WAIT_S = 0.7  #: what only a timeout ends, in the place of minutes
MOST_CONNECTIONS = 6  #: of one verb
CAPS_BYTES = 4 << 20  #: of all answers to a look at a host of which nothing is wanted
MOST_MESSAGES = MOST_CONNECTIONS * (CONNECTION[0] + COMMAND[0] + CAPS_BYTES // 256)
MOST_BYTES = MOST_CONNECTIONS * (CONNECTION[1] + COMMAND[1] + CAPS_BYTES)

#: what each verb says of the host that lies
VERBS: dict[str, Callable[[Fleet, Targets], object]] = {
    "plan": lambda fleet, targets: [error.host for error in fleet.plan(targets).errors],
    "provision": lambda fleet, targets: [error.host for error in fleet.provision(targets).results.errors],
    "verify": lambda fleet, targets: [error.host for error in fleet.verify(targets).results.errors],
    "audit": lambda fleet, targets: [host.host for host in fleet.audit(targets).hosts if host.status == "unread"],
    "rebuild": lambda fleet, targets: list(fleet.decide(targets).of),
    "lock": lambda fleet, targets: [error.host for error in fleet.locks(targets).errors],
    "remove": lambda fleet, targets: [error.host for error in fleet.plan(targets, goal=fleet.removal(targets)).errors],
    "rollback": lambda fleet, targets: [error.host for error in fleet.ways_back(targets).errors],
}
MET = [kind for kind in sshliar.EVERY if EVERYTHING or kind not in sshliar.WRONG]
FLOODS = [kind for kind in MET if kind not in sshliar.PATIENT]
FEW = ("output byte by byte", "messages to be ignored", "messages for the log", "new keys again and again")


@pytest.fixture
def counted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Counter[str]:
    """What was taken from any server; what a host may send, and how long it may be silent, is a fraction of ours."""
    took = counting.counted(monkeypatch)
    monkeypatch.setattr(Allowance, "MESSAGE_BYTES", 16 << 10)
    monkeypatch.setattr(Patience.__init__, "__defaults__", (WAIT_S, WAIT_S))
    if request.node.callspec.params["kind"] in sshliar.PATIENT:
        monkeypatch.setattr(auditing, "ANSWERS_TIMEOUT_S", WAIT_S)
        monkeypatch.setitem(observing.ask.__kwdefaults__, "timeout_s", WAIT_S)
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    return took


@contextmanager
def lied_to(kind: str, folder: Path, *, honest: int = 0, checks: bool = False) -> Iterator[tuple[Liar, Fleet, Targets]]:
    liar = Liar(kind, honest)
    (folder / "known_hosts").write_text(liar.known_host)
    timeout_s = WAIT_S if kind in sshliar.PATIENT else 60
    write_site(folder / "site", liar.port, folder / "known_hosts", make_key(folder / "id"), timeout_s=timeout_s)
    if not checks:
        (folder / "site/tests/layers/test_quiet.py").unlink()
    try:
        fleet = Fleet.load(site=Site(folder / "site"))
        yield liar, fleet, fleet.targets("all")
    finally:
        liar.close()


def bounded(counted: Counter[str]) -> bool:
    return counted["messages"] <= MOST_MESSAGES and counted["bytes"] <= MOST_BYTES


@pytest.mark.parametrize("kind", MET)
@pytest.mark.parametrize("verb", ["provision", "verify"])
def test_provision_and_verify_meet_every_lie(verb: str, kind: str, counted: Counter[str], tmp_path: Path) -> None:
    with lied_to(kind, tmp_path) as (_, fleet, targets):
        assert VERBS[verb](fleet, targets) == ["liar"]
    assert bounded(counted), counted


@pytest.mark.parametrize("kind", FEW)
@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in {"provision", "verify"}])
def test_the_other_verbs_meet_the_lies_that_send_most(
    verb: str, kind: str, counted: Counter[str], tmp_path: Path
) -> None:
    with lied_to(kind, tmp_path) as (_, fleet, targets):
        assert VERBS[verb](fleet, targets) == ["liar"]
    assert bounded(counted), counted


@pytest.mark.parametrize("kind", FLOODS)
def test_a_host_that_lies_after_it_was_looked_at_ends_the_provisioning(
    kind: str, counted: Counter[str], tmp_path: Path
) -> None:
    """What comes after the look is the record of a release: never carried out here, for that is the lie's place. Where
    the connection still lives then, one more look asks for the cause.
    """
    with lied_to(kind, tmp_path, honest=1) as (liar, fleet, targets):
        assert VERBS["provision"](fleet, targets) == ["liar"]
        assert liar.commands <= 3
    assert bounded(counted), counted


@pytest.mark.skipif(not EVERYTHING, reason="a process of checks for each: `make fuzz`")
@pytest.mark.parametrize("kind", ["output byte by byte", "messages to be ignored"])
def test_a_host_that_lies_to_a_check_is_not_verified(kind: str, counted: Counter[str], tmp_path: Path) -> None:
    """The checks have a process of their own, which is not measured but at the other end."""
    with lied_to(kind, tmp_path, honest=1, checks=True) as (liar, fleet, targets):
        results = fleet.verify(targets).results
        assert [verdict.passed for verdict in results.values] == [False], results.errors
        most = Allowance.RUN[0] / 10
        assert 0 < liar.sent < most < sshliar.MANY, [verdict.checks for verdict in results.values]
    assert bounded(counted), counted


def test_an_answer_that_grows_is_cut_and_said_to_be_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One megabyte on the line, a gigabyte unpacked: nothing of it is kept."""
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    with lied_to("an answer that grows a thousandfold", tmp_path) as (_, fleet, targets):
        tracemalloc.start()
        (error,) = fleet.plan(targets).errors
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert error.sentence == "the host sent far more output than expected; its answers were discarded"
    assert peak <= 8 * CAPS_BYTES
