"""NCCL by what programs get: built for the stack's CUDA, and one of it."""

from __future__ import annotations

from collections.abc import Callable

from testinfra.backend.base import CommandResult
from testinfra.host import Host

from hostwright.stack.stack import Stack
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.nccl.section import DEVELOPMENT, HOME, LIBRARY, PACKAGE, NcclSection

Run = Callable[..., CommandResult]

#: $1 is the toolkit's directory. A program as users write it: NCCL's header, the linker's name, the version by a call.
CALL = """\
set -e
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cat >"$work/probe.cpp" <<'END'
#include <cstdio>
#include <nccl.h>
int main() { int version = 0; ncclGetVersion(&version); std::printf("%d %d\\n", NCCL_VERSION_CODE, version); }
END
g++ -I"$1/include" -o "$work/probe" "$work/probe.cpp" -lnccl
"$work/probe"
"""

#: The loader's own search, as for a program that opens it by its name.
OPEN = f"import ctypes; n = ctypes.c_int(); ctypes.CDLL('{LIBRARY}').ncclGetVersion(ctypes.byref(n)); print(n.value)"


def test_a_program_is_compiled_with_this_version_and_gets_it(run_program: Run, stack: Stack) -> None:
    """A program compiled against NCCL gets the stack's version from its header and from the library that it calls."""
    done = run_program(CALL, stack.section(CudaSection).prefix)
    assert done.rc == 0, f"it does not: {(done.stderr or done.stdout).strip()[-500:]}"
    number = stack.section(NcclSection).number
    header, library = done.stdout.split()
    assert (int(header), int(library)) == (number, number), f"the header says {header}, the library says {library}"


def test_the_loader_finds_this_version(host: Host, stack: Stack) -> None:
    """A program that opens libnccl.so.2 by its name gets the stack's version."""
    answer = host.run("python3 -c %s", OPEN)
    assert answer.rc == 0, f"it does not: {answer.stderr.strip()[-300:]}"
    assert int(answer.stdout) == stack.section(NcclSection).number, f"it gets {answer.stdout.strip()}"


def test_the_packages_are_for_this_cuda_and_held(host: Host, stack: Stack) -> None:
    """NCCL's packages are those for the stack's CUDA, and apt keeps them at their version."""
    table = "${Package} ${Version} ${db:Status-Want}\\n"
    rows = host.run("dpkg-query -W -f %s %s %s", table, PACKAGE, DEVELOPMENT).stdout.splitlines()
    wanted = [f"{name} {stack.section(NcclSection).package_version} hold" for name in (PACKAGE, DEVELOPMENT)]
    assert sorted(rows) == sorted(wanted), f"they are: {', '.join(rows) or 'not there'}"


def test_no_second_nccl(root_run: Run) -> None:
    """The loader knows no other NCCL: a program may otherwise get an older one than it was built with."""
    listed = root_run("/sbin/ldconfig -p").stdout.splitlines()
    paths = [line.rpartition(" => ")[2] for line in listed if line.strip().startswith(f"{LIBRARY} ")]
    real = [root_run("readlink -m -- %s", path).stdout.strip() for path in paths]
    home = root_run("readlink -m -- %s", HOME).stdout.strip()
    foreign = [path for path in real if not path.startswith(f"{home}/")]
    assert not foreign, f"the loader's cache also has {', '.join(foreign)}"
