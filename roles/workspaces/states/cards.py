"""Assignment of GPUs to workspaces by UUID, so that a GPU's slot does not matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from hostwright.resources import Facts, Probe
from hostwright.roles import Pattern
from hostwright.standard.roles.driver.nvsmi.report import NVIDIA_SMI, read_report
from hostwright.standard.roles.workspaces.declared.gpus import CARD, MIG, clash, is_mig
from hostwright.standard.roles.workspaces.declared.promises import not_shared
from hostwright.standard.roles.workspaces.declared.workspace import Workspace
from hostwright.standard.roles.workspaces.states.facts import SpaceContainer, WorkspaceFacts

#: probe that lists GPUs and MIG devices with UUIDs, because R470's XML report lacks UUIDs of MIG devices
LISTED = Probe("command -v nvidia-smi >/dev/null 2>&1 || exit 127; timeout -k 5 30 nvidia-smi -L")
_CARD = Pattern(rf"GPU [0-9]{{1,3}}: .{{0,200}}\(UUID: ({CARD})\)")
_PART = Pattern(rf"MIG .{{1,40}} Device +[0-9]{{1,3}}: \(UUID: ({MIG})\)")


@dataclass(frozen=True, slots=True)
class HostCards:
    """GPUs of a host, with their MIG devices."""

    uuids: tuple[str, ...]  #: UUIDs of the host's GPUs, in nvidia-smi's order
    parts: Mapping[str, str] = field(default_factory=dict)  #: UUID of a MIG device → UUID of the GPU with this device


@dataclass(frozen=True, slots=True)
class CardsGiven:
    """UUIDs of a workspace's GPUs, or the reason to refuse the workspace."""

    uuids: tuple[str, ...] = ()
    refused: str = ""


def card_probes(workspaces: Sequence[Workspace]) -> tuple[Probe, ...]:
    """Return the probes for the GPUs of ``workspaces``. MIG devices are listed only if declared."""
    gpus = [gpu for space in workspaces for gpu in space.entry.gpus]
    return (NVIDIA_SMI, *((LISTED,) if any(map(is_mig, gpus)) else ())) if gpus else ()


def cards_of_host(workspaces: Sequence[Workspace], facts: Facts) -> HostCards | None:
    """Return the host's GPUs; ``None`` if nvidia-smi does not respond or prints unexpected text."""
    if not all(facts[probe].ok for probe in card_probes(workspaces)):
        return None
    try:
        uuids = tuple(gpu.uuid for gpu in read_report(facts[NVIDIA_SMI].text).gpus)
    except ValueError:
        return None
    return HostCards(uuids, parts_of(facts[LISTED].text) if LISTED in card_probes(workspaces) else {})


def parts_of(listing: str) -> dict[str, str]:
    """Return UUID of a MIG device → UUID of its GPU. ``listing``: output of ``nvidia-smi -L``."""
    parts: dict[str, str] = {}
    card = ""
    for line in map(str.strip, listing.splitlines()):
        if line.startswith("GPU "):
            match = _CARD.fullmatch(line)
            card = match[1] if match else ""
        elif card and (match := _PART.fullmatch(line)):
            parts[match[1]] = card
    return parts


def card_of(gpu: str, uuids: tuple[str, ...]) -> str:
    """Return the UUID of the GPU with the index or UUID ``gpu``; empty if this GPU is not in ``uuids``."""
    if gpu.isdigit() and int(gpu) < len(uuids) and uuids[int(gpu)].startswith("GPU-"):
        return uuids[int(gpu)]
    return gpu if gpu in uuids else ""


