"""What is typed arrives: each option of each verb in the argument that it is meant for."""

from __future__ import annotations

from typing import Any

import pytest
from invoke import Context, Exit

from hostwright.apply.rollout.options import ChangeOptions, RolloutOptions
from hostwright.audit.auditor import AuditOptions
from hostwright.cli.arguments import ConnectionOptions, Selection
from hostwright.cli.tasks import change, keep, look, reach, restore
from hostwright.cli.verbs import audit, changes, history, inventory, locks, power, rebuild, runs, stacks, verify
from hostwright.cli.verbs.reaching import run, trust
from hostwright.cli.views.reports import Outputs
from hostwright.prove.proving import ProveOptions

NAMED = {"hosts": "gpu01", "inventory": ["site"]}
REACHED = {**NAMED, "ask_become_pass": True, "accept_new": True}
WANTED = {**REACHED, "var": ["a=1", "b=2"], "roles": "cuda"}
CHANGING = {**WANTED, "drain": True, "canary": "1", "batch": "2", "max_fail": "3"}
SOME, ALL = Selection("gpu01", ("site",)), Selection("gpu01", ("site",), ("a=1", "b=2"), "cuda")
CONNECTION = ConnectionOptions(ask_become_pass=True, accept_new=True)
CHANGE = ChangeOptions(drain=True, rollout=RolloutOptions("1", "2", "3"))
JSON = {"json": True}

