"""Which stacks fit a host: the order, the reasons, and the page about a made-up fleet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hostwright.fleet import Fleet
from hostwright.plan.host.hostfacts import AVX, MEMORY, OS_RELEASE, PCI, PYTHONS, UNAME
from hostwright.plan.model import Answer, Facts, Probe
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


def test_a_refusal_names_the_stack_that_fits_this_host(tmp_path: Path) -> None:
    """Debian 12 cannot have the default stack, and there is one for it."""
    (tmp_path / "hosts.yml").write_text("all: {hosts: {gpu01: {}}}")
    (target,) = Fleet.load(tmp_path).targets("all")
    bookworm = {OS_RELEASE: 'ID=debian\nVERSION_ID="12"\n', UNAME: "6.1.0-42-amd64 x86_64\n"}
    cards = {PCI: "0x10de 0x030200 0x20b2\n", PYTHONS: "/usr/bin/python3.11 3.11\n", AVX: ""}
    answers = {**bookworm, **cards, MEMORY: "500000000\n"}

    def refusals(system: dict[Probe, str]) -> list[str]:
        facts = {probe: Answer(1, "") for probe in target.desired.probes()}
        facts.update({probe: Answer(0, text) for probe, text in system.items()})
        return [one for one in make_plan(target.desired, Facts(facts)).refusals if "what works" in one]

    best = stackfleet.of_fleet()["8 × A100, newer"][0].stack
    assert all(one.endswith(f"; the stack {best} fits this host") for one in refusals(answers))
    assert refusals(answers)
    strange = {**answers, OS_RELEASE: "ID=plan9\nVERSION_ID=4\n"}
    assert not any("fits this host" in one for one in refusals(strange))
