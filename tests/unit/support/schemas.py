"""The JSON Schemas of what verbs print with ``--json``: one file for each kind of document in ``docs/schemas``.

``python -m tests.unit.support.schemas`` writes them from the types of the values that the documents are made of. A test
holds every document that any unit test prints to the schema of its kind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NotRequired, get_type_hints

import jsonschema
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from hostwright.apply.commands.remote import CommandResult
from hostwright.apply.journal.reading import RunSummary
from hostwright.apply.journal.runs import HostRun
from hostwright.apply.rollout.following import Followed
from hostwright.audit.fleetaudit import NotChecked, Status
from hostwright.audit.history.hosthistory import FleetDiff, HostHistory
from hostwright.audit.reports import document as audits
from hostwright.common.errors import Examination, FailedStep, Finding
from hostwright.plan.model import Plan, RolePlan, RoleResult
from hostwright.plan.roles.sitecheck import SiteCheck
from hostwright.prove.reports import document as proving
from hostwright.rebuild.bmc.controller import Power
from hostwright.rebuild.bmc.controller import Status as Machine
from hostwright.rebuild.rebuild import Outcome, Rebuild
from hostwright.rebuild.report import Times
from hostwright.rebuild.ways.ways import Decision
from hostwright.stack.ages import Floor
from hostwright.stack.store.mirroring import Mirrored
from hostwright.stack.tried import State, Trial
from hostwright.verify.verdict import Check
from tests.places import PROJECT
from tests.unit.support.ofroles import of_roles

FOLDER = PROJECT / "docs" / "schemas"


def fields(kind: type, *without: str) -> dict[str, Any]:
    """The fields of a dataclass or model with their types, for a document that holds them with others."""
    hints = get_type_hints(kind, include_extras=True)
    public = {name: hint for name, hint in hints.items() if not name.startswith("_") and name not in without}
    return {name: hint for name, hint in public.items() if "ClassVar" not in str(hint)}


class Proof(TypedDict):
    proof: str
    outcome: str
    sentence: str


class Error(TypedDict):
    """The error of a host: ``kind`` is the name of the exception."""

    host: str
    kind: str
    sentence: str
    step: NotRequired[FailedStep]
    examination: NotRequired[Examination]
    proofs: NotRequired[list[Proof] | None]


class PlannedHost(TypedDict):
    host: str
    stack: str
    roles: list[RolePlan]
    busy: list[str]
    notes: list[str]
    losses: list[str]
    aged: list[str]


class Plans(TypedDict):
    plans: list[PlannedHost]
    errors: list[Error]


class ChangedHost(TypedDict):
    host: str
    result: str
    changed: bool
    reboots: int
    plan: Plan
    left: Plan | None
    roles: list[RoleResult]
    proofs: NotRequired[list[Proof] | None]


class Changed(TypedDict):
    run: str | None
    hosts: list[ChangedHost]
    errors: list[Error]
    untouched: list[str]
    stopped_because: str


class VerifiedHost(TypedDict):
    host: str
    passed: bool
    failed_roles: list[str]
    unchecked_roles: list[str]
    plan: PlannedHost
    checks: list[Check]
    examination: Examination | None


class Verified(TypedDict):
    hosts: list[VerifiedHost]
    errors: list[Error]
    proofs: NotRequired[dict[str, Any]]


class DiagnosedHost(TypedDict):
    host: str
    stack: str
    at: str
    status: Status
    sentence: str
    findings: list[Finding]
    not_checked: list[NotChecked]


class Diagnosed(TypedDict):
    hosts: list[DiagnosedHost]


class RanCommand(TypedDict):
    run: str
    command: list[str]
    root: bool
    timeout_s: float
    status: int
    hosts: list[CommandResult]
    errors: list[Error]
    untouched: list[str]
    stopped_because: str


class Histories(TypedDict):
    hosts: list[HostHistory]


class RoleVariables(TypedDict):
    host: str
    role: str
    variables: dict[str, Any]


class AllVariables(TypedDict):
    variables: list[RoleVariables]


class ListedHost(TypedDict):
    host: str
    address: str | None
    port: int | str | None
    user: str | None
    key: str | None
    jump: str | None
    known_hosts: str | None
    connection: str
    stack: str
    outside: bool
    roles: list[str] | None
    groups: list[str]


class Hosts(TypedDict):
    hosts: list[ListedHost]


Tried = TypedDict("Tried", fields(Trial, "stack", "versions", "distribution", "release", "roles"))


class Cell(TypedDict):
    distribution: str
    release: str
    role: str
    state: State
    trials: list[Tried]


class ListedStack(TypedDict):
    name: str
    file: str
    standard: bool
    problem: str
    description: NotRequired[str]
    versions: NotRequired[dict[str, str]]
    distributions: NotRequired[dict[str, list[str]]]
    roles: NotRequired[list[str]]
    aged: NotRequired[list[str]]
    lifetimes: NotRequired[list[str]]
    stand_ins: NotRequired[list[str]]
    matrix: NotRequired[list[Cell]]


class Stacks(TypedDict):
    stacks: list[ListedStack]


class FoundMisfit(TypedDict):
    """A reason why a host cannot have a stack; ``works`` is a combination that works."""

    rule: str
    sentence: str
    source: str
    works: str


class StackForHost(TypedDict):
    stack: str
    fits: bool
    misfits: list[FoundMisfit]
    aged: list[str]
    lifetimes: list[str]
    stand_ins: list[str]


class FittedHost(TypedDict):
    """The stacks for one host, best first; ``stored`` is the time of the audit that read the host, empty for current
    facts.
    """

    host: str
    distribution: str
    kernel: str
    stored: str
    stacks: list[StackForHost]


class StackFits(TypedDict):
    hosts: list[FittedHost]
    errors: list[Error]


class AdoptedStack(TypedDict):
    """A stack for similar hosts; ``file`` is null and ``text`` empty if the stack ``extends`` fits unchanged.

    ``left_out`` has the reason for each role that is left out, ``misfits`` the reasons why the stack rejects hosts.
    """

    stack: str
    extends: str
    file: str | None
    text: str
    hosts: list[str]
    left_out: dict[str, str]
    notes: list[str]
    misfits: list[str]


class ProvisionedHost(TypedDict):
    """A host with a release record, and the record's stack."""

    host: str
    stack: str


