"""One host sends false output in many ways beside nine correct hosts.

The nine end as desired, and the tenth's effect on time and memory is bounded. The tests count bytes and commands and
measure no time. ``make fuzz`` runs every kind of false output with every verb.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright.apply.host.connection import Patience
from hostwright.audit import auditing
from hostwright.audit.fleetaudit import HostAudit
from hostwright.audit.reports.diagnosis import show_diagnosis
from hostwright.cli import console
from hostwright.cli.views.changing.outcomes import show_plans
from hostwright.fleet import Fleet, Targets
from hostwright.plan import observing
from hostwright.plan.roles.site import Site
from hostwright.transport import streams
from hostwright.transport.session import Session
from hostwright.transport.streams import Exchange
from tests.lab.liars import liar
from tests.lab.liars.fleet import ADDRESSES, FILE, GOOD, LIAR, Ten, ten_hosts

EVERYTHING = "HOSTWRIGHT_FUZZ" in os.environ
MOST_BYTES = 24 * 2**20  #: per probe run: the sum of all output caps, and a packet in flight
MOST_LOG_BYTES = 48 * 2**20  #: for a run with one job of one step
SILENT = ("slow drip", "never a word")  #: kinds that only a timeout ends
WAIT_S = 20.0  #: their timeout, instead of minutes

Bytes = Counter[str]


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ten]:
    if os.getuid() != 0:
        pytest.skip("sshd and mount namespaces are root's")
    with ten_hosts(tmp_path_factory.mktemp("liars") / "site") as hosts:
        yield hosts


@pytest.fixture
def sent(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bytes:
    """The number of bytes received from each address, and the number of commands under ``execs HOST``."""
    counted, lock = Bytes(), threading.Lock()
    take, run = Exchange._take, Session.run

    def taken(self, data, stream, sink):
        with lock:
            counted[self._channel.get_transport().getpeername()[0]] += len(data)
        return take(self, data, stream, sink)

    def ran(self, *args, **options):
        with lock:
            counted[f"execs {self.host.name}"] += 1
        return run(self, *args, **options)

    monkeypatch.setattr(Exchange, "_take", taken)
    monkeypatch.setattr(Session, "run", ran)
    if request.node.callspec.params["kind"] in SILENT:
        monkeypatch.setattr(streams, "START_S", WAIT_S)
        monkeypatch.setattr(auditing, "ANSWERS_TIMEOUT_S", WAIT_S)
        monkeypatch.setattr(auditing, "EXAMINE_TIMEOUT_S", WAIT_S)
        monkeypatch.setitem(observing.ask.__kwdefaults__, "timeout_s", WAIT_S)
    monkeypatch.setattr(Patience.__init__, "__defaults__", (3.0, 6.0))
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    return counted


def targets(ten: Ten) -> tuple[Fleet, Targets]:
    fleet = Fleet.load(site=Site(ten.root))
    return fleet, fleet.targets("all")


def harmless(text: str) -> bool:
    """Whether a terminal only displays the text and interprets nothing."""
    return all(char.isprintable() or char in "\n\t" for char in text)


def bounded(sent: Bytes, most_bytes: int = MOST_BYTES, most_execs: int = 3) -> bool:
    return sent[ADDRESSES[LIAR]] <= most_bytes and sent[f"execs {LIAR}"] <= most_execs


@pytest.mark.parametrize("kind", liar.EVERY)
def test_nine_plans_are_as_they_are_without_the_tenth(ten: Ten, sent: Bytes, kind: str, capsys) -> None:
    ten.bare()
    ten.lies(kind)
    fleet, chosen = targets(ten)
    results = fleet.plan(chosen)
    failed = {error.host: error.sentence for error in results.errors if error.host != LIAR}
    assert not failed
    good = [looked_at for looked_at in results.values if looked_at.host != LIAR]
    assert [looked_at.host for looked_at in good] == list(GOOD)
    assert {change.what for looked_at in good for change in looked_at.plan.changes} == {f"file {FILE}"}
    assert bounded(sent), sent
    show_plans(chosen, results, as_json=False)
    shown = capsys.readouterr().out
    assert harmless(shown)
    assert not re.search(r"^gpu[0-9]\s+(as desired|failed)$", shown, re.MULTILINE)
    show_plans(chosen, results, as_json=True)
    json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


#: kinds with plausible whole answers; plans are tested with all of them
BELIEVED = ("an XML bomb", "escape codes", "forged lines", "huge digits", "half of the answers", "answers twice")
AUDITED = [kind for kind in liar.EVERY if EVERYTHING or kind.partition(": ")[2] in BELIEVED]


@pytest.mark.parametrize("kind", AUDITED)
def test_an_audit_and_the_doctor_say_of_nine_what_is_true(ten: Ten, sent: Bytes, kind: str, capsys) -> None:
    ten.bare()
    ten.lies(kind)
    fleet, chosen = targets(ten)
    result = fleet.auditor(chosen).audit()
    of: dict[str, HostAudit] = {host.host: host for host in result.audit.hosts}
    wrong = {name: of[name] for name in GOOD if of[name].status != "new"}
    assert not wrong, {name: (one.status, one.sentence, one.not_checked) for name, one in wrong.items()}
    assert bounded(sent), sent
    console.make_console().print(*show_diagnosis(result.audit.hosts, result.ages))
    assert harmless(capsys.readouterr().out)
    assert fleet.history(chosen), "the history can be read afterwards"


RUN = [kind for kind in liar.EVERY if EVERYTHING or kind in {"a forged log", "a log of newlines", "a log of tries"}]


@pytest.mark.parametrize("kind", RUN)
def test_nine_are_provisioned_beside_one_that_lies(ten: Ten, sent: Bytes, kind: str) -> None:
    ten.bare()
    ten.lies(kind)
    fleet, chosen = targets(ten)
    results = fleet.provision(chosen).results
    assert [outcome.host for outcome in results.values if outcome.host != LIAR] == list(GOOD)
    assert {outcome.word for outcome in results.values if outcome.host != LIAR} == {"changed"}
    assert [ten.on(name, f"cat {FILE}") for name in GOOD] == ["hello\n"] * len(GOOD)
    assert bounded(sent, MOST_LOG_BYTES, most_execs=40), sent


VERIFIED = [kind for kind in liar.EVERY if EVERYTHING or kind == "answers: escape codes"]


@pytest.mark.parametrize("kind", VERIFIED)
def test_nine_are_verified_beside_one_that_lies(ten: Ten, sent: Bytes, kind: str) -> None:
    ten.lies("honest")
    fleet, chosen = targets(ten)
    if any(ten.on(name, f"cat {FILE}") != "hello\n" for name in ADDRESSES):
        fleet.provision(chosen)
    ten.lies(kind)
    results = fleet.verify(chosen).results
    assert [verdict.host for verdict in results.values if verdict.passed and verdict.host != LIAR] == list(GOOD)
    assert bounded(sent, MOST_LOG_BYTES, most_execs=60), sent
