"""Tests of the stacks that fit a host: the order, the reasons, and the page for a made-up fleet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hostwright.fleet import Fleet
from hostwright.plan.host.hostfacts import AVX, MEMORY, OS_RELEASE, PCI, PYTHONS, UNAME
from hostwright.plan.model import Answer, Facts
from hostwright.plan.planning import make_plan
from hostwright.plan.stacks.fits import fits
from hostwright.stack.ages import NONE
from tests.unit.support import stackfleet
from tests.unit.support.stackfleet import ADVISORIES, FLEET, PAGE, ROLES, TODAY, facts_of
from tests.unit.support.stacks import load_stack, with_values

NINE = load_stack("tensorflow-2.9")
A100 = replace(facts_of("8 × A100"), kernel="5.15.0-91-generic")


def test_the_page_about_the_made_up_fleet_is_what_the_rules_say() -> None:
    assert PAGE.read_text("utf-8") == stackfleet.page(), "python -m tests.unit.support.stackfleet"


def test_the_fleet_has_twelve_kinds_on_seven_releases() -> None:
    assert len(FLEET) == 12
    assert len({system for _, system in FLEET.values()}) == 7


@pytest.mark.parametrize("kind", FLEET)
def test_stacks_that_fit_come_first_and_every_other_names_its_rule_and_source(kind: str) -> None:
    found = fits(facts_of(kind), stackfleet.stacks(), ROLES, ADVISORIES, TODAY)
    order = [one.fits for one in found]
    assert order == sorted(order, reverse=True)
    assert all(misfit.rule and misfit.source for one in found for misfit in one.misfits)


@pytest.mark.parametrize(
    ("kind", "driver", "rule"),
    [
        ("8 × V100", "595.91.07", "gpu-driver"),
        ("8 × B200", "570.86.16", "gpu-driver"),
        ("8 × RTX PRO 6000", "570.211.01", "gpu-driver"),
        ("8 × K80", "580.159.04", "gpu-driver"),
    ],
)
def test_a_card_that_a_driver_does_not_know_refuses_its_stack(kind: str, driver: str, rule: str) -> None:
    stack = with_values(NINE, driver={"version": driver, "fabric_manager": None, "kernels": None})
    (found,) = fits(facts_of(kind), [stack], ROLES, NONE, TODAY)
    assert rule in {misfit.rule for misfit in found.misfits}


def test_of_stacks_that_fit_the_one_with_fewer_advisories_comes_first_and_then_the_newer() -> None:
    def named(name: str, driver: str) -> object:
        return with_values(NINE, driver={"version": driver, "fabric_manager": None, "kernels": None}).model_copy(
            update={"name": name}
        )

    old, sound, newer = named("x-3", "470.182.03"), named("x-1", "580.178.04"), named("x-2", "580.178.04")
    found = fits(A100, [old, sound, newer], ROLES, ADVISORIES, TODAY)
    assert [one.stack for one in found] == ["x-2", "x-1", "x-3"]
    assert all(one.fits for one in found)
    assert "driver 580 (LTS) until June 2028" in found[0].lifetimes
    assert "driver 470.182.03: support for 470 ended in September 2024" in [one.sentence for one in found[2].aged]


def test_a_host_of_which_little_is_known_is_not_refused_by_what_nobody_knows() -> None:
    facts = replace(A100, gpus=(), pythons=(), kernel=None)
    (found,) = fits(facts, [NINE], ROLES, NONE, TODAY)
    assert found.fits
    assert found.aged == ()


@pytest.mark.parametrize(
    ("stack", "system", "card", "rule", "nearest"),
    [
        ("", "debian 12", 0x20B2, "distribution", "tensorflow-2.9-debian12"),
        ("tensorflow-2.21", "ubuntu 24.04", 0x2901, "gpu-tensorflow", "jax-0.12"),
        ("pytorch-2.14", "ubuntu 22.04", 0x1DB4, "gpu-pytorch", "pytorch-2.10"),
        ("pytorch-2.14", "ubuntu 22.04", 0x15F8, "gpu-pytorch", "volta-pascal"),
        ("jax-0.12", "debian 12", 0x20B2, "host-python", "pytorch-2.15"),
        ("pytorch-2.14", "plan9 4", 0x20B2, "distribution", ""),
    ],
)
def test_a_refusal_names_the_nearest_stack_that_fits_this_host(
    tmp_path: Path, stack: str, system: str, card: int, *, rule: str, nearest: str
) -> None:
    """The stack with the most of the host's roles, and of these the best."""
    (tmp_path / "hosts.yml").write_text(f"all: {{hosts: {{gpu01: {{{f'stack: {stack}' if stack else ''}}}}}}}")
    (target,) = Fleet.load(tmp_path).targets("all")
    distribution, _, version = system.partition(" ")
    kernel, python = stackfleet.SYSTEMS.get(system, ("6.1.0", "3.11"))
    answers = {
        OS_RELEASE: f'ID={distribution}\nVERSION_ID="{version}"\n',
        UNAME: f"{kernel} x86_64\n",
        PCI: f"0x10de 0x030200 {card:#06x}\n",
        PYTHONS: f"/usr/bin/python{python} {python}\n",
        AVX: "",
        MEMORY: "500000000\n",
    }
    facts = {probe: Answer(1, "") for probe in target.desired.probes()}
    facts.update({probe: Answer(0, text) for probe, text in answers.items()})
    refusals = [one for one in make_plan(target.desired, Facts(facts)).refusals if "what works" in one]
    assert any(f"[{rule}: " in one for one in refusals)
    ending = f"; the stack {nearest} fits this host" if nearest else ""
    assert all(one.endswith(ending) and ("fits this host" in one) == bool(nearest) for one in refusals)