class Adoption(TypedDict):
    stacks: list[AdoptedStack]
    provisioned: list[ProvisionedHost]
    errors: list[Error]


KnownFloor = TypedDict("KnownFloor", {"product": str, **fields(Floor)})


class ReadBulletins(TypedDict):
    """The newest floor of each series in a directory of bulletins; ``skipped`` is the number of skipped files."""

    bulletins: int
    skipped: int
    floors: list[KnownFloor]


class Runs(TypedDict):
    runs: list[RunSummary]


Run = TypedDict("Run", {**fields(RunSummary), "hosts": list[HostRun], "said": list[dict[str, Any]], "damaged": int})


class FollowedHosts(TypedDict):
    hosts: list[Followed]
    errors: list[Error]


class Lock(TypedDict):
    owner: str
    reason: str
    host: str
    since: str
    until: str
    schema: int
    readable: bool


class RunLock(TypedDict):
    owner: str
    run: str
    host: str
    machine: str
    pid: int
    started: str
    since: str
    lapses_s: float
    schema: int


class LockedHost(TypedDict):
    host: str
    lock: Lock | None
    before: Lock | None
    run: RunLock | None
    set_aside: Lock | None
    set_aside_before: Lock | None
    silent: str


class Locks(TypedDict):
    hosts: list[LockedHost]
    errors: list[Error]


class Decisions(TypedDict):
    decisions: dict[str, Decision]
    errors: list[Error]


class Rebuilt(TypedDict):
    run: str
    decisions: dict[str, Decision]
    rebuilds: list[Rebuild]
    errors: list[Error]
    untouched: list[str]
    stopped_because: str


class Report(TypedDict):
    target_s: float
    method: str
    outcomes: dict[Outcome, int]
    phases: list[Times]
    ways: list[Times]
    total: Times | None
    slow: dict[str, list[str]]
    last: list[Rebuild]


class Key(TypedDict):
    key_type: str
    fingerprint: str


class KnownKey(Key):
    where: str


class TrustedHost(TypedDict):
    host: str
    result: str
    before: list[KnownKey]
    now: list[Key]
    source: str
    files: list[str]


class Trusted(TypedDict):
    hosts: list[TrustedHost]
    errors: list[Error]


PoweredHost = TypedDict(
    "PoweredHost",
    {"host": str, "order": str, "before": Power, **fields(Machine), "console": str, "notes": list[str]},
)


class Powered(TypedDict):
    hosts: list[PoweredHost]
    errors: list[Error]


class MirroredFiles(TypedDict):
    files: list[Mirrored]


@dataclass(frozen=True, slots=True)
class Document:
    """A kind of document: where its schema lies, the type of its values, and which command lines print it."""

    folder: str
    values: Any
    verbs: tuple[str, ...]
    schema: Callable[[], dict[str, Any]] | None = None  #: of one that makes its schema itself


