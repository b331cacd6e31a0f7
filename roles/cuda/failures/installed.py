"""Failures of the CUDA toolkit that are recognised on a host: which toolkit, its source, and what came with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, Sign, Tangled, Unread, wanted
from hostwright.resources import DPKG, CommandReports, Installed
from hostwright.roles import Pattern
from hostwright.standard.roles.cuda.failures.toolkits import LINK, TOOLKITS, UNINSTALLER, Toolkit, own, toolkits
from hostwright.standard.roles.cuda.section import CudaSection
from hostwright.standard.roles.driver.failures.loader_cache import LOADER, cached
from hostwright.standard.roles.driver.section import DriverSection

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

META_PACKAGES = Pattern(r"cuda|cuda-\d+-\d+|cuda-(runtime|demo-suite)-\d+-\d+|cuda-drivers(-\d+)?")
#: nvcc's version number in each update of 11.2, which all say "release 11.2" (seen in public build logs)
UPDATES = {"V11.2.67": "11.2.0", "V11.2.142": "11.2.1", "V11.2.152": "11.2.2"}


def brought_driver(ctx: AuditContext) -> Iterator[str]:
    """``cuda-drivers`` is installed and not of the stack's driver, by itself or as what ``cuda``, ``cuda-X-Y`` or
    ``cuda-runtime-X-Y`` depend on.
    """
    driver = ctx.stack.find(DriverSection)
    packages = [row for row in ctx.packages_where(is_meta_package) if not driver or row.name not in driver.packages]
    if any(row.name.startswith("cuda-drivers") for row in packages):
        yield from (f"{row.name} {row.version} is installed" for row in packages)


def other_release(ctx: AuditContext) -> Iterator[str]:
    """``/usr/local/cuda`` is, or leads to, a toolkit that is not the stack's."""
    link = toolkits(ctx).get(LINK)
    if link and link.usable and not _is_own(ctx, link):
        yield _leads(link)


def no_toolkit(ctx: AuditContext) -> Iterator[str]:
    """``/usr/local/cuda`` is there, the stack's toolkit too, and the link leads to no toolkit at all."""
    link = toolkits(ctx).get(LINK)
    if link and not link.usable and not _is_own(ctx, link) and own(ctx).usable:
        yield _leads(link)


def beside(ctx: AuditContext) -> Iterator[str]:
    """A usable ``/usr/local/cuda-X.Y`` is there that is not the stack's, nor what ``/usr/local/cuda`` or the loader
    leads to.
    """
    by_path = toolkits(ctx)
    link = by_path.get(LINK)
    explained = {one.prefix for one in ctx.section(CudaSection).toolkits} | ({link.leads} if link else set())
    for toolkit in by_path.values():
        if toolkit.path == LINK or toolkit.leads != toolkit.path or not toolkit.usable:
            continue
        if toolkit.leads not in explained and not _loaded_from(ctx, toolkit):
            yield f"{toolkit.path} is a toolkit as well"


def other_update(ctx: AuditContext) -> Iterator[str]:
    """The toolkit's nvcc calls itself another version than the stack's, such as V11.2.67 for V11.2.152."""
    cuda = ctx.section(CudaSection)
    answer = ctx.answer(wanted(ctx, "cuda", CommandReports).probes()[1])
    match = Pattern(r"release \d+\.\d+, (V[\d.]+)").search(answer.text)
    if match and match[1] != cuda.nvcc:
        update = f" (CUDA {UPDATES[match[1]]})" if match[1] in UPDATES else ""
        yield f"{cuda.prefix}/bin/nvcc: {match[0]}{update}, and the stack says {cuda.nvcc}"


def not_held(ctx: AuditContext) -> Iterator[str]:
    """A package of the toolkit is at the stack's version, and dpkg does not say that it is held."""
    pinned = (row for one in ctx.section(CudaSection).toolkits for row in one.packages.items())
    rows = ((ctx.packages.get(name), version) for name, version in pinned)
    yield from (f"{row.name} {row.version} is not held" for row, version in rows
                if row and row.present and row.version == version and not row.held)  # fmt: skip


