"""Signs that the loader's cache or /usr/bin lacks the stack's libraries or tools, or has other copies first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, Sign, Tangled, wanted
from hostwright.resources import DPKG, Link, LoaderCache
from hostwright.standard.roles.cuda.failures.toolkits import LIBRARIES, library_files, own, resolved
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.driver.failures.loader_cache import CONF, LOADER, Cached, cached, compat_first, named_by

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

DISTRIBUTION = ("nvidia-cuda-toolkit", "nvidia-cuda-dev")  #: names of the CUDA packages of Debian and Ubuntu
DISTRIBUTION_LIBRARIES = "/usr/lib/"
PTXAS = "bin/ptxas"


def not_cached(ctx: AuditContext) -> Iterator[str]:
    """A library that TensorFlow loads is in the toolkit, but not in the loader's cache."""
    named = {entry.name for entry in cached(ctx)}
    yield from (f"{path} is not in the loader's cache" for name, path in _there(ctx).items() if name not in named)


def another_first(ctx: AuditContext) -> Iterator[str]:
    """A library that TensorFlow loads is in the toolkit, but the loader's cache lists another copy first."""
    yield from (f"{entry}{named_by(ctx, entry)}" for entry in _foreign_first(ctx))


def copy_behind(ctx: AuditContext) -> Iterator[str]:
    """The loader's cache lists other libraries after the stack's libraries of the same name."""
    if _foreign_first(ctx):
        return
    libraries, explained_by_package = _there(ctx), bool(_of_distribution(ctx))
    for entry in cached(ctx):
        explained = _is_cudnn_of_its_own(entry) or (
            explained_by_package and entry.real.startswith(DISTRIBUTION_LIBRARIES)
        )
        if entry.name in libraries and not entry.below(ctx.section(CudaSection).prefix) and not explained:
            yield str(entry)


def no_profiler(ctx: AuditContext) -> Iterator[str]:
    """The profiler's library is in the toolkit but not in the loader's cache, although other libraries are."""
    name = f"libcupti.so.{ctx.section(CudaSection).series}"
    path = f"{ctx.section(CudaSection).prefix}/extras/CUPTI/lib64/{name}"
    entries = cached(ctx)
    others = any(entry.below(ctx.section(CudaSection).prefix) for entry in entries)
    if others and resolved(path, library_files(ctx)) and not any(entry.name == name for entry in entries):
        yield f"{path} is not in the loader's cache"


def no_ptxas(ctx: AuditContext) -> Iterator[str]:
    """The toolkit has ptxas, but the directory on every user's PATH does not."""
    path = next((link for link in _tools(ctx) if link.path.endswith("/ptxas")), None)
    if path and PTXAS in own(ctx).has and not ctx.answer(path.probes()[0]).ok:
        yield f"{path.path} is not there"


def nvcc_of_distribution(ctx: AuditContext) -> Iterator[str]:
    """``nvidia-cuda-toolkit`` is installed, and its nvcc is the first on every user's PATH."""
    nvcc = next((link for link in _tools(ctx) if link.path.endswith("/nvcc")), None)
    if nvcc is None:
        return
    packages, answer = _of_distribution(ctx), ctx.answer(nvcc.probes()[0])
    if packages and answer.ok and answer.strip() != nvcc.target:
        yield f"{nvcc.path} is not the stack's"
        yield from packages


def cuda_of_distribution(ctx: AuditContext) -> Iterator[str]:
    """``nvidia-cuda-toolkit`` or ``nvidia-cuda-dev`` is installed, but the stack's programs and libraries are first."""
    if not _foreign_first(ctx) and not any(True for _ in nvcc_of_distribution(ctx)):
        yield from _of_distribution(ctx)


def _there(ctx: AuditContext) -> dict[str, str]:
    files = library_files(ctx)
    paths = {name: f"{ctx.section(CudaSection).prefix}/{LIBRARIES}/{name}" for name in _opened(ctx)}
    return {name: path for name, path in paths.items() if resolved(path, files)}


