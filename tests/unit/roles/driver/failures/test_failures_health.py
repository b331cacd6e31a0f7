"""The rules of a card's memory and of how it runs: found where it is so, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.audit.failures.rule import FailureRule
from hostwright.audit.hardware.gpu import EccCounts, Gpu, GpuLink, GpuProcess
from hostwright.plan.model import Answer, Facts
from hostwright.standard.roles.driver.failures.cards.health import HEALTH
from hostwright.standard.roles.driver.failures.cards.memory import MEMORY
from hostwright.standard.roles.driver.failures.units import PERSISTENCED, UNITS
from tests.unit.support.gpu_contexts import A100, ALL, SILENT, T4, all_seen, audit_context, cards, only, seen, unread

CARD = "card 1 (0000:3c:00.0)"


def one_bad(card: Gpu, **differs: Any) -> str:
    """What is found of a host with a healthy card and one that differs so."""
    good, bad = cards(card)
    (name,) = all_seen(audit_context(good, replace(bad, **differs))) or ("nothing",)
    return f"{name}: {only(audit_context(good, replace(bad, **differs)), name)}"


@pytest.mark.parametrize("card", [T4, A100, SILENT], ids=["T4", "A100", "N/A"])
@pytest.mark.parametrize("count", [1, 2, 8])
def test_a_healthy_host_has_no_findings(card: Gpu, count: int) -> None:
    healthy = audit_context(*cards(card, count))
    assert all_seen(healthy) == {}
    assert [rule.name for rule in ALL if unread(rule.name, healthy)] == []


@pytest.mark.parametrize(
    "differs, told",
    [
        ({"remap_failed": True}, f"row-remap-failed: {CARD}: a row remapping failed"),
        ({"remap_pending": True}, f"row-remap-pending: {CARD}: a row remapping is pending"),
        ({"remapped_uncorrected": 513}, f"rows-remapped-many: {CARD}: 513 rows"),
        ({"ecc_volatile": EccCounts(uncorrected=3)}, f"ecc-uncorrected: {CARD}: uncorrected ECC errors"),
        ({"ecc_volatile": EccCounts(sram_uncorrected=1)}, f"ecc-uncorrected: {CARD}: uncorrected ECC errors"),
        ({"ecc_volatile": EccCounts(dram_uncorrected=1)}, f"ecc-uncorrected: {CARD}: uncorrected ECC errors"),
        ({"ecc_volatile": EccCounts(sram_corrected=10_001)}, f"ecc-corrected-many: {CARD}: 10001 corrected"),
        ({"ecc_aggregate": EccCounts(dram_corrected=20_000_001)}, f"ecc-corrected-many: {CARD}: 20000001 corrected"),
        ({"ecc_aggregate": EccCounts(corrected=50_000_001)}, f"ecc-corrected-many: {CARD}: 50000001 corrected"),
        ({"sram_threshold_exceeded": True}, f"sram-threshold-exceeded: {CARD}: more uncorrectable SRAM errors"),
        ({"retirement_pending": True}, f"page-retirement-pending: {CARD}: the retirement of a page is pending"),
        ({"retired_single_bit": 9, "retired_double_bit": 2}, f"pages-retired-many: {CARD}: 11 pages are retired, 2 of"),
        ({"ecc": False}, f"ecc-off: {CARD}: ECC is switched off (NVIDIA A100"),
        ({"ecc": False, "ecc_pending": True}, f"ecc-off: {CARD}: ECC is switched off (NVIDIA A100"),
        ({"temperature": 89}, f"gpu-hot: {CARD}: at 89 °C, it slows down at 89 °C"),
        ({"slowdowns": ("hw_slowdown", "hw_thermal_slowdown")}, f"gpu-hot: {CARD}: at 71 °C"),
        ({"slowdowns": ("sw_thermal_slowdown",)}, f"gpu-hot: {CARD}: at 71 °C"),
        (
            {"slowdowns": ("sw_thermal_slowdown",), "temperature": None, "temperature_slowdown": None},
            f"gpu-hot: {CARD}: active: sw_thermal_slowdown",
        ),
        (
            {"slowdowns": ("hw_slowdown", "hw_power_brake_slowdown")},
            f"clocks-braked: {CARD}: 398.2 of 400.0 W, active: hw_power_brake_slowdown, hw_slowdown",
        ),
        ({"slowdowns": ("hw_slowdown",), "power": None}, f"clocks-braked: {CARD}: active: hw_slowdown"),
        ({"persistence": False}, f"persistence-off: {CARD}: persistence mode is off"),
        ({"mig": True, "links": ()}, f"mig-without-instances: {CARD}: MIG is on with 0 instances"),
        ({"vbios": "92.00.45.00.03"}, "vbios-differs: NVIDIA A100-SXM4-40GB: 92.00.19.00.01 on card 0"),
        ({"fault": "GPU requires reset"}, f"gpu-needs-reset: {CARD}: GPU requires reset"),
        ({"recovery": "Drain P2P"}, f"gpu-needs-reset: {CARD}: recovery action Drain P2P"),
    ],
)
def test_one_bad_card_is_one_finding_that_names_it(differs: dict[str, Any], told: str) -> None:
    assert one_bad(A100, **differs).startswith(told)


@pytest.mark.parametrize(
    "differs",
    [
        {"remapped_uncorrected": 512, "remapped_corrected": 512},
        {"ecc_volatile": EccCounts(50_000_000, 0, 10_000, 0, 20_000_000, 0)},
        {"ecc_aggregate": EccCounts(uncorrected=3, sram_uncorrected=1, dram_uncorrected=2)},
        {"retired_single_bit": 5, "retired_double_bit": 5},
        {"temperature": 88},
        {"temperature": 20, "temperature_slowdown": 0},
        {"temperature": 99, "temperature_slowdown": None},
        {"mig": True, "mig_instances": 7},
        {"mig": True, "mig_instances": None},
        {
            "slowdowns": (
                "gpu_idle",
                "applications_clocks_setting",
                "sw_power_cap",
                "sync_boost",
                "display_clock_setting",
            )
        },
    ],
)
def test_at_its_limit_a_card_is_still_well(differs: dict[str, Any]) -> None:
    good, odd = cards(A100)
    assert all_seen(audit_context(good, replace(odd, **differs))) == {}


def test_counts_and_rows_stand_in_the_evidence() -> None:
    bad = replace(A100, ecc_volatile=EccCounts(3, 5, 1, 2, 2, 3), remap_pending=True, remapped_uncorrected=4)
    assert seen("ecc-uncorrected", audit_context(bad))[0].endswith(": 5 in all, 2 SRAM, 3 DRAM")
    assert seen("row-remap-pending", audit_context(bad))[0].endswith(
        "0 for corrected errors, 4 for uncorrectable errors"
    )


def test_ecc_that_comes_on_with_the_next_reset_is_told() -> None:
    assert seen("ecc-off", audit_context(replace(T4, ecc=False, ecc_pending=True)))[0].endswith(
        "on after the next reset"
    )


@pytest.mark.parametrize(
    "model",
    ["NVIDIA GeForce RTX 4090", "NVIDIA RTX A6000", "Quadro GV100", "NVIDIA TITAN V", "NVIDIA RTX 6000 Ada Generation"],
)
def test_cards_for_desks_are_delivered_with_ecc_off(model: str) -> None:
    assert all_seen(audit_context(replace(T4, model=model, ecc=False))) == {}


@pytest.mark.parametrize("model", ["", "NVIDIA A40", "NVIDIA L40S", "Tesla V100-SXM2-32GB", "NVIDIA H100 PCIe"])
def test_cards_for_data_centres_are_not(model: str) -> None:
    assert only(audit_context(replace(T4, model=model, ecc=False)), "ecc-off")


def test_each_bad_card_is_a_line_of_its_own() -> None:
    found = seen("row-remap-pending", audit_context(*cards(replace(A100, remap_pending=True), 3)))
    assert [line.split(":00.0)")[0] for line in found] == ["card 0 (0000:3b", "card 1 (0000:3c", "card 2 (0000:3d"]


def test_different_models_may_have_different_vbios() -> None:
    one, two = cards(T4)
    assert all_seen(audit_context(one, replace(two, model="Tesla V100", vbios="88.00"))) == {}
    assert all_seen(audit_context(one, replace(two, vbios=""))) == {}


@pytest.mark.parametrize("rule", [*MEMORY, *HEALTH], ids=lambda rule: rule.name)
@pytest.mark.parametrize("smi", [Answer(124, ""), Answer(9, "NVIDIA-SMI has failed"), Answer(0, "nonsense")], ids=str)
def test_a_silent_nvidia_smi_is_no_finding(rule: FailureRule, smi: Answer) -> None:
    assert unread(rule.name, audit_context(smi=smi))


def test_without_any_answer_no_rule_finds_anything() -> None:
    blind = replace(audit_context(log=None, smi=Answer(1, "")), facts=Facts({}))
    assert all_seen(blind) == {}
    assert {rule.name for rule in ALL if not unread(rule.name, blind)} == set()


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.name)
def test_every_rule_says_cause_cure_source_and_how_it_is_recognised(rule: FailureRule) -> None:
    assert rule.sign is not None
    assert rule.sign.layer == "gpu"
    for text in (rule.cause, rule.cure, rule.source):
        assert text
        assert not text.endswith(".")
    assert rule.cure[0].isupper()
    assert (rule.sign.seen.__doc__ or "").strip().endswith(".")


def test_the_names_are_their_own_and_none_is_mended_by_provisioning() -> None:
    assert len({rule.name for rule in ALL}) == len(ALL)
    assert [rule.name for rule in ALL if rule.sign and rule.sign.provision] == []


#: any value that a report may hold, as far as its types go
COUNT = st.none() | st.integers(-1, 2**63)
WORDS = st.text(max_size=20)
ECC = st.builds(EccCounts, *[COUNT] * 6)
ANY_GPU = st.builds(
    Gpu, st.integers(0, 9), WORDS, model=WORDS, vbios=WORDS, pcie_width=COUNT, pcie_width_max=COUNT,
    pcie_generation=COUNT, pcie_generation_max=COUNT, ecc_volatile=ECC, ecc_aggregate=ECC, remapped_uncorrected=COUNT,
    retired_single_bit=COUNT, retired_double_bit=COUNT, temperature=COUNT, temperature_slowdown=COUNT,
    mig=st.none() | st.booleans(), mig_instances=COUNT, slowdowns=st.tuples(WORDS), fault=WORDS, recovery=WORDS,
    links=st.lists(st.builds(GpuLink, st.integers(0, 20), st.booleans())).map(tuple),
    processes=st.lists(st.builds(GpuProcess, st.integers(), WORDS, WORDS)).map(tuple),
)  # fmt: skip


@given(st.lists(ANY_GPU, max_size=4), st.integers(0, 5))
def test_no_report_upsets_a_rule(gpus: list[Gpu], on_bus: int) -> None:
    for evidence in all_seen(audit_context(*gpus, on_bus=on_bus)).values():
        assert all(isinstance(one, str) and one for one in evidence)


def test_a_daemon_that_does_not_run_is_no_failure_of_the_card() -> None:
    stopped = Answer(0, f"Id={PERSISTENCED}\nLoadState=loaded\nActiveState=inactive\nSubState=dead\nResult=success\n")
    off = replace(T4, persistence=False)
    assert seen("persistence-off", audit_context(off))
    assert seen("persistence-off", audit_context(off, answers={UNITS.states: stopped})) == []
