"""What nvidia-smi printed on other people's hosts: its report, its messages and its NVLinks, and what audits see in it.

Each case is named after the place where it was published, and holds only the elements and lines that are read, with
identifiers of our own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hostwright.audit.hardware.gpu import Gpu, GpuLink
from hostwright.plan.model import Answer
from hostwright.standard.roles.driver.nvsmi.report import read_report
from tests.unit.support.gpu_contexts import A100, all_seen, audit_context, cards, line, seen

MIB = 2**20


def report(bus: str, name: str, *parts: str) -> str:
    body = "".join(parts)
    return (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>\n'
        f'<gpu id="{bus}"><product_name>{name}</product_name><uuid>GPU-1</uuid><serial>N/A</serial>{body}</gpu>\n'
        "</nvidia_smi_log>\n"
    )


def part(name: str, **values: str) -> str:
    return f"<{name}>" + "".join(f"<{key}>{value}</{key}>" for key, value in values.items()) + f"</{name}>"


def link(generation: tuple[int, int], width: tuple[str, str]) -> str:
    """Now and at most."""
    inner = part("pcie_gen", current_link_gen=str(generation[0]), max_link_gen=str(generation[1]))
    inner += part("link_widths", current_link_width=width[0], max_link_width=width[1])
    return f"<pci><pci_gpu_link_info>{inner}</pci_gpu_link_info><replay_counter>0</replay_counter></pci>"


NO_ECC = part("ecc_mode", current_ecc="N/A", pending_ecc="N/A")
NO_PAGES = (
    "<retired_pages><multiple_single_bit_retirement><retired_count>N/A</retired_count></multiple_single_bit_retirement>"
    "<pending_blacklist>N/A</pending_blacklist><pending_retirement>N/A</pending_retirement></retired_pages>"
)
NO_MIG = part("mig_mode", current_mig="N/A", pending_mig="N/A") + "<mig_devices>\n\tNone\n</mig_devices>"

PRO_6000 = report(
    "00000000:61:00.0", "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", NO_MIG,
    "<persistence_mode>Enabled</persistence_mode><vbios_version>98.02.6A.00.03</vbios_version>",
    "<display_mode>Requested functionality has been deprecated</display_mode>",
    "<gpu_recovery_action>None</gpu_recovery_action>", link((1, 4), ("16x", "16x")),
    "<performance_state>P8</performance_state>",
    part("clocks_event_reasons", clocks_event_reason_gpu_idle="Not Active",
         clocks_event_reason_sw_power_cap="Not Active"),
    part("clocks_event_reasons_counters", clocks_event_reasons_counters_sw_power_cap="25483012608 us"),
    part("fb_memory_usage", total="97887 MiB", used="65720 MiB"),
    part("ecc_mode", current_ecc="Disabled", pending_ecc="Disabled"),
    "<ecc_errors><volatile><sram_correctable>N/A</sram_correctable></volatile></ecc_errors>", NO_PAGES,
    part("remapped_rows", remapped_row_corr="0", remapped_row_unc="0", remapped_row_pending="No",
         remapped_row_failure="No"),
    part("temperature", gpu_temp="24 C", gpu_temp_tlimit="68 C", gpu_temp_max_tlimit_threshold="-5 C",
         gpu_temp_slow_tlimit_threshold="-2 C", gpu_temp_max_gpu_tlimit_threshold="0 C", memory_temp="N/A"),
    part("gpu_power_readings", power_state="Requested functionality has been deprecated", average_power_draw="3.97 W",
         instant_power_draw="3.99 W", current_power_limit="300.00 W"),
)  # fmt: skip
DUAL_2080 = report(
    "00000000:01:00.0", "NVIDIA GeForce RTX 2080", NO_MIG, "<persistence_mode>Enabled</persistence_mode>",
    "<gpu_recovery_action>None</gpu_recovery_action>", link((1, 3), ("8x", "16x")),
    "<performance_state>P8</performance_state>",
    part("clocks_event_reasons", clocks_event_reason_gpu_idle="Active", clocks_event_reason_sw_power_cap="Not Active"),
    part("fb_memory_usage", total="8192 MiB", reserved="406 MiB", used="1 MiB"), NO_ECC,
    "<ecc_errors><aggregate><sram_uncorrectable>N/A</sram_uncorrectable></aggregate></ecc_errors>", NO_PAGES,
    "<remapped_rows>N/A</remapped_rows>",
    part("temperature", gpu_temp="15 C", gpu_temp_tlimit="N/A", gpu_temp_max_threshold="100 C",
         gpu_temp_slow_threshold="97 C", gpu_temp_max_gpu_threshold="88 C"),
    part("gpu_power_readings", average_power_draw="N/A", instant_power_draw="1.00 W", current_power_limit="215.00 W"),
)  # fmt: skip
GT_730 = report(
    "00000000:01:00.0", "GeForce GT 730", NO_MIG, "<persistence_mode>Disabled</persistence_mode>",
    "<vbios_version>80.28.7A.00.14</vbios_version>",
    link((1, 2), ("4x", "8x")).replace("1<", "N/A<").replace("4x", "N/A"),
    part("fb_memory_usage", total="1998 MiB", used="275 MiB"), NO_ECC, NO_PAGES, "<remapped_rows>N/A</remapped_rows>",
    "<performance_state>P8</performance_state><clocks_throttle_reasons>N/A</clocks_throttle_reasons>",
    part("temperature", gpu_temp="41 C", gpu_temp_max_threshold="N/A", gpu_temp_slow_threshold="N/A"),
    part("power_readings", power_draw="N/A", power_limit="N/A", enforced_power_limit="N/A"),
)  # fmt: skip
FALLEN_FAN = report(
    "00000000:CC:00.0", "NVIDIA RTX 4000 Ada Generation", "<persistence_mode>Enabled</persistence_mode>",
    "<fan_speed>Unknown Error</fan_speed><performance_state>P2</performance_state>",
    "<gpu_recovery_action>Reset</gpu_recovery_action>", part("fb_memory_usage", total="20475 MiB", used="1 MiB"),
    part("ecc_mode", current_ecc="Disabled", pending_ecc="Disabled"), part("temperature", gpu_temp="68 C"),
    part("gpu_power_readings", average_power_draw="99.31 W", current_power_limit="130.00 W"),
)  # fmt: skip
SPARK = report(
    "0000000F:01:00.0", "NVIDIA GB10", "<persistence_mode>Enabled</persistence_mode>", NO_MIG,
    "<performance_state>P8</performance_state><remapped_rows>N/A</remapped_rows>",
    part("fb_memory_usage", total="N/A", reserved="N/A", used="N/A", free="N/A"),
    part("bar1_memory_usage", total="N/A", used="N/A"), NO_ECC, part("temperature", gpu_temp="36 C"),
    part("gpu_power_readings", average_power_draw="3.02 W", current_power_limit="N/A"),
)  # fmt: skip
THROTTLE = report(
    "00000000:01:00.0", "NVIDIA RTX 3080",
    "<performance_state>P8</performance_state>",
    part("clocks_throttle_reasons", clocks_throttle_reason_gpu_idle="Active",
         clocks_throttle_reason_applications_clocks_setting="Not Active",
         clocks_throttle_reason_hw_slowdown="Not Active",
         clocks_throttle_reason_display_clocks_setting="Not Active"),
    part("gpu_power_readings", power_state="P8", power_draw="22.78 W", current_power_limit="336.00 W",
         requested_power_limit="336.00 W", default_power_limit="320.00 W"),
)  # fmt: skip
PENDING_ROWS = report(
    "00000000:18:00.0", "NVIDIA H100 80GB HBM3",
    part("ecc_mode", current_ecc="Enabled", pending_ecc="Enabled"),
    part("remapped_rows", remapped_row_corr="0", remapped_row_unc="4", remapped_row_pending="Yes",
         remapped_row_failure="No"),
)  # fmt: skip
FERMI = report(
    "00000000:01:00.0", "GeForce 410M", "<persistence_mode>Disabled</persistence_mode>",
    "<accounting_mode>N/A</accounting_mode><vbios_version>75.19.11.00.0F</vbios_version>",
    part("fb_memory_usage", total="964 MiB", used="3 MiB"), NO_ECC,
)  # fmt: skip


@pytest.mark.parametrize(
    ("xml", "values", "findings"),
    [
        pytest.param(
            PRO_6000,
            {"bus": "0000:61:00.0", "memory_bytes": 97887 * MIB, "memory_used_bytes": 65720 * MIB, "ecc": False,
             "remapped_uncorrected": 0, "remap_pending": False, "temperature": 24, "temperature_margin": 68,
             "temperature_slowdown": 94, "temperature_maximum": 97, "power": 3.97, "power_limit": 300.0, "mig": None,
             "slowdowns": (), "fault": "", "recovery": "", "performance": "P8", "pcie_generation": 1,
             "pcie_generation_max": 4, "pcie_width": 16, "retirement_pending": None},
            [],
            id="influxdata/telegraf pro-6000-maxq-blackwell-v13.xml (590.44.01)",
        ),
        pytest.param(
            DUAL_2080,
            {"memory_bytes": 8192 * MIB, "ecc": None, "remap_pending": None, "temperature_slowdown": 97,
             "temperature_maximum": 100, "temperature_margin": None, "power": 1.0, "slowdowns": ("gpu_idle",)},
            ["pcie-width"],
            id="influxdata/telegraf dual_2080-v13.xml (590.44.01)",
        ),
        pytest.param(
            GT_730,
            {"memory_bytes": 1998 * MIB, "pcie_generation": None, "pcie_width": None, "temperature": 41,
             "temperature_slowdown": None, "power": None, "power_limit": None, "slowdowns": (), "fault": ""},
            ["persistence-off"],
            id="KrispyCamel4u/SysMonTask#60 (460.67)",
        ),
        pytest.param(
            FALLEN_FAN,
            {"fault": "", "recovery": "Reset", "temperature": 68, "power": 99.31, "memory_bytes": 20475 * MIB},
            ["gpu-needs-reset"],
            id="utkuozdemir/nvidia_gpu_exporter#393",
        ),
        pytest.param(
            SPARK,
            {"bus": "000f:01:00.0", "memory_bytes": None, "power": 3.02, "power_limit": None, "fault": "", "mig": None},
            [],
            id="snowflakedb/ArcticTraining#345 and hashicorp/nomad-device-nvidia#87 (580.95.05)",
        ),
        pytest.param(
            THROTTLE,
            {"slowdowns": ("gpu_idle",), "power": 22.78, "power_limit": 336.0, "performance": "P8"},
            [],
            id="influxdata/telegraf#15279",
        ),
        pytest.param(
            PENDING_ROWS,
            {"remap_pending": True, "remapped_uncorrected": 4, "remap_failed": False},
            ["row-remap-pending"],
            id="leptonai/gpud#80",
        ),
        pytest.param(
            FERMI,
            {"vbios": "75.19.11.00.0F", "memory_bytes": 964 * MIB, "ecc": None, "temperature": None, "mig": None},
            ["persistence-off"],
            id="1Panel-dev/1Panel#9504 (390.157)",
        ),
    ],
)  # fmt: skip
def test_a_report_is_read_and_judged(xml: str, values: dict[str, Any], findings: list[str]) -> None:
    (gpu,) = read_report(xml).gpus
    assert {name: getattr(gpu, name) for name in values} == values
    assert list(all_seen(audit_context(gpu))) == findings


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        pytest.param(
            "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost. Reboot the system to recover"
            " this GPU",
            "card at 0000:02:00: nvidia-smi: Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost. "
            "Reboot the system to recover this GPU",
            id="JosephKJ/OWOD#81",
        ),
        pytest.param(
            "Unable to determine the device handle for GPU 0000:09:00.0: Unknown Error",
            "card at 0000:09:00: nvidia-smi: Unable to determine the device handle for GPU 0000:09:00.0: Unknown Error",
            id="NVIDIA/nvidia-docker#1553",
        ),
        pytest.param(
            "Unable to determine the device handle for GPU0000:07:00.0: Unknown Error",
            "card at 0000:07:00: nvidia-smi: Unable to determine the device handle for GPU0000:07:00.0: Unknown Error",
            id="pdbear/syno_nvidia_gpu_driver#22",
        ),
        pytest.param(
            "Unable to determine the device handle for GPU 000:BA:80.0: Unknown Error",
            "nvidia-smi: Unable to determine the device handle for GPU 000:BA:80.0: Unknown Error",
            id="NVIDIA/dcgm-exporter#604, an address that is none",
        ),
    ],
)
def test_nvidia_smi_names_the_card_that_is_lost(text: str, evidence: str) -> None:
    assert seen("gpu-lost", audit_context(smi=Answer(15, f"{text}\n"))) == [evidence]


def test_a_card_that_log_and_nvidia_smi_call_lost_is_one() -> None:
    """NVIDIA/nvidia-container-toolkit#846: the newer message, beside the kernel's Xid of the same card."""
    text = "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error\n"
    said = "NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=python3, GPU has fallen off the bus."
    (evidence,) = seen("gpu-lost", audit_context(smi=Answer(15, text), log=[line(said)]))
    assert evidence == f"card at 0000:3b:00: {said}"


