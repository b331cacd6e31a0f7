"""nvidia-smi's report of every driver generation, each fixture to its last field; and the questions it answers."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from hostwright.audit.hardware.gpu import EccCounts, Gpu, GpuLink, GpuProcess
from hostwright.standard.roles.driver.nvsmi.report import MAX_REPORT_BYTES, NVIDIA_SMI, NVLINKS, GpuReport, read_report
from tests.unit.support.shell import program, run

FIXTURES = Path(__file__).parents[4] / "fixtures" / "nvidia-smi"
MIB = 2**20
ZERO = EccCounts(0, 0, 0, 0, 0, 0)

K80 = Gpu(
    index=0, bus="7a31:00:00.0", uuid="GPU-2c61f0a8-5d1e-4f0b-9a77-31c0de4b0180", model="Tesla K80",
    serial="0320990001180", vbios="80.21.1F.00.05", memory_bytes=11441 * MIB, memory_used_bytes=67 * MIB,
    pcie_generation=3, pcie_generation_max=3, pcie_width=16, pcie_width_max=16, pcie_replays=0,
    ecc=True, ecc_pending=True, ecc_volatile=EccCounts(5, 0, 1, 0, 4, 0),
    ecc_aggregate=EccCounts(224, 1, 12, 0, 212, 1), retired_single_bit=2,
    retired_double_bit=1, retirement_pending=True, persistence=False,
    slowdowns=("applications_clocks_setting",), temperature=61, temperature_slowdown=88, temperature_maximum=93,
    power=71.4, power_limit=149.0, performance="P0",
    processes=(GpuProcess(4711, "/opt/train/bin/worker", "C", 56 * MIB),),
)  # fmt: skip
V100 = Gpu(
    index=0, bus="0000:1a:00.0", uuid="GPU-7b0e9a51-0c44-41d2-8f35-a1f2c9d80001", model="Tesla V100-SXM2-32GB",
    serial="0329910000411", vbios="88.00.80.00.01", memory_bytes=32510 * MIB, memory_used_bytes=0,
    pcie_generation=3, pcie_generation_max=3, pcie_width=16, pcie_width_max=16, pcie_replays=0,
    ecc=True, ecc_pending=True, ecc_volatile=ZERO, ecc_aggregate=ZERO,
    retired_single_bit=0, retired_double_bit=0, retirement_pending=False, persistence=True, slowdowns=("gpu_idle",),
    temperature=36, temperature_slowdown=87, temperature_maximum=90, power=43.17, power_limit=300.0, performance="P0",
)  # fmt: skip
V100_AT_WORK = replace(
    V100, index=1, bus="0000:1c:00.0", uuid="GPU-7b0e9a51-0c44-41d2-8f35-a1f2c9d80002", serial="0329910000412",
    memory_used_bytes=30208 * MIB, pcie_replays=3, ecc_volatile=EccCounts(7, 1, 1, 1, 6, 0),
    ecc_aggregate=EccCounts(43, 3, 3, 3, 40, 0), retired_single_bit=12, slowdowns=("sw_power_cap",),
    temperature=71, power=297.8,
    processes=(GpuProcess(20811, "python3", "C", 15103 * MIB), GpuProcess(20812, "python3", "C", 15103 * MIB)),
)  # fmt: skip
T4 = Gpu(
    index=0, bus="0000:3b:00.0", uuid="GPU-5e2d7740-93ab-4c1d-b7aa-6d1500a4c0f3", model="Tesla T4",
    serial="1324990007733", vbios="90.04.38.00.03", memory_bytes=15109 * MIB, memory_used_bytes=2871 * MIB,
    pcie_generation=1, pcie_generation_max=3, pcie_width=8, pcie_width_max=16, pcie_replays=0,
    ecc=True, ecc_pending=True, ecc_volatile=ZERO, ecc_aggregate=EccCounts(1, 0, 0, 0, 1, 0),
    retired_single_bit=0, retired_double_bit=0, retirement_pending=False, persistence=True, slowdowns=("gpu_idle",),
    temperature=44, temperature_slowdown=93, temperature_maximum=96, power=15.62, power_limit=70.0, performance="P8",
    processes=(GpuProcess(1180, "/opt/venv/bin/python serve.py --model a&b", "C", 2868 * MIB),),
)  # fmt: skip
A100_MIG = Gpu(
    index=0, bus="0000:07:00.0", uuid="GPU-91d4b6c2-1f02-4be8-8d20-c5577e100001", model="NVIDIA A100-SXM4-40GB",
    serial="1322990100201", vbios="92.00.19.00.01", memory_bytes=40536 * MIB, memory_used_bytes=1225 * MIB,
    pcie_generation=4, pcie_generation_max=4, pcie_width=16, pcie_width_max=16, pcie_replays=0,
    ecc=True, ecc_pending=True, ecc_volatile=ZERO, ecc_aggregate=ZERO,
    remapped_corrected=0, remapped_uncorrected=0, remap_pending=False, remap_failed=False, persistence=True,
    mig=True, mig_pending=True, mig_instances=3, temperature=31, temperature_slowdown=89, temperature_maximum=92,
    power=52.31, power_limit=400.0, performance="P0", processes=(GpuProcess(33190, "python", "C", 1211 * MIB),),
)  # fmt: skip
A100_REMAPS = replace(
    A100_MIG, index=1, bus="0000:0f:00.0", uuid="GPU-91d4b6c2-1f02-4be8-8d20-c5577e100002", serial="1322990100202",
    memory_used_bytes=0, ecc_volatile=EccCounts(0, 2, 0, 0, 0, 2), ecc_aggregate=EccCounts(6, 4, 1, 0, 5, 4),
    remapped_corrected=1, remapped_uncorrected=4, remap_pending=True, mig=False, mig_instances=0,
    slowdowns=("gpu_idle",), processes=(),
)  # fmt: skip
RTX3090 = Gpu(
    index=0, bus="0000:0a:00.0", uuid="GPU-c3f80b19-6a10-47de-9b0d-0f53a2e03090", model="NVIDIA GeForce RTX 3090",
    vbios="94.02.42.C0.0E", memory_bytes=24576 * MIB, memory_used_bytes=1811 * MIB,
    pcie_generation=1, pcie_generation_max=4, pcie_width=16, pcie_width_max=16, pcie_replays=0, persistence=False,
    slowdowns=("gpu_idle",), temperature=39, temperature_slowdown=95, temperature_maximum=98,
    power=24.09, power_limit=280.0, performance="P8",
    processes=(
        GpuProcess(1622, "/usr/lib/xorg/Xorg", "G", 101 * MIB), GpuProcess(9034, "blender", "C+G", 1697 * MIB),
        GpuProcess(9200, "", "C", None),
    ),
)  # fmt: skip
A6000 = Gpu(
    index=0, bus="0000:41:00.0", uuid="GPU-e90155cb-08d7-4f2f-ae51-b70bb4a6a600", model="NVIDIA RTX A6000",
    serial="1321990300600", vbios="94.02.5C.00.02", memory_bytes=49140 * MIB, memory_used_bytes=0,
    pcie_generation=1, pcie_generation_max=4, pcie_width=16, pcie_width_max=16, pcie_replays=0,
    ecc=False, ecc_pending=True, remapped_corrected=0, remapped_uncorrected=0, remap_pending=False,
    remap_failed=False, remap_banks_spent=0, persistence=True, slowdowns=("gpu_idle",),
    temperature=29, temperature_slowdown=95, temperature_maximum=98, power=18.2, power_limit=300.0, performance="P8",
)  # fmt: skip
H100_HOT = Gpu(
    index=0, bus="0000:53:00.0", uuid="GPU-1d0f66a3-b0c9-4a4d-9f7e-5350000183a1", model="NVIDIA H100 80GB HBM3",
    serial="1654990011000", vbios="96.00.74.00.01", memory_bytes=81559 * MIB, memory_used_bytes=2 * MIB,
    pcie_generation=5, pcie_generation_max=5, pcie_width=16, pcie_width_max=16, pcie_replays=120,
    ecc=True, ecc_pending=True, ecc_volatile=EccCounts(0, 1, 0, 1, 0, 0), ecc_aggregate=EccCounts(2, 1, 2, 1, 0, 0),
    remapped_corrected=0, remapped_uncorrected=0, remap_pending=False, remap_failed=False, remap_banks_spent=0,
    persistence=True, mig=False, mig_pending=False, mig_instances=0, slowdowns=("hw_slowdown", "hw_thermal_slowdown"),
    temperature=89, temperature_slowdown=89, temperature_maximum=95, temperature_margin=-2,
    power=112.49, power_limit=650.0, performance="P0", recovery="Reset",
)  # fmt: skip
H100_WORN = replace(
    H100_HOT, bus="0000:cb:00.0", uuid="GPU-1d0f66a3-b0c9-4a4d-9f7e-5500000907a1", serial="1654990011007",
    pcie_replays=0, ecc_volatile=EccCounts(0, 2, 0, 2, 0, 0), ecc_aggregate=EccCounts(1, 12, 1, 12, 0, 0),
    sram_threshold_exceeded=True, remapped_uncorrected=8, remap_failed=True, remap_banks_spent=1,
    slowdowns=("sw_power_cap",), temperature=34, temperature_margin=53, power_limit=700.0, recovery="Drain and Reset",
    processes=(GpuProcess(70112, "/usr/bin/python3", "C", 71806 * MIB),),
)  # fmt: skip
L40S = Gpu(
    index=0, bus="0000:61:00.0", uuid="GPU-a4e1c79d-2266-49b8-8f0a-57001240640a", model="NVIDIA L40S",
    serial="1322990570040", vbios="95.02.66.00.02", memory_bytes=46068 * MIB, memory_used_bytes=0,
    pcie_generation=4, pcie_generation_max=4, pcie_width=4, pcie_width_max=16, pcie_replays=0,
    ecc=True, ecc_pending=True, ecc_volatile=ZERO, ecc_aggregate=ZERO, sram_threshold_exceeded=False,
    remapped_corrected=0, remapped_uncorrected=0, remap_pending=False, remap_failed=False, remap_banks_spent=0,
    persistence=True, slowdowns=("gpu_idle",), temperature=33, temperature_slowdown=90, temperature_maximum=93,
    temperature_margin=55, power=81.07, power_limit=350.0, performance="P0", recovery="Drain P2P",
)  # fmt: skip
B200 = Gpu(
    index=0, bus="0000:1b:00.0", uuid="GPU-04fd27b8-7e19-4bb0-8b2d-580006506001", model="NVIDIA B200",
    serial="1655990580301", vbios="97.00.B9.00.2F", memory_bytes=183359 * MIB, memory_used_bytes=0,
    pcie_generation=5, pcie_generation_max=5, pcie_width=16, pcie_width_max=16, pcie_replays=0,
    ecc=True, ecc_pending=True, ecc_volatile=ZERO, ecc_aggregate=ZERO, sram_threshold_exceeded=False,
    remapped_corrected=0, remapped_uncorrected=0, remap_pending=False, remap_failed=False, remap_banks_spent=0,
    persistence=True, mig=False, mig_pending=False, mig_instances=0, slowdowns=("gpu_idle",),
    temperature=41, temperature_slowdown=91, temperature_maximum=93, temperature_margin=47,
    power=190.02, power_limit=1000.0, performance="P0",
)  # fmt: skip
B200_LOST = Gpu(
    index=1, bus="0000:43:00.0", uuid="GPU-04fd27b8-7e19-4bb0-8b2d-580006506002", model="NVIDIA B200",
    serial="1655990580302", vbios="97.00.B9.00.2F", pcie_generation=5, pcie_generation_max=5, pcie_width=16,
    pcie_width_max=16, pcie_replays=0, ecc=True, ecc_pending=True, persistence=True, mig=False, mig_pending=False,
    mig_instances=0, power_limit=1000.0, performance="P0", fault="GPU is lost",
)  # fmt: skip
B200_AT_WORK = replace(
    B200, bus="0000:8f:00.0", uuid="GPU-f7720e4a-d9b3-43c1-9c3e-580010508b20", serial="1655990580200",
    memory_used_bytes=163122 * MIB, persistence=False, slowdowns=(), temperature=62,
    temperature_margin=26, power=803.11,
    processes=(
        GpuProcess(5120, "nvidia-cuda-mps-server", "M+C", 30 * MIB),
        GpuProcess(5177, "VLLM::EngineCore", "C", 163060 * MIB),
    ),
)  # fmt: skip
UNREADABLE = Gpu(
    index=0, bus="0000:3d:00.0", uuid="GPU-b8d2f6e7-5a3b-4f77-a0c1-470182030001", model="Tesla V100-PCIE-16GB",
    vbios="88.00.48.00.02", fault="Unknown Error",
)  # fmt: skip
WANTS_RESET = Gpu(
    index=1, bus="0000:3e:00.0", uuid="GPU-b8d2f6e7-5a3b-4f77-a0c1-470182030002", model="Tesla V100-PCIE-16GB",
    serial="0323990470002", vbios="88.00.48.00.02", pcie_generation=3, pcie_generation_max=3, pcie_width=16,
    pcie_width_max=16, pcie_replays=0, ecc=True, ecc_pending=True, retired_single_bit=63, retired_double_bit=2,
    retirement_pending=True, persistence=True, power_limit=250.0, fault="GPU requires reset",
)  # fmt: skip

REPORTS = {
    "k80-418.40.04": GpuReport("418.40.04", "10.1", (K80,), 1),
    "v100-sxm2-450.80.02": GpuReport("450.80.02", "11.0", (V100, V100_AT_WORK), 2),
    "t4-470.182.03": GpuReport("470.182.03", "11.4", (T4,), 1),
    "a100-sxm4-470.57.02-mig-remaps": GpuReport("470.57.02", "11.4", (A100_MIG, A100_REMAPS), 2),
    "rtx3090-525.147.05": GpuReport("525.147.05", "12.0", (RTX3090,), 1),
    "rtxa6000-515.65.01": GpuReport("515.65.01", "11.7", (A6000,), 1),
    "h100-535.183.01-reset": GpuReport("535.183.01", "12.2", (H100_HOT,), 1),
    "h100-550.90.07-threshold": GpuReport("550.90.07", "12.4", (H100_WORN,), 1),
    "l40s-570.124.06": GpuReport("570.124.06", "12.8", (L40S,), 1),
    "b200-580.105.08": GpuReport("580.105.08", "13.0", (B200_AT_WORK,), 1),
    "b200-580.65.06-one-lost": GpuReport("580.65.06", "13.0", (B200, B200_LOST), 2),
    "v100-470.182.03-unreadable": GpuReport("470.182.03", "11.4", (UNREADABLE, WANTS_RESET), 2),
}

LINKS = """\
GPU 0: Tesla V100-SXM2-32GB (UUID: GPU-7b0e9a51-0c44-41d2-8f35-a1f2c9d80002)
\t Link 0: 25.781 GB/s
\t Link 1: <inactive>
GPU 1: Tesla V100-SXM2-32GB (UUID: GPU-7b0e9a51-0c44-41d2-8f35-a1f2c9d80001)
\t Link 0: 25 GB/s
\t Link 5: 0.000 GB/s
"""


def fixture(name: str) -> str:
    return (FIXTURES / f"{name}.xml").read_text()


def test_every_fixture_has_what_is_expected_of_it():
    assert {path.stem for path in FIXTURES.glob("*.xml")} == set(REPORTS)
    described = (FIXTURES / "README.md").read_text()
    assert [name for name in REPORTS if f"`{name}.xml`" not in described] == []


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_is_read_to_its_last_field(name):
    report, expected = read_report(fixture(name)), REPORTS[name]
    assert len(report.gpus) == len(expected.gpus)
    for found, wanted in zip(report.gpus, expected.gpus, strict=True):
        different = {one.name for one in fields(Gpu) if getattr(found, one.name) != getattr(wanted, one.name)}
        assert {name: getattr(found, name) for name in different} == {}
    assert report == expected


def test_every_field_of_a_card_is_known_from_one_fixture_at_least():
    empty = Gpu(0, "")
    known = {one.name for gpu in _all() for one in fields(Gpu) if getattr(gpu, one.name) != getattr(empty, one.name)}
    assert {one.name for one in fields(Gpu)} - known == {"links", "fabric", "fabric_state", "clique"}


def _all() -> list[Gpu]:
    return [gpu for report in REPORTS.values() for gpu in report.gpus]


def test_links_are_told_by_uuid_whatever_the_order():
    first, second = read_report(fixture("v100-sxm2-450.80.02"), LINKS).gpus
    assert first.links == (GpuLink(0, True), GpuLink(5, False)), "no bandwidth is no link"
    assert second.links == (GpuLink(0, True), GpuLink(1, False))


def test_links_are_told_by_index_where_there_is_no_uuid():
    text = "GPU 1: Tesla V100-SXM2-32GB\n   Link 1: <inactive>\n   Link 0: 26.562 GB/s\nGPU 9: other\n Link 0: 1 GB/s\n"
    first, second = read_report(fixture("v100-sxm2-450.80.02"), text).gpus
    assert (first.links, second.links) == ((), (GpuLink(0, True), GpuLink(1, False)))


@pytest.mark.parametrize(
    "text",
    [
        "GPU 0: NVIDIA B200 (UUID: GPU-7b0e9a51-0c44-41d2-8f35-a1f2c9d80001)\n"
        "NVML: Unable to retrieve NVLink information as all links are inActive\n",
        "GPU 0: Tesla T4 Device does not have or support Nvlink\n",
        "Link 0: 25 GB/s\n",
        "GPU 0: Tesla V100\n Link 64: 25 GB/s\n Link -1: 25 GB/s\n Link 3: asleep\n Link 0, P2P is supported: true\n",
        "GPU 0: Tesla V100 (UUID: GPU-of-another-host)\n Link 0: 25 GB/s\n",
        "\x1b[2J\0" * 1000,
    ],
)
def test_output_without_nvlinks_gives_no_links(text):
    assert [gpu.links for gpu in read_report(fixture("v100-sxm2-450.80.02"), text).gpus] == [(), ()]


def test_a_complete_report_counts_whatever_the_status(tmp_path):
    """Status 14: the infoROM of one card is corrupted, and all are told of."""
    path = FIXTURES / "t4-470.182.03.xml"
    warning = "WARNING: infoROM is corrupted at gpu 0000:3B:00.0"
    bin_ = tmp_path / "bin"
    program(bin_, "nvidia-smi", f'[ "$*" = "-q -x" ] || exit 99\ncat {path}\necho "{warning}"\nexit 14')
    answer = run(NVIDIA_SMI.script, path=bin_)
    text = answer.stdout.decode()
    assert answer.returncode == 0
    assert "supported_graphics_clock" not in text
    assert "<value>405 MHz</value>" in text
    report = read_report(text)
    assert report.gpus == (T4,)
    assert report.notices == (warning, "nvidia-smi ended with status 14")


@pytest.mark.parametrize("status", [9, 15, 255])
def test_no_report_ends_with_the_status(tmp_path, status):
    program(tmp_path / "bin", "nvidia-smi", f"echo 'NVIDIA-SMI has failed'; exit {status}")
    answer = run(NVIDIA_SMI.script, path=tmp_path / "bin")
    assert (answer.returncode, answer.stdout) == (status, b"NVIDIA-SMI has failed\n")


@pytest.mark.parametrize("endless", ["yes '<gpu>'", "yes | tr -d '\\n'", "while :; do printf '\\033[2J\\n'; done"])
def test_a_program_that_prints_without_end_is_ended_by_the_cut(tmp_path, endless):
    """Not by the time limit of 30 s, which here is none."""
    program(tmp_path / "bin", "timeout", 'shift 3; exec "$@"')
    program(tmp_path / "bin", "nvidia-smi", endless)
    answer = run(f"{{ {NVIDIA_SMI.script}\n}} | head -c {MAX_REPORT_BYTES}", path=tmp_path / "bin")
    assert len(answer.stdout) == MAX_REPORT_BYTES
    with pytest.raises(ValueError, match=r"printed no report|cut off"):
        read_report(answer.stdout.decode())


@pytest.mark.parametrize("ending", ["", "\\n", "\\n\\n"])
def test_a_report_may_end_with_or_without_a_newline(tmp_path, ending):
    program(tmp_path / "bin", "nvidia-smi", f"printf '<nvidia_smi_log></nvidia_smi_log>{ending}'")
    answer = run(NVIDIA_SMI.script, path=tmp_path / "bin")
    assert (answer.returncode, answer.stdout) == (0, b"<nvidia_smi_log></nvidia_smi_log>\n")


def test_links_are_asked_for_as_they_are(tmp_path):
    program(tmp_path / "bin", "nvidia-smi", '[ "$*" = "nvlink --status" ] && printf "GPU 0: x\\n"')
    answer = run(NVLINKS.script, path=tmp_path / "bin")
    assert (answer.returncode, answer.stdout) == (0, b"GPU 0: x\n")


@pytest.mark.parametrize("probe", [NVIDIA_SMI, NVLINKS])
def test_a_host_without_nvidia_smi_answers_127(tmp_path, probe):
    program(tmp_path / "bin", "timeout", "echo called; exit 1")
    answer = run(f"PATH={tmp_path}/bin; export PATH\n{probe.script}")
    assert (answer.returncode, answer.stdout) == (127, b"")


def test_the_names_of_later_drivers_are_read_where_the_former_are_gone():
    former = fixture("b200-580.105.08")
    later = former.replace("driver_version>", "kmd_version>").replace("cuda_version>", "cuda_umd_version>")
    deprecated = former.replace("_version>580.105.08", "_version>Requested functionality has been deprecated")
    both = deprecated.replace("</driver_version>", "</driver_version><kmd_version>620.70.06</kmd_version>")
    assert [read_report(text).driver for text in (former, later, both)] == ["580.105.08", "580.105.08", "620.70.06"]
    assert read_report(later).cuda == read_report(former).cuda != ""
