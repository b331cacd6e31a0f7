"""What DCGM and the driver printed on other people's hosts, as the proofs of cards read it.

Each case is named after the place where it was published, and holds only the lines that are read, with identifiers of
our own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hostwright.standard.roles.driver.proofs import judges
from hostwright.standard.roles.driver.proofs.diagnostics import cards as cards_of_dcgm
from tests.unit.roles.driver.proofs.diagnosing import CARD, EXPECTED, PLACEMENT, diagnosed, document, run

Findings = list[tuple[str, str, str]]  # severity, device, sentence


def result(status: str, *warnings: str, number: int | None = 0) -> dict[str, Any]:
    """A result as DCGM 4 writes it; with ``None`` that of the whole test, of no card."""
    entity = {} if number is None else {"entity_group": "GPU", "entity_group_id": 1, "entity_id": number}
    said = [{"error_category": 8, "error_id": 29, "error_severity": 5, "warning": text} for text in warnings]
    return {**entity, "status": status, **({"warnings": said} if said else {})}


DEPLOYMENT = ("Denylist", "NVML Library", "CUDA Main Library", "Persistence Mode", "Inforom")
SKIP = {"gpu_id": "0", "status": "Skip"}
PERSISTENCE = (
    "Persistence Mode: Persistence mode for GPU 0 is disabled. Enable persistence mode by running "
    '"nvidia-smi -i <gpuId> -pm 1 " as root.'
)
NVLINK = "GPU 0's NvLink link {} is currently down Run a field diagnostic on the GPU."
MEMORY = "Couldn't allocate at least 75.0% of GPU memory on GPU 0."
LIBRARY = "Cannot open library libcuda.so: 'not found'"


@pytest.mark.parametrize(
    ("text", "exits", "findings"),
    [
        pytest.param(
            document(
                "DCGM Diagnostic",
                {"name": "software", "results": [result("Fail", PERSISTENCE)], "test_summary": {"status": "Fail"}},
                beside={
                    "entity_groups": [{"entities": [{"device_id": "2e12", "serial_num": "<<<NOT_SUPPORTED>>>"}]}],
                    "metadata": {"Driver Version Detected": "580.82.09", "version": "4.2.3"},
                },
            ),
            226,
            [("failed", CARD, f"DCGM's software: fail: {PERSISTENCE[:150]}")],
            id="DGX Spark, DCGM 4.2.3: a public Go test, found by its text",
        ),
        pytest.param(
            document(
                "DCGM Diagnostic",
                {"name": "software", "results": [result("Warn", PERSISTENCE)], "test_summary": {"status": "Warn"}},
                {"name": "memory", "results": [result("Pass")], "test_summary": {"status": "Pass"}},
            ),
            0,
            [("note", CARD, f"DCGM's software: warn: {PERSISTENCE[:150]}")],
            id="NVIDIA/NVSentinel#772",
        ),
        pytest.param(
            document(
                "DCGM GPU Diagnostic",
                {"name": "Inforom", "results": [{"status": "Pass"}]},
                {
                    "name": "PCIe",
                    "results": [
                        {"gpu_id": "0", "status": "Fail", "warnings": [NVLINK.format(0), NVLINK.format(1)]},
                    ],
                },
            ),
            226,
            [("failed", CARD, f"DCGM's pcie: fail: {NVLINK.format(0)}")],
            id="NVIDIA/DCGM#49",
        ),
        pytest.param(
            document(
                "DCGM Diagnostic",
                {"name": "memory", "results": [result("Pass", MEMORY)], "test_summary": {"status": "Pass"}},
            ),
            0,
            [("note", CARD, f"DCGM's memory: pass: {MEMORY}")],
            id="NVIDIA/DCGM#284",
        ),
        pytest.param(
            document(
                "DCGM Diagnostic",
                {
                    "name": "software",
                    "results": [result("Pass")],
                    "test_summary": result("Fail", LIBRARY, number=None),
                },
            ),
            226,
            [("failed", "cpu", f"DCGM's software: fail: {LIBRARY}")],
            id="NVIDIA/DCGM dcgmi/Diag.cpp HelperJsonAddTestSummary",
        ),
        pytest.param(
            document(
                "DCGM Diagnostic",
                {
                    "name": "pcie",
                    "results": [result("Fail")],
                    "test_summary": result("Fail", LIBRARY, number=None),
                },
            ),
            226,
            [("failed", CARD, f"DCGM's pcie: fail: {LIBRARY}")],
            id="NVIDIA/DCGM dcgmi/Diag.cpp, an error of no card",
        ),
    ],
)
def test_what_dcgm_said_is_judged(tmp_path: Path, text: str, exits: int, findings: Findings) -> None:
    printed = diagnosed(tmp_path, text, exits=exits)
    assert (printed.ended, printed.broken, printed.not_run) == (True, "", "")
    found = judges.diagnostics(printed.measurements, EXPECTED)
    assert [(each.severity, each.device, each.sentence) for each in found] == findings


DISCONNECTED = "Error: Unable to connect to host engine. Host engine connection invalid/disconnected."
UNTESTED = "DCGM skipped every test of the hardware: it does not test this model of card"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(
            f"Error: unable to establish a connection to the specified host: localhost\n{DISCONNECTED}\n",
            "DCGM's host engine does not answer: is nvidia-dcgm running?",
            id="NVIDIA/dcgm-exporter#46",
        ),
        pytest.param(
            f"{DISCONNECTED}\n", "DCGM's host engine does not answer: is nvidia-dcgm running?", id="NVIDIA/DCGM#43"
        ),
        pytest.param(
            document(
                "DCGM GPU Diagnostic",
                *({"name": name, "results": [{"status": "Pass"}]} for name in DEPLOYMENT),
                category="Deployment",
                more=[{"category": "Integration", "tests": [{"name": "PCIe", "results": [SKIP]}]}],
            ),
            UNTESTED,
            id="NVIDIA/DCGM#55",
        ),
        pytest.param(
            document(
                "DCGM GPU Diagnostic",
                *({"name": name, "results": [SKIP]} for name in ("GPU Memory", "EUD Test")),
                category="Hardware",
                more=[{"category": "Deployment", "tests": [{"name": "Denylist", "results": [{"status": "Pass"}]}]}],
            ),
            UNTESTED,
            id="NVIDIA/DCGM#139",
        ),
        pytest.param(
            "Error: Unable to run diagnostic on unsupported GPU 0.\n"
            + json.dumps({"DCGM Diagnostic": {"version": "4.2.3"}}),
            "DCGM does not test this model of card",
            id="GB10, DCGM 4.2.3: a public Go test, found by its text",
        ),
    ],
)
def test_what_dcgm_did_not_test_is_no_pass(tmp_path: Path, text: str, sentence: str) -> None:
    printed = diagnosed(tmp_path, text, exits=1)
    assert (printed.ended, printed.not_run) == (True, sentence)


def listed(*cards: tuple[int, str, str], before: str = "8 GPUs found.", after: str = "0 NvSwitches found.") -> str:
    """The table of `dcgmi discovery -l`."""
    line = "+--------+----------------------------------------------------------------------+\n"
    rows = "".join(
        f"| {number:<6} | {'Name: ' + name:<68} |\n|        | {'PCI Bus ID: 00000000:19:00.0':<68} |\n"
        f"|        | {'Device UUID: ' + uuid:<68} |\n{line}"
        for number, name, uuid in cards
    )
    return f"{before}\n{line}| GPU ID | {'Device Information':<68} |\n{line}{rows}{after}\n"


H100, H800 = "NVIDIA H100 80GB HBM3", "NVIDIA H800"


@pytest.mark.parametrize(
    ("text", "cards"),
    [
        pytest.param(
            listed(
                (0, H100, "GPU-1"),
                (7, H100, "GPU-8"),
                before="8 GPUs found (Active).",
                after="",
            ),
            {"0": f"GPU-1 ({H100})", "7": f"GPU-8 ({H100})"},
            id="KempnerInstitute/kempnerpulse#15",
        ),
        pytest.param(
            listed((0, H800, "GPU-1"), (1, H800, "GPU-2")),
            {"0": f"GPU-1 ({H800})", "1": f"GPU-2 ({H800})"},
            id="liguodongiot/llm-action docs/llm-base/dcgmi.md",
        ),
    ],
)
def test_dcgms_numbers_are_those_of_its_table(text: str, cards: dict[str, str]) -> None:
    assert cards_of_dcgm(text) == cards


def test_cards_that_the_driver_has_not_started_are_told_apart(tmp_path: Path) -> None:
    """The two chips of a K80 with R470, neither of which any program has opened: a public page, found by its text."""
    system = tmp_path / "sys"
    for bus in ("0000:03:00.0", "0000:04:00.0"):
        device = system / f"bus/pci/devices/{bus}"
        device.mkdir(parents=True)
        for name, text in {"vendor": "0x10de", "class": "0x030200", "numa_node": "0"}.items():
            (device / name).write_text(text + "\n")
        about = tmp_path / f"proc/driver/nvidia/gpus/{bus}"
        about.mkdir(parents=True)
        (about / "information").write_text(
            "Model: \t\t Tesla K80\nIRQ:   \t\t 39\nGPU UUID: \t GPU-????????-????-????-????-????????????\n"
            f"Video BIOS: \t ??.??.??.??.??\nBus Type: \t PCIe\nBus Location: \t {bus}\nGPU Excluded:\t No\n"
        )
    roots = {"HOSTWRIGHT_SYSFS": str(system), "HOSTWRIGHT_PROC": str(tmp_path / "proc")}
    measured = run(tmp_path, PLACEMENT.program, "sh", **roots).measurements
    assert [one.device for one in measured.named("numa node")] == [
        "GPU 0000:03:00.0 (Tesla K80)",
        "GPU 0000:04:00.0 (Tesla K80)",
    ]
