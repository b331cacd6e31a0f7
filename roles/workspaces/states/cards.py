"""Which of a host's GPUs each workspace gets: by UUID, so that a card in another slot changes nobody's."""

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

#: MIG devices have their UUIDs there alone: the report of R470 does not name them.
LISTED = Probe("command -v nvidia-smi >/dev/null 2>&1 || exit 127; timeout -k 5 30 nvidia-smi -L")
_CARD = Pattern(rf"GPU [0-9]{{1,3}}: .{{0,200}}\(UUID: ({CARD})\)")
_PART = Pattern(rf"MIG .{{1,40}} Device +[0-9]{{1,3}}: \(UUID: ({MIG})\)")


@dataclass(frozen=True, slots=True)
class HostCards:
    """The GPUs of a host."""

    uuids: tuple[str, ...]  #: of its cards, in nvidia-smi's order
    parts: Mapping[str, str] = field(default_factory=dict)  #: its MIG devices, each with the card that it is a part of


@dataclass(frozen=True, slots=True)
class CardsGiven:
    """The UUIDs of the GPUs that a workspace gets, or the sentence that says why it gets none."""

    uuids: tuple[str, ...] = ()
    refused: str = ""


def card_probes(workspaces: Sequence[Workspace]) -> tuple[Probe, ...]:
    """What has to be known for these: MIG devices only where one is named."""
    gpus = [gpu for space in workspaces for gpu in space.entry.gpus]
    return (NVIDIA_SMI, *((LISTED,) if any(map(is_mig, gpus)) else ())) if gpus else ()


def cards_of_host(workspaces: Sequence[Workspace], facts: Facts) -> HostCards | None:
    """The host's GPUs; ``None`` where nvidia-smi does not answer."""
    if not all(facts[probe].ok for probe in card_probes(workspaces)):
        return None
    try:
        uuids = tuple(gpu.uuid for gpu in read_report(facts[NVIDIA_SMI].text).gpus)
    except ValueError:
        return None
    return HostCards(uuids, parts_of(facts[LISTED].text) if LISTED in card_probes(workspaces) else {})


def parts_of(listing: str) -> dict[str, str]:
    """The MIG devices in what ``nvidia-smi -L`` printed, each with its card."""
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
    """The UUID of the card that a number or a UUID names; empty where the host has none such."""
    if gpu.isdigit() and int(gpu) < len(uuids) and uuids[int(gpu)].startswith("GPU-"):
        return uuids[int(gpu)]
    return gpu if gpu in uuids else ""


def give_cards(
    workspaces: Sequence[Workspace],
    found: WorkspaceFacts,
    cards: HostCards,
    reserved: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, CardsGiven]:
    """What each workspace gets. Those that have a container come first and keep their cards, then by name.

    ``reserved`` are cards that no workspace gets, by number or UUID, each with the role that gives them out.
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
            f"workspace {space.name} wants GPU {gpu}, which the host does not have; it has {there}{parts} (MIG devices "
            "are gone after a reset or a reboot until somebody makes them again: nvidia-smi mig -lgi lists them)"
        )
    before = f", and {had}, which it had, is not there either" if had else ""
    return f"workspace {space.name} wants GPU {gpu}, which the host does not have{before}; it has {there}"


def _reserved(space: Workspace, uuids: tuple[str, ...], reserved: Mapping[str, str], cards: HostCards) -> str:
    """A card that another role of the host gives out, or a part of one."""
    both = clash(uuids, tuple(reserved), cards.parts)
    if both is None:
        return ""
    role = reserved[both[1]]
    part = "" if both[0] == both[1] else f", of which {both[0]} is a part,"
    return (
        f"workspace {space.name} wants GPU {', '.join(space.entry.gpus)}, and {both[1]}{part} is promised to the role "
        f"{role}: name another (nvidia-smi -L lists them), or take it out of {role}_gpus"
    )


def _taken(
    space: Workspace,
    uuids: tuple[str, ...],
    given: Mapping[str, CardsGiven],
    spaces: Mapping[str, Workspace],
    cards: HostCards,
) -> str:
    """Two names of one card, a card and a part of it, or a number that another's card had before it was moved."""
    wants = f"workspace {space.name} wants GPU {', '.join(space.entry.gpus)}"
    own = next((both for n, uuid in enumerate(uuids) if (both := clash((uuid,), uuids[:n], cards.parts))), None)
    if own is not None:
        return f"{wants}: {own[0]} is {own[1]}, or one of the two is a part of the other; name each once"
    for other, theirs in given.items():
        both = not_shared(space.entry, uuids, spaces[other].entry, theirs.uuids, cards.parts)
        if both is not None:
            what = both[1] if both[0] == both[1] else f"{both[1]}, {_kin(both, cards)},"
            return (
                f"{wants}, and {what} is {other}'s: name another (nvidia-smi -L lists them), or each of the two must "
                "say share: true"
            )
    return ""


def _kin(both: tuple[str, str], cards: HostCards) -> str:
    """What the second is to the first."""
    return f"a part of {both[0]}" if both[1] in cards.parts else f"of which {both[0]} is a part"
