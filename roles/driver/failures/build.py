"""Signs that the driver's kernel module is not built. If several causes are possible, only the first is reported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import Covers, FailureRule, ForPeople, Sign, Tangled, logs
from hostwright.resources import DPKG, HEADERS, HOST_PROBES, KERNEL_GONE, UNAME, Probe, is_broken
from hostwright.roles import Pattern
from hostwright.standard.roles.driver.failures.logs import BUILD_FAILED, LOG_PROBES, from_log, log_cause
from hostwright.standard.roles.driver.failures.state import (
    DKMS_TREE,
    build_errors,
    dkms_tree,
    driver_of,
    foreign,
    library_versions,
    ours,
    running_kernel,
    unbuilt,
    unfit,
    wanted_version,
)
from hostwright.standard.roles.driver.section import DriverSection
from hostwright.standard.roles.driver.states.runfile import DriverState

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

BUILD_TOOLS = Probe(
    'for t in cc make dkms; do command -v "$t" >/dev/null || echo "$t"; done\n'
    "[ -e /usr/include/stdio.h ] || echo 'the headers of the C library'; exit 0"
)

#: probe that prints the compiler of the running kernel, and the version of the host's compiler
COMPILERS = Probe("head -c 500 /proc/version; timeout 5 cc -dumpfullversion -dumpversion; exit 0")

REMOVED, UNSUPPORTED, NO_HEADERS, NO_COMPILER, MISSING = (
    "kernel-removed", "kernel-unsupported", "no-headers", "no-compiler", "module-missing",
)  # fmt: skip
BUILD_PROBES = (KERNEL_GONE, HEADERS, BUILD_TOOLS, DKMS_TREE, DPKG, UNAME, *HOST_PROBES)

#: pattern of the kernel's gcc version: ``gcc-12 (Ubuntu 12.3.0-…) 12.3.0``; before kernel 5.8, ``gcc version 9.4.0
#: (Ubuntu …)``
_KERNELS_GCC = Pattern(r"gcc(?:-[0-9.]{1,8})? (?:\([^()]+\)|version) ([0-9]{1,2}(?:\.[0-9]{1,2}){1,2})")
_HOSTS_GCC = Pattern(r"([0-9]{1,2})(?:\.[0-9]{1,3}){0,2}")

#: names of rules for messages in build logs
LOGGED = frozenset((
    "module-in-use", "compiler-too-old", "compiler-mismatch", "gpl-only-symbol", "stale-dkms", "flag-unknown",
    "module-loading-off", BUILD_FAILED,
))  # fmt: skip


def why_unbuilt(ctx: AuditContext) -> str:
    """Return the first rule that explains why the running kernel lacks the stack's module; empty if the module exists.

    Raises ``Unread`` if a probe was not answered.
    """
    if not unbuilt(ctx):
        return ""
    reasons = (
        (REMOVED, lambda: ctx.text(KERNEL_GONE).strip()),
        (UNSUPPORTED, lambda: unfit(ctx, "driver-kernel")),
        (NO_HEADERS, lambda: not ctx.answer(HEADERS).ok),
        (NO_COMPILER, lambda: ctx.text(BUILD_TOOLS).strip()),
    )
    return next((name for name, holds in reasons if holds()), "") or _why_failed(ctx, build_errors(ctx))


def _why_failed(ctx: AuditContext, errors: tuple[str, ...]) -> str:
    failure = ctx.named("\n".join(errors))
    if errors and failure is None:
        return BUILD_FAILED
    # Other failures in the log, such as a full disk, may be over.
    return failure[0] if failure and failure[0] in LOGGED else MISSING


def kernel_unsupported(ctx: AuditContext) -> Iterator[str]:
    """This driver release does not build on the running kernel (the stack's driver.kernels, else the table of
    releases), and the kernel has no module of the stack's version.
    """
    if driver_of(ctx).module != wanted_version(ctx) and not ctx.text(KERNEL_GONE).strip():
        reasons = unfit(ctx, "driver-kernel")
        yield from (*reasons, *build_errors(ctx)[:1]) if reasons else ()


def kernel_untested(ctx: AuditContext) -> Iterator[str]:
    """This driver release is not known to build on the running kernel (the stack's driver.kernels, else the table of
    releases), but the kernel has the release's module.
    """
    if driver_of(ctx).module == wanted_version(ctx):
        yield from unfit(ctx, "driver-kernel")


def no_headers(ctx: AuditContext) -> Iterator[str]:
    """A module must be built for the running kernel, and ``/lib/modules/KERNEL/build/Makefile`` is missing; or the last
    job of the base role reported missing headers.
    """
    if why_unbuilt(ctx) == NO_HEADERS:
        yield f"/lib/modules/{running_kernel(ctx)}/build/Makefile is not there"
    elif driver_of(ctx).absent and not ctx.answer(HEADERS).ok:
        yield from logs.from_log(ctx, "base", NO_HEADERS)


def no_compiler(ctx: AuditContext) -> Iterator[str]:
    """A module must be built for the running kernel, and cc, make, dkms or the C library's headers are missing."""
    if why_unbuilt(ctx) == NO_COMPILER:
        yield f"not there: {', '.join(ctx.text(BUILD_TOOLS).strip().splitlines())}"


