"""The hook for commit messages takes those that follow CONTRIBUTING.md, and says what is wrong with others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.places import PROJECT

#: subjects of this repository, as they are
GOOD = """\
docs: list the texts of all errors, refusals and notes on one page
lint: check the documents' prose with Harper
audit: make the whole judgement of stored hosts once
tests: say three docstrings in the words of the field
docs: take the way to PyTorch's times from its whole run
stacks: record PyTorch 2.14 as tried on Debian 12, there and back
tests: go from TensorFlow 2.9 to PyTorch 2.14 and back, with all wheels
tests: read the mixed fleet's way where it is written
docs: say when roles have to be in the inventory before a mirror
tests: ask for no loaded driver where the layers have none
tests: go to TensorFlow 2.21 and back, and compare every file
tests: take Debian 12 and 13 with their own drivers from bare to bare
packages: remove what one role names and another's package brought
rollback: advise to mirror the stack that hosts go back to
tests: let Secure Boot take the module that DKMS signed, on Debian 13
tests: go from TensorFlow 2.9 to 2.15 and back beside a person's work
tests: share the ways of the migration page
roles: name the stack's roles beside one that it has no section for
lab: stand in for the driver of today's stacks
stacks: end debian-13-r550 at Debian 13's kernel 6.12.94
driver: tell of the reboot that follows a hold
failures: judge what NVIDIA's open module printed on Debian 13
lab: boot Debian 13 with its own driver as a whole machine
roles: look for the modules that read cards without importing them
packages: ask apt what moves only where it knows the packages
bench: measure the processor time of hosts that are provisioned
lab: provision today's R580 to R620 from Debian's R550, and label it
failures: read CUDA and NCCL in a name as no cause of their own
failures: name PyPI without its host, give reasons beside two || true
tests: expect the cards of a host without a driver to be unread
Merge branch 'main' into stacks
Revert "apply: release the batch slot of a silent host"
fixup! apply: release the batch slot of a silent host
cuda, driver: need CUDA 12.4 for this card
apply: address hosts by their names
lab: bring two hosts up at once""".splitlines()
BAD = {
    "a line without an area": "does not begin with an area",
    "Apply: release the slot": "does not begin with an area",
    "apply:release the slot": "does not begin with an area",
    "apply: release the slot.": "ends with a full stop",
    "apply: released the slot": '"released" is not imperative',
    "apply: releasing the slot": '"releasing" is not imperative',
    "apply: releases the slot": '"releases" is not imperative',
    "apply: wrote the slot": '"wrote" is not imperative',
    "apply: Release the slot": '"Release" begins with a capital letter',
    "apply: release the batch slot of a host that has sent nothing for a while": "more than 72 characters",
    "apply: release the slot\nof a silent host": "the line after the subject is not blank",
}


def hook(message: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (file := folder / "message").write_text(message)
    command = [PROJECT / ".githooks" / "commit-msg", file]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("subject", GOOD)
def test_good_messages_pass(subject: str, tmp_path: Path) -> None:
    for message in (subject, f"# a comment\n{subject}\n\nThe reason.\n"):
        assert (hook(message, tmp_path).returncode, hook(message, tmp_path).stderr) == (0, "")


@pytest.mark.parametrize(("message", "why"), BAD.items())
def test_other_messages_are_refused(message: str, why: str, tmp_path: Path) -> None:
    done = hook(message, tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("commit-msg: ")
    assert why in done.stderr


def test_an_untouched_template_is_no_message(tmp_path: Path) -> None:
    assert hook((PROJECT / ".githooks" / "message").read_text("utf-8"), tmp_path).returncode == 0, (
        "git refuses it itself"
    )
