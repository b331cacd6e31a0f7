"""State of the GPUs for users' Jupyter servers: present on the host, and not used by a workspace."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import Deferred, Facts, Planned, Probe, Refusal, Resource
from hostwright.standard.roles.driver.nvsmi.report import NVIDIA_SMI
from hostwright.standard.roles.workspaces.declared.gpus import clash
from hostwright.standard.roles.workspaces.states.cards import card_of, cards_of_host
from hostwright.standard.roles.workspaces.states.facts import WORKSPACES_PROBE, read_workspaces

WHAT = "GPUs of JupyterHub"


@dataclass(frozen=True, slots=True)
class HubCards(Resource):
    """The host has all GPUs in ``gpus``, and no workspace uses them."""

    gpus: tuple[str, ...]  #: GPUs for users' Jupyter servers, as indexes or UUIDs

    def probes(self) -> tuple[Probe, ...]:
        return (NVIDIA_SMI, WORKSPACES_PROBE) if self.gpus else ()

    def plan(self, facts: Facts) -> Planned | None:
        if not self.gpus:
            return None
        want = f"GPU {', '.join(self.gpus)}"
        host = cards_of_host((), facts)
        if host is None:
            return Deferred(WHAT, "nvidia-smi does not answer", want, "the driver answers")
        has = ", ".join(f"{number} ({uuid})" for number, uuid in enumerate(host.uuids)) or "none"
        uuids: dict[str, str] = {}
        for gpu in self.gpus:
            uuid = card_of(gpu, host.uuids)
            if not uuid:
                return _refused(want, f"jupyterhub_gpus names GPU {gpu}, but the host has only {has}")
            if uuid in uuids:
                return _refused(want, f"jupyterhub_gpus names one GPU twice: {uuids[uuid]} and {gpu} are both {uuid}")
            uuids[uuid] = gpu
        for held in read_workspaces(facts).containers:
            both = clash(tuple(uuids), held.uuids, {})
            if both:
                return _refused(
                    want,
                    f"jupyterhub_gpus names GPU {uuids[both[0]]} ({both[0]}). The workspace {held.workspace} of "
                    f"{held.user} uses that GPU; remove it from jupyterhub_gpus, or give the workspace another GPU "
                    "first",
                )
        return None

    def removal(self) -> tuple[Resource, ...]:
        return ()


def _refused(want: str, sentence: str) -> Refusal:
    return Refusal(WHAT, "not possible", want, "jupyterhub-gpu", sentence)
