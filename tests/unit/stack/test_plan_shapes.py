"""Compares the plans of every standard stack on every release, for six kinds of cards, with a table.

``python -m tests.unit.support.stackfleet`` writes the table; its differences show the effect of a change of a stack, a
rule or a role. ``make facts`` records the answers of hosts.
"""

from __future__ import annotations

import re

import pytest

from hostwright.plan.model import Probe
from hostwright.plan.planning import plan_host
from tests.places import PROJECT
from tests.unit.support import recorded
from tests.unit.support.planned import HOSTS, SHAPES, T4, bare_facts, releases, shapes
from tests.unit.support.standard import targets

NAMES = ["debian-11-bare", "debian-11-provisioned", "debian-12-bare", "debian-13-bare"]
MOST_BYTES = 150_000
#: values of the machine and the lab: directories, addresses, keys and serial numbers
PRIVATE = re.compile(
    re.escape(f"{PROJECT}/")
    + r"|lowerdir|/var/(lib|cache)/hostwright-lab|\b(10\.213|127\.0|192\.168)(\.\d{1,3}){2}\b|ssh-(rsa|ed25519)"
    r"|PRIVATE KEY|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\broot@"
)


def test_the_plans_of_all_stacks_have_the_recorded_shapes() -> None:
    made = list(shapes())
    assert made == SHAPES.read_text("utf-8").splitlines(), "see what differs, and write the table anew"
    stacks = [target for target in targets() if target.name == target.stack.name]
    rows = [line for line in made if " | " in line and not line.startswith("#")]
    provisioned = [line for line in rows if "provisioned" in line]
    assert len(rows) - len(provisioned) == len(stacks) + sum(len(releases(target)) for target in stacks)
    assert len(provisioned) == sum(("debian", "11") in releases(target) for target in stacks)
    assert all(("| ubuntu " in line) == ("(made up)" in line) for line in rows)
    assert {one for target in stacks for one in releases(target)} == {*HOSTS}


def test_a_bare_host_loses_nothing_and_nobody_works_there() -> None:
    for target in targets():
        for release in releases(target):
            host = plan_host(target.desired, bare_facts(target, *release, (T4,)))
            assert (host.losses, host.busy, host.provisioned) == ((), (), False)


def test_a_probe_that_no_host_was_asked_is_refused_with_how_to_record_anew() -> None:
    asked = (*recorded.all_probes()[:1], Probe("echo new\necho more"))
    with pytest.raises(LookupError, match=r"debian-12-bare\.json: 1 of 2 probes .* 'echo new'; .* `make facts`"):
        recorded.facts_of("debian-12-bare", asked)


def test_every_recorded_host_answers_every_probe_of_all_stacks_and_names_no_machine() -> None:
    assert sorted(path.stem for path in recorded.HOSTS.iterdir()) == NAMES
    for name in NAMES:
        assert (recorded.HOSTS / f"{name}.json").stat().st_size <= MOST_BYTES
        facts = recorded.facts_of(name, recorded.all_probes())
        assert [answer.text for answer in facts.values() if PRIVATE.search(answer.text)] == []
