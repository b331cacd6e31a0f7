"""Property tests: for any sequence of audits, the history returns exactly what each audit found."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.audit.fleetaudit import Deviation, HostAudit, Layer, NotChecked, Reading, Status
from hostwright.audit.history import History, Item
from hostwright.audit.history.items import CARD_CHARACTERS, card_of, kept
from hostwright.audit.judging.alike import NOT_ASKED
from hostwright.common.errors import Finding
from tests.unit.audit.history.test_history import CARD_1, audit, driver, host, on, unread

ROLES = ("driver", "cuda", "gpu")
HOSTILE = "'; DROP TABLE span; --\x00\x1b[2J\u202e\ud800\"%s?"

layers = st.sampled_from(ROLES)
texts = st.sampled_from(["", "a", "b", HOSTILE, HOSTILE * 500])
readings = st.builds(
    Reading, layers, st.sampled_from(["x", "y"]), texts, st.none() | texts, st.sampled_from(["", "T4"])
)
whys = st.sampled_from(["drift", "intent", "new"])
deviations = st.builds(Deviation, layers, st.sampled_from(["link", "file"]), texts, texts, whys)
findings = st.builds(
    Finding, st.sampled_from(["xid", "ecc"]), layers, st.booleans(), st.tuples(texts), st.just("cause"),
    st.just("cure"), st.booleans(), st.just(""),
)  # fmt: skip
not_checked = st.builds(NotChecked, layers, st.sampled_from(["xid", "ecc", "Link"]), st.sampled_from([NOT_ASKED, "-"]))
cards = st.builds(replace, st.just(CARD_1), bus=st.sampled_from(["0", "1"]), serial=texts)
STATUSES: tuple[Status, ...] = ("failing", "drift", "intent", "new", "desired")


@st.composite
def hosts(draw: st.DrawFn, name: str) -> HostAudit:
    """A host as an audit may find it: complete, limited to some roles, in part, or unreadable."""
    if draw(st.integers(0, 4)) == 0:
        return unread(name, draw(texts))
    roles = draw(st.sets(layers, min_size=1))
    many = {
        "readings": draw(st.lists(readings, max_size=6)),
        "deviations": draw(st.lists(deviations, max_size=3)),
        "findings": draw(st.lists(findings, max_size=3)),
        "not_checked": draw(st.lists(not_checked, max_size=3)),
    }
    own = {key: tuple(value for value in values if value.layer in roles) for key, values in many.items()}
    own["gpus"] = tuple(draw(st.lists(cards, max_size=3))) if "gpu" in roles else ()
    statuses = draw(st.permutations(STATUSES))
    found = tuple(Layer(role, status) for role, status in zip(sorted(roles), statuses, strict=False))
    return HostAudit(name, draw(texts), "", statuses[0], layers=found, **own)


fleets = st.lists(
    st.tuples(st.just("inventory") | st.just("other"), st.tuples(hosts("gpu01"), hosts("gpu02"))),
    min_size=1,
    max_size=8,
)


def said(audit: HostAudit) -> set[Item]:
    """The facts of an audit of a host, computed independently of the history's code."""
    items = {Item("status", "", "", audit.status)}
    if audit.sentence or all(layer.status == "unread" for layer in audit.layers):
        return items
    items.add(Item("stack", "", "", kept(audit.stack)))
    items |= {Item("layer", layer.name, "", layer.status) for layer in audit.layers}
    for reading in audit.readings:
        want = None if reading.want is None else kept(reading.want)
        items.add(Item("reading", reading.layer, reading.name, kept(reading.have), want, reading.among))
    for item in audit.deviations:
        items.add(Item("deviation", item.layer, item.what, kept(item.have), kept(item.want), item.why))
    items |= {Item("finding", item.layer, item.rule, "grave" if item.grave else "warning") for item in audit.findings}
    return items


@settings(max_examples=60)
@given(fleets)
def test_every_audit_can_be_told_again(fleet: list[tuple[str, tuple[HostAudit, HostAudit]]]):
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder))
        numbers = [history.add(audit(day, *two, inventory=name)) for day, (name, two) in enumerate(fleet)]
        for number, (_, two) in zip(numbers, fleet, strict=True):
            state = history.state(number)
            for host in two:
                items = state[host.host]
                assert {item for item in items if item.kind != "card"} == said(host)
                serials = Counter(
                    (item.name, card_of(item.name, item.have).serial) for item in items if item.kind == "card"
                )
                assert serials.keys() == {(card.bus, kept(card.serial)[:CARD_CHARACTERS]) for card in host.gpus}
        for name in {name for name, _ in fleet}:
            last = [two for own, two in fleet if own == name][-1]
            assert history.latest(name) == {host.host: host.status for host in last}
            assert all((host.host, "status", "") in history.ages(name) for host in last)
            for point in history.trend(name, 100):
                assert sum(point.counts.values()) == 2
            history.diff(name, on(0))
            events = history.host_history("gpu01", None, name).events
            assert [event.after for event in events if event.kind == "status"][-1] == last[0].status


@given(st.lists(st.sampled_from(["1", "2", "unread", "narrow"]), min_size=1, max_size=12))
def test_the_timeline_tells_each_change_of_what_is_known_once(story: list[str]):
    looks = {
        "unread": unread(),
        "narrow": host(readings=(), layers=["cuda"]),
        **{version: host(readings=[driver(version)]) for version in "12"},
    }
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder))
        for day, look in enumerate(story):
            history.add(audit(day, looks[look]))
        events = history.host_history("gpu01", None, "inventory").events
    known = [(day, look) for day, look in enumerate(story) if look in "12"]
    wanted = [(day, old, new) for (_, old), (day, new) in pairwise(known) if old != new]
    found = [((event.at - on(0)).days, event.before, event.after) for event in events if event.name == "loaded"]
    assert found == wanted
