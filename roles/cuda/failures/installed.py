"""Failures of the CUDA toolkit with signs on the host: another toolkit, its source, and packages beside it."""

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
#: version number that nvcc prints → update release of CUDA 11.2, from public build logs
UPDATES = {"V11.2.67": "11.2.0", "V11.2.142": "11.2.1", "V11.2.152": "11.2.2"}


def brought_driver(ctx: AuditContext) -> Iterator[str]:
    """``cuda-drivers`` is installed and is not part of the stack's driver. It was installed alone or by a package such
    as ``cuda`` or ``cuda-X-Y``.
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
    """``/usr/local/cuda`` and the stack's toolkit exist, but the link leads to no toolkit."""
    link = toolkits(ctx).get(LINK)
    if link and not link.usable and not _is_own(ctx, link) and own(ctx).usable:
        yield _leads(link)


def beside(ctx: AuditContext) -> Iterator[str]:
    """A usable ``/usr/local/cuda-X.Y`` exists that is neither the stack's toolkit, nor the target of
    ``/usr/local/cuda``, nor in the loader's cache.
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
    """The toolkit's nvcc reports another version than the stack's, such as V11.2.67 for V11.2.152."""
    cuda = ctx.section(CudaSection)
    answer = ctx.answer(wanted(ctx, "cuda", CommandReports).probes()[1])
    match = Pattern(r"release \d+\.\d+, (V[\d.]+)").search(answer.text)
    if match and match[1] != cuda.nvcc:
        update = f" (CUDA {UPDATES[match[1]]})" if match[1] in UPDATES else ""
        yield f"{cuda.prefix}/bin/nvcc: {match[0]}{update}, and the stack has {cuda.nvcc}"


def not_held(ctx: AuditContext) -> Iterator[str]:
    """A package of the toolkit has the stack's version, but dpkg has no hold on it."""
    pinned = (row for one in ctx.section(CudaSection).toolkits for row in one.packages.items())
    rows = ((ctx.packages.get(name), version) for name, version in pinned)
    yield from (f"{row.name} {row.version} is not held" for row, version in rows
                if row and row.present and row.version == version and not row.held)  # fmt: skip


def from_runfile(ctx: AuditContext) -> Iterator[str]:
    """CUDA's runfile left its uninstaller in the directory of the stack's toolkit, whose package is not installed."""
    cuda = ctx.section(CudaSection)
    row = ctx.packages.get(cuda.package)
    if UNINSTALLER in own(ctx).has and not (row and row.present):
        yield f"{cuda.prefix}/{UNINSTALLER} is there, and {cuda.package} is not installed"


def is_meta_package(row: Installed) -> bool:
    """Return whether ``row`` is an installed meta package of CUDA, such as ``cuda``."""
    return row.present and META_PACKAGES.fullmatch(row.name) is not None


def _is_own(ctx: AuditContext, toolkit: Toolkit) -> bool:
    return toolkit.leads == ctx.section(CudaSection).prefix


def _leads(link: Toolkit) -> str:
    return f"{LINK} leads to {link.leads}" if link.leads != LINK else f"{LINK} is a directory, not a link"


def _loaded_from(ctx: AuditContext, toolkit: Toolkit) -> bool:
    try:
        return any(entry.below(toolkit.leads) for entry in cached(ctx))
    except Unread:
        return False


CUDA = (
    FailureRule(
        "cuda-metapackage",
        "",
        "a meta package (cuda, cuda-X-Y, cuda-runtime-X-Y) installed cuda-drivers, whose driver breaks that of the "
        ".run, at the latest with the next apt upgrade",
        "Provision again: the base role removes cuda-drivers and its dependent packages, and the driver's files are "
        "restored; install only cuda-toolkit-X-Y",
        "NVIDIA/TensorRT#1741",
        sign=Sign("cuda", brought_driver, (DPKG,), provision=True),
        treatment=Tangled("a meta package installed the distribution's driver"),
    ),
    FailureRule(
        "cuda-link-other-release",
        "",
        "/usr/local/cuda is another release of CUDA, which builds and variables with that path then use",
        "Provision again: the cuda role sets the alternative to the stack's toolkit",
        "NVIDIA's CUDA packages, update-alternatives",
        sign=Sign("cuda", other_release, (TOOLKITS,), provision=True),
    ),
    FailureRule(
        "cuda-link-broken",
        "",
        "/usr/local/cuda leads to a directory without a toolkit, usually of a removed one",
        "Provision again: the cuda role sets the alternative to the stack's toolkit",
        "NVIDIA's CUDA packages, update-alternatives",
        sign=Sign("cuda", no_toolkit, (TOOLKITS,), grave=False, provision=True),
    ),
    FailureRule(
        "cuda-toolkit-beside",
        "",
        "another CUDA toolkit is installed; it does no harm unless a user's variables name it",
        "If nobody needs it, remove it: its packages end in its release (apt purge 'cuda-*-11-4'), a runfile's "
        "toolkit has bin/cuda-uninstaller",
        "NVIDIA's CUDA installation guide",
        sign=Sign("cuda", beside, (TOOLKITS, LOADER), grave=False),
    ),
    FailureRule(
        "cuda-update-level",
        "",
        "the toolkit is another update of the same release, which neither the directory's name nor \"release "
        '11.2" shows',
        "Provision again: the cuda role installs the exact package versions, and downgrades if necessary",
        "tensorflow/tensorflow#58681",
        sign=Sign("cuda", other_update, (DPKG,), provision=True),
    ),
    FailureRule(
        "cuda-not-held",
        "",
        "the toolkit's packages are not held, so apt may upgrade them past the stack's versions",
        "Provision again: the cuda role holds them (apt-mark hold)",
        "apt-mark(8)",
        sign=Sign("cuda", not_held, (DPKG,), grave=False, provision=True),
    ),
    FailureRule(
        "cuda-from-runfile",
        "",
        "the toolkit came from CUDA's runfile, so no package owns its files, and its uninstaller would also delete "
        "files of the packages",
        "Provision again: the cuda role installs the packages over it; do not run the uninstaller after that",
        "NVIDIA's CUDA installation guide",
        sign=Sign("cuda", from_runfile, (TOOLKITS, DPKG), grave=False, provision=True),
    ),
)
