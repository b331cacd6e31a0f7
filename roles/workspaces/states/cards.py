"""Which of a host's GPUs each workspace gets: by UUID, so that a card in another slot changes nobody's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hostwright.plan.model import Facts
from hostwright.standard.roles.driver.nvsmi.report import NVIDIA_SMI, read_report
from hostwright.standard.roles.workspaces.declared.promises import may_share
from hostwright.standard.roles.workspaces.declared.workspace import Workspace
from hostwright.standard.roles.workspaces.states.look import SpaceContainer, WorkspaceFacts


@dataclass(frozen=True, slots=True)
class CardsGiven:
    """The UUIDs of the GPUs that a workspace gets, or the sentence that says why it gets none."""

    uuids: tuple[str, ...] = ()
    refused: str = ""


def cards_of_host(facts: Facts) -> tuple[str, ...] | None:
    """The UUIDs of the host's GPUs in nvidia-smi's order; ``None`` where it does not answer."""
    answer = facts[NVIDIA_SMI]
    if not answer.ok:
        return None
    try:
        return tuple(gpu.uuid for gpu in read_report(answer.text).gpus)
    except ValueError:
        return None


def give_cards(workspaces: Sequence[Workspace], look: WorkspaceFacts, cards: tuple[str, ...]) -> dict[str, CardsGiven]:
    """What each workspace gets. Those that have a container come first and keep their cards, then by name."""
    given: dict[str, CardsGiven] = {}
    containers = {space.name: look.container(space.name) for space in workspaces}
    for space in sorted(workspaces, key=lambda space: (containers[space.name] is None, space.name)):
        held = containers[space.name]
        uuids, refused = _resolve(space, held, cards)
        refused = refused or _taken(space, uuids, given, {other.name: other for other in workspaces})
        given[space.name] = CardsGiven((), refused) if refused else CardsGiven(uuids)
    return given


def _resolve(space: Workspace, held: SpaceContainer | None, cards: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    kept: Mapping[str, str] = {}
    if held is not None and held.asked == ",".join(space.entry.gpus) and len(held.uuids) == len(space.entry.gpus):
        kept = dict(zip(space.entry.gpus, held.uuids, strict=True))
    uuids = []
    for gpu in space.entry.gpus:
        if kept.get(gpu) in cards:
            uuids.append(kept[gpu])
        elif gpu in cards:
            uuids.append(gpu)
        elif gpu.isdigit() and int(gpu) < len(cards) and cards[int(gpu)].startswith("GPU-"):
            uuids.append(cards[int(gpu)])
        else:
            return (), _missing(space, gpu, kept.get(gpu, ""), cards)
    return tuple(uuids), ""


def _missing(space: Workspace, gpu: str, had: str, cards: tuple[str, ...]) -> str:
    there = ", ".join(f"{number} ({uuid})" for number, uuid in enumerate(cards)) or "none"
    before = f", and {had}, which it had, is not there either" if had else ""
    return f"workspace {space.name} wants GPU {gpu}, which the host does not have{before}; it has {there}"


def _taken(
    space: Workspace, uuids: tuple[str, ...], given: Mapping[str, CardsGiven], spaces: Mapping[str, Workspace]
) -> str:
    """Two names of one card, or a number that another workspace's card had before it was moved."""
    for other, theirs in given.items():
        both = [uuid for uuid in uuids if uuid in theirs.uuids]
        if both and not may_share(space.entry, spaces[other].entry):
            return (
                f"workspace {space.name} wants GPU {', '.join(space.entry.gpus)}, and {both[0]} is {other}'s: name "
                "another (nvidia-smi -L lists them), or each of the two must say share: true"
            )
    return ""
