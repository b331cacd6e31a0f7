"""The output of ``--json``: every kind of document has a version, and matches its schema in ``docs/schemas``.

Every document that a unit test prints is checked against its schema (``tests/unit/conftest.py``). Here is each kind
once, with all possible values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hostwright.apply.host.outcome import Outcome
from hostwright.apply.locking.hostlocks import HostLocks
from hostwright.apply.rollout.following import Followed
from hostwright.apply.rollout.rollout import Results
from hostwright.apply.run import RunResults
from hostwright.audit.adopting import AdoptedStack, Adoption
from hostwright.audit.auditor import AuditOptions
from hostwright.cli.tasks import keep, look
from hostwright.cli.tasks import site as verbs
from hostwright.cli.views.adopted import show_adoption
from hostwright.cli.views.audits import auditor_of, show_diagnosed
from hostwright.cli.views.changing.outcomes import show_outcomes, show_plans
from hostwright.cli.views.followed import show_followed
from hostwright.cli.views.locks import show_locks
from hostwright.cli.views.rebuilding.rebuilds import show_decisions, show_rebuilt
from hostwright.cli.views.shared import print_document
from hostwright.cli.views.stackfits import show_fits
from hostwright.cli.views.stacks import show_bulletins
from hostwright.cli.views.verdicts import show_verdicts
from hostwright.common.errors import (
    Acceptance,
    ArtifactError,
    Examination,
    FailedStep,
    NotAccepted,
    SeveralFailed,
    StepFailed,
    Unreachable,
)
from hostwright.common.request import Request
from hostwright.plan.host.locks import UNREADABLE, Holder, OperatorLock
from hostwright.plan.model import Change, Deferred, Plan, Reboot, Refusal, RolePlan, RoleResult, Step, StepResult
from hostwright.plan.planning import HostPlan
from hostwright.plan.stacks.fits import HostFits
from hostwright.plan.targets import Targets
from hostwright.prove.reports import document as proving
from hostwright.rebuild.report import document as report
from hostwright.rebuild.run import Decisions, Rebuilt
from hostwright.rebuild.ways.ways import Decision
from hostwright.stack.bulletins import Read
from hostwright.stack.fitting import Misfit
from hostwright.stack.store.mirroring import Mirrored
from hostwright.verify.verdict import Check, Verdict
from tests.places import PROJECT
from tests.unit.cli.test_tasks import VERBS
from tests.unit.support import schemas, stackfleet
from tests.unit.support.audits import EACH, LIAR, XID, fleet
from tests.unit.support.checkout import here
from tests.unit.support.proofs import fleet as proofs
from tests.unit.support.proofs import host as proved
from tests.unit.support.proofs import result, ticks
from tests.unit.support.rebuilds import rebuild

NOW = datetime(2026, 11, 23, 8, 0, tzinfo=UTC)
CHANGES = (
    Change("file /etc/motd", "absent", "644 root root", (Step("touch /etc/motd", "dpkg", 9.5, 3),), "+ hello", ("a",)),
    Reboot("kernel", "5.4.0", "5.15.0", "5.15.0 is installed"),
    Deferred("module", "absent", "loaded", "a reboot"),
    Refusal("Secure Boot", "on", "off", "secure-boot", "its modules are not signed"),
)
PLAN = HostPlan(Plan("gpu01", "house", (RolePlan("base", ("disk",), CHANGES),)), ("python3 (4711)",), ("drained",))
FOUND = Examination((XID,), "the signs of 3 layers")
STEP = StepFailed("gpu02", "it ended with 1", FailedStep("base", "file", "touch", 1, ("no room",), XID))
STEP.examination = FOUND
ERRORS = (
    Unreachable("gpu03", "refused", passing=True),
    SeveralFailed("gpu02", [STEP, ArtifactError("cuda.run is missing")]),
    NotAccepted("gpu05", "its proof failed", (Acceptance("clock.ticks", "failed", "slow"),)),
)
OUTCOME = Outcome(
    "gpu01", PLAN.plan, (RoleResult("base", 0, 2.5, (StepResult(0, "file", 0, 2.5, "done", 1),)),), PLAN.plan, 1
)
CHECK = Check("base", "test_motd", "It greets.", False, 0.5, "it does not", finding=XID)
LOCK = OperatorLock("ann@desk", "RMA", "gpu01", NOW, NOW)
HOLDER = Holder("ann@desk", "run-1", "gpu01", "desk", 42, "1", NOW)
DECISION = Decision("repair", ("it is silent",), ("provision",), ("reinstall",), "", ("silent",), "bmc", ends=("ann",))
REBUILDS = (rebuild("repair", phases={"provision": 40.0}), rebuild("hand over", outcome="handed over"))


def diagnosed(site: Request) -> None:
    auditor = auditor_of(site, AuditOptions(offline=True))
    show_diagnosed(site, auditor, auditor.audit())


def mirrored(site: Request) -> None:
    file = Mirrored("driver", "driver.run", Path("/store/aa/driver.run"), "aa" * 32, 12, "fetched", True, False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hostwright.fleet.Fleet.mirror", lambda *_, **__: (file,))
        assert keep.mirror(replace(site, json=True)) == 0


FITS = HostFits("gpu01", stackfleet.facts_of("8 × H100"), "", stackfleet.fits_of("8 × H100"))

MISFIT = Misfit("kernel", "the module does not build", "a guide")
ADOPTION = Adoption(
    (
        AdoptedStack(
            ("gpu01",), "a-gpu01", "a", Path("/s/a-gpu01.yml"), "x", (("cuda", "no"),), ("a note",), (MISFIT,)
        ),
        AdoptedStack(("gpu02",), "a", "a", None, "", ()),
    ),
    (("gpu03", "a"),),
    ERRORS,
)

SHOWN: dict[str, Callable[[Request], object]] = {
    "plan": lambda _: show_plans((), Results((PLAN,), ERRORS), as_json=True),
    "verify": lambda _: show_verdicts(
        (),
        Results((Verdict(PLAN, (CHECK,), FOUND),), ERRORS),
        proofs=proving.document(proofs(proved("gpu01", result(ticks(2.5))))),
        as_json=True,
    ),
    "prove": lambda _: print_document("prove", proving.document(proofs(proved("gpu01", result(ticks(2.5)))))),
    "audit": lambda _: print_document("audit", json.loads(audit_text())),
    "history": lambda site: look.audit_history(replace(site, json=True)),
    "diff": lambda site: look.audit_diff(replace(site, since="7d", json=True)),
    "doctor": lambda site: diagnosed(replace(site, json=True)),
    "vars": lambda site: verbs.variables(replace(site, json=True)),
    "hosts": lambda site: verbs.hosts(replace(site, json=True)),
    "provision": lambda _: show_outcomes(
        "provision", (), RunResults("run-1", Results((OUTCOME,), ERRORS, ("gpu04",), "a canary failed"), 1),
        proved=True, as_json=True,
    ),
    "decisions": lambda _: show_decisions((), Decisions({"gpu01": DECISION}, ERRORS), as_json=True),
    "rebuild": lambda _: show_rebuilt(
        (), Rebuilt("run-1", {"gpu01": DECISION}, Results(REBUILDS, (), ("gpu04",), "stopped"), ERRORS, 1), as_json=True
    ),
    "times": lambda _: print_document("times", report(REBUILDS)),
    "followed": lambda _: show_followed(
        Results((Followed("gpu01", "run-1", "ann@desk", ("base",), ("cuda",)), Followed("gpu04")), ERRORS), as_json=True
    ),
    "mirror": mirrored,
    "stackfits": lambda _: show_fits((FITS,), ERRORS, as_json=True),
    "adopted": lambda _: show_adoption(ADOPTION, Targets((), ""), as_json=True),
    "advisories": lambda _: show_bulletins(Read(stackfleet.ADVISORIES, 2, ("x.json",)), as_json=True),
    "locks": lambda _: show_locks(
        Results((HostLocks("gpu01", LOCK, UNREADABLE, HOLDER, LOCK, None, "no answer"),), ERRORS), as_json=True
    ),
}  # fmt: skip
#: printed by the tests of their own verbs
ELSEWHERE = {
    *("check", "command", "stacks", "power", "trust", "runs", "run"),
}
#: verbs that print foreign text, or start a session, and so have no result of their own
RAW = {"schema", "init", "completion", "pins", "ssh", "workspace.exec", "workspace.logs", "workspace.export"}


def audit_text() -> str:
    from hostwright.audit.reports.document import render_json

    return render_json(fleet(*EACH, LIAR))


@pytest.fixture
def site(tmp_path: Path) -> Request:
    (tmp_path / "hosts.yml").write_text("all: {hosts: {gpu01: {}, gpu02: {ansible_connection: local}}}")
    return Request("all", inventory=(str(tmp_path),))


@pytest.mark.parametrize("kind", SHOWN)
def test_a_document_says_its_kind_and_version_and_keeps_to_the_schema(
    kind: str, site: Request, capsys: pytest.CaptureFixture[str]
) -> None:
    SHOWN[kind](site)
    text = capsys.readouterr().out
    document = json.loads(text)
    assert (document["kind"], document["schema"], text.isascii(), text.count("\n")) == (kind, 1, True, 1)
    schemas.check(document)


def test_every_verb_with_json_has_its_kinds() -> None:
    printing = {verb for verb, options in VERBS.items() if "json" in options}
    named = {line.split()[0] for document in schemas.documents().values() for line in document.verbs if here(line)}
    assert named == printing, "add the kind of its document to tests/unit/support/schemas.py, and its values here"
    assert {*SHOWN, *ELSEWHERE} == {*schemas.OF_ENGINE}


def test_every_verb_has_a_document_or_the_page_says_why_not() -> None:
    assert {verb for verb, options in VERBS.items() if "json" not in options} == set(filter(here, RAW)) - {
        "init",
        "completion",
    }
    page = (PROJECT / "docs/reference/json.md").read_text("utf-8")
    without = page[page.index("No document is printed by ") :].split("\n\n")[0]
    assert {verb for verb in RAW if f"`{verb}`" in without} == RAW


def test_the_published_schemas_are_those_of_the_types() -> None:
    published = {
        str(path.relative_to(schemas.FOLDER)): json.loads(path.read_text("utf-8"))
        for path in schemas.FOLDER.rglob("*.json")
    }
    made = dict(schemas.schemas())
    assert published == made, "write them anew: python -m tests.unit.support.schemas"
    for schema in made.values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_nothing_prints_a_document_by_itself() -> None:
    """Such a document would have no version and no schema."""
    sources = [path for folder in ("hostwright/cli", "roles") for path in (PROJECT / folder).rglob("*.py")]
    bare = [path for path in sources if re.search(r"\bprint\((?:json\.dumps|render_json)\(", path.read_text("utf-8"))]
    programs = [
        path for path in bare if "proofs" in path.parts
    ]  # programs on hosts, which print one line per measurement
    one_place = PROJECT / "hostwright" / "cli" / "views" / "shared.py"
    assert sorted(set(bare) - set(programs)) == [one_place]


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"kind": "plans"},
        {"errors": [{"host": "gpu01", "sentence": "it has no kind"}]},
        {"hosts": "none"},
        {"more": "than the schema has"},
    ],
)
def test_what_is_not_of_its_schema_is_seen(change: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    show_outcomes("provision", (), RunResults("run-1", Results((OUTCOME,), ()), 0), as_json=True)
    document = json.loads(capsys.readouterr().out)
    schemas.check(document)
    with pytest.raises(AssertionError):
        schemas.check({**document, **change})


def test_a_reader_takes_a_document_with_fields_that_a_later_version_adds() -> None:
    schema = json.loads((schemas.FOLDER / "look" / "hosts.json").read_text("utf-8"))
    jsonschema.validate({"kind": "hosts", "schema": 1, "hosts": [], "added": "later"}, schema)
