"""What the figures of a host's disk, memory and processors show. Pure; peers and baselines are compared elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hostwright.proofs import Expected, Measurement, Measurements, ProofFinding, Severity
from hostwright.roles import whole

#: MB/s of large blocks, read or written: our choice. A single hard disk of 7,200 revolutions gives 150 to 250; what
#: gives less than 100 is a degraded array, a controller without its cache, or a volume whose throughput is limited
SLOW_DISK = 100.0
#: MB/s: what SATA carries (6 Gbit/s, 8 of 10 bits are data) less a tenth; below it is no solid-state disk, or a bad one
SOLID_STATE = 540.0

#: of what a link carries: our choice. TCP over four connections reaches nine tenths of it between idle hosts
LEAST_OF_LINK = 0.5

#: scaling drivers whose ``powersave`` follows the load as ``performance`` does, only later
#: (kernel, Documentation/admin-guide/pm/intel_pstate.rst and amd-pstate.rst, "active mode"); with any other,
#: ``powersave`` is the lowest frequency, always (cpufreq.rst)
_FOLLOWS_LOAD = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")


def disk(measured: Measurements, _expected: Expected) -> tuple[ProofFinding, ...]:
    """Whether the disk gives back what was written, and as fast as any disk does."""
    return (*_wrong(measured, "wrong words from disk", "what was read is not what was written"), *_slow(measured))


def _slow(measured: Measurements) -> Iterator[ProofFinding]:
    for name in ("disk write", "disk read"):
        for one in measured.named(name):
            if one.number is not None and one.number < SLOW_DISK:
                sentence = f"{name} of {_shown(one)}: slower than a single hard disk"
                yield ProofFinding(sentence, one.device, "failed", _shown(one), f"{SLOW_DISK:g} MB/s at least")
            elif one.number is not None and name == "disk read" and one.number < SOLID_STATE:
                sentence = f"{name} of {_shown(one)}: data from this disk may keep cards waiting"
                yield ProofFinding(sentence, one.device, "note", _shown(one), f"{SOLID_STATE:g} MB/s")


def memory(measured: Measurements, _expected: Expected) -> tuple[ProofFinding, ...]:
    """Whether the memory holds what is written to it."""
    return tuple(_wrong(measured, "wrong values in memory", "the host's memory gave back wrong values"))


def _wrong(measured: Measurements, name: str, sentence: str) -> Iterator[ProofFinding]:
    for one in measured.named(name):
        if one.number != 0:
            yield ProofFinding(f"{sentence}: {one.number:g} times", one.device, "failed", f"{one.number:g}", "0")


def processors(measured: Measurements, _expected: Expected) -> tuple[ProofFinding, ...]:
    """Whether the processors run as fast as they can, and each of their nodes has memory."""
    return (*_governor(measured), *_limit(measured), *_nodes(measured))


def _governor(measured: Measurements) -> Iterator[ProofFinding]:
    drivers = {str(one.value) for one in measured.named("frequency driver")}
    for one in measured.named("governor"):
        if "powersave" not in str(one.value):
            continue
        if drivers <= set(_FOLLOWS_LOAD):
            sentence = (
                "the governor is powersave: the processors' clocks follow the load late; performance does not wait"
            )
            yield ProofFinding(sentence, one.device, "note", str(one.value), "performance")
        else:
            sentence = "the governor is powersave: the processors stay at their lowest frequency"
            yield ProofFinding(sentence, one.device, "failed", str(one.value), "performance")


def _limit(measured: Measurements) -> Iterator[ProofFinding]:
    """A limit that takes the turbo away is an operator's choice; one that takes half of the frequency is a mistake."""
    for one in measured.named("frequency limit"):
        if one.number is not None and one.number < 100:
            sentence = f"a limit keeps processors at {one.number:g} % of their highest frequency (scaling_max_freq)"
            severity: Severity = "failed" if one.number < 50 else "note"
            yield ProofFinding(sentence, one.device, severity, f"{one.number:g} %", "100 %")


def _nodes(measured: Measurements) -> Iterator[ProofFinding]:
    for one in measured.named("nodes without memory"):
        if one.number:
            sentence = f"{one.number:g} NUMA nodes have processors and no memory: a socket's memory is missing"
            yield ProofFinding(sentence, one.device, "failed", f"{one.number:g}", "0")


def network(least: float) -> Callable[[Measurements, Expected], tuple[ProofFinding, ...]]:
    """Whether the host sends to the next one, and receives from the one before, as many MB/s as the inventory asks."""

    def judge(measured: Measurements, _expected: Expected) -> tuple[ProofFinding, ...]:
        others = {one.name: str(one.value) for one in measured if one.name in {"sent to", "received from"}}
        ways = (("sent", others.get("sent to", "?")), ("received", others.get("received from", "?")))
        return tuple(finding for name, other in ways for finding in _sent(measured, name, other, least))

    return judge


def _sent(measured: Measurements, name: str, other: str, least: float) -> Iterator[ProofFinding]:
    way = {"sent": f"to {other} it sends", "received": f"from {other} it receives"}[name]
    for one in measured.named(name):
        carries = (whole(one.model.removesuffix(" Mb/s")) or 0) / 8  # 0: the kernel does not tell
        if one.number is None:
            yield ProofFinding(f"{way} nothing that can be told", one.device)
        elif one.number < least:
            sentence = f"{way} {_shown(one)}, less than the inventory asks (base_network_mb_per_s)"
            yield ProofFinding(sentence, one.device, "failed", _shown(one), f"{least:g} MB/s at least")
        elif not least and one.number < LEAST_OF_LINK * carries:
            sentence = f"{way} {_shown(one)}, less than half of the {carries:g} MB/s that its link carries"
            yield ProofFinding(sentence, one.device, "note", _shown(one), f"{LEAST_OF_LINK * carries:g} MB/s")


def _shown(one: Measurement) -> str:
    return f"{one.number or 0:.0f} {one.unit}"
