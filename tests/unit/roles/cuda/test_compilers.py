"""nvcc and the compilers of hosts: which one it gets, and what is said where it takes none.

The refusal is what the real nvcc 11.2.152 printed on Debian 12 with gcc 12.2.0 (and with gcc 11.3.0), with paths of
a host. With ``-allow-unsupported-compiler`` neither compiles as much as <cstdio> there; Debian 11's g++ 10.2.1 does.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Facts
from hostwright.plan.roles.role import RoleContext
from hostwright.plan.roles.wants import desire
from hostwright.resources.packages.packages import Debs
from hostwright.standard.roles.cuda import Cuda, cuda
from hostwright.standard.roles.cuda.compilers import REFUSED, HostCompiler, compile_script
from hostwright.standard.roles.cuda.failures.programs import compiler_too_new
from hostwright.standard.roles.cuda.rules import DRIVER_FLOORS, newest_gcc
from hostwright.standard.roles.cuda.section import CudaSection
from tests.layers.test_environment import refused
from tests.unit.support.auditcontexts import look_at
from tests.unit.support.shell import program
from tests.unit.support.stacks import load_stack

STACK = load_stack("tensorflow-2.9")
REFUSAL = (
    "In file included from /usr/local/cuda-11.2/bin/../targets/x86_64-linux/include/cuda_runtime.h:83,\n"
    "                 from <command-line>:\n"
    "/usr/local/cuda-11.2/bin/../targets/x86_64-linux/include/crt/host_config.h:139:2: error: #error -- unsupported GNU"
    " version! gcc versions later than 10 are not supported! The nvcc flag '-allow-unsupported-compiler' can be used to"
    " override this version check; however, using an unsupported host compiler may cause compilation failure or"
    " incorrect run time execution. Use at your own risk.\n"
)
#: takes g++ 10 and older, as the toolkit's does; the host's own gcc is 12
NVCC = """\
for word; do
    case $before in -o) out=$word ;; -ccbin) compiler=${word##*/} ;; esac
    before=$word
done
case ${compiler-gcc} in
g++-10|g++-9|g++-8) printf '#!/bin/sh\\necho 11020\\n' >"$out"; chmod +x "$out" ;;
*) cat "${0%/*}/refusal" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A host with the toolkit and gcc 12, whose programs lie in ``bin``."""
    (tmp_path / "cuda").mkdir()
    program(tmp_path / "cuda/bin", "nvcc", NVCC)
    (tmp_path / "cuda/bin/refusal").write_text(REFUSAL)
    program(tmp_path / "bin", "gcc", "echo 12")
    for name in ("cat", "chmod", "cut", "grep", "head", "mktemp", "rm", "sed", "sh", "sort"):
        (tmp_path / "bin" / name).symlink_to(f"/bin/{name}")
    return tmp_path


def compiled(host: Path, compiler: str = "") -> tuple[int, str, str]:
    done = subprocess.run(
        ["/bin/sh", "-c", compile_script(str(host / "cuda"), compiler)],
        env={"PATH": str(host / "bin"), "TMPDIR": str(host)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert not [path for path in host.iterdir() if path.name not in {"cuda", "bin"}]
    return done.returncode, done.stdout, done.stderr


def test_a_host_whose_only_gcc_is_too_new_is_told_apart_from_a_toolkit_that_is_broken(host: Path) -> None:
    assert compiled(host) == (REFUSED, "10 12\n", "")
    (host / "cuda/bin/refusal").write_text("nvcc fatal   : Path to libdevice library not specified\n")
    assert compiled(host) == (1, "", "nvcc fatal   : Path to libdevice library not specified\n")
    (host / "cuda/bin/nvcc").unlink()
    status, said, errors = compiled(host)
    assert (status, said) == (1, "")
    assert "not found" in errors


def test_an_older_compiler_beside_the_hosts_own_does_not_count(host: Path) -> None:
    """facebookarchive/caffe2#442: what compiles with -ccbin alone does not compile for users."""
    program(host / "bin", "g++-9", "exit 0")
    assert compiled(host) == (REFUSED, "10 12\n", "")


def test_a_compiler_that_is_too_new_is_a_finding_of_doctors() -> None:
    desired = desire("gpu01", RoleContext(STACK), [(cuda, Cuda())])
    state = next(one for one in desired.roles[0].resources if isinstance(one, HostCompiler))
    (line,) = compiler_too_new(look_at({state.probes()[0]: "gcc 12\ninstalled 10\n"}, desired=desired))
    assert "accepts gcc up to 10, and this host has gcc 12" in line
    assert "update-alternatives --set g++ /usr/bin/g++-10" in line
    assert not [*compiler_too_new(look_at({state.probes()[0]: "gcc 10\n"}, desired=desired))]


def test_the_compiler_of_the_stack_is_the_one_that_counts(host: Path) -> None:
    program(host / "bin", "g++-9", "exit 0")
    assert compiled(host, "/usr/bin/g++-10")[:2] == (0, "11020\n")
    status, said, errors = compiled(host, "/usr/bin/g++-11")
    assert (status, said) == (1, "")
    assert "unsupported GNU version" in errors


