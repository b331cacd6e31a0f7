"""Failures of NCCL: a build for another CUDA, a second NCCL, packages without holds, and a library not found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, Sign, wanted
from hostwright.resources import DPKG, NoStrayFiles, Probe
from hostwright.standard.roles.nccl.section import DEVELOPMENT, HOME, PACKAGE, NcclSection

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

#: probe that prints resolved paths of ``libnccl.so.2`` in the loader cache's order
COPIES = Probe(
    r"""all=$(/sbin/ldconfig -p) || exit 1
printf '%s\n' "$all" | sed -n 's/^[[:space:]]*libnccl\.so\.2 (libc6,x86-64[^)]*) => //p' | while read -r path; do
  echo "$(readlink -m -- "${path%/*}")/${path##*/}"
done"""
)


def other_build(ctx: AuditContext) -> Iterator[str]:
    """``libnccl2`` or ``libnccl-dev`` is installed at another version than the stack's."""
    exact = ctx.section(NcclSection).package_version
    for name in (PACKAGE, DEVELOPMENT):
        package = ctx.packages.get(name)
        if package and package.present and package.version != exact:
            yield f"{name} {package.version} is installed, and the stack has {exact}"


def not_held(ctx: AuditContext) -> Iterator[str]:
    """NCCL's packages have the stack's version, but dpkg has no hold on them."""
    exact = ctx.section(NcclSection).package_version
    for name in (PACKAGE, DEVELOPMENT):
        package = ctx.packages.get(name)
        if package and package.present and package.version == exact and not package.held:
            yield f"{name} {package.version} is not held"


def in_loader(ctx: AuditContext) -> Iterator[str]:
    """The loader's cache has a ``libnccl.so.2`` that the role nccl neither installs nor moves aside."""
    resource = wanted(ctx, "nccl", NoStrayFiles)
    set_aside = {path.rpartition("/")[0] for path in ctx.answer(resource.probes()[0]).text.splitlines()}
    for path in ctx.text(COPIES).splitlines():
        if path.startswith("/") and path.rpartition("/")[0] not in {HOME, *set_aside}:
            yield f"the loader's cache also has {path}"


FAILURES = (
    FailureRule(
        "nccl-other-build",
        "",
        "the installed NCCL is not the stack's: another release, or built for another CUDA, such as the newest "
        "of NVIDIA's packages",
        "Provision again: the nccl role installs and holds the stack's NCCL",
        "NVIDIA/nccl#889, NVIDIA/nccl-tests#6",
        sign=Sign("nccl", other_build, (DPKG,), provision=True),
    ),
    FailureRule(
        "nccl-not-held",
        "",
        "NCCL's packages are not held, so apt may upgrade NCCL to a release for another CUDA",
        "Provision again: the nccl role holds its packages",
        "apt-mark(8)",
        sign=Sign("nccl", not_held, (DPKG,), grave=False, provision=True),
    ),
    FailureRule(
        "nccl-in-loader",
        "",
        "the loader's cache has a second NCCL, from a directory that a file in /etc/ld.so.conf.d names",
        "Remove the copy, or the file that names its directory (run grep -r . /etc/ld.so.conf.d), then run ldconfig",
        "ldconfig(8); horovod/horovod#2561",
        sign=Sign("nccl", in_loader, (COPIES,), grave=False),
    ),
    FailureRule(
        "nccl-interface-missing",
        r"connecting to address [^\n]{0,80}with family [0-9]{1,9} is neither AF_INET|no socket interface found"
        r"|[Uu]nable to find address for: \S|NCCL WARN [^\n]*NCCL_SOCKET_IFNAME",
        "NCCL_SOCKET_IFNAME (for gloo GLOO_SOCKET_IFNAME) names a network interface{, NIC,|} that this host does not "
        "have, or that has no address; or, without the variable, the host has no interface that NCCL accepts",
        "List the interfaces of that host (ip -br addr), then set the variable to one that all hosts of the job "
        "have, or unset it. Look for it in the job's script, the container's image, /etc/nccl.conf and ~/.nccl.conf. "
        "=eth selects every interface that begins with eth; ^docker0,lo selects all others",
        "NCCL user guide, environment variables; NVIDIA/nccl#1837",
        names=(
            r"NCCL_SOCKET_IFNAME set (?:by environment )?to (?P<nic>[\w=^,.-]{1,60})",
            r"find address for: (?P<nic>[\w.-]{1,20})",
        ),
        beside=r"SOCKET_IFNAME",
    ),
    FailureRule(
        "nccl-imex",
        r"NCCL WARN [^\n]*(?:MNNVL|IMEX)",
        "NCCL cannot share memory between the hosts of a rack (GB200, GB300): nvidia-imex does not run on all of "
        "them, or its channel (/dev/nvidia-caps-imex-channels) is missing on the host or in the container",
        "Run `invoke doctor` on these hosts, start nvidia-imex on all of them, check nvidia-imex-ctl -N, and pass "
        "the channel to the container. Until then, NCCL_MNNVL_ENABLE=0 sends the job's data over the network",
        "NCCL user guide, NCCL_MNNVL_ENABLE; NVIDIA IMEX guide",
        unless=r"fall(?:ing|s)? back",
    ),
    FailureRule(
        "nccl-ranks-apart",
        r"Mismatched NCCL version detected|NCCL WARN Message truncated ?: received [0-9]{1,9} bytes instead of",
        "the processes of the job do not match: they have different NCCLs (one host has another image, environment "
        "or LD_LIBRARY_PATH), or processes of another job connected to the same port",
        "Compare the NCCL version in every rank's NCCL_DEBUG=INFO output (torch.cuda.nccl.version()), then give all "
        "hosts one environment (one stack) and the job its own port",
        "NCCL src/bootstrap.cc, src/misc/socket.cc",
    ),
    FailureRule(
        "nccl-newer-than-driver",
        r"NCCL WARN Cuda failure [^\n]{0,40}(?:API call is not supported in the installed CUDA driver"
        r"|named symbol not found)",
        "the program's NCCL was built for a newer CUDA than the driver's, and calls functions that the driver "
        "does not have",
        "Install an NCCL for this driver's CUDA: in the program's Python environment if NCCL comes from there, else "
        "with the role nccl",
        "NVIDIA/nccl#496",
    ),
    FailureRule(
        "nccl-older-than-card",
        r"ncclMaxSharedMem [0-9]{1,9} exceeds device/fn maxSharedMem",
        "the program's NCCL is older than the GPU: its kernels request more shared memory than an RTX 50 (Blackwell, "
        "12.0) has, a bug of NCCL 2.25",
        "Install NCCL 2.26 or later for the program: the wheel that a newer PyTorch pins, or the role nccl. P2P, "
        "network, driver and the optional plug-in libnccl-net.so are not the cause",
        "NVIDIA/nccl-tests#287",
        weight="consequence",
    ),
    FailureRule(
        "nccl-not-installed",
        r"\bnccl\.h['\"]?: No such file|'nccl\.h' file not found|Could NOT find NCCL\b"
        r"|Cannot find libnccl\.so\.2|Failed to (?:import|load) (?:the )?NCCL library|cannot find -lnccl\b",
        "a program is built with NCCL or opens it, and NCCL is not on the host, or not where the program searches",
        "Add the role nccl to the host (hostwright_roles): it installs library and header where compilers and the "
        "loader search. If NCCL is there, pass its directory to the build (NCCL_HOME, HOROVOD_NCCL_HOME: /usr)",
        "horovod/horovod#3924, NVIDIA/nccl#139",
        unless="^-- Could NOT find",
    ),
)
