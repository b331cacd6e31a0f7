"""Failures to find libraries and tools without variables, and failures from users' variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, Sign, Tangled, Try, Unread, Variant
from hostwright.resources import Probe
from hostwright.roles import Pattern
from hostwright.standard.roles.cuda.failures.toolkits import TOOLKITS
from hostwright.standard.roles.driver.failures.loader_cache import LOADER
from hostwright.standard.roles.environment.failures.frameworks import FRAMEWORK_RULES
from hostwright.standard.roles.environment.failures.loader import LOADER_RULES, no_ptxas, not_cached
from hostwright.standard.roles.environment.failures.texts import (
    BY_NAME,
    LIBRARY_NAMES,
    NOT_FOUND,
    NOT_SEARCHED,
    OF_PACKAGE,
    OF_RELEASE,
    OF_WHEELS,
    OLD_SONAME,
    OPTIONAL,
    TEXT_RULES,
    WHEEL_LOADS,
)
from hostwright.standard.roles.environment.failures.variables import VARIABLES_RULES

if TYPE_CHECKING:
    from hostwright.failures import AuditContext


_DIRECTORIES = (
    "/usr/local/cuda-[0-9]*.[0-9]*/targets/x86_64-linux/lib /usr/local/lib /usr/local/lib/x86_64-linux-gnu /usr/lib"
    " /usr/lib/x86_64-linux-gnu"
)
_STEMS = ("cuda", "nvidia-ml", "cudart", "cublas", "cublasLt", "cufft", "curand", "cusolver", "cusparse", "cudnn*")
_NAMES = " -o ".join(f"-name 'lib{stem}.so*'" for stem in _STEMS)

#: probe that prints links with targets, and each library's soname. readelf prints file names only for several files, so
#: /bin/sh is added as a second file.
NAMES = Probe(
    f"""\
find {_DIRECTORIES} -maxdepth 1 -type l \\( {_NAMES} \\) -printf 'link\\t%p\\t%l\\n'
command -v readelf >/dev/null || exit 0
find {_DIRECTORIES} -maxdepth 1 -type f -size +0 \\( {_NAMES} \\) -exec timeout 5 readelf -d -- /bin/sh {{}} + |
  sed -nE 's/^File: (.*)/file\\t\\1/p; s/.*\\(SONAME\\).*\\[(.*)\\]$/soname\\t\\1/p'
exit 0""",
    cap_bytes=256 * 1024,
)

_LIBRARY = Pattern(r"(lib[A-Za-z0-9_+-]+)\.so(?:\.([0-9]+)[0-9.]*)?")
#: driver libraries. A link to them has the interface's version, not the driver's.
_DRIVERS = {"libcuda", "libnvidia-ml"}


def another_library(ctx: AuditContext) -> Iterator[str]:
    """A link named as a library of CUDA, cuDNN or the driver points to another library, or a file's soname differs."""
    answer = ctx.answer(NAMES)
    if answer.truncated:
        raise Unread("the host has too many libraries to list")
    file = ""
    for line in answer.text.splitlines():
        kind, _, rest = line.partition("\t")
        path, _, target = rest.partition("\t")
        if kind == "file":
            file = path
        elif kind == "soname" and file and _differ(file, path):
            yield f"{file} has the soname {path}"
        elif kind == "link" and _differ(path, target):
            yield f"{path} leads to {target}"


def _differ(path: str, target: str) -> bool:
    name, other = (_LIBRARY.fullmatch(file.rpartition("/")[2]) for file in (path, target))
    if name is None or other is None:
        return False
    majors = {name[2], other[2]} - {None}
    return name[1] != other[1] or (len(majors) > 1 and name[1] not in _DRIVERS)


SONAME_RULES = (
    FailureRule(
        "library-of-another-name",
        "",
        "a library's name points to another library or another version of it, as some guides recommend. Programs then"
        " fail inside it, or silently compute with the wrong library",
        "Remove the link or the file, run ldconfig, and provision again to restore the right library",
        "tensorflow/tensorflow#45200",
        sign=Sign("environment", another_library, (NAMES,)),
        treatment=Tangled("a library's name leads to another library"),
    ),
)


