"""Compare between hosts the values that no stack defines, and find hosts that differ from the majority.

All functions are pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hostwright.audit.fleetaudit import MACHINE_LAYERS, HostAudit, Reading, ValueSpread, have_several_stacks

#: layers and names of values that are not compared, since every host's value is different
OWN = frozenset({("base", "product"), ("release", "at")})

Key = tuple[str, str, str]


def spreads(hosts: Iterable[HostAudit]) -> tuple[ValueSpread, ...]:
    """Return the values that no stack defines, each with its hosts.

    Two or more hosts with equal ``among`` are comparable. If hosts have different stacks, only values of the machine
    are compared across stacks. Hosts that could not be read, and values that no host has, are excluded.
    """
    audited = tuple(hosts)
    mixed = have_several_stacks(audited)
    groups: dict[Key, dict[str, list[str]]] = {}
    for host in audited:
        for reading in _compared(host):
            own = mixed and reading.layer not in MACHINE_LAYERS
            among = ", ".join(filter(None, (reading.among, host.stack))) if own else reading.among
            by_value = groups.setdefault((reading.layer, reading.name, among), {})
            by_value.setdefault(reading.have, []).append(host.host)
    return tuple(_spread(key, by_value) for key, by_value in groups.items() if _comparable(by_value))


def _comparable(by_value: Mapping[str, list[str]]) -> bool:
    return set(by_value) != {""} and sum(map(len, by_value.values())) > 1


def _compared(host: HostAudit) -> Iterator[Reading]:
    compared: dict[Key, Reading] = {}
    for reading in host.readings if host.status != "unread" else ():
        if reading.want is None and (reading.layer, reading.name) not in OWN:
            compared.setdefault((reading.layer, reading.name, reading.among), reading)
    return iter(compared.values())


def _spread(key: Key, by_value: Mapping[str, list[str]]) -> ValueSpread:
    values = tuple(
        (value, tuple(sorted(hosts)))
        for value, hosts in sorted(by_value.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    )
    total = sum(len(hosts) for _, hosts in values)
    common, its_hosts = values[0]
    if 2 * len(its_hosts) <= total:
        return ValueSpread(*key, values, "", ())
    return ValueSpread(*key, values, common, tuple(sorted(host for _, hosts in values[1:] for host in hosts)))
