"""Proofs for tests: programs of a fake layer, run by the real shell like a job, and results of hosts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hostwright.apply.jobs import scripting
from hostwright.plan.host import jobs as hostjobs
from hostwright.plan.model import RoleResult
from hostwright.prove.fleetproof import FleetProof, HostProof
from hostwright.prove.job import ProgramEnd, ended, job_plan
from hostwright.prove.model import Measurement, Outcome, Program, Proof, ProofResult
from tests.unit.support.hostjobs import run_steps

NONCE = "f00dcafe"
END = "print('{\"end\": true}')\n"
TICKS = 'print(\'{"measure": "ticks", "value": 2.5, "unit": "M/s", "device": "cpu", "better": "more"}\')\n'


def proof(source: str, name: str = "ticks", **more: object) -> Proof:
    """A proof of the layer ``clock``: a program for this Python, on a host with or without a GPU."""
    program = more.pop("program", None) or Program(f"{name}.py", source, (sys.executable,), {"seconds": 1})
    return Proof(name, "clock", program, **{"needs_gpu": False, **more})  # type: ignore[arg-type]


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *proofs: Proof, watch: str = "") -> list[ProgramEnd]:
    """Run the job of these proofs below ``tmp_path``; return how each program ended."""
    result = run_job(tmp_path, monkeypatch, *proofs, watch=watch)
    assert [step.status for step in result.steps] == [0] * len(proofs)
    return [ended(step, NONCE) for step in result.steps]


def run_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *proofs: Proof, watch: str = "") -> RoleResult:
    """Run the job; return its result."""
    monkeypatch.setattr(hostjobs, "WORK_DIRS", (str(tmp_path / "work"),))
    monkeypatch.setattr(scripting, "LOCK_DIR", str(tmp_path / "locks"))
    return run_steps(job_plan(proofs, NONCE, watch), tmp_path / "job")


def result(
    *measurements: Measurement, proof: str = "clock.ticks", outcome: Outcome = "passed", sentence: str = ""
) -> ProofResult:
    """The result of a proof."""
    return ProofResult(proof, outcome, sentence, 1.0, "0" * 64, measurements)


def ticks(value: float, device: str = "cpu (EPYC)") -> Measurement:
    """A measurement that is compared."""
    return Measurement("ticks", value, "M/s", device, "more")


def host(name: str, *results: ProofResult, sentence: str = "") -> HostProof:
    """The results of a host."""
    return HostProof(name, "plain", "2026-11-23T08:00:00+00:00", sentence, results, "EPYC")


def fleet(*hosts: HostProof, at: str = "2026-11-23T08:00:00+00:00", inventory: str = "/site/inventory") -> FleetProof:
    """The results of a run of proofs."""
    return FleetProof(at, inventory, "full", hosts, "median and MAD", 12.0, "run1")