def test_a_refusal_of_the_toolkits_own_header_says_that_nvcc_has_found_it() -> None:
    assert refused(REFUSAL, "/usr/local/cuda-11.2")
    assert not refused(REFUSAL, "/usr/local/cuda-11.8")
    assert not refused("nvcc fatal   : Path to libdevice library not specified\n", "/usr/local/cuda-11.2")


#: as apt 2.6 answers: an unknown name is a pattern, which matches others
APT = """\
if [ "$1" = pkgnames ]; then printf '%s\\n' g++-10 g++-11 g++-8 g++-9-multilib OFFERED; exit; fi
shift
for name; do
    case $name in
    gcc) printf 'gcc:\\n  Installed: (none)\\n  Candidate: 4:12.2.0-3\\n  Version table:\\n     4:12.2.0-3 500\\n' ;;
    OFFERED) printf '%s:\\n  Installed: (none)\\n  Candidate: 10.2.1-6\\n     10.2.1-6 100\\n' "$name" ;;
    g++-11) printf 'g++-11:\\n  Installed: (none)\\n  Candidate: 11.3.0-12\\n' ;;
    g++-8) printf 'libg++-80:\\n  Installed: (none)\\n  Candidate: 8.0-1\\n' ;;
    *) printf '%s:\\n  Installed: (none)\\n  Candidate: (none)\\n' "$name" ;;
    esac
done
"""


def note(path: Path, compiler: str = "") -> tuple[str, ...]:
    state = HostCompiler("11.2.2", 10, compiler)
    (probe,) = state.probes()
    done = subprocess.run(
        ["/bin/sh", "-c", probe.script], env={"PATH": str(path)}, capture_output=True, text=True, check=True
    )
    return state.notes(Facts({probe: Answer(0, done.stdout)}))


@pytest.mark.parametrize("gcc", ["10", "9.4.0", "10.2.1"])
def test_of_a_compiler_that_nvcc_takes_nothing_is_said_and_apt_is_not_asked(host: Path, gcc: str) -> None:
    program(host / "bin", "gcc", f"echo {gcc}")
    program(host / "bin", "apt-cache", "echo asked >&2; exit 1")
    assert note(host / "bin") == ()


SAID = "nvcc of CUDA 11.2.2 accepts gcc up to 10, and this host has gcc 12; "


@pytest.mark.parametrize(
    ("there", "offered", "end"),
    [
        ((), "none", "apt offers no older one, so nvcc cannot compile here"),
        (
            (),
            "g++-10",
            "apt offers g++-10; to install it for nvcc, set `compiler: g++-10` in the stack's `cuda`",
        ),
        (
            ("g++-9",),
            "none",
            "g++-9 is installed here; for nvcc to use it, set `compiler: g++-9` in the stack's `cuda`, or make it the"
            " host's default (update-alternatives --set g++ /usr/bin/g++-9, and gcc alike)",
        ),
    ],
)
@pytest.mark.parametrize("bare", [True, False])
def test_one_that_is_too_new_is_said_before_it_is_even_installed(
    host: Path, there: tuple[str, ...], offered: str, end: str, bare: bool
) -> None:
    if bare:
        (host / "bin/gcc").unlink()
    program(host / "bin", "apt-cache", APT.replace("OFFERED", offered))
    for name in there:
        program(host / "bin", name, "exit 0")
    assert note(host / "bin") == (SAID + end,)


def test_of_the_stacks_compiler_is_said_where_it_is_not_to_be_had(host: Path) -> None:
    """Before a run ends there; it is no refusal, since lists that know it may not have been fetched yet."""
    program(host / "bin", "apt-cache", APT.replace("OFFERED", "g++-10"))
    assert note(host / "bin", "g++-10") == ()
    missing = "the stack names g++-8 for nvcc, which is neither installed on the host nor offered by apt"
    assert note(host / "bin", "g++-8") == (missing,)
    program(host / "bin", "g++-8", "exit 0")
    assert note(host / "bin", "g++-8") == ()


def test_a_host_that_does_not_say_is_not_blamed(host: Path) -> None:
    (host / "bin/gcc").unlink()
    assert note(host / "bin") == ()


def test_the_compiler_that_the_stack_names_is_installed() -> None:
    section = STACK.section(CudaSection)
    named = STACK.model_copy(
        update={"sections": {**STACK.sections, "cuda": section.model_copy(update={"compiler": "g++-10"})}}
    )
    states = cuda.resources(Cuda(), RoleContext(named))
    assert Debs(("g++-10",)) in states
    assert HostCompiler("11.2.2", 10, "g++-10") in states
    assert HostCompiler("11.2.2", 10) in cuda.resources(Cuda(), RoleContext(STACK))


def test_every_toolkit_of_the_table_of_drivers_has_its_newest_compiler() -> None:
    assert all(map(newest_gcc, DRIVER_FLOORS))


@pytest.mark.parametrize("version", ["9" * 5000, "²", "٣", "-1", ""])
def test_a_version_that_is_none_is_no_version(version: str) -> None:
    compiler = HostCompiler("11.2.2", 10)
    answer = Answer(0, f"gcc {version}\nolder {version}\n")
    assert compiler.notes(Facts({compiler.probes()[0]: answer})) == ()