def build_failed(ctx: AuditContext) -> Iterator[str]:
    """The running kernel has no module of the stack's version. DKMS's make.log for that version and kernel has errors
    that no other rule matches, or the newest log of the layer reports that DKMS failed.
    """
    why = why_unbuilt(ctx)
    if why == BUILD_FAILED:
        errors = build_errors(ctx)
        failure = ctx.named("\n".join(errors))
        yield failure[1] if failure else errors[0]
    elif why == MISSING and log_cause(ctx)[0] == BUILD_FAILED:
        yield from from_log(ctx, BUILD_FAILED)
    else:
        return
    if older := _older_compiler(ctx):
        yield older


def module_missing(ctx: AuditContext) -> Iterator[str]:
    """The driver's libraries are installed, modinfo finds no nvidia module for the running kernel, and neither missing
    headers, a missing compiler nor a failed build explains it.
    """
    state = ours(ctx)
    if state is None or state.module or state.cut or why_unbuilt(ctx) != MISSING:
        return
    if log_cause(ctx)[0] in LOGGED:
        return
    versions = ", ".join(sorted({version for version in library_versions(state) if version}))
    yield f"no module nvidia for the running kernel {running_kernel(ctx)}" + (
        f", libraries of {versions}" if versions else ""
    )
    yield from (f"{file} is there, and not in depmod's index" for file in dkms_tree(ctx).unlisted[:1])
    kernels = sorted({f"{version} for {kernel}" for version, kernel in dkms_tree(ctx).built})
    added = [f"{version}: added, not built" for version in dkms_tree(ctx).versions]
    yield from (f"dkms: {line}" for line in kernels or added)


def not_registered(ctx: AuditContext) -> Iterator[str]:
    """The module for the running kernel has the stack's version, but DKMS did not build it: DKMS's tree lacks this
    version, or the build for this kernel.
    """
    state, version = ours(ctx), wanted_version(ctx)
    if state is None or state.module != version or state.dkms or ctx.text(KERNEL_GONE).strip():
        return
    if ctx.section(DriverSection).precompiled:
        return
    known = "added, not built" if version in dkms_tree(ctx).versions else "not in its tree"
    yield f"module {version} for {running_kernel(ctx)}, dkms: {known}"


def next_not_built(ctx: AuditContext) -> Iterator[str]:
    """AUTOINSTALL is off or missing in the dkms.conf of nvidia's module or in an override in /etc/dkms, DKMS's hooks
    for kernel packages are missing, or dkms is not installed.
    """
    if ours(ctx) is not None and not ctx.section(DriverSection).precompiled and not unbuilt(ctx):
        yield from dkms_tree(ctx).hindered


def other_in_tree(ctx: AuditContext) -> Iterator[str]:
    """DKMS's tree has another version of the driver besides the installed one, with its source."""
    state, tree = ours(ctx), dkms_tree(ctx)
    installed = _installed(state) if state else ""
    if installed:
        others = (version for version in tree.versions if version != installed)
        yield from (f"/var/lib/dkms/nvidia/{other}" for other in others if f"nvidia/{other}" not in tree.broken)


def other_failed(ctx: AuditContext) -> Iterator[str]:
    """A kernel package (linux-…) or module package (…-dkms) is not configured, and DKMS's tree has remains of a failed
    build of another module than nvidia's.
    """
    waiting, others = list(_waiting(ctx)), dkms_tree(ctx).others
    if waiting and others:
        yield from (
            f"{name} did not build for {kernel}: /var/lib/dkms/{name}/build/make.log" for name, kernel in others
        )
        yield from waiting


