"""The CUDA toolkit by what it does: compile, load, and stay what it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from testinfra.backend.base import CommandResult
from testinfra.host import Host

from hostwright.plan.targets import TargetHost
from hostwright.stack.stack import Stack
from hostwright.standard.roles.cuda import NETWORK
from hostwright.standard.roles.cuda.compilers import REFUSED, compile_script
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.tensorflow.section import TensorflowSection

Run = Callable[..., CommandResult]

#: $1 is the toolkit's libraries, then names. Loads each by its full path and prints the file that the loader mapped.
LOAD = """\
lib=$1; real=$(readlink -m -- "$1"); shift
for name; do
    LD_LIBRARY_PATH=$lib LD_PRELOAD=$lib/$name cat /proc/self/maps |
        sed "s| $real/| $lib/|" | grep -o "$lib/${name%%.so*}[.]so.*" | sort -u | sed "s|^|$name |"
done
"""


def with_arguments(script: str, *arguments: str) -> tuple[str, ...]:
    """A command that runs ``script`` with positional parameters, for testinfra's ``run``."""
    return ("/bin/sh -c %s sh" + " %s" * len(arguments), script, *arguments)


def test_nvcc_is_exactly_this_release(host: Host, stack: Stack) -> None:
    """nvcc of each toolkit is that of the stack's release, which its "11.2" alone does not tell."""
    for toolkit in stack.section(CudaSection).toolkits:
        answer = host.run("%s -V", f"{toolkit.prefix}/bin/nvcc")
        assert answer.rc == 0, f"nvcc does not run: {(answer.stderr or answer.stdout).strip()}"
        assert f"{toolkit.nvcc}\n" in answer.stdout, f"it says: {answer.stdout.strip()}"


@pytest.mark.beside
def test_nvcc_compiles_and_the_program_runs(run_program: Run, stack: Stack) -> None:
    """nvcc of each toolkit compiles and links a program that calls the CUDA runtime, and the program runs."""
    refused = []
    for cuda in stack.section(CudaSection).toolkits:
        done = run_program(compile_script(cuda.prefix, cuda.host_compiler))
        if done.rc == REFUSED:
            newest, have = done.stdout.split()[-2:]
            refused.append(
                f"nvcc of CUDA {cuda.version} compiles with gcc up to {newest}, and this host's own is {have}"
            )
            continue
        assert done.rc == 0, f"CUDA {cuda.version}: it does not: {(done.stderr or done.stdout).strip()[-500:]}"
        major, minor = (int(part) for part in cuda.series.split("."))
        assert int(done.stdout) == major * 1000 + minor * 10, f"the headers are of CUDA {done.stdout.strip()}"
    if refused:
        pytest.skip("; ".join(refused))


def test_packages_are_at_their_versions_and_held(host: Host, stack: Stack) -> None:
    """The toolkits' packages have exactly the stack's versions, and no upgrade moves them."""
    toolkits = stack.section(CudaSection).toolkits
    wanted = {name: version for toolkit in toolkits for name, version in toolkit.packages.items()}
    table = host.run("dpkg-query -W -f='${Package} ${Version} ${db:Status-Abbrev}\\n'").stdout.splitlines()
    rows = {row.split()[0]: row.split()[1:] for row in table}
    wrong = [
        f"{name}: {' '.join(rows.get(name, ['absent']))}" for name in wanted if rows.get(name) != [wanted[name], "hi"]
    ]
    assert not wrong, f"not so: {', '.join(wrong)}"


def test_the_libraries_load_from_the_toolkit(host: Host, stack: Stack, target: TargetHost) -> None:
    """The toolkit's runtime, and each library that TensorFlow opens in it, loads from the toolkit itself."""
    tensorflow = target.context.find(TensorflowSection)
    opened = tensorflow.libraries if tensorflow else {}
    runtime = stack.section(CudaSection).runtime
    names = dict.fromkeys((runtime, *(name for name, layer in opened.items() if layer == "cuda")))
    lib = f"{stack.section(CudaSection).prefix}/targets/x86_64-linux/lib"
    loaded = host.run(*with_arguments(LOAD, lib, *names)).stdout.splitlines()
    missing = [name for name in names if not any(line.startswith(f"{name} {lib}/") for line in loaded)]
    assert not missing, f"cannot be loaded: {', '.join(missing)}"


def test_compiler_and_runtime_are_the_packages_own(root_run: Run, stack: Stack) -> None:
    """Every byte of the compiler and the runtime library is the package's."""
    verify = root_run(
        "dpkg --verify cuda-nvcc-%s cuda-cudart-%s", *[stack.section(CudaSection).series.replace(".", "-")] * 2
    )
    changed = [line for line in verify.stdout.splitlines() if f" {stack.section(CudaSection).prefix}/" in line]
    assert not changed, f"changed: {'; '.join(changed)}"


def test_usr_local_cuda_leads_to_this_toolkit(host: Host, stack: Stack) -> None:
    """/usr/local/cuda leads to this toolkit, and so does everybody's lib64."""
    prefix = stack.section(CudaSection).prefix
    leads = host.run("readlink -e /usr/local/cuda").stdout.strip()
    assert leads, "it leads to nothing"
    assert leads == host.run("readlink -m %s", prefix).stdout.strip(), f"it leads to {leads}"
    lib = host.run("readlink -e /usr/local/cuda/lib64").stdout.strip()
    real = host.run("readlink -m %s", f"{prefix}/targets/x86_64-linux/lib").stdout.strip()
    assert lib == real, f"lib64 leads to {lib or 'nothing'}"


def test_each_repository_is_trusted_by_its_own_key_alone(root_run: Run, stack: Stack, variables: Any) -> None:
    """A repository's list names a key of its own; a local one, where it is kept, is signed by it, and pinned."""
    for toolkit in stack.section(CudaSection).toolkits:
        local = toolkit.repository
        if local and not variables.keep_repository:
            assert root_run("test -e %s", local.directory).rc != 0, "the repository still fills /var"
            continue
        line = root_run("cat %s", toolkit.source.list_file).stdout.strip()
        assert line.startswith("deb [signed-by="), f"the list says: {line or 'nothing'}"
        keyring = line.partition("=")[2].partition("]")[0]
        assert root_run("test -s %s", keyring).rc == 0, f"{keyring} is missing"
        if local:
            signed = root_run("gpgv --keyring %s %s", keyring, f"{local.directory}/InRelease")
            assert signed.rc == 0, f"{keyring} does not vouch for it: {signed.stderr.strip()}"
            pinned = root_run("cat %s", local.pin_file).stdout
            assert "Pin-Priority: 600" in pinned, f"{local.pin_file} does not pin it"


def test_no_second_source_of_cuda(root_run: Run, variables: Any, target: TargetHost) -> None:
    """apt reads no other repository of CUDA, whose newer packages or changed key would get in the way."""
    if variables.network_repository or any(NETWORK in one.uri for one in target.context.repositories()):
        return
    lines = root_run("apt-get update --print-uris").stdout.splitlines()  # says what it would fetch, fetches nothing
    network = [line for line in lines if NETWORK in line]
    assert not network, f"apt reads {network[:1]}"
