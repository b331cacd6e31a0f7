"""The examples in docstrings of apply, transport, inventory and common are correct."""

from __future__ import annotations

import doctest
import importlib
import io
from pathlib import Path

import pytest

import hostwright
from hostwright.transport.root.rootshell import RootShell
from tests.unit.transport.test_become import SUDO
from tests.unit.transport.test_rootshell import Here

TREE = Path(hostwright.__file__).parent
ROOMS = ("apply", "common", "inventory", "transport")
MODULES = sorted(
    ".".join(("hostwright", *path.relative_to(TREE).with_suffix("").parts))
    for room in ROOMS
    for path in (TREE / room).rglob("*.py")
    if ">>> " in path.read_text("utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str, tmp_path: Path) -> None:
    (tmp_path / "sudo").write_text(SUDO)
    (tmp_path / "sudo").chmod(0o755)
    (tmp_path / "synchronised.sh").write_text(
        '# Whether $unit runs.\n: "${unit:?}"\nsystemctl is-active --quiet -- "$unit"\n'
    )
    here = Here(tmp_path)
    given = {"session": here, "shell": RootShell(here), "io": io, "clock": str(tmp_path / "clock.py")}  # type: ignore[arg-type]
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    ran = doctest.testmod(importlib.import_module(name), extraglobs=given, optionflags=flags)
    assert (ran.failed, ran.attempted > 0) == (0, True)


def test_what_callers_need_most_has_examples() -> None:
    wanted = {
        "transport.session",
        "transport.root.rootshell",
        "common.errors",
        "apply.jobs.scripting",
        "apply.rollout.limits",
        "apply.disturb.draining",
    }
    assert {f"hostwright.{name}" for name in wanted} <= set(MODULES)