def from_runfile(ctx: AuditContext) -> Iterator[str]:
    """CUDA's runfile left its uninstaller in the stack's toolkit, whose package is not installed."""
    cuda = ctx.section(CudaSection)
    row = ctx.packages.get(cuda.package)
    if UNINSTALLER in own(ctx).has and not (row and row.present):
        yield f"{cuda.prefix}/{UNINSTALLER} is there, and {cuda.package} is not installed"


def is_meta_package(row: Installed) -> bool:
    """A package of CUDA that is only there to bring others, and is present."""
    return row.present and META_PACKAGES.fullmatch(row.name) is not None


def _is_own(ctx: AuditContext, toolkit: Toolkit) -> bool:
    return toolkit.leads == ctx.section(CudaSection).prefix


def _leads(link: Toolkit) -> str:
    return f"{LINK} leads to {link.leads}" if link.leads != LINK else f"{LINK} is a directory of its own"


def _loaded_from(ctx: AuditContext, toolkit: Toolkit) -> bool:
    """Whether the loader's cache names the toolkit, which is a separate finding; unknown counts as no."""
    try:
        return any(entry.below(toolkit.leads) for entry in cached(ctx))
    except Unread:
        return False


CUDA = (
    FailureRule(
        "cuda-metapackage",
        "",
        "a meta package (cuda, cuda-X-Y, cuda-runtime-X-Y) brought cuda-drivers, whose driver breaks that of the .run,"
        " at the latest with the next apt upgrade",
        "Provision again: the base role removes cuda-drivers and what needs it, and the driver's files come back;"
        " install cuda-toolkit-X-Y only",
        "NVIDIA/TensorRT#1741",
        sign=Sign("cuda", brought_driver, (DPKG,), provision=True),
        treatment=Tangled("a meta package brought the distribution's driver"),
    ),
    FailureRule(
        "cuda-link-other-release",
        "",
        "/usr/local/cuda is another release of CUDA, which builds and variables with that name then use",
        "Provision again: the cuda role sets the alternative to the stack's toolkit",
        "NVIDIA's CUDA packages, update-alternatives",
        sign=Sign("cuda", other_release, (TOOLKITS,), provision=True),
    ),
    FailureRule(
        "cuda-link-broken",
        "",
        "/usr/local/cuda leads to a place without a toolkit, usually one that was removed",
        "Provision again: the cuda role sets the alternative to the stack's toolkit",
        "NVIDIA's CUDA packages, update-alternatives",
        sign=Sign("cuda", no_toolkit, (TOOLKITS,), grave=False, provision=True),
    ),
    FailureRule(
        "cuda-toolkit-beside",
        "",
        "another CUDA toolkit is installed; it harms nobody until somebody's variables lead there",
        "Remove it if nobody needs it: its packages end in its release (apt purge 'cuda-*-11-4'), a runfile's toolkit"
        " has bin/cuda-uninstaller",
        "NVIDIA's CUDA installation guide",
        sign=Sign("cuda", beside, (TOOLKITS, LOADER), grave=False),
    ),
    FailureRule(
        "cuda-update-level",
        "",
        "the toolkit is another update of the same release, which the directory's name and release 11.2 do not tell",
        "Provision again: the cuda role installs the exact package versions, downgrading where it must",
        "tensorflow/tensorflow#58681",
        sign=Sign("cuda", other_update, (DPKG,), provision=True),
    ),
    FailureRule(
        "cuda-not-held",
        "",
        "nothing keeps apt from upgrading the toolkit's packages past the stack's versions",
        "Provision again: the cuda role holds them (apt-mark hold)",
        "apt-mark(8)",
        sign=Sign("cuda", not_held, (DPKG,), grave=False, provision=True),
    ),
    FailureRule(
        "cuda-from-runfile",
        "",
        "the toolkit came from CUDA's runfile, so that nothing knows its files, and its uninstaller would take those"
        " of the packages",
        "Provision again: the cuda role installs the packages over it; do not run the uninstaller after that",
        "NVIDIA's CUDA installation guide",
        sign=Sign("cuda", from_runfile, (TOOLKITS, DPKG), grave=False, provision=True),
    ),
)
