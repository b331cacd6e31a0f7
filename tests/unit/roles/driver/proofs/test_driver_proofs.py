"""The proofs of cards through their driver: their places, DCGM's diagnosis in all its forms, and the watch of heat.

What DCGM prints is known from its own sources (NVIDIA/DCGM: nvvs/include/NvvsCommon.h of version 2, JsonResult of 3,
testing/python3/dcgm_diag_schema.json of 4) and from its issue 139; what nvidia-smi prints, from public reports.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hostwright.audit.hardware.gpu import Gpu
from hostwright.prove.model import Measurements
from hostwright.standard.roles.driver.proofs import WATCH, judges
from hostwright.standard.roles.driver.proofs.diagnostics import cards as cards_of_dcgm
from tests.unit.roles.driver.proofs.diagnosing import (
    CARD,
    DIAGNOSTICS,
    EXPECTED,
    PLACEMENT,
    UUID,
    command,
    diagnosed,
    document,
    results,
    run,
)

OF_2 = document(
    "DCGM GPU Diagnostic",
    {"name": "Denylist", "results": [{"gpu_ids": "0,1,2,3", "status": "PASS"}]},
    None,
    {"name": "SM Stress", "results": [{"gpu_ids": "0", "status": "FAIL", "warnings": ["below its target"]}]},
    version="2.4.6",
)
OF_3 = document(
    "DCGM GPU Diagnostic",
    {"name": "Page Retirement/Row Remap", "results": [{"status": "Pass"}]},
    {
        "name": "PCIe",
        "results": [{"gpu_id": "0", "status": "Fail", "warnings": [{"warning": "8 lanes", "error_id": 46}]}],
    },
    {"name": "GPU Memory", "results": [{"gpu_id": "0", "status": "Skip"}]},
)
OF_4 = document(
    "DCGM Diagnostic",
    {
        "name": "software",
        "results": [{"entity_group": "GPU", "entity_group_id": 1, "entity_id": 0, "status": "Pass"}],
        "test_summary": {"status": "Pass"},
    },
    {
        "name": "memory",
        "results": [
            {
                "entity_group": "GPU",
                "entity_group_id": 1,
                "entity_id": 0,
                "status": "Fail",
                "warnings": [{"error_category": 1, "error_id": 5, "error_severity": 2, "warning": "a page failed"}],
            }
        ],
        "test_summary": {"status": "Fail"},
    },
    {"name": "cpu_eud", "results": [], "test_summary": {"status": "Skip"}},
)


def test_dcgm_2_is_read_with_all_cards_in_one_row_and_nulls_among_its_tests(tmp_path: Path) -> None:
    printed = diagnosed(tmp_path, f"WARNING: THIS SHOULD NOT HAPPEN\n{OF_2}\n", exits=226)
    assert results(printed) == {
        ("dcgm denylist", "cpu"): "pass",
        ("dcgm sm stress", CARD): "fail",
        ("dcgm sm stress warning", CARD): "below its target",
    }
    (finding,) = judges.diagnostics(printed.measurements, EXPECTED)
    assert (finding.sentence, finding.severity) == ("DCGM's sm stress: fail: below its target", "failed")


def test_dcgm_3_is_read(tmp_path: Path) -> None:
    printed = diagnosed(tmp_path, OF_3)
    assert results(printed) == {
        ("dcgm page retirement row remap", "cpu"): "pass",
        ("dcgm pcie", CARD): "fail",
        ("dcgm pcie warning", CARD): "8 lanes",
        ("dcgm gpu memory", CARD): "skip",
    }
    assert [finding.device for finding in judges.diagnostics(printed.measurements, EXPECTED)] == [CARD]


def test_dcgm_4_is_read(tmp_path: Path) -> None:
    printed = diagnosed(tmp_path, OF_4)
    assert results(printed) == {
        ("dcgm software", CARD): "pass",
        ("dcgm memory", CARD): "fail",
        ("dcgm memory warning", CARD): "a page failed",
        ("dcgm cpu_eud", "cpu"): "skip",
    }
    assert len(judges.diagnostics(printed.measurements, EXPECTED)) == 1


@pytest.mark.parametrize(("status", "severity"), [("Warn", "note"), ("Fail", "failed"), ("Degraded", "failed")])
def test_an_unknown_word_is_no_pass(tmp_path: Path, status: str, severity: str) -> None:
    printed = diagnosed(tmp_path, document("DCGM Diagnostic", {"name": "pulse", "results": [{"status": status}]}))
    assert [finding.severity for finding in judges.diagnostics(printed.measurements, EXPECTED)] == [severity]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "Error: unable to establish a connection to the specified host: localhost",
            "DCGM's host engine does not answer",
        ),
        ("Error: Unable to run diagnostic on unsupported GPU 0.\n{}", "DCGM does not test this model of card"),
        (document("DCGM Diagnostic", runtime_error="nvvs\x1b[31m died"), "DCGM: nvvs [31m died"),
        # NVIDIA/DCGM#57
        (
            "WARNING: a variable is missing\n"
            + document("DCGM GPU Diagnostic", runtime_error="Unable to get the driver version: Host engine connection"),
            "DCGM: Unable to get the driver version",
        ),
        # NVIDIA/dcgm-exporter#324: an installation without the programs that test
        ("Error when executing the diagnostic: The NVVS binary was not found", "DCGM: Error when executing the diag"),
        (document("DCGM Diagnostic", {"name": "a", "results": [{"status": "Skip"}]}), "DCGM skipped every test"),
    ],
)
def test_what_dcgm_does_not_test_is_neither_passed_nor_failed(tmp_path: Path, text: str, sentence: str) -> None:
    printed = diagnosed(tmp_path, text)
    assert printed.ended
    assert printed.not_run.startswith(sentence)
    assert len(printed.measurements) == 0


def test_a_card_whose_name_dcgm_cannot_tell_has_no_made_up_model() -> None:
    """NVIDIA/DCGM#229: twins are told by their model."""
    row = "| 0      | {:<68} |\n".format
    text = row("Name: <<<NULL>>>") + row("PCI Bus ID: 00000000:4C:00.0") + row("Device UUID: GPU-d6a2c177")
    assert cards_of_dcgm(text) == {"0": "GPU-d6a2c177"}


