"""Failures of NCCL are seen on a host that has them, and on no other."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hostwright.audit.judging.context import AuditContext, Unread
from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.model import Facts, Probe
from hostwright.resources.packages.packages import DPKG
from hostwright.standard.roles.nccl import Nccl
from hostwright.standard.roles.nccl.failures import COPIES, FAILURES
from tests.unit.roles.test_role_nccl import HOME, RESOURCES, STACK, TABLE
from tests.unit.support import stacks
from tests.unit.support.facts import answer
from tests.unit.support.shell import ask

SIGNS = {rule.name: rule.sign for rule in FAILURES if rule.sign}
STRAYS = RESOURCES[0].probes()[0]
HEALTHY = {DPKG: TABLE, COPIES: f"{HOME}/libnccl.so.2\n", STRAYS: ""}
CONDA = "/opt/conda/lib/libnccl.so.2"


def fired(**differs: str) -> dict[str, list[str]]:
    """What each sign sees, of those that see something."""
    probes: dict[str, Probe] = {"packages": DPKG, "copies": COPIES, "strays": STRAYS}
    facts = Facts(
        {probe: answer(text) for probe, text in (HEALTHY | {probes[k]: v for k, v in differs.items()}).items()}
    )
    desired = Desired("gpu01", STACK, (DesiredRole("nccl", ("cuda",), RESOURCES),), rules=stacks.RULES)
    ctx = AuditContext(desired, {"nccl": Nccl()}, facts, {"nccl": ()}, datetime(2026, 11, 23, tzinfo=UTC))
    return {name: lines for name, sign in SIGNS.items() if (lines := list(sign.seen(ctx)))}


def test_a_host_that_is_as_desired_shows_none() -> None:
    assert fired() == {}


@pytest.mark.parametrize("version", ["2.16.5-1+cuda11.8", "2.8.4-1+cuda11.1", "2.8.3-1+cuda11.2"])
def test_one_of_another_release_or_for_another_cuda_is_told(version: str) -> None:
    table = TABLE.replace("libnccl2\t2.8.4-1+cuda11.2", f"libnccl2\t{version}")
    assert fired(packages=table) == {
        "nccl-other-build": [f"libnccl2 {version} is installed, and the stack has 2.8.4-1+cuda11.2"]
    }


def test_one_that_apt_may_move_is_told() -> None:
    assert fired(packages=TABLE.replace("\thi ", "\tii ", 1)) == {
        "nccl-not-held": ["libnccl2 2.8.4-1+cuda11.2 is not held"]
    }


def test_another_one_in_the_loaders_path_is_told() -> None:
    assert fired(copies=f"{CONDA}\n{HOME}/libnccl.so.2\n") == {
        "nccl-in-loader": [f"the loader's cache also has {CONDA}"]
    }


def test_one_that_the_role_sets_aside_is_the_plans_to_tell() -> None:
    assert fired(copies="/usr/local/lib/libnccl.so.2\n", strays="/usr/local/lib/libnccl.so.2\n") == {}


def test_an_unreadable_cache_is_no_empty_one() -> None:
    desired = Desired("gpu01", STACK, (DesiredRole("nccl", ("cuda",), RESOURCES),), rules=stacks.RULES)
    ctx = AuditContext(desired, {}, Facts({STRAYS: answer("")}), {"nccl": ()}, datetime(2026, 11, 23, tzinfo=UTC))
    sign = SIGNS["nccl-in-loader"]
    assert sign is not None
    with pytest.raises(Unread):
        list(sign.seen(ctx))


def test_the_question_is_one_that_this_machines_shell_understands() -> None:
    status, text = ask(COPIES.script.replace("libnccl", "libc").replace("\\.so\\.2 ", "\\.so\\.6 "))
    assert status == 0
    assert text.strip().endswith("/libc.so.6")
