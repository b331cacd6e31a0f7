"""Debian 12 from bare to bare, without the layers that take minutes: its newer driver, and a compiler for nvcc.

It takes minutes and runs with ``make long``. ``make distributions`` runs all layers, including TensorFlow and the
stack's Python, on Debian 11 as well.
"""

from __future__ import annotations

import pytest

from tests.lab.conftest import FrontDoor, Guest
from tests.lab.distributions import TRIALS, Story, tell

pytestmark = pytest.mark.long
LAYERS = ("base", "driver", "cuda", "cudnn", "environment")


@pytest.fixture(scope="module")
def story(invoke: FrontDoor, guest: Guest) -> Story:
    """A host of Debian 12: provisioned, damaged in every layer, repaired, removed."""
    trial = TRIALS["bookworm"]
    done = invoke("mirror", "--stack", trial.stack)
    assert done.returncode == 0, done.stderr
    return tell(invoke, guest("bookworm01", trial.options), trial, LAYERS)


def test_it_is_provisioned_with_a_driver_for_its_kernel_and_a_compiler_for_nvcc(story: Story) -> None:
    assert story.about["kernel headers"].startswith("6.1.")
    assert (story.about["driver"], story.about["systemd"]) == ("470.256.02", "252")
    assert story.about["gcc of the host"].startswith("12.")
    assert story.about["gcc that nvcc gets"].startswith("10.")


def test_damage_in_every_layer_is_seen_and_mended(story: Story) -> None:
    assert story.found == {verb: set(LAYERS) for verb in ("verify", "plan", "audit")}
    assert "mend (provision)" in story.seconds


def test_after_removal_it_is_what_it_was(story: Story) -> None:
    assert story.left == []