def test_a_host_without_dcgm_is_not_diagnosed(tmp_path: Path) -> None:
    command(tmp_path, "python3", f'exec {sys.executable} "$@"')
    printed = run(tmp_path, DIAGNOSTICS.program, sys.executable, PATH=str(tmp_path))
    assert printed.not_run == "DCGM is not installed"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "dcgmi printed no diagnosis, but this:"),
        ("Segmentation fault", "dcgmi printed no diagnosis, but this: Segmentation fault"),
        ("{" * 5000 + "}" * 5000, "dcgmi printed no diagnosis, but this: {{{"),
        ('{"a": ' * 5000 + "1" + "}" * 5000, "dcgmi printed no diagnosis, but this:"),
        ('{"DCGM Diagnostic": []}', "DCGM: []"),
        ('{"DCGM Diagnostic": {}}', "DCGM's diagnosis contains no test:"),
        ('{"DCGM Diagnostic": {"test_categories": 7}}', "DCGM's diagnosis contains no test:"),
        (
            document("DCGM Diagnostic", {"name": "a", "results": [{"status": "Pass"}]}, runtime_error="nvvs died"),
            "DCGM: nvvs died",
        ),
    ],
)
def test_what_is_no_diagnosis_is_an_error_with_what_it_is(tmp_path: Path, text: str, sentence: str) -> None:
    printed = diagnosed(tmp_path, text, status=1)
    assert printed.errors[0].startswith(sentence)
    assert not printed.ended


def test_a_report_without_end_is_cut(tmp_path: Path) -> None:
    command(tmp_path, "dcgmi", 'exec 2>/dev/null; while printf "%01000d" 1; do :; done')
    assert (
        run(tmp_path, DIAGNOSTICS.program, sys.executable, status=1).errors[0].startswith("dcgmi printed no diagnosis")
    )


def test_many_rows_are_bounded(tmp_path: Path) -> None:
    tests = [{"name": f"test {number}", "results": [{"status": "Pass"}]} for number in range(5000)]
    printed = diagnosed(tmp_path, document("DCGM Diagnostic", *tests))
    assert (len(printed.measurements), printed.broken) == (900, "")


# nvidia-smi -q -d TEMPERATURE: what is after the card's name, as public reports show it

CLASSIC = (
    "Current Temp : {}\nShutdown Temp : 100 C\nSlowdown Temp : {}\nMax Operating Temp : 105 C\nTarget Temperature : N/A"
)
MARGINS = "Current Temp : {}\nT.Limit Temp : {}\nShutdown T.Limit Temp : -8 C\nSlowdown T.Limit Temp : -2 C"


def heat(text: str, *values: str) -> str:
    return "".join(f"        GPU {line}\n" for line in text.format(*values).splitlines())