_CHANGING = (
    "provision", "remove", "rollback", "images.push", "serve.up", "serve.down", "serve.switch", "workspace.up",
    "workspace.down",
)  # fmt: skip

OF_ENGINE: Mapping[str, Document] = {
    "plan": Document(
        "look",
        Plans,
        ("plan", *(f"{verb} --check" for verb in ("provision", "remove", "rollback", "images.push", "images.rebuild"))),
    ),
    "verify": Document("look", Verified, ("verify",)),
    "prove": Document("look", None, ("prove",), proving.json_schema),
    "audit": Document("look", None, ("audit.fleet",), audits.json_schema),
    "history": Document("look", Histories, ("audit.history",)),
    "diff": Document("look", FleetDiff, ("audit.diff",)),
    "doctor": Document("look", Diagnosed, ("doctor",)),
    "vars": Document("look", AllVariables, ("vars",)),
    "hosts": Document("look", Hosts, ("hosts",)),
    "check": Document("look", SiteCheck, ("check",)),
    "command": Document("look", RanCommand, ("run",)),
    "stacks": Document("look", Stacks, ("stacks",)),
    "stackfits": Document("look", StackFits, ("stacks --hosts",)),
    "adopted": Document("keep", Adoption, ("adopt",)),
    "provision": Document("change", Changed, _CHANGING),
    "decisions": Document("change", Decisions, ("rebuild --check",)),
    "rebuild": Document("change", Rebuilt, ("rebuild",)),
    "times": Document("change", Report, ("rebuild --report",)),
    "power": Document("change", Powered, ("power",)),
    "trust": Document("change", Trusted, ("trust",)),
    "runs": Document("keep", Runs, ("runs.list",)),
    "run": Document("keep", Run, ("runs.show", "runs.follow")),
    "followed": Document("keep", FollowedHosts, ("runs.follow --hosts",)),
    "locks": Document("keep", Locks, ("lock", "unlock")),
    "mirror": Document("keep", MirroredFiles, ("mirror",)),
    "advisories": Document("keep", ReadBulletins, ("mirror --advisories",)),
}


def documents() -> dict[str, Document]:
    """All kinds of documents, those of roles too."""
    return OF_ENGINE | {kind: each for module in of_roles("documents") for kind, each in module.DOCUMENTS.items()}


def schemas() -> Iterator[tuple[str, dict[str, Any]]]:
    """The file of each kind, relative to ``docs/schemas``, and its schema (draft 2020-12)."""
    for kind, document in documents().items():
        yield f"{document.folder}/{kind}.json", _schema(kind, document)


def _schema(kind: str, document: Document) -> dict[str, Any]:
    made = document.schema() if document.schema else TypeAdapter(document.values).json_schema(mode="serialization")
    printed = " and ".join(f"`hostwright {verb} --json`" for verb in document.verbs)
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Hostwright {kind}",
        "description": f"What {printed} {'prints' if len(document.verbs) == 1 else 'print'}.",
    }
    named = {"kind": {"const": kind, "type": "string"}, "schema": {"const": 1, "type": "integer"}}
    properties = {**named, **made["properties"]}
    required = sorted({*made.get("required", ()), *named})
    left = {key: value for key, value in made.items() if key not in head}
    return {**head, **left, "properties": properties, "required": required}


def check(document: Mapping[str, Any]) -> None:
    """Hold a printed document to the schema of its kind, and to no field beside it. Raises ``AssertionError``."""
    kind = document["kind"]
    assert kind in documents(), f"the kind {kind!r} of document has no schema: add it to {__name__}"
    schema = json.loads((FOLDER / documents()[kind].folder / f"{kind}.json").read_text("utf-8"))
    validator = jsonschema.Draft202012Validator(closed(schema))
    wrong = [f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(document)]
    assert not wrong, f"`{kind}` is not of its schema ({FOLDER.name}/…/{kind}.json):\n" + "\n".join(wrong[:10])


def closed(schema: Any) -> Any:
    """A schema that allows only the fields that it names. Readers must allow more: fields may be added."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    more = {"additionalProperties": False} if isinstance(schema.get("properties"), dict) else {}
    return {**more, **{key: closed(value) for key, value in schema.items()}}


if __name__ == "__main__":
    for old in FOLDER.rglob("*.json"):
        old.unlink()
    for file, made in schemas():
        (FOLDER / file).parent.mkdir(exist_ok=True)
        (FOLDER / file).write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
