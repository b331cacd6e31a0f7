"""Findings from a proof's measurements of a host's disk, memory, processors and network."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hostwright.proofs import Expected, Measurement, Measurements, ProofFinding, Severity
from hostwright.roles import whole

#: minimum disk throughput in MB/s for large blocks (our choice). A single hard disk reaches 150 to 250 MB/s.
SLOW_DISK = 100.0
SOLID_STATE = 540.0  #: minimum throughput of a solid-state disk in MB/s, nine tenths of SATA's data rate

#: minimum share of a network link's rate (our choice). Between idle hosts, four TCP connections reach nine tenths.
LEAST_OF_LINK = 0.5

#: CPU frequency drivers with a governor ``powersave`` that raises the frequency under load (intel_pstate.rst,
#: amd-pstate.rst, cpufreq.rst)
_FOLLOWS_LOAD = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")


def disk(measured: Measurements, _expected: Expected) -> tuple[ProofFinding, ...]:
    """Check that the disk returned the written data, and is at least as fast as a hard disk."""
    return (
        *_wrong(measured, "wrong words from disk", "the disk returned data that differs from the data written"),
        *_slow(measured),
    )


def _slow(measured: Measurements) -> Iterator[ProofFinding]:
    for name in ("disk write", "disk read"):
        for one in measured.named(name):
            if one.number is not None and one.number < SLOW_DISK:
                sentence = f"{name} of {_shown(one)}: slower than a single hard disk"
                yield ProofFinding(sentence, one.device, "failed", _shown(one), f"{SLOW_DISK:g} MB/s at least")
            elif one.number is not None and name == "disk read" and one.number < SOLID_STATE:
                sentence = f"{name} of {_shown(one)}: cards may wait for data from this disk"
                yield ProofFinding(sentence, one.device, "note", _shown(one), f"{SOLID_STATE:g} MB/s")


def memory(measured: Measurements, _expected: Expected) -> tuple[ProofFinding, ...]:
    """Check that memory kept the written values."""
    return tuple(_wrong(measured, "wrong values in memory", "the host's memory returned wrong values"))


def _wrong(measured: Measurements, name: str, sentence: str) -> Iterator[ProofFinding]:
    for one in measured.named(name):
        if one.number != 0:
            yield ProofFinding(f"{sentence}: {one.number:g} times", one.device, "failed", f"{one.number:g}", "0")


def processors(measured: Measurements, _expected: Expected) -> tuple[ProofFinding, ...]:
    """Check that the processors run at full speed, and that each NUMA node has memory."""
    return (*_governor(measured), *_limit(measured), *_nodes(measured))


def _governor(measured: Measurements) -> Iterator[ProofFinding]:
    drivers = {str(one.value) for one in measured.named("frequency driver")}
    for one in measured.named("governor"):
        if "powersave" not in str(one.value):
            continue
        if drivers <= set(_FOLLOWS_LOAD):
            sentence = (
                "the governor is powersave: the processors' clocks follow the load with a delay; performance avoids it"
            )
            yield ProofFinding(sentence, one.device, "note", str(one.value), "performance")
        else:
            sentence = "the governor is powersave: the processors stay at their lowest frequency"
            yield ProofFinding(sentence, one.device, "failed", str(one.value), "performance")


def _limit(measured: Measurements) -> Iterator[ProofFinding]:
    """Report a frequency limit below half of the processor's maximum as a failure.

    A higher limit is only a note, because it may be the operator's choice.
    """
    for one in measured.named("frequency limit"):
        if one.number is not None and one.number < 100:
            sentence = f"scaling_max_freq limits the processors to {one.number:g} % of their highest frequency"
            severity: Severity = "failed" if one.number < 50 else "note"
            yield ProofFinding(sentence, one.device, severity, f"{one.number:g} %", "100 %")


def _nodes(measured: Measurements) -> Iterator[ProofFinding]:
    for one in measured.named("nodes without memory"):
        if one.number:
            sentence = (
                f"{one.number:g} NUMA nodes have processors but no memory: the memory modules of a socket are "
                "missing or not detected"
            )
            yield ProofFinding(sentence, one.device, "failed", f"{one.number:g}", "0")


def network(least: float) -> Callable[[Measurements, Expected], tuple[ProofFinding, ...]]:
    """Return a check for at least ``least`` MB/s to and from the other hosts of the proof."""

    def judge(measured: Measurements, _expected: Expected) -> tuple[ProofFinding, ...]:
        others = {one.name: str(one.value) for one in measured if one.name in {"sent to", "received from"}}
        ways = (("sent", others.get("sent to", "?")), ("received", others.get("received from", "?")))
        return tuple(finding for name, other in ways for finding in _sent(measured, name, other, least))

    return judge


def _sent(measured: Measurements, name: str, other: str, least: float) -> Iterator[ProofFinding]:
    way = {"sent": f"sending to {other}", "received": f"receiving from {other}"}[name]
    for one in measured.named(name):
        carries = (whole(one.model.removesuffix(" Mb/s")) or 0) / 8
        if one.number is None:
            yield ProofFinding(f"{way}: no data rate was measured", one.device)
        elif one.number < least:
            sentence = f"{way}: {_shown(one)}, less than the inventory requires (base_network_mb_per_s)"
            yield ProofFinding(sentence, one.device, "failed", _shown(one), f"{least:g} MB/s at least")
        elif not least and one.number < LEAST_OF_LINK * carries:
            sentence = f"{way}: {_shown(one)}, less than half of the link rate ({carries:g} MB/s)"
            yield ProofFinding(sentence, one.device, "note", _shown(one), f"{LEAST_OF_LINK * carries:g} MB/s")


def _shown(one: Measurement) -> str:
    return f"{one.number or 0:.0f} {one.unit}"