TRIES = (Try(("ptxas",), ("Relying on driver to perform ptx", "Falling back to the CUDA driver for PTX"), 3),)

FAILURES = (
    *TEXT_RULES,
    *FRAMEWORK_RULES,
    FailureRule(
        "library-not-found",
        NOT_FOUND,
        "the loader does not find {SONAME, which|a library of CUDA or cuDNN, in the release that} the program loads:"
        " the library is not installed, or is outside the search path. TensorFlow then runs without the GPU; other"
        " programs stop",
        "If /usr/local/cuda-… has the library (find / -name '{SONAME|NAME}*' 2>/dev/null), provision again: the"
        " environment role adds it to /etc/ld.so.conf.d without any variable. If site-packages/nvidia/… has it, let"
        " the program import torch first, or set LD_LIBRARY_PATH for this program alone. Otherwise install a build of"
        " the program for the stack's CUDA and cuDNN",
        "tensorflow/tensorflow#56413, #45930",
        unless=OPTIONAL,
        names=LIBRARY_NAMES,
        beside=WHEEL_LOADS,
        variants=(
            *OF_WHEELS[:1],
            *NOT_SEARCHED,
            *OF_WHEELS[1:],
            *BY_NAME,
            OF_PACKAGE,
            OF_RELEASE,
            Variant(
                OLD_SONAME,
                "the program was built for CUDA RELEASE: it loads SONAME, which the loader does not find",
                "Install a build of the program for the host's CUDA (ls -d /usr/local/cuda-*), or rebuild it."
                " Provisioning helps only if the stack has CUDA RELEASE. Do not link that name to another release's"
                " file: the program would crash later",
            ),
        ),
        sign=Sign("environment", not_cached, (LOADER,), provision=True),
        weight="general",
    ),
    FailureRule(
        "ptxas-not-found",
        r"Couldn't (?:get|invoke) ptxas|Can't find ptxas|Unable to find ptxas|Cannot find (?:a triton )?ptxas"
        r"|Missing libdevice file"
        r"|libNVVM cannot be found|Searched for CUDA in the following directories|ptxas: (?:command )?not found"
        r"|ptxas not found|Can't find libdevice"
        r"|libdevice not found at|Could not find ptxas|Failed to launch ptxas"
        r"|libdevice is required by|No PTX compilation provider|(?:Couldn't|cannot) find ptxas|ptxas: No such file",
        "the CUDA toolkit's bin directory is not on PATH",
        "Provision again: the environment role links the tools into /usr/bin",
        "tensorflow/tensorflow#33375, #58681; conda-forge/tensorflow-feedstock#420",
        variants=(
            Variant(
                r"No PTX compilation provider",
                "the compiler of TensorFlow or JAX (XLA) finds no ptxas, nvlink or libnvJitLink. They are outside the"
                " search path or not installed, as in a CUDA runtime image or an environment without nvcc",
                "Install the compiler where the program runs (pip install nvidia-cuda-nvcc-cu12, CUDA 13:"
                " nvidia-cuda-nvcc; or an image that ends in -devel). If XLA still does not find it, set its"
                " directory: XLA_FLAGS=--xla_gpu_cuda_data_dir=DIRECTORY. For the stack's toolkit, provision again."
                " Driver, GPU and cuDNN are not the cause",
            ),
            Variant(
                r"libdevice|Searched for CUDA",
                "the compiler of TensorFlow or JAX (XLA) does not find libdevice.10.bc in its search directories. The"
                " file belongs to a CUDA toolkit (nvvm/libdevice) and to the wheel or conda package of nvcc",
                "In an environment with its own CUDA, install the compiler (pip install nvidia-cuda-nvcc-cu12; conda"
                " install -c conda-forge cuda-nvcc), and set the directory with nvvm/libdevice:"
                " XLA_FLAGS=--xla_gpu_cuda_data_dir=DIRECTORY. In conda this is $CONDA_PREFIX/targets/x86_64-linux or"
                " $CONDA_PREFIX. For the stack's toolkit, provision again",
            ),
        ),
        sign=Sign("environment", no_ptxas, (TOOLKITS,), provision=True),
    ),
    *LOADER_RULES,
    *SONAME_RULES,
    *VARIABLES_RULES,
)
