"""Failures of cuDNN: library files in place of links, two versions on one host, mismatched headers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, Sign, Tangled, Variant, wanted
from hostwright.resources import DPKG, NoStrayFiles
from hostwright.roles import Pattern
from hostwright.standard.roles.cuda.failures.toolkits import (
    CUDNN_HEADER,
    LIBRARIES,
    TOOLKITS,
    LibraryFile,
    library_files,
    own,
)
from hostwright.standard.roles.cuda.failures.wheels import TWO_SETS, WHEEL_LINES
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.cudnn.section import CudnnSection
from hostwright.standard.roles.driver.failures.loader_cache import LOADER, cached

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

_REAL = Pattern(r"libcudnn\w*\.so\.((\d+)\.\d+\.\d+)")


def flat(ctx: AuditContext) -> Iterator[str]:
    """A ``libcudnn*.so`` or ``libcudnn*.so.8`` in the toolkit is a file, not a link to the library's file."""
    link = Pattern(rf"libcudnn\w*\.so(\.{_major(ctx)})?")
    for file in _ours(ctx):
        if file.kind == "f" and link.fullmatch(file.name):
            yield f"{file.path} is a file of {file.size_bytes} bytes, not a link"


def mixed(ctx: AuditContext) -> Iterator[str]:
    """The host has two cuDNNs of the same major version: in the toolkit, from apt, or in the loader's default
    directories.
    """
    versions, packaged, strays = _versions(ctx), _packaged(ctx), _strays(ctx)
    if len(versions) > 1 or sum(map(bool, (versions, packaged, strays))) > 1:
        yield from (f"{paths[0]} is {version}" for version, paths in sorted(versions.items()))
        yield from (f"{package} is installed" for package in packaged)
        yield from strays


def other_version(ctx: AuditContext) -> Iterator[str]:
    """The host has exactly one cuDNN, of another version than the stack's."""
    versions, packaged, strays = _versions(ctx), _packaged(ctx), _strays(ctx)
    if len(versions) == 1 and ctx.section(CudnnSection).library_version not in versions and not packaged and not strays:
        yield from (paths[0] for paths in versions.values())
    elif not versions and not strays:
        exact = f" {ctx.section(CudnnSection).version}"
        yield from (f"{package} is installed" for package in packaged if exact not in package)


def in_loader(ctx: AuditContext) -> Iterator[str]:
    """The loader's cache has a cuDNN of the stack's major version outside any toolkit, which neither apt nor the role
    cudnn manages.
    """
    strays, packaged = set(_strays(ctx)), _packaged(ctx)
    for entry in cached(ctx):
        ours = entry.real.startswith("/usr/local/cuda") or entry.below(ctx.section(CudaSection).prefix)
        if not entry.name.startswith("libcudnn") or not entry.name.endswith(f".so.{_major(ctx)}") or ours:
            continue
        if not {entry.path, entry.real} & strays and not (packaged and entry.real.startswith("/usr/lib/")):
            yield str(entry)


def headers(ctx: AuditContext) -> Iterator[str]:
    """The toolkit has cuDNN's libraries, and ``cudnn_version.h`` is missing or of another version."""
    versions, toolkit = _versions(ctx), own(ctx)
    path = f"{toolkit.path}/{CUDNN_HEADER}"
    if len(versions) == 1 and CUDNN_HEADER not in toolkit.has:
        yield f"{path} is not there"
    elif len(versions) == 1 and toolkit.cudnn and toolkit.cudnn not in versions:
        yield f"{path} says {toolkit.cudnn}, the libraries are {', '.join(versions)}"


def _major(ctx: AuditContext) -> str:
    return ctx.section(CudnnSection).version.partition(".")[0]


def _ours(ctx: AuditContext) -> tuple[LibraryFile, ...]:
    home = str(PurePosixPath(ctx.section(CudaSection).prefix) / LIBRARIES)
    return tuple(file for file in library_files(ctx).values() if file.path.rpartition("/")[0] == home)


def _versions(ctx: AuditContext) -> dict[str, list[str]]:
    by_version: dict[str, list[str]] = {}
    major = _major(ctx)
    for file in _ours(ctx):
        match = _REAL.fullmatch(file.name) if file.is_file else None
        if match and match[2] == major:
            by_version.setdefault(match[1], []).append(file.path)
    return by_version


def _packaged(ctx: AuditContext) -> list[str]:
    rows = (ctx.packages.get(name) for name in (f"libcudnn{_major(ctx)}", "nvidia-cudnn"))
    return [f"{row.name} {row.version}" for row in rows if row and row.present]


