"""Hosts that are looked at: checks, audits, proofs, and runs that somebody else started."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.pictures.hosts import KINDS
from tests.pictures.replayed.call import NOW, hold, pause
from tests.pictures.replayed.changing import operator_lock

NVSMI = (
    "nvidia-smi ended with 9: NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure "
    "that the latest NVIDIA driver is installed and running."
)
SENTENCES = ("Its packages have the versions of the stack.", "What it installed is found and works.")


def checks(_self: Any, target: Any, _password: Any) -> Any:
    """``Checks.of``."""
    from hostwright.verify.verdict import Check

    hold()
    bad, bare = KINDS[target.name] == "failed", KINDS[target.name] == "bare"

    def why(role: str, number: int) -> str:
        if bare:
            return "the host has none"
        return NVSMI if bad and role == "driver" and number == 1 else ""

    return tuple(
        Check(
            role.name, f"test_{role.name}_{number}", sentence, not why(role.name, number), 0.4, why(role.name, number)
        )
        for role in target.roles
        for number, sentence in enumerate(SENTENCES)
    )


def audited(target: Any, connect: Any, *, sudo: bool = True, known: Any = None) -> Any:
    """``audit_host``."""
    from hostwright.audit.judging.judging import unread
    from hostwright.common.errors import HostError
    from tests.unit.support import audits

    kind = KINDS[target.name]
    if kind == "unreachable":
        try:
            connect(target)
        except HostError as error:
            return unread(target, error.sentence, NOW), None
    hold()
    new = tuple(
        audits.Deviation(layer, f"packages of {layer}", "absent", "as in the stack", "new")
        for layer in ("base", "driver", "cuda")
    )
    how: dict[str, Any] = {
        "as desired": {},
        "changed": {"status": "drift", "layers": {"cuda": "drift"}, "deviations": (audits.LINK,)},
        "bare": {"status": "new", "layers": dict.fromkeys(audits.LAYERS[:3], "new"), "record": None, "deviations": new},
        "pending": {"layers": {"cuda": "warning"}, "findings": (audits.WARNING,)},
        "failed": {
            "status": "failing",
            "layers": {"gpu": "failing"},
            "findings": (audits.XID,),
            "xids": (audits.LOST,),
        },
        "locked": {"notes": (str(operator_lock(target.name)),)},
    }[kind]
    return replace(audits.host(target.name, **how), stack=target.stack.name, at=NOW.isoformat()), None


def proved(self: Any) -> Any:
    """``HostProve.prove``."""
    from hostwright.apply.events import Waiting
    from hostwright.prove.fleetproof import HostProof
    from hostwright.prove.model import Measurement, ProofFinding, ProofResult

    target, name, kind = self._target, self._target.name, KINDS[self._target.name]
    if kind == "unreachable":
        self._connection.use(lambda _: None)
    self._emit(Waiting(name, "its proofs"))
    hold()
    results = []
    for proof in (*self._proofs, *self._later):
        bad = kind == "failed" and not results
        value = Measurement("matmul float32", 4.1 if bad else 8.2, "Tflop/s", "GPU-6e2c1f (Tesla T4)", "more")
        sentence = "matmul float32: half of what it was when the host was accepted"
        found = (
            (ProofFinding(sentence, "GPU-6e2c1f (Tesla T4)", "failed", "4.1 Tflop/s", "8.2 Tflop/s", proof.key),)
            if bad
            else ()
        )
        outcome = "failed" if bad else "not run" if kind == "locked" else "passed"
        why = sentence if bad else str(operator_lock(name)) if kind == "locked" else ""
        results.append(ProofResult(proof.key, outcome, why, 12.5, "0" * 64, (value,), found))
    return HostProof(name, target.stack.name, NOW.isoformat(), "", tuple(results), "AMD EPYC 7543", (),
                     target.stand_ins)  # fmt: skip


def followed(self: Any) -> Any:
    """``_Following.to_the_end``: the run of a colleague on hosts that change, and nobody on the others."""
    from hostwright.apply.events import HostEnded, RoleFinished, RoleStarted
    from hostwright.apply.rollout.following import Followed
    from hostwright.plan.model import RoleResult

    connection, emit = self._connection, self._emit
    name = connection.host
    kind = KINDS[name]
    if kind == "unreachable":
        connection.use(lambda _: None)
    if kind not in {"changed", "failed", "pending", "bare"}:
        return Followed(name)
    run = "20261124t0315-4711"
    emit(RoleStarted(name, "driver", 11, f"hostwright-{run}-driver"))
    pause()
    hold()
    status = 10 if kind == "failed" else 0
    emit(RoleFinished(name, "driver", RoleResult("driver", status, 84.0)))
    emit(HostEnded(name, "failed" if status else "changed"))
    failed = ("driver",) if status else ()
    return Followed(name, run, "ada@desk", () if status else ("driver",), failed)
