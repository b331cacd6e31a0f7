"""What is typed arrives: each option of each verb in the argument that it is meant for."""

from __future__ import annotations

from typing import Any

import pytest
from invoke import Context, Exit

from hostwright.audit.auditor import AuditOptions
from hostwright.cli.tasks import change, keep, look, reach, restore
from hostwright.cli.verbs import audit, changes, history, inventory, locks, power, rebuild, runs, stacks, verify
from hostwright.cli.verbs.reaching import run, trust
from hostwright.cli.views.reports import Outputs
from hostwright.common.request import OPTIONS, Request
from hostwright.prove.proving import ProveOptions

NAMED = {"hosts": "gpu01", "inventory": ["site"], "json": True}
REACHED = {**NAMED, "ask_become_pass": True, "accept_new": True}
WANTED = {**REACHED, "var": ["a=1", "b=2"], "roles": "cuda"}
CHANGING = {**WANTED, "drain": True, "canary": "1", "batch": "2", "max_fail": "3"}

#: the task, what is typed, and the call that comes of it: module, function, arguments behind the request, keywords
CASES: list[tuple[Any, dict[str, Any], Any, str, tuple[Any, ...], dict[str, Any]]] = [
    (look.plan, {**WANTED, "out": "f", "summary": True}, changes, "plan", (), {"out": "f", "summary": True}),
    (look.verify, {**WANTED, "prove": "quick", "details": True}, verify, "verify", (), {}),
    (
        look.prove,
        {**WANTED, "quick": True, "proofs": "base,cuda.memory", "baseline": True, "html": "h", "prometheus": "p",
         "at_once": "4", "details": True},
        verify, "prove",
        (ProveOptions("quick", ("base", "cuda.memory"), baseline=True, at_once=4), verify.ProofOutputs("p", "h")), {},
    ),
    (
        look.audit_fleet,
        {**WANTED, "csv": "c", "junit": "j", "prometheus": "p", "html": "h", "cyclonedx": "b", "watch": "60s",
         "offline": True, "no_sudo": True, "at_once": "7", "details": True},
        audit, "audit",
        (Outputs("c", "j", "p", "h", "b"), AuditOptions(sudo=False, offline=True, at_once=7)), {"every": "60s"},
    ),
    (look.audit_history, {**NAMED, "since": "7d", "details": True}, history, "history", (), {}),
    (look.audit_diff, {**NAMED, "since": "7d"}, history, "diff", (), {}),
    (look.doctor, {**WANTED, "no_sudo": True}, audit, "doctor", (AuditOptions(sudo=False),), {}),
    (look.variables, {**NAMED, "var": ["a=1", "b=2"], "roles": "cuda", "why": True}, inventory, "variables", (),
     {"why": True}),
    (look.hosts, {"hosts": "all", "json": True, "strict": True}, inventory, "hosts", (), {}),
    (look.check, {"inventory": ["site"], "json": True}, inventory, "check", (), {}),
    (look.stacks, {"inventory": ["site"], "json": True}, stacks, "stacks", (), {}),
    (
        change.provision,
        {**CHANGING, "force": True, "check": True, "plan": "f", "no_reboot": True, "resume": True, "prove": "full"},
        changes, "provision", (), {},
    ),
    (change.remove, {**CHANGING, "force": True, "check": True}, changes, "remove", (), {}),
    (restore.rollback, {**CHANGING, "to": "x"}, changes, "rollback", (), {"to": "x"}),
    (restore.rebuild, {**CHANGING, "from_": "repair", "force": True, "prove": "quick"}, rebuild, "rebuild", (),
     {"start": "repair"}),
    (restore.rebuild, {**WANTED, "report": True, "since": "7d"}, rebuild, "rebuild_report", (), {}),
    (restore.trust, {**NAMED, "fingerprint": "SHA256:x", "forget": True}, trust, "trust", (),
     {"fingerprint": "SHA256:x", "forget": True}),
    (restore.power, {"order": "on", **REACHED, "force": True, "yes": True, "boot": "media", "image": "u"}, power,
     "power", ("on",), {"boot": "media", "image": "u"}),
    (keep.lock, {**REACHED, "reason": "RMA", "for_": "3d", "force": True}, locks, "lock", (),
     {"reason": "RMA", "lasts": "3d"}),
    (keep.lock, {**REACHED, "list": True}, locks, "locks", (), {}),
    (keep.unlock, {**REACHED, "force": True}, locks, "unlock", (), {}),
    (reach.run, {**REACHED, "canary": "1", "batch": "2", "max_fail": "3", "root": True, "timeout": "5m", "force": True},
     run, "run", (("echo", "a  b", "--", "c"),), {"root": True, "timeout": "5m"}),
    (keep.runs_list, {"json": True, "limit": 3}, runs, "runs", (), {}),
    (keep.runs_show, {"json": True, "run": "r", "hosts": "gpu01", "details": True, "steps": True, "html": "f"}, runs,
     "runs_show", (), {"run": "r", "steps": True, "html": "f"}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case[0].name for case in CASES])
def test_every_option_reaches_its_verb(monkeypatch: pytest.MonkeyPatch, case: tuple[Any, ...]) -> None:
    task, typed, module, name, arguments, keywords = case
    given: list[Any] = []
    monkeypatch.setattr(module, name, lambda *args, **more: given.append((args, more)) or 0)
    monkeypatch.setattr("sys.argv", ["invoke", "run", "--", "echo", "a  b", "--", "c"])
    task(Context(), **typed)
    fields = {name: typed[name] for name in typed.keys() & OPTIONS.keys()}
    request = Request(**{name: tuple(each) if isinstance(each, list) else each for name, each in fields.items()})
    assert given == [((request, *arguments), keywords)]


def test_a_mirror_gets_its_stack_and_source(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(stacks, "mirror", lambda *args, **more: given.append((args, more)) or 0)
    keep.mirror(Context(), stack="s", inventory=["site"], from_="d", export="e", pythons="3.9", systems="debian-12",
                sources="f", keyring="k", renew=True)  # fmt: skip
    places, packages = stacks.FilePlaces("d", "e"), stacks.PackageWords("debian-12", "f", "k", renew=True)
    more = {"stack": "s", "pythons": "3.9", "packages": packages}
    assert given == [((Request(inventory=("site",)), places), more)]


def test_what_differs_is_an_exit_status_and_bad_input_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(changes, "plan", lambda *_, **__: 3)
    with pytest.raises(Exit) as differs:
        look.plan(Context(), hosts="gpu01")
    with pytest.raises(Exit) as wrong:
        look.audit_fleet(Context(), at_once="many")
    assert (differs.value.code, wrong.value.code) == (3, 2)
    assert "--at-once: found 'many', expected a number of hosts" in capsys.readouterr().err
