"""Tests of records of other versions: the previous one is read and rewritten once, newer ones are refused.

The record and the stack in ``tests/fixtures`` were written by Hostwright before records had schema 2.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hostwright.apply.host.hostrecords import HostRecords
from hostwright.apply.rollout.rollback import way_back
from hostwright.audit.judging.audited import audit_probes
from hostwright.audit.judging.judging import judge, last_good
from hostwright.common.errors import Refused
from hostwright.fleet import Fleet, TargetHost
from hostwright.plan.facts.memory import Memory
from hostwright.plan.host import release
from hostwright.plan.host.drained import DRAINED
from hostwright.plan.host.newrelease import former_name, reduced, renewed, state_sha256
from hostwright.plan.host.release import FORMERS, RELEASE, RunStamp, about, read
from hostwright.plan.model import Answer, Facts
from hostwright.plan.planning import PREFLIGHT, make_plan, plan_host, removal_of
from hostwright.resources.files.files import Link
from tests.unit.support.stacks import read_stack
from tests.unit.support.standard import targets

FIXTURES = Path(__file__).parents[2] / "fixtures"
EARLIER: dict[str, Any] = json.loads((FIXTURES / "release-schema-1.json").read_text("utf-8"))
NEWER: dict[str, Any] = {"schema": 3, "layers": {"cuda": "11.2"}}
RUN = RunStamp("run-2", "ada@desk", "2026-11-22T08:00:00Z")
SILENT = Answer(0, "")
AT = datetime(2026, 11, 22, tzinfo=UTC)
SENTENCE = "was written by a newer Hostwright; upgrade Hostwright on this machine"


@pytest.fixture(scope="module")
def provisioned(tmp_path_factory: pytest.TempPathFactory) -> TargetHost:
    """The host that the earlier version provisioned, with the stack and all roles of that version."""
    folder = tmp_path_factory.mktemp("inventory")
    (folder / "hosts.yml").write_text(f"all: {{hosts: {{gpu01: {{hostwright_roles: {sorted(EARLIER['roles'])}}}}}}}")
    stack = read_stack(json.loads((FIXTURES / "stack-schema-1.json").read_bytes()))
    return replace(Fleet.load(folder).targets("all")[0], stack=stack)


@pytest.fixture
def target(provisioned: TargetHost) -> TargetHost:
    """The same host with an empty memory: other tests planned with other methods."""
    return replace(provisioned, memory=Memory())


@pytest.fixture
def in_place(target: TargetHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every state of the host is as desired."""
    for kind in {type(one) for role in target.desired.roles for one in role.resources}:
        monkeypatch.setattr(kind, "plan", lambda self, facts: None)


def carried(target: TargetHost, record: dict[str, Any], answer: Answer = SILENT) -> Facts:
    """The answers of a host with this record."""
    said = {RELEASE: Answer(0, json.dumps(record)), DRAINED: Answer(1, "")}
    return Facts({**dict.fromkeys(audit_probes(target), answer), **said})


def earlier() -> dict[str, Any]:
    """The record of the earlier version, as parsed."""
    return dict(read(Facts({RELEASE: Answer(0, json.dumps(EARLIER))})))


# --- a record of schema 1


def test_it_is_of_the_earlier_version_and_says_what_it_always_said(target: TargetHost) -> None:
    assert EARLIER["schema"] == 1
    assert earlier().keys() == EARLIER.keys()
    assert set(earlier()["roles"]) == {role.name for role in target.desired.roles}
    assert about(earlier(), target.stack)
    assert former_name(earlier(), target.stack) == "", "it is no record of another stack"


@pytest.mark.usefixtures("in_place")
def test_its_host_reads_as_desired(target: TargetHost) -> None:
    facts = carried(target, EARLIER)
    assert make_plan(target.desired, facts).empty
    found = judge(target, facts, AT)
    assert found.deviations == found.notes == ()
    assert not {"drift", "differs", "intent", "new"} & {one.status for one in found.layers}
    assert "release-record-lost" not in {one.rule for one in found.findings}
    assert found.record is not None
    assert (found.record.stack, found.record.at) == ("tensorflow-2.9", EARLIER["at"])


@pytest.mark.usefixtures("in_place")
def test_role_off_since_the_upgrade_is_no_finding() -> None:
    """Earlier versions had the role selfaudit on every host, where it ensured that none of its files existed."""
    host = next(one for one in targets() if one.name == "tensorflow-2.9")
    assert "selfaudit" not in {role.name for role in host.roles}
    facts = carried(host, EARLIER)
    assert plan_host(host.desired, facts).notes == judge(host, facts, AT).notes == ()


def test_what_differs_on_it_is_neither_called_drift_nor_intent(target: TargetHost) -> None:
    found = judge(target, carried(target, EARLIER, Answer(1, "")), AT)
    assert {one.why for one in found.deviations} == {"differs"}
    assert found.status == "differs"
    assert {one.status for one in found.layers if one.name in {"base", "driver", "cuda"}} == {"differs"}