def watched(folder: Path, *cards: str) -> list[str]:
    """The watch's lines, for cards with these reports."""
    rows = "".join(f"00000000:{number:02X}:00.0, GPU-{number}\n" for number in range(len(cards)))
    report = "==============NVSMI LOG==============\n\nDriver Version    : 470.182.03\n\n"
    report += "".join(f"GPU 00000000:{number:02X}:00.0\n    Temperature\n{text}\n" for number, text in enumerate(cards))
    (folder / "rows").write_text(rows)
    (folder / "report").write_text(report)
    command(folder, "nvidia-smi", f'case $1 in -q) cat "{folder}/report" ;; *) cat "{folder}/rows" ;; esac')
    environment = {"PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", WATCH.script], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("report", "line"),
    [
        (heat(CLASSIC, "67 C", "93 C"), "GPU-0\t67\t88"),
        (heat(MARGINS, "31 C", "55 C"), "GPU-0\t31\t81"),
        (heat(CLASSIC, "40 C", "N/A"), "GPU-0\t40\t85"),
        (heat(MARGINS, "27 C", "N/A"), "GPU-0\t27\t85"),
        (heat(MARGINS, "90 C", "-3 C"), "GPU-0\t90\t82"),
    ],
)
def test_the_watch_stops_below_the_temperature_at_which_the_card_slows_down(
    tmp_path: Path, report: str, line: str
) -> None:
    assert watched(tmp_path, report) == [line]


def test_each_card_has_its_line_and_one_that_tells_no_temperature_none(tmp_path: Path) -> None:
    reports = heat(CLASSIC, "61 C", "95 C"), heat(CLASSIC, "N/A", "95 C"), heat(MARGINS, "44 C", "52 C")
    assert watched(tmp_path, *reports) == ["GPU-0\t61\t90", "GPU-2\t44\t91"]


def test_a_watch_that_reads_nothing_prints_nothing(tmp_path: Path) -> None:
    command(tmp_path, "nvidia-smi", "echo 'NVIDIA-SMI has failed'; exit 9")
    done = subprocess.run(
        ["sh", "-c", WATCH.script],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout == ""


def machine(folder: Path, nodes: int, card: str, adapter: str) -> dict[str, str]:
    """A /sys and a /proc with one card and one network adapter on these nodes, and a loopback device without a bus."""
    system = folder / "sys"
    for number in range(nodes):
        (system / f"devices/system/node/node{number}").mkdir(parents=True)
    device = system / "bus/pci/devices/0000:3b:00.0"
    (system / "class/net/ib0/device").mkdir(parents=True)
    (system / "class/net/lo").mkdir()
    device.mkdir(parents=True)
    told = {"vendor": "0x10de", "class": "0x030200", "numa_node": card}
    for name, text in told.items():
        (device / name).write_text(text + "\n")
    (system / "class/net/ib0/device/numa_node").write_text(adapter + "\n")
    about = folder / "proc/driver/nvidia/gpus/0000:3b:00.0"
    about.mkdir(parents=True)
    (about / "information").write_text(f"Model: \t\t Tesla V100-SXM2-16GB\nIRQ:   \t\t 44\nGPU UUID: \t {UUID}\n")
    return {"HOSTWRIGHT_SYSFS": str(system), "HOSTWRIGHT_PROC": str(folder / "proc")}


def placed(folder: Path, nodes: int, card: str, adapter: str) -> Measurements:
    return run(folder, PLACEMENT.program, "sh", **machine(folder, nodes, card, adapter)).measurements


@pytest.mark.parametrize(
    ("nodes", "card", "adapter", "sentences"),
    [
        (1, "-1", "-1", []),
        (2, "1", "1", []),
        (2, "1", "0", ["no network adapter is on the card's NUMA node"]),
        (2, "-1", "0", ["the firmware does not report the card's NUMA node"]),
    ],
)
def test_cards_far_from_the_network_are_noted(
    tmp_path: Path, nodes: int, card: str, adapter: str, sentences: list[str]
) -> None:
    measured = placed(tmp_path, nodes, card, adapter)
    assert measured.number("numa node", CARD) == int(card)
    findings = judges.placement(measured, EXPECTED)
    assert [finding.sentence.partition(":")[0] for finding in findings] == sentences
    assert {finding.severity for finding in findings} <= {"note"}
    assert {finding.device for finding in findings} <= {CARD}


def test_a_card_of_another_model_than_the_inventory_says_fails() -> None:
    card = Gpu(0, "0000:3b:00.0", UUID, "NVIDIA A30")
    assert judges.placement(Measurements(()), replace(EXPECTED, cards=(card,), models=("Tesla T4", "A30"))) == ()
    (finding,) = judges.placement(Measurements(()), replace(EXPECTED, cards=(card,), models=("A100-SXM4-80GB",)))
    assert (finding.severity, finding.device) == ("failed", f"{UUID} (NVIDIA A30)")
    assert (finding.measured, finding.expected) == ("NVIDIA A30", "A100-SXM4-80GB")


def test_a_machine_without_a_card_says_no_gpu(tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    measured = run(tmp_path, PLACEMENT.program, "sh", HOSTWRIGHT_SYSFS=str(tmp_path / "sys")).measurements
    assert [one.device for one in measured.named("numa nodes")] == ["cpu"]
    assert [(one.value, one.device) for one in measured if one.name == "numa node"] == [(None, "no GPU")]
