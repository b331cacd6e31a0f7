"""The programs of the proofs, whole, on cards that are emulated: g++ compiles them, with a CUDA runtime of the tests.

What only a card can show (speed, clocks, another architecture's arithmetic) is not tested here.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hostwright.prove.model import Expected, ProofFinding
from hostwright.prove.reading import Printed, read
from hostwright.standard.roles.base.proofs.sources import source
from hostwright.standard.roles.cuda import proofs as module
from hostwright.standard.roles.cuda.proofs import judges

HERE = Path(__file__).parent
EXPECTED = Expected("gpu01", cards_on_bus=2)
MIB = 1 << 20
SMALL = {
    "bandwidth": {"bytes": 2 * MIB, "rounds": 5},
    "memory": {"chunk_bytes": 4 * MIB, "part": 0.9},
    "burnin": {"seconds": 0.2, "size": 64, "places": 64, "interval_s": 0.1},
}
FIRST, SECOND = (f'GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfe0{index} (Emulated "E100")' for index in (0, 1))

Run = Callable[..., Printed]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    for name in SMALL:
        (folder / f"{name}.cpp").write_text(source(module.__file__, f"{name}.cu"))
        command = ["g++", "-std=c++20", "-O1", "-pthread", "-I", str(HERE / "emulated"), "-o", name, f"{name}.cpp"]
        subprocess.run(command, cwd=folder, check=True)
    return folder


@pytest.fixture
def run(programs: Path, tmp_path: Path) -> Run:
    """Run a program on two emulated cards, with faults from the environment; its output, as the engine reads it."""

    def call(name: str, status: int = 0, arguments: dict[str, Any] | None = None, **faults: str) -> Printed:
        bus = devices(tmp_path / "devices", int(faults.get("BUS", faults.get("CARDS", "2"))))
        told = SMALL[name] | {"pci_devices": str(bus)} | (arguments or {})
        (tmp_path / "arguments.json").write_text(json.dumps(told, separators=(",", ":")))
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CARDS": "2"} | faults
        done = subprocess.run(
            [str(programs / name), "arguments.json"],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == status, done.stdout
        return read(done.stdout)

    return call


def failures(findings: tuple[ProofFinding, ...]) -> list[ProofFinding]:
    """Without what the cards' speeds show: here they are threads of a machine that has other work."""
    return [finding for finding in findings if finding.severity == "failed" and "throughput" not in finding.sentence]


def devices(folder: Path, cards: int) -> Path:
    """A PCI bus with cards, and with a network adapter."""
    for index in range(cards):
        card = folder / f"0000:{0x3A + index:02x}:00.0"
        card.mkdir(parents=True)
        told = {"vendor": "0x10de", "class": "0x030200", "device": "0x20b2"}
        told |= {"current_link_speed": "16.0 GT/s PCIe", "current_link_width": "16"}
        for name, text in told.items():
            (card / name).write_text(text + "\n")
    (folder / "0000:01:00.0").mkdir(parents=True)
    (folder / "0000:01:00.0/vendor").write_text("0x15b3\n")
    return folder


def test_a_sound_card_is_measured_and_every_figure_says_where(run: Run) -> None:
    printed = run("bandwidth")
    assert printed.ended
    assert (printed.errors, printed.broken, printed.not_run) == ((), "", "")
    measured = printed.measurements
    for name in ("host to device", "device to host", "within the card"):
        assert [one.device for one in measured.named(name)] == [FIRST, SECOND]
        assert all(one.number and one.number > 0 and one.unit == "GB/s" for one in measured.named(name))
    assert [one.value for one in measured.named("pci id")] == ["20b2", "20b2"]
    assert measured.number("link") == pytest.approx(31.5, rel=0.01)
    assert [one.model for one in measured.named("card to card")] == ['Emulated "E100"'] * 2
    assert [one.number for one in measured.named("wrong bytes")] == [0, 0]


@pytest.mark.parametrize("name", list(SMALL))
def test_a_host_without_a_card_says_no_gpu_and_nothing_else(run: Run, name: str) -> None:
    printed = run(name, CARDS="0")
    assert printed.ended
    assert {one.device for one in printed.measurements} == {"no GPU"}
    assert {one.value for one in printed.measurements} == {None}


@pytest.mark.parametrize("name", list(SMALL))
def test_cards_on_the_bus_that_cuda_does_not_see_are_a_failure_not_the_absence_of_cards(run: Run, name: str) -> None:
    printed = run(name, status=1, CARDS="0", BUS="2")
    assert printed.errors == ("CUDA sees none of 2 cards on the PCI bus: no CUDA-capable device is detected",)
    assert not printed.ended


