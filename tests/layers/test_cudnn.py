"""cuDNN by what a program finds: the right version, whole, once."""

from __future__ import annotations

from collections.abc import Callable

from testinfra.backend.base import CommandResult
from testinfra.host import Host

from hostwright.stack.stack import Stack
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.cudnn.section import CudnnSection

Run = Callable[..., CommandResult]

PARTS = ("", "_adv_infer", "_adv_train", "_cnn_infer", "_cnn_train", "_ops_infer", "_ops_train")

#: $1 is the target's directory. A program as users write it: all headers, the linker's name, the version by a call.
CALL = """\
set -e
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cat >"$work/probe.cpp" <<'END'
#include <cstdio>
#include <cudnn.h>
int main() { std::printf("%d %zu\\n", CUDNN_VERSION, cudnnGetVersion()); }
END
g++ -I"$1/include" -o "$work/probe" "$work/probe.cpp" -L"$1/lib" -lcudnn "-Wl,-rpath,$1/lib"
LD_LIBRARY_PATH=$1/lib "$work/probe"
"""

#: $1 is the directory, then names. Loads each by its full path and prints the file that the loader mapped.
LOAD = """\
lib=$1; real=$(readlink -m -- "$1"); shift
for name; do
    LD_LIBRARY_PATH=$lib LD_PRELOAD=$lib/$name cat /proc/self/maps |
        sed "s| $real/| $lib/|" | grep -o "/[^ ]*/${name%%.so*}[.]so.*" | sort -u | sed "s|^|$name |"
done
"""


def target(stack: Stack) -> str:
    """Where cuDNN lies: in the versioned toolkit."""
    return f"{stack.section(CudaSection).prefix}/targets/x86_64-linux"


def test_a_program_finds_this_version(run_program: Run, stack: Stack) -> None:
    """A program compiled against cuDNN gets the stack's version from its headers and from the library that it calls."""
    done = run_program(CALL, target(stack))
    assert done.rc == 0, f"it does not: {(done.stderr or done.stdout).strip()[-500:]}"
    header, library = done.stdout.split()
    assert (int(header), int(library)) == (stack.section(CudnnSection).number, stack.section(CudnnSection).number), (
        f"headers say {header}, the library says {library}"
    )


def test_links_are_links(host: Host, stack: Stack) -> None:
    """Each of cuDNN's seven libraries is one file, and its two other names are links to it, one by way of the other."""
    major, version = stack.section(CudnnSection).version.partition(".")[0], stack.section(CudnnSection).library_version
    lib = f"{target(stack)}/lib"
    listing = host.run("find %s -maxdepth 1 -name %s -printf %s", lib, "libcudnn*.so*", "%f %y %l\\n").stdout
    targets = {line.split(" ")[0]: line.split(" ", 1)[1].strip() for line in listing.splitlines()}
    wanted = {}
    for part in PARTS:
        name = f"libcudnn{part}.so"
        wanted[name] = f"l {name}.{major}"
        wanted[f"{name}.{major}"] = f"l {name}.{version}"
        wanted[f"{name}.{version}"] = "f"
    wrong = [f"{name}: {targets.get(name, 'absent')}" for name in wanted if targets.get(name) != wanted[name]]
    assert not wrong, f"not so: {', '.join(wrong)}"


def test_every_part_loads_from_the_toolkit(host: Host, stack: Stack) -> None:
    """Every one of cuDNN's libraries can be loaded, and is the file of the stack's version in the toolkit."""
    names = [f"libcudnn{part}.so.{stack.section(CudnnSection).version.partition('.')[0]}" for part in PARTS]
    lib = f"{target(stack)}/lib"
    loaded = host.run("/bin/sh -c %s sh %s" + " %s" * len(names), LOAD, lib, *names).stdout.splitlines()
    files = {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in loaded}
    wanted = {
        name: f"{lib}/{name.partition('.so')[0]}.so.{stack.section(CudnnSection).library_version}" for name in names
    }
    wrong = [f"{name}: {files.get(name, 'nothing')}" for name in names if files.get(name) != wanted[name]]
    assert not wrong, f"not so: {', '.join(wrong)}"


def test_no_second_cudnn(root_run: Run, stack: Stack) -> None:
    """The loader knows no other cuDNN of this major version: two of them in one process do not fit each other."""
    major = stack.section(CudnnSection).version.partition(".")[0]
    packages = root_run("dpkg-query -W -f='${db:Status-Status} ${Package}\\n'").stdout.splitlines()
    other = [row.split()[1] for row in packages if row.startswith(f"installed libcudnn{major}")]
    assert not other, f"installed: {', '.join(other)}"
    listed = root_run("/sbin/ldconfig -p").stdout.splitlines()
    paths = [line.rpartition(" => ")[2] for line in listed if "libcudnn" in line and f".so.{major} " in line]
    real = root_run("readlink -e --" + " %s" * len(paths), *paths).stdout.split() if paths else []
    lib = root_run("readlink -m -- %s", f"{target(stack)}/lib").stdout.strip()
    foreign = [path for path in real if not path.startswith(f"{lib}/")]
    assert not foreign, f"the loader's cache also has {', '.join(foreign)}"