def _opened(ctx: AuditContext) -> tuple[str, ...]:
    return wanted(ctx, "environment", LoaderCache).libraries


def _tools(ctx: AuditContext) -> tuple[Link, ...]:
    states = (state for role in ctx.desired.roles if role.name == "environment" for state in role.resources)
    return tuple(state for state in states if isinstance(state, Link))


def _foreign_first(ctx: AuditContext) -> list[Cached]:
    first: dict[str, Cached] = {}
    for entry in cached(ctx):
        first.setdefault(entry.name, entry)
    entries = (first[name] for name in _there(ctx) if name in first)
    return [
        entry
        for entry in entries
        if not entry.below(ctx.section(CudaSection).prefix) and not _is_cudnn_of_its_own(entry)
    ]


def _is_cudnn_of_its_own(entry: Cached) -> bool:
    return entry.name.startswith("libcudnn") and not entry.real.startswith("/usr/local/cuda")


def _of_distribution(ctx: AuditContext) -> list[str]:
    rows = (ctx.packages.get(name) for name in DISTRIBUTION)
    return [f"{row.name} {row.version} is installed" for row in rows if row and row.present]


LOADER_RULES = (
    FailureRule(
        "loader-finds-another-cuda",
        "",
        "programs load the libraries of another CUDA than the stack's, because a file in /etc/ld.so.conf.d lists them"
        " first",
        "Remove the file with that directory (grep -r . /etc/ld.so.conf.d) or its package, and run ldconfig",
        "ldconfig(8)",
        sign=Sign("environment", another_first, (LOADER, CONF)),
        treatment=Tangled("another toolkit's libraries come first"),
    ),
    FailureRule(
        "cuda-twice-in-loader",
        "",
        "two CUDA toolkits are in the loader's cache; the stack's comes first only because of a file name",
        "Remove the other toolkit's file from /etc/ld.so.conf.d, and run ldconfig",
        "ldconfig(8)",
        sign=Sign("environment", copy_behind, (LOADER, DPKG), grave=False),
    ),
    FailureRule(
        "cuda-compat-in-loader",
        "",
        "programs load the driver library of CUDA's forward compatibility package, which does not match the kernel"
        " module, instead of the driver's own",
        "Remove the cuda-compat package, or the file in /etc/ld.so.conf.d with its directory, and run ldconfig",
        "NVIDIA's CUDA compatibility guide",
        sign=Sign("environment", compat_first, (LOADER,)),
        treatment=Tangled("another driver library comes first"),
    ),
    FailureRule(
        "cupti-not-found",
        "",
        "the loader does not find the profiler's library, so that TensorFlow's profiler shows no GPU",
        "Provision again: the environment role adds extras/CUPTI/lib64 to /etc/ld.so.conf.d. If the failure stays,"
        " run ldconfig",
        "TensorFlow's profiler guide",
        sign=Sign("environment", no_profiler, (LOADER,), grave=False, provision=True),
    ),
    FailureRule(
        "nvcc-of-distribution",
        "",
        "the distribution's own CUDA is installed, and nvcc belongs to it",
        "Provision again: the environment role links the stack's nvcc. Upgrades of nvidia-cuda-toolkit undo this, so"
        " purge the package afterwards if nobody needs it",
        "Debian and Ubuntu, package nvidia-cuda-toolkit",
        sign=Sign("environment", nvcc_of_distribution, (DPKG,), provision=True),
    ),
    FailureRule(
        "cuda-of-distribution",
        "",
        "the distribution's own CUDA is installed beside the stack's; its upgrades replace the stack's program links",
        "If nobody needs it, purge nvidia-cuda-toolkit. Check first with apt-get -s purge nvidia-cuda-toolkit which"
        " packages depend on it",
        "Debian and Ubuntu, package nvidia-cuda-toolkit",
        sign=Sign("environment", cuda_of_distribution, (DPKG, LOADER), grave=False),
    ),
)