def _strays(ctx: AuditContext) -> list[str]:
    resource = wanted(ctx, "cudnn", NoStrayFiles)
    paths = ctx.answer(resource.probes()[0]).text.splitlines()
    return [path for path in paths if path.startswith("/") and not path.startswith(f"{resource.home}/")]


FAILURES = (
    FailureRule(
        "library-not-a-link",
        "",
        "a library was copied in place of a link (cp without -P), which duplicates the file and hides later versions",
        "Provision again: the cudnn role restores the links",
        "tensorflow/tensorflow#2986",
        sign=Sign("cudnn", flat, grave=False, provision=True),
        weight="general",
    ),
    FailureRule(
        "cudnn-mixed",
        r"libcudnn[^\n]*undefined symbol|undefined symbol: [^\n]+ version libcudnn"
        r"|version libcudnn\w{0,40}\.so\.[0-9]{1,2} not defined|CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH"
        r"|CUDNN_STATUS_VERSION_MISMATCH",
        "two copies of cuDNN are mixed in one program, such as apt's libcudnn8 and the tarball",
        "Provision again: the cudnn role removes the other one from apt and the loader's directories. If the message "
        "remains, check the program's own variables and Python packages",
        "davisking/dlib#2719",
        names=(
            r"(?P<place>/usr/\S{1,100}/libcudnn\S{1,40}): undefined symbol",
            r"calling init: (?P<place>/(?:usr/)?lib/\S{1,60}/libcudnn\S{1,40})",
        ),
        beside=rf"{WHEEL_LINES}|calling init: /(?:usr/)?lib/\S{{1,60}}/libcudnn",
        variants=(
            TWO_SETS,
            Variant(
                r"calling init: /(?:usr/)?lib/\S{1,60}/libcudnn",
                "two copies of cuDNN are mixed in one program: most parts come from the environment's wheel, and "
                "{PLACE|one} from the host's cuDNN in a default directory of the loader, because the wheel lacks "
                "that part or does not load it",
                "Remove the host's cuDNN if nobody needs it (dpkg -S FILE prints its package; apt-get remove it). "
                "Otherwise install one version for both (pip list | grep cudnn; dpkg -l '*cudnn*'), or a wheel of "
                "cuDNN that has the part. LD_LIBRARY_PATH and the driver are not the cause",
            ),
            Variant(
                r"(?:site|dist)-packages/nvidia/cudnn|SUBLIBRARY_VERSION|-cu1[0-9]\b",
                "two copies of cuDNN are mixed in one program: libraries of the environment's wheel "
                "(nvidia-cudnn-…), and others of the same name from the host, from conda or from a second wheel",
                "Unset LD_LIBRARY_PATH for the program (`invoke doctor` and LD_DEBUG=libs show a copy that comes "
                "before the wheel's). If the message remains, pip list | grep cudnn shows two wheels, or files of an "
                "older one are left: uninstall all of them and install the framework again with its wheels (pip "
                "install --force-reinstall). Provisioning restores the stack's own",
            ),
            Variant(
                r"(?:^|\s)/usr/\S{1,100}/libcudnn\S{1,40}: undefined symbol",
                "two releases of cuDNN are mixed in one program: the loader opens PLACE, a copy of the host's, and "
                "the library that it needs from another one, usually the wheel of a framework (torch, nvidia-cudnn-…)",
                "Use one release for the whole program: unset LD_LIBRARY_PATH, remove the host's directory from the "
                "loader (/etc/ld.so.conf.d, ldconfig; apt-get remove libcudnn8 if nobody needs it), or install one "
                "version for both (pip list | grep cudnn; dpkg -l '*cudnn*'). If the host has several copies, "
                "provision again: the cudnn role keeps one. Do not copy single files; the driver is not the cause",
            ),
        ),
        sign=Sign("cudnn", mixed, (DPKG,), provision=True),
        treatment=Tangled("two copies of cuDNN are mixed"),
    ),
    FailureRule(
        "cudnn-in-loader",
        "",
        "the loader's cache has a second cuDNN: from a package of another name, or from a directory that a file in "
        "/etc/ld.so.conf.d names, such as conda's",
        "Remove that package, or the file that names the directory (run grep -r . /etc/ld.so.conf.d), then run "
        "ldconfig",
        "ldconfig(8); pytorch/pytorch#3896, tensorflow/docs#2251",
        sign=Sign("cudnn", in_loader, (LOADER, DPKG), grave=False),
    ),
    FailureRule(
        "cudnn-of-the-host-first",
        r"cuDNN version (?:incompatibility|mismatch): PyTorch was compiled[^\n]*",
        "PyTorch contains its own cuDNN, and the loader finds another one first (LD_LIBRARY_PATH, or a second "
        "package in the Python environment)",
        "Remove that directory from LD_LIBRARY_PATH for this program (LD_DEBUG=libs shows which file comes first), "
        "or the other nvidia-cudnn package from the environment. Keep the host's cuDNN",
        "pytorch/pytorch torch/backends/cudnn; pytorch/pytorch#80877",
    ),
    FailureRule(
        "cudnn-other-version",
        r"but source was compiled (?:with|against):? [0-9]|Loaded (?:runtime )?CuDNN library: [^\n]+but source was"
        r"|cuDNN lib mismatch: linked-against",
        "cuDNN is not the version that this TensorFlow was built and tested with, which may fail only at the first "
        "convolution",
        "If cuDNN is the host's, provision again: the cudnn role replaces it. If the environment has its own cuDNN, "
        "install one of the same major version, at least {BUILT|as new as the message names} (pip install -U "
        "nvidia-cudnn-cu11 or -cu12), and use a separate environment for torch, which pins another",
        "tensorflow/tensorflow, tested build configurations; tensorflow/tensorflow#60913; jax-ml/jax#29315",
        names=(
            r"CuDNN library: (?P<had>[0-9.]{3,12}) but source was compiled with: (?P<built>[0-9]{1,2}\.[0-9]{1,2})",
        ),
        variants=(
            Variant(
                r"Loaded runtime CuDNN library: (?:9|[1-9][0-9])\.|compiled with: (?:9|[1-9][0-9])\.",
                "TensorFlow or JAX loads an older cuDNN (HAD) than it was built with (BUILT): another package of the "
                "environment, such as torch, pins it, or LD_LIBRARY_PATH or the loader selects a copy of the host's",
                "Upgrade the wheel in that environment (pip install -U 'nvidia-cudnn-cu12>=BUILT', -cu13 for CUDA "
                "13); if torch pins the older one, use a separate environment for the framework. If pip shows the "
                "right version, unset LD_LIBRARY_PATH (`invoke doctor` names the copy that comes first). "
                "Provisioning restores a stack's own environment",
            ),
        ),
        beside=r"source was compiled|^[^a-z]{0,40}[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,2}\b",
        sign=Sign("cudnn", other_version, (DPKG,), provision=True),
    ),
    FailureRule(
        "cudnn-not-initialized",
        r"(?:CUDNN|CUBLAS|CUSOLVER|CUSPARSE)_STATUS_NOT_INITIALIZED|cuDNN failed to initialize"
        r"|[Ff]ailed to create cublas handle|Could not create cudnn handle|failed to create cu(?:dnn|solver|sparse"
        r"|blas)\w{0,6} handle|Failed to get convolution algorithm|DNN library (?:initialization failed|is not found)"
        r"|unable to find an engine to execute this computation|CUDNN_STATUS_(?:EXECUTION_FAILED|INTERNAL_ERROR"
        r"|MAPPING_ERROR)\b|CUSOLVER_STATUS_INTERNAL_ERROR|cuSolver internal error|CUBLAS_STATUS_(?:INVALID_VALUE"
        r"|EXECUTION_FAILED|INTERNAL_ERROR|NOT_SUPPORTED) when calling|Blas \w{0,12}GEMM\w{0,12} launch failed"
        r"|StreamExecutor without BLAS support",
        "cuDNN or cuBLAS could not start on the GPU: usually another process (or this one) has taken its memory, "
        "else the library is not the version that the program was built for",
        "Run nvidia-smi to find another process; set TF_FORCE_GPU_ALLOW_GROWTH=true (JAX: "
        "XLA_PYTHON_CLIENT_PREALLOCATE=false); check that cuDNN is the framework's own, not one from LD_LIBRARY_PATH",
        "tensorflow/tensorflow#27715; PyTorch aten/src/ATen/cuda/CUDABlas.cpp",
        variants=(
            Variant(
                r"CUBLAS_STATUS_\w{1,30} when calling",
                "cuBLAS rejected a call of PyTorch: PyTorch loaded another cuBLAS than its own, the memory is taken, "
                "or the program passed a wrong shape or index, or had an earlier error",
                "Unset LD_LIBRARY_PATH for the program (`invoke doctor` names a copy that comes before the wheel's). "
                "If the message remains, run the program with CUDA_LAUNCH_BLOCKING=1 or on the CPU, which shows its "
                "failing line, and check the memory in nvidia-smi",
            ),
        ),
        weight="consequence",
    ),
    FailureRule(
        "cudnn-headers",
        "",
        "cuDNN 8 declares its version in cudnn_version.h, and the file was not copied, or is of another cuDNN",
        "Provision again: the cudnn role installs all headers of its archive",
        "NVIDIA's cuDNN installation guide 8.1",
        sign=Sign("cudnn", headers, (TOOLKITS,), grave=False, provision=True),
    ),
)