def status(*cards: tuple[str, ...]) -> str:
    """What `nvidia-smi nvlink --status` prints: for each card what its links do, or another line in their place."""
    rows = ""
    for index, lines in enumerate(cards):
        rows += f"GPU {index}: NVIDIA A100-SXM4-80GB (UUID: GPU-{index})\n"
        for number, told in enumerate(lines):
            rows += f"{told}\n" if ":" in told else f"\t Link {number}: {told}\n"
    return rows


def linked(count: int, text: str) -> tuple[Gpu, ...]:
    """Cards of one host with the links of this output."""
    gpus = "".join(f'<gpu id="00000000:{0x3B + n:02X}:00.0"><product_name>NVIDIA A100-SXM4-80GB</product_name>'
                   f"<uuid>GPU-{n}</uuid></gpu>" for n in range(count))  # fmt: skip
    return read_report(f"<nvidia_smi_log>{gpus}</nvidia_smi_log>", text).gpus


UP, DOWN, NONE = "25.781 GB/s", "<inactive>", "NVML: Unable to retrieve NVLink information as all links are inActive"


@pytest.mark.parametrize(
    ("text", "switches", "rule", "evidence"),
    [
        pytest.param(
            status((UP, UP, UP, DOWN, UP, DOWN), (UP,) * 6),
            0,
            "nvlink-partial",
            ["card 0 (0000:3b:00.0): 2 of 6 NVLinks inactive: 3, 5"],
            id="Azure/azhpc-diagnostics#73",
        ),
        pytest.param(status(("25 GB/s",) * 12, ("25 GB/s",) * 12), 6, "nvlink-down", [], id="NVIDIA/nccl-tests#228"),
        pytest.param(status(("53.125 GB/s",) * 18, ("53.125 GB/s",) * 18), 2, "nvlink-down", [],
                     id="NVIDIA/k8s-test-infra#371"),
        pytest.param(
            status((UP,) * 3, (NONE.replace("NVML: ", "NVML:").replace("NVLink", "Nvlink"),)),
            4,
            "nvlink-down",
            ["card 1 (0000:3c:00.0): 3 of 3 NVLinks inactive: 0, 1, 2"],
            id="NVIDIA/open-gpu-kernel-modules#1150",
        ),
        pytest.param(status((UP,) * 3, (NONE,)), 0, "nvlink-partial", [], id="a card without a bridge beside one with"),
    ],
)  # fmt: skip
def test_links_that_are_down_are_told(text: str, switches: int, rule: str, evidence: list[str]) -> None:
    assert seen(rule, audit_context(*linked(2, text), switches=switches)) == evidence


def test_a_card_in_mig_mode_uses_no_links() -> None:
    one, other = (replace(card, mig=mig) for card, mig in zip(cards(A100), (True, False), strict=True))
    dead = replace(one, links=tuple(GpuLink(number, False) for number in range(12)))
    assert seen("nvlink-down", audit_context(dead, other, switches=6)) == []