def test_a_missing_card_is_found(run: Run) -> None:
    measured = run("memory", CARDS="1", BUS="2").measurements
    (finding,) = failures(judges.memory(measured, EXPECTED))
    assert (finding.sentence, finding.severity) == ("CUDA finds 1 of 2 cards", "failed")


def test_a_bit_that_sticks_is_found_in_its_place(run: Run) -> None:
    byte = 9 * MIB + 8 * 1000 + 2  # in the third chunk
    measured = run("memory", STUCK=f"1 {byte} 5").measurements
    assert measured.number("wrong words", FIRST) == 0
    (finding,) = failures(judges.memory(measured, EXPECTED))
    assert finding.device == SECOND
    assert "returned other data than was written" in finding.sentence
    place = next(str(one.value) for one in measured.named("first wrong word"))
    assert place == f"byte {9 * MIB + 8000}: wrote 0000000000000000, read 0000000000200000"


def test_sound_memory_is_tested_whole_but_for_what_is_kept_free(run: Run) -> None:
    measured = run("memory").measurements
    assert failures(judges.memory(measured, EXPECTED)) == []
    assert measured.number("memory tested", FIRST) == pytest.approx(56 / 1024)


def test_a_card_whose_memory_is_taken_is_no_pass(run: Run) -> None:
    """DCGM's memory test once passed where it could not allocate any (NVIDIA/DCGM issue 284)."""
    printed = run("memory", FULL="1")
    assert printed.not_run.startswith(SECOND)
    assert printed.not_run.endswith("are free: something else uses it")


def test_sound_cards_compute_what_the_processor_does_to_the_last_bit(run: Run) -> None:
    measured = run("burnin").measurements
    assert [one.number for one in measured.named("wrong results")] == [0, 0]
    assert [one.number for one in measured.named("differs from the processor")] == [0, 0]
    assert all(one.number and one.number >= 1 for one in measured.named("rounds"))


def test_one_flipped_bit_in_one_product_is_found(run: Run) -> None:
    measured = run("burnin", FLIP="0 2").measurements
    (finding,) = failures(judges.burn_in(measured, EXPECTED))
    assert (finding.device, finding.measured) == (FIRST, "1")
    assert "different results under load" in finding.sentence


def test_a_card_that_always_computes_the_same_wrong_value_is_found(run: Run) -> None:
    measured = run("burnin", WRONG="1").measurements
    assert [one.number for one in measured.named("wrong results")] == [0, 0]
    (finding,) = failures(judges.burn_in(measured, EXPECTED))
    assert (finding.device, "differ from the processor's" in finding.sentence) == (SECOND, True)


def test_a_byte_that_arrives_changed_is_found(run: Run) -> None:
    measured = run("bandwidth", GARBLED="1").measurements
    (finding,) = (one for one in failures(judges.bandwidth(measured, EXPECTED)) if "GB/s" not in one.measured)
    assert (finding.device, finding.measured) == (SECOND, "1")
    assert finding.sentence.startswith("bytes changed in a copy to the card and back")


def test_a_slow_card_is_found_beside_its_neighbour(run: Run) -> None:
    measured = run("bandwidth", SLOW="1").measurements
    found = [finding for finding in judges.bandwidth(measured, EXPECTED) if finding.severity == "outlier"]
    assert {finding.device for finding in found} == {SECOND}


def smi(folder: Path, refused: str, reasons: str, first: str = ":") -> None:
    """An nvidia-smi that knows the reasons by one name alone, and says the first card is slowed down; what it does
    ``first``."""
    (folder / "nvidia-smi").write_text(
        f"#!/bin/sh\n{first}\ncase $* in *{refused}*) exit 2 ;; esac\n"
        f"echo '{FIRST.partition(' ')[0]}, 91, 1095, 248.31, {reasons}'\n"
        f"echo '{SECOND.partition(' ')[0]}, 60, 1410, [N/A], 0x0000000000000004'\n"
    )
    (folder / "nvidia-smi").chmod(0o755)


