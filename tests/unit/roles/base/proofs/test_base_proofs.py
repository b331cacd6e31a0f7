"""The proofs of a host itself: the programs run here, for real, and what figures of good and bad hosts show."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hostwright.prove.model import Expected, Measurement, Measurements
from hostwright.prove.reading import Printed, read
from hostwright.standard.roles.base import Base
from hostwright.standard.roles.base import proofs as module
from hostwright.standard.roles.base.proofs import judges, proofs
from hostwright.standard.roles.base.proofs.sources import source

EXPECTED = Expected("gpu01", processor="Xeon", processors=8)
MIB = 1 << 20
EVERY = {proof.name: proof for proof in proofs(Base(), None)}  # type: ignore[arg-type]  # it asks nothing of the host


def run(folder: Path, name: str, arguments: dict[str, Any], status: int = 0, **environment: str) -> Printed:
    """Build a proof's program as the engine does, and run it in a directory of its own."""
    program = EVERY[name].program
    (folder / program.file).write_text(program.source)
    (folder / "arguments.json").write_text(json.dumps(arguments, separators=(",", ":")))
    words = {"{source}": str(folder / program.file), "{program}": str(folder / "program")}
    command = [*program.interpreter, str(folder / program.file)]
    if program.compiler:
        subprocess.run([words.get(word, word) for word in program.compiler], check=True)
        command = [str(folder / "program")]
    work = folder / "work"
    work.mkdir()
    command.append(str(folder / "arguments.json"))
    done = subprocess.run(
        command, cwd=work, env=os.environ | environment, stdout=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == status, done.stdout
    assert not list(work.iterdir()), "something is left behind"
    return read(done.stdout)


def test_headers_stand_in_their_place_once() -> None:
    text = source(module.__file__, "disk.cpp")
    assert '#include "' not in text
    assert text.count("class Arguments") == 1
    assert "#pragma once" not in text


def test_the_disk_is_measured_past_the_cache_and_nothing_is_left(tmp_path: Path) -> None:
    printed = run(tmp_path, "disk", {"bytes": 8 * MIB, "block_bytes": MIB, "reserve": 0})
    if printed.not_run:  # a file system in memory has no disk
        assert printed.not_run.endswith("takes no direct I/O, and through the cache it is not measured")
        return
    assert printed.ended
    assert {one.name for one in printed.measurements} == {
        "disk write", "disk read", "wrong words from disk", "disk file",
    }  # fmt: skip
    assert printed.measurements.number("wrong words from disk") == 0
    assert printed.measurements.number("disk file") == 8
    assert all(one.device.startswith("disk /") for one in printed.measurements)


def test_a_disk_without_room_is_refused_and_not_filled(tmp_path: Path) -> None:
    printed = run(tmp_path, "disk", {"bytes": 1 << 50})
    assert printed.not_run.endswith("too few for a file of 1048576.0 GiB")
    assert len(printed.measurements) == 0


def test_the_memory_is_measured_and_holds_what_is_written(tmp_path: Path) -> None:
    printed = run(tmp_path, "memory", {"bytes": 4 * MIB, "rounds": 3})
    assert printed.ended
    assert printed.measurements.number("wrong values in memory") == 0
    assert printed.measurements.number("threads") == len(os.sched_getaffinity(0))
    for name in ("memory copy", "memory triad", "memory copy by one processor", "memory triad by one processor"):
        (one,) = printed.measurements.named(name)
        assert (one.device, one.unit) == ("cpu", "GB/s")
        assert one.number is not None
        assert one.number > 0


@pytest.mark.parametrize(
    ("flags", "better"),
    [
        ("fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat sse3 vmx svm", "more"),
        ("fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat sse3 vmx svm hypervisor lahf_lm", ""),
    ],
)
def test_what_all_processors_of_a_virtual_machine_move_is_not_compared(tmp_path: Path, flags: str, better: str) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: {flags}\nbugs\t\t: sysret_ss_attrs\n")
    printed = run(tmp_path, "memory", {"bytes": MIB, "rounds": 1, "cpuinfo": str(cpuinfo)})
    compared = {one.name: one.better for one in printed.measurements if one.unit == "GB/s"}
    assert compared == {
        "memory copy by one processor": "more", "memory triad by one processor": "more",
        "memory copy": better, "memory triad": better,
    }  # fmt: skip


def test_memory_is_measured_for_as_long_as_it_is_told(tmp_path: Path) -> None:
    printed = run(tmp_path, "memory", {"bytes": MIB, "rounds": 1, "seconds": 600})  # ends with the last round
    assert printed.ended
    assert printed.measurements.number("wrong values in memory") == 0


def test_memory_that_does_not_suffice_is_refused(tmp_path: Path) -> None:
    printed = run(tmp_path, "memory", {"bytes": 1 << 50})
    assert "GiB of memory are available" in printed.not_run


def processors(folder: Path, governors: list[str], driver: str, limit: int = 100, empty: bool = False) -> Path:
    """A /sys with these processors, and two NUMA nodes."""
    cpu, node = folder / "devices/system/cpu", folder / "devices/system/node"
    for number, governor in enumerate(governors):
        (cpu / f"cpu{number}/cpufreq").mkdir(parents=True)
        told = {"scaling_governor": governor, "scaling_driver": driver, "cpuinfo_max_freq": "3900000"}
        told |= {"scaling_max_freq": f"{39000 * limit}"}
        for name, text in told.items():
            (cpu / f"cpu{number}/cpufreq/{name}").write_text(text + "\n")
    for number in (0, 1):
        (node / f"node{number}").mkdir(parents=True)
        kilobytes = 0 if empty and number else 263_842_000
        (node / f"node{number}/meminfo").write_text(f"Node {number} MemTotal:       {kilobytes} kB\n")
        (node / f"node{number}/cpulist").write_text(f"{number * 4}-{number * 4 + 3}\n")
    return folder


def looked(folder: Path, *arguments: Any, **more: Any) -> Measurements:
    system = processors(folder / "sys", *arguments, **more)
    return run(folder, "processors", {}, HOSTWRIGHT_SYSFS=str(system)).measurements


def test_sound_processors_have_no_finding(tmp_path: Path) -> None:
    measured = looked(tmp_path, ["performance"] * 12, "acpi-cpufreq")
    values = {one.name: one.value for one in measured}
    assert values == {
        "governor": "performance", "frequency driver": "acpi-cpufreq", "frequency limit": 100.0,
        "memory nodes": 2.0, "nodes without memory": 0.0,
    }  # fmt: skip
    assert judges.processors(measured, EXPECTED) == ()


@pytest.mark.parametrize(
    ("driver", "severity", "sentence"),
    [
        ("acpi-cpufreq", "failed", "the governor is powersave: the processors stay at their lowest frequency"),
        ("intel_pstate", "note", "the governor is powersave: the processors' clocks follow the load with a delay"),
        ("amd-pstate-epp", "note", "the governor is powersave: the processors' clocks follow the load with a delay"),
    ],
)
def test_powersave_is_found_and_what_it_means_depends_on_the_driver(
    tmp_path: Path, driver: str, severity: str, sentence: str
) -> None:
    measured = looked(tmp_path, ["performance"] * 3 + ["powersave"], driver)
    (governor,) = measured.named("governor")
    assert governor.value == "3 performance, 1 powersave"
    (finding,) = judges.processors(measured, EXPECTED)
    assert finding.severity == severity
    assert finding.sentence.startswith(sentence)


@pytest.mark.parametrize(("limit", "severities"), [(100, []), (70, ["note"]), (30, ["failed"])])
def test_a_limit_of_the_frequency_is_found(tmp_path: Path, limit: int, severities: list[str]) -> None:
    findings = judges.processors(looked(tmp_path, ["performance"], "intel_pstate", limit), EXPECTED)
    assert [finding.severity for finding in findings] == severities


def test_a_socket_without_memory_is_found(tmp_path: Path) -> None:
    (finding,) = judges.processors(looked(tmp_path, ["performance"], "intel_pstate", empty=True), EXPECTED)
    assert finding.sentence.startswith("1 NUMA nodes have processors but no memory")


def test_a_machine_that_tells_nothing_has_no_finding(tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    measured = run(tmp_path, "processors", {}, HOSTWRIGHT_SYSFS=str(tmp_path / "sys")).measurements
    assert [one.value for one in measured.named("governor")] == ["not told"]
    assert judges.processors(measured, EXPECTED) == ()


DISK = "disk /dev/nvme0n1p2 (SAMSUNG MZQL23T8HCLS-00A07)"


@pytest.mark.parametrize(
    ("write", "read_", "severities"),
    [(1900.0, 6500.0, []), (450.0, 520.0, ["note"]), (160.0, 190.0, ["note"]), (40.0, 190.0, ["failed", "note"])],
)
def test_a_slow_disk_is_found(write: float, read_: float, severities: list[str]) -> None:
    rows = (Measurement("disk write", write, "MB/s", DISK), Measurement("disk read", read_, "MB/s", DISK))
    findings = judges.disk(Measurements(rows), EXPECTED)
    assert [finding.severity for finding in findings] == severities
    assert {finding.device for finding in findings} <= {DISK}


@pytest.mark.parametrize("judge", [judges.disk, judges.memory])
def test_what_comes_back_changed_is_found(judge: Any) -> None:
    names = ("wrong words from disk", "wrong values in memory")
    rows = tuple(Measurement(name, 7.0, "", "cpu") for name in names)
    (finding,) = judge(Measurements(rows), EXPECTED)
    assert (finding.severity, finding.measured) == ("failed", "7")
