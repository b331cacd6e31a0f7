"""What real kernels and NVIDIA's real module printed on virtual machines leads to its cause (tests/fixtures/kernel)."""

from __future__ import annotations

import re

import pytest

from tests.places import PROJECT
from tests.unit.support.known import KNOWN

PRINTED = PROJECT / "tests" / "fixtures" / "kernel"
#: file → the rule that names its cause; None: nothing is wrong, and nothing may be blamed
CAUSES = {
    "nouveau-probes-a-dead-card": None,
    "open-module-dead-card": "gpu-unsupported",
    "open-module-no-gpu": "no-device",
    "open-module-other-version": "version-mismatch",
    "open-module-secure-boot-unknown-key": "module-not-signed",
    "open-module-secure-boot-unsigned": "module-not-signed",
    "open-module-silent-card": "gpu-init-failed",
    "real-module-dead-card": "gpu-unsupported",
    "real-module-no-gpu": "no-device",
    "secure-boot-enrolled-key": None,
    "secure-boot-unknown-key": "module-not-signed",
    "secure-boot-unsigned": "module-not-signed",
}


def printed(name: str) -> str:
    return (PRINTED / f"{name}.txt").read_text()


def cause(text: str) -> str | None:
    failure = KNOWN.classify(text)
    return failure.rule.name if failure else None


def test_every_text_says_when_and_on_which_kernel_it_was_printed() -> None:
    assert {path.stem for path in PRINTED.glob("*.txt")} == set(CAUSES)
    for name in CAUSES:
        head = printed(name).splitlines()[0]
        assert re.match(r"# 20\d\d-\d\d-\d\d, [56]\.\d+\S* #1 SMP \S.*, a virtual machine of the lab$", head)


@pytest.mark.parametrize(("name", "rule"), CAUSES.items())
def test_what_was_printed_names_its_cause(name: str, rule: str | None) -> None:
    assert cause(printed(name)) == rule


def test_a_card_without_a_vbios_is_named_as_such() -> None:
    failure = KNOWN.classify(printed("open-module-silent-card"))
    assert failure
    assert "the card 0000:00:03.0: it does not find the card's VBIOS" in failure.cause


def first_line(name: str) -> str:
    return printed(name).splitlines()[1]


def test_insmods_own_line_is_enough() -> None:
    assert first_line("real-module-no-gpu") == ("insmod: ERROR: could not insert module /tmp/nvidia.ko: No such device")
    assert cause(first_line("real-module-no-gpu")) == "no-device"


@pytest.mark.parametrize(
    "line",
    [
        "insmod: ERROR: could not insert module ./nvidia.ko: No such device",
        "insmod: ERROR: could not insert module kernel/nvidia.ko: No such device",
        "modprobe: ERROR: could not insert 'nvidia_drm': No such device",
    ],
)
def test_a_module_is_known_by_its_name_or_its_file(line: str) -> None:
    assert cause(line) == "no-device"


def test_a_module_of_another_driver_is_not_ours() -> None:
    assert cause("insmod: ERROR: could not insert module /tmp/floppy.ko: No such device") is None
    assert cause("insmod: ERROR: could not insert module /tmp/nvidia/floppy.ko: No such device") is None