def _waiting(ctx: AuditContext) -> Iterator[str]:
    rows = ctx.packages_where(is_broken)
    names = ("linux-headers-", "linux-image-")
    yield from (
        f"{row.name} {row.version}: {row.state.strip()}"
        for row in rows
        if row.name.startswith(names) or row.name.endswith("-dkms")
    )


def _of_others(ctx: AuditContext) -> Iterator[str]:
    yield from _waiting(ctx) if dkms_tree(ctx).others else ()


def tree_broken(ctx: AuditContext) -> Iterator[str]:
    """A module in DKMS's tree, nvidia's or another, has no ``source/dkms.conf``."""
    yield from (f"/var/lib/dkms/{name}/source/dkms.conf is not there" for name in dkms_tree(ctx).broken)


def _installed(state: DriverState) -> str:
    versions = {state.module, *library_versions(state)}
    return versions.pop() if len(versions) == 1 else ""


def _older_compiler(ctx: AuditContext) -> str:
    """Return a sentence if the kernel was built by a newer major version of gcc than the host's; else empty.

    The host's older gcc may lack options of the kernel's build.
    """
    text = ctx.text(COMPILERS)
    first, _, rest = text.partition("\n")
    kernels, hosts = _KERNELS_GCC.search(first), _HOSTS_GCC.fullmatch(rest.strip())
    if not kernels or not hosts or int(kernels[1].partition(".")[0]) <= int(hosts[1]):
        return ""
    return f"the kernel was built by gcc {kernels[1]}, and cc is gcc {rest.strip()}"


def unbuilt_by_ours(ctx: AuditContext) -> bool:
    """Return whether the running kernel lacks the driver's module and no other driver is installed."""
    return unbuilt(ctx) and not foreign(ctx)


BUILD_FAILED_SIGN = Sign("driver", build_failed, (*BUILD_PROBES, COMPILERS, *LOG_PROBES))
MISSING_SIGN = Sign("driver", module_missing, (*BUILD_PROBES, *LOG_PROBES), provision=True)
NO_HEADERS_SIGN = Sign("base", no_headers, (*BUILD_PROBES, *LOG_PROBES), provision=True)
NO_COMPILER_SIGN = Sign("base", no_compiler, BUILD_PROBES, provision=True)

#: pattern of names of the driver's modules in DKMS's tree and of their packages, except nvidia-fs
_OURS = r"nvidia(?:-(?:current|open|srv|server|legacy|tesla|kernel|dkms|driver|[0-9])[\w.+-]*)?(?:[/(:' ]|$)"

#: rule for another vendor's module. It precedes the rule for the driver's module, because DKMS's message names the
#: failed module in another line.
OTHER_MODULE = FailureRule(
    "dkms-other-module",
    r"[Cc]onsult [^\n]*/dkms/[\w.+-]+/[^\n]*make\.log"
    r"|^/\S*/dkms/[\w.+-]+/\S+/build for more information|failed for (?:module\(s\) )?[\w.+-]+ ?\([1-9]"
    r"|Autoinstall of module [\w.+-]+/[^\n]*(?:\n[^\n]*){0,6}?\(bad exit status: [1-9]"
    r"|Failed command:[^\n]*\n[^\n]*/dkms/[\w.+-]+/|ERROR \(dkms apport\): binary package for [\w.+-]+: "
    r"|error processing package [\w.+-]+-dkms\b|[ ][\w.+-]+-dkms package post-installation script"
    r"|\[/var/lib/dkms/[\w.+-]+/[^\]\n]*\] undefined"
    r"|/dkms/[\w.+-]+/[^\n]*\.[ch]:[0-9]{1,6}:[0-9]{1,4}: ?(?:fatal )?error"
    r"|\*\*\* \[[^\]\n]*/dkms/[\w.+-]+/[^\]\n]*\] \w{3,12} [1-9]|DKMS module '?\S+ (?:failed to build|for \S+ FAILED)"
    r"|\*\*\* \[[^\]\n]*\] \w{3,12} [1-9][^\n]*\n(?:[^\n]*\n){0,5}?[^\n]*directory ['`‘]/var/lib/dkms/[\w.+-]+/",
    "{the module MODULE|a module} of DKMS's tree, which is not NVIDIA's, did not build or install for a kernel, and "
    "its package stays unconfigured: the driver is not the cause",
    "Read the make.log of {MODULE|that module} in /var/lib/dkms. Install a release of it that supports the kernel, "
    "or remove its package or that kernel, then run dpkg --configure -a and provision again",
    "dkms, do_build and autoinstall; OpenMediaVault-Plugin-Developers/openmediavault-zfs#117",
    names=(
        r"/dkms/(?P<module>[\w.+-]{1,60})/",
        r"failed for (?:module\(s\) )?(?P<module>[\w.+-]{1,60}) ?\(",
        r"Autoinstall of module (?P<module>[\w.+-]{1,60})/",
        r"^(?P<module>[\w.+-]{1,60})/[^\s:]{1,60} did not build",
        r"package (?P<module>[\w.+-]{1,60})-dkms\b",
        r"DKMS module '?(?P<module>[\w.+-]{1,60})",
    ),
    unless=rf"\b{_OURS}|\bnv[\w-]{{0,20}}\.(?:ko|o|c|h)\b|nvidia[\w-]{{0,20}}\.ko",
    narrower=rf"[Cc]onsult [^\n]*/dkms/{_OURS}|failed for [^\n]*\b{_OURS}|package nvidia-(?:kernel-)?dkms|-m nvidia ",
    sign=Sign("base", other_failed, (DKMS_TREE, DPKG)),
    treatment=ForPeople(),
    covers=Covers(("dpkg-interrupted", "package-script-failed"), _of_others),
)

