"""Failures of NCCL: built for another CUDA, a second one, not held; and of programs that lack it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, Sign, wanted
from hostwright.resources import DPKG, NoStrayFiles, Probe
from hostwright.standard.roles.nccl.section import DEVELOPMENT, HOME, PACKAGE, NcclSection

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

#: where the loader's cache has it, in its order, with the links of the directory followed
COPIES = Probe(
    r"""all=$(/sbin/ldconfig -p) || exit 1
printf '%s\n' "$all" | sed -n 's/^[[:space:]]*libnccl\.so\.2 (libc6,x86-64[^)]*) => //p' | while read -r path; do
  echo "$(readlink -m -- "${path%/*}")/${path##*/}"
done"""
)


def other_build(ctx: AuditContext) -> Iterator[str]:
    """``libnccl2`` or ``libnccl-dev`` is installed at another version than the stack's: of another release, or for
    another CUDA."""
    exact = ctx.section(NcclSection).package_version
    for name in (PACKAGE, DEVELOPMENT):
        package = ctx.packages.get(name)
        if package and package.present and package.version != exact:
            yield f"{name} {package.version} is installed, and the stack says {exact}"


def not_held(ctx: AuditContext) -> Iterator[str]:
    """NCCL's packages are at the stack's version, and dpkg does not say that they are held."""
    exact = ctx.section(NcclSection).package_version
    for name in (PACKAGE, DEVELOPMENT):
        package = ctx.packages.get(name)
        if package and package.present and package.version == exact and not package.held:
            yield f"{name} {package.version} is not held"


def in_loader(ctx: AuditContext) -> Iterator[str]:
    """The loader's cache names a ``libnccl.so.2`` that is not the package's and that the role does not set aside."""
    resource = wanted(ctx, "nccl", NoStrayFiles)
    set_aside = {path.rpartition("/")[0] for path in ctx.answer(resource.probes()[0]).text.splitlines()}
    for path in ctx.text(COPIES).splitlines():
        if path.startswith("/") and path.rpartition("/")[0] not in {HOME, *set_aside}:
            yield f"the loader also knows {path}"


FAILURES = (
    FailureRule(
        "nccl-other-build",
        "",
        "NCCL is not the stack's: another release, or built for another CUDA, such as the newest of NVIDIA's packages",
        "Provision again: the nccl role installs the stack's and holds it",
        "NVIDIA/nccl#889, NVIDIA/nccl-tests#6",
        sign=Sign("nccl", other_build, (DPKG,), provision=True),
    ),
    FailureRule(
        "nccl-not-held",
        "",
        "nothing keeps apt from moving NCCL to a release for another CUDA",
        "Provision again: the nccl role holds its packages",
        "apt-mark(8)",
        sign=Sign("nccl", not_held, (DPKG,), grave=False, provision=True),
    ),
    FailureRule(
        "nccl-in-loader",
        "",
        "the loader offers every program a second NCCL, from a directory that a file in /etc/ld.so.conf.d names",
        "Remove the copy, or the file that names its directory (grep -r . /etc/ld.so.conf.d), and run ldconfig",
        "ldconfig(8); horovod/horovod#2561",
        sign=Sign("nccl", in_loader, (COPIES,), grave=False),
    ),
    FailureRule(
        "nccl-interface-missing",
        r"connecting to address [^\n]{0,80}with family [0-9]{1,9} is neither AF_INET|no socket interface found"
        r"|[Uu]nable to find address for: \S|NCCL WARN [^\n]*NCCL_SOCKET_IFNAME",
        "NCCL_SOCKET_IFNAME (for gloo GLOO_SOCKET_IFNAME) names a network interface{, NIC,|} that this host does not"
        " have, or that has no address; without the variable, the host has no interface that NCCL takes",
        "See the interfaces of that host (ip -br addr) and name one that all hosts of the job have, or unset the"
        " variable: it may stand in the job's script, a container's image, /etc/nccl.conf or ~/.nccl.conf; =eth names"
        " every interface that begins so, ^docker0,lo all but these",
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
        "NCCL cannot share memory between the hosts of a rack (GB200, GB300): nvidia-imex does not run on all of them,"
        " or its channel (/dev/nvidia-caps-imex-channels) is not there, or not in the container",
        "Run `invoke doctor` on these hosts; start nvidia-imex on all, read nvidia-imex-ctl -N, and give the container"
        " the channel; NCCL_MNNVL_ENABLE=0 gets a job through over the network until then",
        "NCCL user guide, NCCL_MNNVL_ENABLE; NVIDIA IMEX guide",
        unless=r"fall(?:ing|s)? back",
    ),
    FailureRule(
        "nccl-ranks-apart",
        r"Mismatched NCCL version detected|NCCL WARN Message truncated ?: received [0-9]{1,9} bytes instead of",
        "the processes of the job do not agree: they have different NCCLs (an image, environment or LD_LIBRARY_PATH of"
        " its own on one host), or another job's processes came in on the same port",
        "Compare NCCL version in every rank's NCCL_DEBUG=INFO (torch.cuda.nccl.version()); give all hosts one"
        " environment (one stack), and the job a port of its own",
        "NCCL src/bootstrap.cc, src/misc/socket.cc",
    ),
    FailureRule(
        "nccl-newer-than-driver",
        r"NCCL WARN Cuda failure [^\n]{0,40}(?:API call is not supported in the installed CUDA driver"
        r"|named symbol not found)",
        "the program's NCCL was built for a newer CUDA than the driver's, and calls what the driver does not have",
        "Give the program an NCCL for this driver's CUDA: its own where a Python package brings one, else that of the"
        " role nccl",
        "NVIDIA/nccl#496",
    ),
    FailureRule(
        "nccl-older-than-card",
        r"ncclMaxSharedMem [0-9]{1,9} exceeds device/fn maxSharedMem",
        "the program's NCCL is older than the card: its kernels ask for more shared memory than an RTX 50 (Blackwell,"
        " 12.0) has, a fault of NCCL 2.25",
        "Give the program NCCL 2.26 or later: the wheel that its PyTorch pins (a newer PyTorch), or that of the role"
        " nccl. P2P, network and driver are not at fault, nor the plug-in libnccl-net.so, which is optional",
        "NVIDIA/nccl-tests#287",
        weight="consequence",
    ),
    FailureRule(
        "nccl-not-installed",
        r"\bnccl\.h['\"]?: No such file|'nccl\.h' file not found|Could NOT find NCCL\b"
        r"|Cannot find libnccl\.so\.2|Failed to (?:import|load) (?:the )?NCCL library|cannot find -lnccl\b",
        "a program is built with NCCL or opens it, and it is not on the host, or not where the program looks",
        "Give the host the role nccl (hostwright_roles), which puts library and header where compilers and the loader"
        " look; where it is there, name the place to the build (NCCL_HOME, HOROVOD_NCCL_HOME: /usr)",
        "horovod/horovod#3924, NVIDIA/nccl#139",
        unless="^-- Could NOT find",
    ),
)