def give_cards(
    workspaces: Sequence[Workspace],
    found: WorkspaceFacts,
    cards: HostCards,
    reserved: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, CardsGiven]:
    """Return name → assigned GPUs for each workspace. Workspaces with a container have priority and keep their GPUs.

    ``reserved``: GPU (index or UUID) that no workspace gets → role that reserves the GPU.
    """
    kept_back = {card_of(gpu, cards.uuids): role for gpu, role in reserved.items()}
    given: dict[str, CardsGiven] = {}
    containers = {space.name: found.container(space.name) for space in workspaces}
    for space in sorted(workspaces, key=lambda space: (containers[space.name] is None, space.name)):
        held = containers[space.name]
        uuids, refused = _resolve(space, held, cards)
        refused = refused or _reserved(space, uuids, kept_back, cards)
        refused = refused or _taken(space, uuids, given, {other.name: other for other in workspaces}, cards)
        given[space.name] = CardsGiven((), refused) if refused else CardsGiven(uuids)
    return given


def _resolve(space: Workspace, held: SpaceContainer | None, cards: HostCards) -> tuple[tuple[str, ...], str]:
    kept: Mapping[str, str] = {}
    if held is not None and held.asked == ",".join(space.entry.gpus) and len(held.uuids) == len(space.entry.gpus):
        kept = dict(zip(space.entry.gpus, held.uuids, strict=True))
    uuids: list[str] = []
    for gpu in space.entry.gpus:
        if kept.get(gpu) in cards.uuids:
            uuids.append(kept[gpu])
        elif gpu in cards.parts:
            uuids.append(gpu)
        elif card := card_of(gpu, cards.uuids):
            uuids.append(card)
        else:
            return (), _missing(space, gpu, kept.get(gpu, ""), cards)
    return tuple(uuids), ""


def _missing(space: Workspace, gpu: str, had: str, cards: HostCards) -> str:
    there = ", ".join(f"{number} ({uuid})" for number, uuid in enumerate(cards.uuids)) or "none"
    if is_mig(gpu):
        parts = f", with the MIG devices {', '.join(cards.parts)}" if cards.parts else ", and no MIG device"
        return (
            f"workspace {space.name} wants GPU {gpu}, which the host does not have; it has {there}{parts} (a reset or"
            " reboot removes MIG devices until they are created again; check nvidia-smi mig -lgi)"
        )
    before = f", nor {had}, which the workspace had before" if had else ""
    return f"workspace {space.name} wants GPU {gpu}, which the host does not have{before}; it has {there}"


def _reserved(space: Workspace, uuids: tuple[str, ...], reserved: Mapping[str, str], cards: HostCards) -> str:
    both = clash(uuids, tuple(reserved), cards.parts)
    if both is None:
        return ""
    role = reserved[both[1]]
    part = "" if both[0] == both[1] else f", the GPU of {both[0]},"
    return (
        f"workspace {space.name} wants GPU {', '.join(space.entry.gpus)}, but {both[1]}{part} is reserved by the role"
        f" {role}; name another GPU (nvidia-smi -L), or remove it from {role}_gpus"
    )


def _taken(
    space: Workspace,
    uuids: tuple[str, ...],
    given: Mapping[str, CardsGiven],
    spaces: Mapping[str, Workspace],
    cards: HostCards,
) -> str:
    wants = f"workspace {space.name} wants GPU {', '.join(space.entry.gpus)}"
    own = next((both for n, uuid in enumerate(uuids) if (both := clash((uuid,), uuids[:n], cards.parts))), None)
    if own is not None:
        return f"{wants}: {own[0]} is {own[1]}, or one is a MIG device of the other; name each once"
    for other, theirs in given.items():
        both = not_shared(space.entry, uuids, spaces[other].entry, theirs.uuids, cards.parts)
        if both is not None:
            what = both[1] if both[0] == both[1] else f"{both[1]}, {_kin(both, cards)},"
            return (
                f"{wants}, but {what} belongs to {other}; name another GPU (nvidia-smi -L), or set share: true for both"
            )
    return ""


def _kin(both: tuple[str, str], cards: HostCards) -> str:
    return f"a MIG device on {both[0]}" if both[1] in cards.parts else f"the GPU of {both[0]}"