def test_the_next_provisioning_rewrites_it_once_and_nothing_else(target: TargetHost) -> None:
    written: list[str] = []
    line: Any = SimpleNamespace(run=lambda script, timeout_s, failure: written.append(script))
    HostRecords(line, target.desired, RUN).note_release(carried(target, EARLIER), lambda: "")
    (script,) = written
    assert script.startswith("path=/var/lib/hostwright/release.json\n")
    assert "\nname=''\n" in script, "no former record is kept"

    record = renewed(target.desired, earlier(), RUN)
    assert record is not None
    assert json.dumps(record, indent=2).splitlines()[1] == '  "schema": 2,'
    same = ("stack", "versions", "artifacts")
    assert {key: record[key] for key in same} == {key: EARLIER[key] for key in same}
    assert record["roles"].keys() == EARLIER["roles"].keys()
    assert {role.name: last_good(role, record).why() for role in target.desired.roles} == dict.fromkeys(
        record["roles"], "drift"
    )
    assert renewed(target.desired, record, RunStamp("run-3")) is None


def test_provisioning_one_role_keeps_the_others_in_the_record(target: TargetHost) -> None:
    cuda = next(role for role in target.desired.roles if role.name == "cuda")
    record = renewed(replace(target.desired, roles=(cuda,)), earlier(), RUN)
    assert record is not None
    assert record["roles"].keys() == EARLIER["roles"].keys()
    assert (record["roles"]["cuda"]["run"], record["roles"]["base"]["run"]) == ("run-2", EARLIER["run"])
    why = {role.name: last_good(role, record).why() for role in target.desired.roles}
    assert why == {**dict.fromkeys(why, "differs"), "cuda": "drift"}
    assert renewed(target.desired, record, RunStamp("run-3")) is not None, "the next run of all roles writes the rest"


def test_another_stack_is_another_stack_and_its_record_is_kept(target: TargetHost) -> None:
    moved = {**earlier(), "versions": {**EARLIER["versions"], "driver": "470.256.02"}}
    for record in ({**earlier(), "stack": "tensorflow-2.10"}, moved, {**earlier(), "versions": {}}):
        assert not about(record, target.stack)
        assert former_name(record, target.stack) == f"{EARLIER['at']}-{EARLIER['digest'][:12]}.json"


def test_a_version_that_only_a_later_record_names_tells_nothing(target: TargetHost) -> None:
    fewer = {key: EARLIER["versions"][key] for key in ("driver", "cuda")}
    assert about({**earlier(), "versions": fewer}, target.stack)


def test_a_role_taken_away_leaves_a_record_of_the_same_schema(target: TargetHost) -> None:
    left = reduced(earlier(), ["container"])
    assert left is not None
    assert left["roles"].keys() == EARLIER["roles"].keys() - {"container"}
    assert about(read(Facts({RELEASE: Answer(0, json.dumps(left))})), target.stack)


# --- a record of a schema that is not known yet


@pytest.mark.usefixtures("in_place")
def test_a_newer_record_refuses_the_host_even_where_nothing_differs(target: TargetHost) -> None:
    plan = make_plan(target.desired, carried(target, NEWER))
    assert [(role.role, [one.what for one in role.changes]) for role in plan.roles] == [(PREFLIGHT, ["release-record"])]
    (sentence,) = plan.refusals
    assert sentence.endswith(SENTENCE)
    gone = removal_of(target.desired)
    facts = {**dict.fromkeys(gone.probes(), SILENT), **carried(target, NEWER)}
    assert make_plan(gone, Facts(facts)).refusals[:1] == (sentence,)


def test_a_newer_record_makes_an_audit_of_the_host_unread(target: TargetHost) -> None:
    found = judge(target, carried(target, NEWER), AT)
    assert found.status == "unread"
    assert found.sentence.endswith(SENTENCE)


@pytest.mark.parametrize(
    "write",
    [
        lambda books, facts: books.note_origin(facts),
        lambda books, facts: books.note_release(facts, lambda: ""),
        lambda books, facts: books.note_removal(facts, depart=True),
    ],
)
def test_a_newer_record_is_never_written_over(
    target: TargetHost, write: Callable[[HostRecords, Facts], object]
) -> None:
    written: list[str] = []
    line: Any = SimpleNamespace(run=lambda script, timeout_s, failure: written.append(script))
    with pytest.raises(Refused, match=SENTENCE):
        write(HostRecords(line, target.desired, RUN), carried(target, NEWER))
    assert written == []


def test_a_host_with_a_newer_record_does_not_go_back(target: TargetHost) -> None:
    with pytest.raises(Refused, match=SENTENCE):
        way_back(target, Facts({RELEASE: Answer(0, json.dumps(NEWER)), FORMERS: Answer(0, "")}))


@pytest.mark.parametrize("text", ["", "{}", "[3]", '{"schema": "3"}', '{"schema": true}', '{"schema": -1}', "3"])
def test_garbage_is_not_refused_as_a_newer_record(text: str) -> None:
    assert release.refusal(Facts({RELEASE: Answer(0, text)})) == ""
    assert release.refusal(Facts({})) == ""


# --- the hashes of schema 2


def test_the_hash_of_a_state_is_the_same_in_every_version() -> None:
    assert state_sha256(Link("/usr/local/cuda", "/usr/local/cuda-11.2")) == "eff5d0f8211aceda"
