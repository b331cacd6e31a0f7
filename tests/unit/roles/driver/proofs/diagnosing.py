"""Running the proofs of the driver's role, and what dcgmi prints for them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hostwright.prove.model import Expected
from hostwright.prove.reading import Printed, read
from hostwright.standard.roles.driver import Driver
from hostwright.standard.roles.driver.proofs import proofs

EXPECTED = Expected("gpu01")
PLACEMENT, DIAGNOSTICS = proofs(Driver(), None)  # type: ignore[arg-type]  # they ask nothing of the host
UUID = "GPU-6e2c1c5e-0000-1111-2222-333344445555"
CARD = f"{UUID} (Tesla V100-SXM2-16GB)"
DISCOVERY = f"""1 GPU found.
+--------+----------------------------------------------------------------------+
| GPU ID | Device Information                                                   |
+--------+----------------------------------------------------------------------+
| 0      | Name: Tesla V100-SXM2-16GB                                           |
|        | PCI Bus ID: 00000000:00:1E.0                                         |
|        | Device UUID: {UUID}                                                  |
+--------+----------------------------------------------------------------------+
0 NvSwitches found.
"""


def command(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def run(folder: Path, program: Any, *interpreter: str, status: int = 0, **environment: str) -> Printed:
    (folder / program.file).write_text(program.source)
    (folder / "arguments.json").write_text(json.dumps(dict(program.arguments)))
    done = subprocess.run(
        [*interpreter, program.file, "arguments.json"],
        cwd=folder,
        env={"PATH": f"{folder}:/usr/bin:/bin"} | environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout
    return read(done.stdout)


def diagnosed(folder: Path, text: str, status: int = 0, exits: int = 0) -> Printed:
    """What the program makes of dcgmi's output."""
    (folder / "discovery").write_text(DISCOVERY)
    (folder / "diag").write_text(text)
    command(folder, "dcgmi", f'cat "{folder}/$1"; [ "$1" = discovery ] || exit {exits}')
    return run(folder, DIAGNOSTICS.program, sys.executable, status=status)


def results(printed: Printed) -> dict[tuple[str, str], Any]:
    return {(one.name, one.device): one.value for one in printed.measurements}


def document(
    root: str,
    *tests: Any,
    category: str = "Hardware",
    more: Iterable[Any] = (),
    beside: Mapping[str, Any] | None = None,
    **inside: Any,
) -> str:
    """A diagnosis with these tests in one category, and ``more`` categories; others' values ``beside`` the root or
    inside of it."""
    categories = [{"category": category, "tests": list(tests)}, *more]
    return json.dumps({root: {"test_categories": categories} | inside, **(beside or {})}, indent=1)
