"""Group hosts without a release record by their installed software. All functions are pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hostwright.audit.fleetaudit import HostAudit, Reading
from hostwright.audit.found.reading import HOMES

#: mapping from a layer to pairs of two texts: a name or path, and a value
Layers = Mapping[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """Hosts with the same installed software in every layer, not counting home directories.

    ``differs`` are the layers in which the group differs from the largest group. ``homes`` has the software in home
    directories by host.
    """

    hosts: tuple[HostAudit, ...]
    layers: Layers
    differs: tuple[str, ...]
    homes: Mapping[str, tuple[Reading, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the hosts in this group."""
        return tuple(host.host for host in self.hosts)


def by_hand(hosts: Iterable[HostAudit]) -> tuple[HostAudit, ...]:
    """Return the hosts whose software was installed by hand: they have software of a layer, but no release record."""
    return tuple(
        host
        for host in hosts
        if host.record is None and not host.sentence and any(reading.found for reading in host.readings)
    )


def found_groups(hosts: Sequence[HostAudit]) -> tuple[FoundGroup, ...]:
    """Group the result of ``by_hand`` by installed software, the largest group first."""
    alike: dict[tuple[Reading, ...], list[HostAudit]] = {}
    for host in hosts:
        alike.setdefault(tuple(one for one in host.readings if one.found and not _in_a_home(one)), []).append(host)
    ranked = sorted(alike.items(), key=lambda item: (-len(item[1]), item[1][0].host))
    common: Layers = _layers(ranked[0][0]) if ranked else {}
    return tuple(_group(readings, members, common) for readings, members in ranked)


def _group(readings: Iterable[Reading], members: Sequence[HostAudit], common: Layers) -> FoundGroup:
    layers = _layers(readings)
    differs = tuple(layer for layer in {**common, **layers} if layers.get(layer) != common.get(layer))
    homes = {host.host: tuple(filter(_in_a_home, host.readings)) for host in members}
    return FoundGroup(tuple(members), layers, differs, {name: found for name, found in homes.items() if found})


def _layers(readings: Iterable[Reading]) -> Layers:
    layers: dict[str, tuple[tuple[str, str], ...]] = {}
    for reading in readings:
        layers[reading.layer] = (*layers.get(reading.layer, ()), (reading.name, reading.have))
    return layers


def _in_a_home(reading: Reading) -> bool:
    return reading.found and reading.name.startswith(HOMES)