#: the task, what is typed, and the call that comes of it: module, function, arguments, keywords
CASES: list[tuple[Any, dict[str, Any], Any, str, tuple[Any, ...], dict[str, Any]]] = [
    (look.plan, {**WANTED, **JSON, "out": "f", "summary": True}, changes, "plan", (ALL, CONNECTION),
     {"out": "f", "summary": True}),
    (look.verify, {**WANTED, **JSON, "prove": "quick", "details": True}, verify, "verify", (ALL, CONNECTION),
     {"prove": "quick", "details": True}),
    (
        look.prove,
        {**WANTED, **JSON, "quick": True, "proofs": "base,cuda.memory", "baseline": True, "html": "h",
         "prometheus": "p", "at_once": "4", "details": True},
        verify, "prove",
        (ALL, CONNECTION, ProveOptions("quick", ("base", "cuda.memory"), baseline=True, at_once=4),
         verify.ProofOutputs("p", "h")),
        {"details": True},
    ),
    (
        look.audit_fleet,
        {**WANTED, **JSON, "csv": "c", "junit": "j", "prometheus": "p", "html": "h", "cyclonedx": "b",
         "watch": "60s", "offline": True, "no_sudo": True, "at_once": "7", "details": True},
        audit, "audit",
        (ALL, CONNECTION, Outputs("c", "j", "p", "h", "b"), AuditOptions(sudo=False, offline=True, at_once=7)),
        {"every": "60s", "details": True},
    ),
    (look.audit_history, {**NAMED, **JSON, "since": "7d", "details": True}, history, "history", (SOME,),
     {"since": "7d", "details": True}),
    (look.audit_diff, {**NAMED, **JSON}, history, "diff", (SOME,), {"since": "7d"}),
    (look.doctor, {**WANTED, **JSON, "no_sudo": True}, audit, "doctor",
     (ALL, CONNECTION, AuditOptions(sudo=False)), {}),
    (look.variables, {**NAMED, **JSON, "var": ["a=1", "b=2"], "roles": "cuda", "why": True}, inventory, "variables",
     (ALL,), {"why": True}),
    (look.hosts, {**JSON, "strict": True}, inventory, "hosts", (Selection("all"),), {}),
    (look.check, {"inventory": ["site"], **JSON}, inventory, "check", (Selection(inventory=("site",)),), {}),
    (look.stacks, {"inventory": ["site"], **JSON}, stacks, "stacks", (Selection(inventory=("site",)),), {}),
    (
        change.provision,
        {**CHANGING, **JSON, "force": True, "check": True, "plan": "f", "no_reboot": True, "resume": True,
         "prove": "full"},
        changes, "provision",
        (ALL, CONNECTION, ChangeOptions(drain=True, no_reboot=True, rollout=CHANGE.rollout)),
        {"force": True, "check": True, "saved": "f", "resume": True, "prove": "full", "timeline": ""},
    ),
    (change.remove, {**CHANGING, **JSON, "force": True, "check": True}, changes, "remove", (ALL, CONNECTION, CHANGE),
     {"force": True, "check": True}),
    (restore.rollback, {**CHANGING, **JSON, "to": "x"}, changes, "rollback", (ALL, CONNECTION, CHANGE),
     {"force": False, "check": False, "to": "x"}),
    (restore.rebuild, {**CHANGING, **JSON, "from_": "repair", "force": True, "prove": "quick"}, rebuild, "rebuild",
     (ALL, CONNECTION, CHANGE), {"force": True, "check": False, "start": "repair", "prove": "quick", "timeline": ""}),
    (restore.rebuild, {**WANTED, **JSON, "report": True, "since": "7d"}, rebuild, "rebuild_report", (ALL,),
     {"since": "7d"}),
    (restore.trust, {**NAMED, **JSON, "fingerprint": "SHA256:x", "forget": True}, trust, "trust", (SOME,),
     {"fingerprint": "SHA256:x", "forget": True}),
    (restore.power,
     {"order": "on", **REACHED, **JSON, "force": True, "yes": True, "boot": "media", "image": "u"}, power, "power",
     ("on", SOME, CONNECTION), {"force": True, "yes": True, "boot": "media", "image": "u"}),
    (keep.lock, {**REACHED, **JSON, "reason": "RMA", "for_": "3d", "force": True}, locks, "lock", (SOME, CONNECTION),
     {"reason": "RMA", "lasts": "3d", "force": True}),
    (keep.lock, {**REACHED, **JSON, "list": True}, locks, "locks", (SOME, CONNECTION), {}),
    (keep.unlock, {**REACHED, **JSON, "force": True}, locks, "unlock", (SOME, CONNECTION), {"force": True}),
    (reach.run, {**REACHED, **JSON, "canary": "1", "batch": "2", "max_fail": "3", "root": True, "timeout": "5m",
                 "force": True}, run, "run",
     (SOME, CONNECTION, ChangeOptions(rollout=RolloutOptions("1", "2", "3")), ("echo", "a  b", "--", "c")),
     {"root": True, "timeout": "5m", "force": True}),
    (keep.runs_list, {**JSON, "limit": 3}, runs, "runs", (), {"limit": 3}),
    (keep.runs_show, {**JSON, "run": "r", "hosts": "gpu01", "details": True, "steps": True, "html": "f"}, runs,
     "runs_show", (),
     {"run": "r", "hosts": "gpu01", "details": True, "steps": True, "html": "f"}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case[0].name for case in CASES])
def test_every_option_reaches_its_verb(monkeypatch: pytest.MonkeyPatch, case: tuple[Any, ...]) -> None:
    task, typed, module, name, arguments, keywords = case
    given: list[Any] = []
    monkeypatch.setattr(module, name, lambda *args, **more: given.append((args, more)) or 0)
    monkeypatch.setattr("sys.argv", ["invoke", "run", "--", "echo", "a  b", "--", "c"])
    task(Context(), **typed)
    assert given == [(arguments, {**keywords, "as_json": True})]


def test_a_mirror_gets_its_stack_and_source(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(stacks, "mirror", lambda *args, **more: given.append((args, more)) or 0)
    keep.mirror(Context(), stack="s", inventory=["site"], from_="d", export="e", pythons="3.9", systems="debian-12",
                sources="f", keyring="k", renew=True)  # fmt: skip
    places, packages = stacks.FilePlaces("d", "e"), stacks.PackageWords("debian-12", "f", "k", renew=True)
    more = {"stack": "s", "pythons": "3.9", "packages": packages, "as_json": False}
    assert given == [((Selection(inventory=("site",)), places), more)]


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
