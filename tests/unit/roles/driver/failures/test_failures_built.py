"""What DKMS and the compiler said about NVIDIA's own module on kernels that are too new (tests/fixtures/build)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hostwright.standard.roles.driver.failures.state import DKMS_TREE
from tests.places import PROJECT
from tests.unit.roles.test_role_driver import V, state
from tests.unit.support.driver_contexts import KERNEL, STATE, evidence, findings
from tests.unit.support.known import KNOWN
from tests.unit.support.shell import ask

BUILT = PROJECT / "tests" / "fixtures" / "build"
LOGS = {path.stem: path.read_text() for path in sorted(BUILT.glob("*.txt"))}
MAKE_LOGS = [name for name in LOGS if name.startswith("make-")]
HEAD = r"# 20\d\d-\d\d-\d\d, NVIDIA ([\d.]+), kernel ([67]\.\d+\.\d+\S*), gcc [\d.]+, DKMS \S+ on Debian 1\d: of "


def errors(name: str) -> list[str]:
    """The compiler's errors, one a line."""
    return [line for line in LOGS[name].splitlines() if re.search(r":\d+: (?:fatal )?error: ", line)]


def test_there_are_logs_of_several_kernels_and_compilers() -> None:
    assert len(MAKE_LOGS) >= 2
    assert all(re.match(HEAD, text) for text in LOGS.values())
    assert all(errors(name) for name in MAKE_LOGS)


@pytest.mark.parametrize("name", LOGS)
def test_the_whole_log_names_the_build(name: str) -> None:
    named = KNOWN.named(LOGS[name])
    assert named is not None
    assert named[0] == "dkms-build"


@pytest.mark.parametrize(("name", "line"), [(name, line) for name in MAKE_LOGS for line in errors(name)])
def test_each_error_alone_names_the_build(name: str, line: str) -> None:
    named = KNOWN.named(line)
    assert named is not None, f"{name}: {line}"
    assert named[0] == "dkms-build"


@pytest.mark.parametrize("name", MAKE_LOGS)
def test_the_doctor_reads_it_in_dkms_tree_and_quotes_the_compiler(tmp_path: Path, name: str) -> None:
    """With DKMS's own first line, for the stack's version and the kernel that runs."""
    build = tmp_path / V / "build"
    build.mkdir(parents=True)
    head, _, log = LOGS[name].partition("\n")
    built = re.match(HEAD, head)
    assert built is not None
    (build / "make.log").write_text(log.replace(built[1], V).replace(built[2], KERNEL))
    _, remains = ask(DKMS_TREE.script.replace("/var/lib/dkms/nvidia", str(tmp_path)))
    unbuilt = {STATE: state(module="", loaded="", uvm="", dkms=""), DKMS_TREE: remains}
    assert list(findings(unbuilt)) == ["dkms-build"]
    assert ": error: " in evidence("dkms-build", unbuilt)[0] or ": fatal error: " in evidence("dkms-build", unbuilt)[0]