BUILD_RULES = (
    FailureRule(
        UNSUPPORTED,
        "",
        "the module of this driver release does not build on the running kernel",
        "Name a driver release in the stack that builds on this kernel, or boot a kernel on which this release "
        "builds. If the release is known to build, set driver.kernels in the stack",
        "Ubuntu's changelog of nvidia-graphics-drivers-470; Gentoo's ebuilds; joanbm/nvidia-470xx-linux-mainline",
        sign=Sign("driver", kernel_unsupported, BUILD_PROBES),
        treatment=ForPeople(),
    ),
    FailureRule(
        "kernel-untested",
        "",
        "the driver runs on a kernel on which its release is not known to build: the next build may fail",
        "Keep this kernel; if the module is known to build on it, set driver.kernels in the stack",
        "Ubuntu's changelog of nvidia-graphics-drivers-470; Gentoo's ebuilds; joanbm/nvidia-470xx-linux-mainline",
        sign=Sign("driver", kernel_untested, HOST_PROBES, grave=False),
    ),
    FailureRule(
        "dkms-not-registered",
        "",
        "the module was not built by DKMS, so the next kernel will have none",
        "Provision again: the driver role builds the module with DKMS",
        "nvidia-installer, option --dkms",
        sign=Sign("driver", not_registered, (DKMS_TREE, KERNEL_GONE, DPKG, UNAME), grave=False, provision=True),
    ),
    FailureRule(
        "dkms-not-for-next-kernel",
        "",
        "DKMS will not build NVIDIA's module for the next kernel: after a kernel upgrade the host has no GPUs",
        'Undo what the evidence names: set AUTOINSTALL="yes" in dkms.conf (in an override in /etc/dkms, remove the '
        "line or the file), remove /etc/dkms/no-autoinstall, restore executable hooks (apt-get install --reinstall "
        "dkms). Then run dkms autoinstall -k KERNEL for each kernel that was installed meanwhile. If the kernel is "
        "held on purpose, this matters only when the hold ends",
        "dkms(8), AUTOINSTALL and /etc/dkms; dkms kernel_postinst.d_dkms",
        sign=Sign("driver", next_not_built, (DKMS_TREE, DPKG), grave=False),
    ),
    FailureRule(
        "dkms-other-driver",
        "",
        "DKMS also builds another driver's module for each new kernel, and the module that it builds last is loaded",
        "Run dkms remove -m nvidia -v VERSION --all with the version that the evidence names",
        "dkms(8); negativo17/nvidia-driver#56",
        names=(r"^/var/lib/dkms/nvidia/(?P<version>[0-9][\w.+-]{0,40})$",),
        sign=Sign("driver", other_in_tree, (DKMS_TREE, DPKG), grave=False),
        treatment=Tangled("DKMS also builds another driver"),
    ),
    FailureRule(
        "dkms-tree-broken",
        "",
        "a module in DKMS's tree has no source: dkms stops at it, and may build no module for the next kernel",
        "Install the module's package again or, if nobody needs the module, remove its directory from /var/lib/dkms",
        "dkms, read_conf and is_module_broken; negativo17/nvidia-driver#56, pop-os/system76-driver#336",
        sign=Sign("driver", tree_broken, (DKMS_TREE,), grave=False),
    ),
)
