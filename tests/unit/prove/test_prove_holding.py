"""Tests of proofs that must not run on a host in its state, and of their results."""

from __future__ import annotations

import pytest

from hostwright.audit.hardware.gpu import Gpu
from hostwright.plan.model import Change, Facts, Plan, RolePlan, Step
from hostwright.plan.planning import HostPlan
from hostwright.prove.host import Seen, held_back
from hostwright.prove.model import Expected
from tests.unit.support.proofs import proof

CARD = Gpu(0, "0000:3b:00.0", "GPU-0d5c1d4e-7a51-4ad9-93b5-2d1ac0c1e001", "Tesla T4")
OF_A_CARD, OF_THE_HOST = proof("", needs_gpu=True), proof("")


def seen(
    *differs: str, cards: tuple[Gpu, ...] | None = None, gpus: int | None = None, on_bus: int = 0, users: str = ""
) -> Seen:
    """A host on which these roles are not as desired."""
    change = Change("a file", "absent", "present", (Step("touch /a"),))
    roles = tuple(RolePlan(role, (), (change,)) for role in differs)
    expected = Expected("gpu01", cards, gpus, on_bus)
    return Seen(HostPlan(Plan("gpu01", "house", roles)), expected, (users,) if users else (), (), Facts({}), "it hangs")


def test_an_idle_host_that_is_as_desired_is_proved() -> None:
    assert held_back(OF_THE_HOST, seen()) is None
    assert held_back(OF_A_CARD, seen(cards=(CARD,), gpus=1, on_bus=1)) is None


@pytest.mark.parametrize("gpus", [None, 0])
def test_a_host_that_should_have_no_gpu_says_no_gpu(gpus: int | None) -> None:
    assert held_back(OF_A_CARD, seen(gpus=gpus)) == ("no GPU", "no GPU in this host")
    assert held_back(OF_THE_HOST, seen(gpus=gpus)) is None


def test_a_host_that_has_lost_all_of_its_gpus_fails() -> None:
    """No card is on its bus. Without the inventory's value, it would pass as a host without a GPU."""
    outcome, sentence = held_back(OF_A_CARD, seen(gpus=2)) or ("", "")
    assert outcome == "failed"
    assert sentence == "the inventory says that the host has 2 GPUs (hostwright_gpus), and none is on its PCI bus"
    one = held_back(OF_A_CARD, seen(gpus=1))
    assert one == ("failed", "the inventory says that the host has 1 GPU (hostwright_gpus), and none is on its PCI bus")
    assert held_back(OF_THE_HOST, seen(gpus=2)) is None


def test_cards_on_the_bus_that_cannot_be_read_are_not_run() -> None:
    assert held_back(OF_A_CARD, seen(on_bus=1)) == ("not run", "the cards of the host cannot be read: it hangs")


def test_a_layer_that_is_not_as_desired_and_a_host_in_use_are_not_proved() -> None:
    outcome, sentence = held_back(OF_THE_HOST, seen("clock")) or ("", "")
    assert (outcome, sentence) == ("not run", "clock is not as desired; run `invoke provision --hosts gpu01`")
    assert held_back(OF_THE_HOST, seen("other")) is None
    used = held_back(OF_A_CARD, seen(cards=(CARD,), on_bus=1, users="alice"))
    assert used == ("not run", "in use by alice; repeat the proof when the host is idle")
