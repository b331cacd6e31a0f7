"""Proofs (tests on a host) of JAX: correct results on every device of one host and of several hosts."""

from __future__ import annotations

from collections.abc import Mapping

from hostwright.proofs import Expected, Measurements, Program, Proof, ProofFinding
from hostwright.resources import EnvironmentVariables
from hostwright.roles import RoleContext
from hostwright.standard.roles.base.proofs.sources import python_source
from hostwright.standard.roles.cuda.proofs.frameworks import DevicesJudge, within
from hostwright.standard.roles.cuda.wheels import major_of, pins_of
from hostwright.standard.roles.jax.section import JaxSection

LIMIT_S = 1200.0  #: time limit in seconds of a proof (our choice)
#: TCP ports of a proof over several hosts, unassigned in IANA's registry. ``MEETING_PORT`` is for JAX's coordinator.
PORT, MEETING_PORT = 29475, 29476


def proofs(variables: EnvironmentVariables, ctx: RoleContext) -> tuple[Proof, ...]:
    """Return the proof of a host's devices, and the proof of a matrix product over several hosts."""
    section = ctx.section(JaxSection)
    python, packages = (f"{section.home(variables.path)}/bin/python",), wanted(section)
    devices = Program("devices.py", python_source(__file__, "devices.py"), python, {"packages": list(packages)})
    together = {"steps": 20, "start_limit_s": 300, "step_limit_s": 60, "port": PORT, "meeting_port": MEETING_PORT}
    over_hosts = Program("workers.py", python_source(__file__, "workers.py"), python, together)
    judge = DevicesJudge("JAX", packages).judge
    return (
        Proof("devices", "jax", devices, judge, "quick", LIMIT_S, needs_gpu=False),
        Proof("workers", "jax", over_hosts, workers, "full", LIMIT_S, needs_gpu=False, hosts=2),
    )


def wanted(section: JaxSection) -> Mapping[str, tuple[str, str]]:
    """Return package → subject of a finding and the stack's version, for JAX, jaxlib and the CUDA plugin."""
    pins, plugin = pins_of(section), f"jax-cuda{major_of(section)}-plugin"
    versions = {"jax": section.version, **{name: pins[name] for name in ("jaxlib", plugin) if name in pins}}
    return {name: (f"version of {name}", version) for name, version in versions.items()}


def workers(measured: Measurements, _expected: Expected) -> tuple[ProofFinding, ...]:
    """Return a finding if the matrix product over all devices of all hosts is wrong."""
    return tuple(within(measured, "product", 0.0, "the product over all devices"))
