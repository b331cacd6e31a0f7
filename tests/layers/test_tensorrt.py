"""TensorRT by what programs get when they open it by the names that TensorFlow opens."""

from __future__ import annotations

from collections.abc import Callable

from testinfra.backend.base import CommandResult
from testinfra.host import Host

from hostwright.plan.targets import TargetHost
from hostwright.stack.stack import Stack
from hostwright.standard.roles.tensorflow.look import look_command
from hostwright.standard.roles.tensorrt.section import TensorrtSection

Run = Callable[..., CommandResult]

#: Opens the libraries of its arguments, and prints the version of the first and the file of each.
OPEN = """\
import ctypes, sys
opened = [ctypes.CDLL(name) for name in sys.argv[1:]]
print(opened[0].getInferLibVersion())
for line in sorted({line.split()[-1] for line in open("/proc/self/maps") if "/libnvinfer" in line}):
    print(line)
"""


def test_programs_open_this_version(host: Host, stack: Stack) -> None:
    """A program that opens TensorRT and its plugins by name gets the stack's version, from its own directory."""
    wanted = stack.section(TensorrtSection)
    answer = host.run("python3 -c %s %s %s", OPEN, *wanted.libraries)
    assert answer.rc == 0, f"it does not: {answer.stderr.strip()[-300:]}"
    number, *files = answer.stdout.splitlines()
    assert int(number) == wanted.number, f"it says {number}"
    place = host.run("readlink -m -- %s", f"{wanted.prefix}/lib").stdout.strip()
    names = [f"{name.partition('.so')[0]}.so.{wanted.library_version}" for name in wanted.libraries]
    assert sorted(files) == sorted(f"{place}/{name}" for name in names), f"the files are {', '.join(files)}"


def test_it_gets_the_runtime_compiler_that_it_was_linked_with(host: Host, stack: Stack) -> None:
    """The loader finds the NVRTC of the CUDA that TensorRT was linked with, without which it cannot be opened."""
    library = stack.section(TensorrtSection).nvrtc.library
    answer = host.run("python3 -c %s %s", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", library)
    assert answer.rc == 0, f"it does not: {answer.stderr.strip()[-300:]}"


def test_tensorflow_opens_it(once: Run, stack: Stack, target: TargetHost) -> None:
    """TensorFlow, where the host has it, opens this TensorRT, of the major version that its wheel was linked with."""
    if "tensorflow" not in target.variables:
        return
    answer = once(*look_command(target.context))
    versions = [line.split()[1:] for line in answer.stdout.splitlines() if line.startswith("tensorrt ")]
    assert answer.rc == 0 and versions, f"it does not: {answer.stderr.strip()[-300:]}"
    linked, loaded = versions[0][:3], versions[0][3:]
    assert ".".join(loaded) == stack.section(TensorrtSection).library_version, f"it opens {'.'.join(loaded)}"
    assert linked[0] == loaded[0], f"it is linked with {'.'.join(linked)}"