@pytest.mark.parametrize("refused", ["clocks_event", "clocks_throttle"])
@pytest.mark.parametrize(
    ("reasons", "cause"),
    [("0x0000000000000040", "heat"), ("0x0000000000000020", "heat"), ("0x0000000000000080", "the hardware")],
)
def test_a_throttled_card_is_found_by_old_and_new_drivers_words(
    run: Run, tmp_path: Path, refused: str, reasons: str, cause: str
) -> None:
    smi(tmp_path, refused, reasons)
    measured = run("burnin").measurements
    (finding,) = failures(judges.burn_in(measured, EXPECTED))
    assert finding.device == FIRST
    assert finding.sentence.startswith(cause)
    assert finding.sentence.endswith("in 100 % of the measurements (up to 91 °C, down to 1095 MHz)")
    assert measured.number("power", FIRST) == pytest.approx(248.31)


def test_a_run_that_is_over_before_nvidia_smi_has_answered_is_looked_at_all_the_same(run: Run, tmp_path: Path) -> None:
    """A driver takes a second to load where nothing keeps it; the first question asks for an older one's words."""
    smi(tmp_path, "clocks_throttle", "0x0000000000000040", "sleep 1")
    (finding,) = failures(judges.burn_in(run("burnin").measurements, EXPECTED))
    assert (finding.device, finding.sentence.partition(" ")[0]) == (FIRST, "heat")


def told(folder: Path, *rows: str, status: int = 0) -> None:
    """An nvidia-smi of R470 that prints these rows after UUIDs, the first of them only once."""
    first, second = (card.partition(" ")[0] for card in (FIRST, SECOND))
    (folder / "nvidia-smi").write_text(
        "#!/bin/sh\ncase $* in *clocks_event*)"
        " echo 'Field \"clocks_event_reasons.active\" is not a valid field to query.'; exit 2 ;; esac\n"
        f'[ -e "{folder}/asked" ] && echo "{first}, {rows[1]}" || echo "{first}, {rows[0]}"\n'
        f'touch "{folder}/asked"\necho "{second}, {rows[2]}"\n'
        f"[ {status} = 0 ] || echo 'WARNING: infoROM is corrupted at gpu 0000:3B:00.0'\nexit {status}\n"
    )
    (folder / "nvidia-smi").chmod(0o755)


def test_rows_beside_a_warning_count_to_the_end(run: Run, tmp_path: Path) -> None:
    """microsoft/pai#3756: nvidia-smi ends with 14 where the infoROM of a card is damaged, after all its rows."""
    well, hot = "61, 1410, 248.31, 0x0000000000000004", "91, 1095, 250.02, 0x0000000000000040"
    told(tmp_path, well, hot, well, status=14)
    measured = run("burnin").measurements
    assert measured.number("temperature", FIRST) == 91
    (finding,) = failures(judges.burn_in(measured, EXPECTED))
    assert (finding.device, finding.sentence.partition(":")[0]) == (FIRST, "heat lowered the card's clocks under load")


@pytest.mark.parametrize(
    ("row", "figures"),
    [
        pytest.param("[GPU requires reset], [GPU requires reset], [GPU requires reset], [GPU requires reset]", {},
                     id="[GPU requires reset]: Slurm jobs on an H100, a public report found by its text"),
        pytest.param("54, [N/A], [N/A], [N/A]", {"temperature": 54}, id="plambe/zabbix-nvidia-smi-multi-gpu#17"),
        pytest.param("35, 2418, 11.17, 0x0000000000000000",
                     {"temperature": 35, "clock": 2418, "lowest clock": 2418, "power": 11.17,
                      "slowed down by heat": 0, "slowed down by the hardware": 0}, id="XuehaiPan/nvitop#208"),
        pytest.param("[Unknown Error], 1410, [Unknown Error], 0x0000000000000004",
                     {"clock": 1410, "lowest clock": 1410, "slowed down by heat": 0, "slowed down by the hardware": 0},
                     id="enkore/i3pystatus#850 and Quake4/MindMiner#627"),
    ],
)  # fmt: skip
def test_a_value_that_nvidia_smi_does_not_have_is_no_figure(
    run: Run, tmp_path: Path, row: str, figures: dict[str, float]
) -> None:
    told(tmp_path, row, row, "61, 1410, 248.31, 0x0000000000000004")
    measured = run("burnin").measurements
    names = ("temperature", "clock", "lowest clock", "power", "slowed down by heat", "slowed down by the hardware")
    assert {name: measured.number(name, FIRST) for name in names if measured.number(name, FIRST) is not None} == figures
    assert measured.number("clock", SECOND) == 1410
    assert failures(judges.burn_in(measured, EXPECTED)) == []
