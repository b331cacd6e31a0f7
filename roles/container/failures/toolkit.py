"""Signs of faults of NVIDIA's container toolkit: in its four packages, packages with former names, and access to the
driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, ForPeople, Sign, Stuck, Unread, Variant
from hostwright.resources import DPKG, RELEASE, Answer, Installed, Probe, SourcesDisabled, release
from hostwright.roles import Pattern
from hostwright.standard.roles.container.cdi import TOOLKIT_CONFIG
from hostwright.standard.roles.container.engine import OLD_PACKAGES, OLD_SOURCES
from hostwright.standard.roles.container.section import ContainerSection
from hostwright.standard.roles.driver.nvsmi.report import NVIDIA_SMI

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

#: probe that runs ``nvidia-container-cli info``, which without -k changes nothing on the host
REACHES_DRIVER = Probe(
    "command -v nvidia-container-cli >/dev/null || exit 3\ntimeout -k 1 5 nvidia-container-cli info 2>&1", root=True
)
#: probe for ``no-cgroups`` and missing paths in the toolkit's configuration
NO_CGROUPS = Probe(
    f"grep -nE '^[[:space:]]*no-cgroups[[:space:]]*=[[:space:]]*true' {TOOLKIT_CONFIG} 2>/dev/null\n"
    r"""sed -nE 's/^[[:space:]]*(ldconfig|path|root)[[:space:]]*=[[:space:]]*"@?(\/[^"]+)".*/\1 \2/p' """
    f"{TOOLKIT_CONFIG} 2>/dev/null |\n"
    '  while read -r key path; do [ -e "$path" ] || printf "gone %s %s\\n" "$key" "$path"; done; exit 0'
)
NO_PROGRAM, TIMED_OUT = 3, (124, 137)
FORMER_SOURCES = SourcesDisabled(OLD_SOURCES, "").probes()[0]

LIBRARY_NOT_FOUND = r"load library failed: lib(?:nvidia-ml|cuda|dxcore)\.so"
_NOT_LOADED, _NOT_FOUND = Pattern("nvml error: driver not loaded"), Pattern(LIBRARY_NOT_FOUND)
_SAYS = Pattern(r"nvidia-container-cli: .*")


def _toolkit(ctx: AuditContext) -> tuple[Installed, ...]:
    rows = (ctx.packages.get(name) for name in ctx.section(ContainerSection).toolkit.packages)
    return tuple(row for row in rows if row and row.present)


def moved(ctx: AuditContext) -> Iterator[str]:
    """The toolkit's packages have different versions, or changed since the last successful run."""
    wanted, packages = ctx.section(ContainerSection).toolkit.version, _toolkit(ctx)
    mixed = len({row.version for row in packages}) > 1
    if mixed or _was_at(ctx, wanted):
        yield from (
            f"{row.name} {row.version}, but the stack has {wanted}" for row in packages if row.version != wanted
        )


def _was_at(ctx: AuditContext, version: str) -> bool:
    record = release.read(ctx.facts) if RELEASE in ctx.facts else {}
    versions = record.get("versions")
    return isinstance(versions, dict) and versions.get("container-toolkit") == version


def not_held(ctx: AuditContext) -> Iterator[str]:
    """A package of the toolkit has the stack's version, but dpkg has no hold on it."""
    wanted = ctx.section(ContainerSection).toolkit.version
    yield from (f"{row.name} is not held" for row in _toolkit(ctx) if row.version == wanted and not row.held)


def former_names(ctx: AuditContext) -> Iterator[str]:
    """nvidia-docker2 or nvidia-container-runtime is installed, or apt reads one of their repositories."""
    rows = (ctx.packages.get(name) for name in OLD_PACKAGES)
    yield from (f"{row.name} {row.version} is installed" for row in rows if row and (row.present or row.broken))
    keep = ctx.section(ContainerSection).toolkit.repository.list_file
    ctx.require(FORMER_SOURCES)
    change = SourcesDisabled(OLD_SOURCES, "", keep).plan(ctx.facts)
    yield from change.have.split("; ") if change else ()


def without_driver(ctx: AuditContext) -> Iterator[str]:
    """The driver layer is as desired, but nvidia-container-cli info reports that the driver is not loaded."""
    complaint = _complaint(ctx)
    if _NOT_LOADED.search(complaint):
        yield complaint


def library_not_found(ctx: AuditContext) -> Iterator[str]:
    """The driver layer is as desired, but nvidia-container-cli info does not find the driver's library."""
    complaint = _complaint(ctx)
    if _NOT_FOUND.search(complaint):
        yield complaint


def fails(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi works, and driver and container layer are as desired, but nvidia-container-cli info fails."""
    if ctx.differs("container") or not ctx.answer(NVIDIA_SMI).ok:
        return
    complaint = _complaint(ctx)
    if complaint and not _NOT_LOADED.search(complaint) and not _NOT_FOUND.search(complaint):
        yield complaint


def no_cgroups(ctx: AuditContext) -> Iterator[str]:
    """The toolkit is installed, and its config.toml has ``no-cgroups = true``."""
    if _toolkit(ctx):
        lines = (line for line in ctx.text(NO_CGROUPS).splitlines() if not line.startswith("gone "))
        yield from (f"{TOOLKIT_CONFIG}:{line.strip()}" for line in lines)


def paths_gone(ctx: AuditContext) -> Iterator[str]:
    """The toolkit is installed, and ``ldconfig``, ``path`` or ``root`` in its config.toml is a missing path."""
    rows = (line.split(" ", 2) for line in ctx.text(NO_CGROUPS).splitlines() if _toolkit(ctx))
    yield from (f"{TOOLKIT_CONFIG}: {row[1]} = {row[2]}, which does not exist" for row in rows if row[0] == "gone")


def _complaint(ctx: AuditContext) -> str:
    """Return the error text of ``nvidia-container-cli``; empty if the driver layer is not as desired."""
    answer = ctx.answer(REACHES_DRIVER)
    if answer.ok or answer.status == NO_PROGRAM or ctx.differs("driver"):
        return ""
    if answer.status in TIMED_OUT:
        raise Unread("nvidia-container-cli did not respond within 5 s")
    return _last_words(answer)


def _last_words(answer: Answer) -> str:
    lines = [line for line in answer.text.splitlines() if line.strip()]
    named = [match[0] for line in lines if (match := _SAYS.search(line))]
    return (named or lines or [f"nvidia-container-cli info ended with status {answer.status}"])[-1]


TOOLKIT_RULES = (
    FailureRule(
        "toolkit-no-cgroups",
        "",
        "no-cgroups = true, a setting for rootless Docker, denies GPU devices to containers of root's Docker:"
        " nvidia-smi in them fails with Failed to initialize NVML: Unknown Error",
        f"Set no-cgroups = false in {TOOLKIT_CONFIG}, and restart the containers. Keep the setting only if Docker"
        " itself runs in a container with its own devices, as in LXC",
        "NVIDIA/nvidia-container-toolkit#85, #381",
        sign=Sign("container", no_cgroups, (DPKG, NO_CGROUPS), grave=False),
        treatment=ForPeople(),
    ),
    FailureRule(
        "toolkit-moved",
        "",
        "the container toolkit's version changed, usually by apt upgrade; all its packages need the same version",
        "Provision again: the container role installs all four packages in the stack's version and holds them",
        "NVIDIA container toolkit, installation guide",
        sign=Sign("container", moved, (DPKG, RELEASE), grave=False, provision=True),
    ),
    FailureRule(
        "toolkit-not-held",
        "",
        "the container toolkit has no hold, so that apt can upgrade it past the stack's version",
        "Provision again: the container role holds its packages (apt-mark hold)",
        "apt-mark(8)",
        sign=Sign("container", not_held, (DPKG,), grave=False, provision=True),
    ),
    FailureRule(
        "toolkit-former-names",
        "",
        "the container toolkit is installed under its package names from before 2023, or apt reads their repository,"
        " which gets no updates",
        "Provision again: the container role removes the packages, keeps daemon.json and disables the repository",
        "NVIDIA/nvidia-docker, archived 2024",
        sign=Sign("container", former_names, (DPKG, FORMER_SOURCES), grave=False, provision=True),
    ),
    FailureRule(
        "toolkit-config",
        "",
        "config.toml of the container toolkit names a missing file, so that the next container with GPUs does not"
        " start",
        "Correct that line: ldconfig is @/sbin/ldconfig, on Ubuntu @/sbin/ldconfig.real. Comment out root and path,"
        " unless the GPU operator's container provides the driver",
        "NVIDIA/nvidia-container-toolkit internal/config; OE4T/meta-tegra#1516",
        sign=Sign("container", paths_gone, (DPKG, NO_CGROUPS), grave=False),
    ),
    FailureRule(
        "toolkit-ldconfig",
        r"nvidia-container-cli[.a-z]{0,8}: ldcache error: [^\n]*",
        "the host's ldconfig, which the toolkit runs for the container, failed. Causes: the image or its filesystem"
        " makes /etc/ld.so.cache read-only, a library in the image is empty, or config.toml names another ldconfig",
        "Test another image (docker run --gpus all ubuntu nvidia-smi). If that works, run ldconfig in the failing"
        " image and read its message (no space, read-only, an empty libnvidia file: docker system df, then pull it"
        " again). If no image works, check that ldconfig in /etc/nvidia-container-runtime/config.toml is"
        " @/sbin/ldconfig (on Ubuntu @/sbin/ldconfig.real), and that the host's ldconfig runs without an error",
        "NVIDIA/libnvidia-container src/nvc_ldcache.c, #177; NVIDIA/nvidia-docker#1456",
        names=(
            r"open failed: (?P<program>/\S{1,120}ldconfig\S{0,10}?): [Nn]o such",
            r"terminated with signal (?P<signal>[0-9]{1,2})",
        ),
        variants=(
            Variant(
                r"terminated with signal",
                "ldconfig, which the toolkit runs for the container in a sandbox, was killed (signal SIGNAL). Usually"
                " this release of libnvidia-container does not support the host's C library or kernel, as after an"
                " upgrade. Signal 31 comes from its system call filter, and 9 can come from the container's memory"
                " limit",
                "Update nvidia-container-toolkit and libnvidia-container1. If the message stays in every image, avoid"
                " the sandbox with CDI: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml, nvidia-ctk config"
                " --in-place --set nvidia-container-runtime.mode=cdi, and start containers with --device"
                " nvidia.com/gpu=all. Driver and GPUs are not the cause",
            ),
            Variant(
                r"open failed: \S+ldconfig\S*: [Nn]o such",
                "the toolkit should run the host's PROGRAM for the container, which does not exist on the host."
                " config.toml belongs to another distribution (only Ubuntu has /sbin/ldconfig.real), or the program"
                " has another path, as on NixOS",
                "Set the real path (command -v ldconfig) in /etc/nvidia-container-runtime/config.toml"
                ' (nvidia-container-cli.ldconfig = "@/PATH/TO/ldconfig"; on Ubuntu @/sbin/ldconfig.real). Or use'
                " CDI, which needs no ldconfig: nvidia-ctk cdi generate, then --device nvidia.com/gpu=all. On NixOS,"
                " set hardware.nvidia-container-toolkit.enable",
            ),
        ),
        weight="consequence",
    ),
    FailureRule(
        "toolkit-outdated",
        r"nvidia-container-cli[.a-z]{0,8}:? (?:mount error: stat failed: /[A-Z][^\n/:]{0,80}: no such file"
        r"|[a-z]{1,12}: unrecognized option[^\n\\]{0,80})"
        r"|error parsing IMEX info: unsupported IMEX channel value: [\w,-]{1,40}",
        "libnvidia-container is too old for this host: releases before 1.0.2 read a part of a GPU's name, PLACE, as a"
        " path",
        "Upgrade the toolkit's packages to one newer release: provision again, which installs the stack's, or run"
        " apt-get install libnvidia-container1 libnvidia-container-tools nvidia-container-toolkit. Reinstalling the"
        " current release does not help. Driver and image are not the cause",
        "NVIDIA/nvidia-docker#957; NVIDIA/nvidia-container-runtime#26; NVIDIA container toolkit, release notes of"
        " 1.17.2",
        names=(
            r"stat failed: (?P<place>/[A-Z][^\n/:]{0,80}): no such",
            r"unrecognized option '(?P<option>[\w-]{1,60})'",
        ),
        variants=(
            Variant(
                r"unrecognized option",
                "nvidia-container-cli is older than the part of the toolkit that calls it: it does not support {the"
                " option OPTION|one of its options}",
            ),
            Variant(
                r"unsupported IMEX channel value",
                "the container toolkit is 1.17.0 or 1.17.1, which has a bug: it requests the IMEX channels 'all' for"
                " older images, a value that its own nvidia-container-cli does not support",
                "Install all packages of the toolkit in one release with the fix (1.17.2 or later) or in 1.16.2, and"
                " hold them: provision again, which installs the stack's. The host needs no IMEX for this. Driver and"
                " image are not the cause",
            ),
        ),
    ),
    FailureRule(
        "toolkit-file-gone",
        r"nvidia-container-cli[.a-z]{0,8}: (?:detection|initialization) error: (?:open|stat|path)[a-z ]{0,20}: "
        r"/[^\s:]{1,200}: no such file or directory",
        "the container toolkit does not find PLACE on the host, so that no container gets a GPU",
        "Find the package with dpkg -S PLACE, restore the file (apt-get install --reinstall with that package), then"
        " start the container again",
        "NVIDIA/libnvidia-container src/ldcache.c",
        names=(r" (?P<place>/[^\s:]{1,200}): no such file",),
        variants=(
            Variant(
                r"/etc/ld\.so\.cache: no such file",
                "the host has no /etc/ld.so.cache, the loader's list of libraries, in which the container toolkit"
                " finds the driver's libraries. No container gets a GPU. A host image or a clean-up may have removed"
                " the file",
                "Run ldconfig as root, which creates the file, then start the container again",
            ),
            Variant(
                r": /(?:dev/nvidia|proc/driver/nvidia)\S*: no such file",
                cure=(
                    "Load the driver's module and create its device files (nvidia-smi as root; nvidia-modprobe -u -c"
                    " 0), then start the container again. If nvidia-smi also fails, repair the driver first"
                ),
            ),
        ),
    ),
    FailureRule(
        "toolkit-fails",
        r"nvidia-container-cli[.a-z]{0,8}: (?:initialization error: (?:change root|capability change|privilege change"
        r"|namespace association|process fork)|detection error: (?:open|stat|path|process|mount)"
        r"|permission"
        r" error|input error|container error: )|Runtime Hook directly[^\n]*is not supported"
        r"|failed to (?:generate|inject) CDI (?:spec|devices)|couldn't open required configuration file"
        r"|update-ldcache[^\n]*(?:fail|error)"
        r"|running hook[^\n]*ldconfig[^\n]*(?:fail|error)|error updating ldcache"
        r"|nvidia-container-runtime did not terminate successfully|error executing hook [^\n]{0,20}nvidia-c",
        "the container toolkit cannot use the GPUs although the driver works, so that no container gets a GPU",
        "Read its message. Usually /etc/nvidia-container-runtime/config.toml was edited: compare it with another"
        " host's. Or reinstall the packages (apt-get install --reinstall --allow-change-held-packages"
        " libnvidia-container1=VERSION, with the version from dpkg -l) and provision again, which holds them",
        "NVIDIA/libnvidia-container",
        unless="container error: (?:cgroup|failed to)",
        variants=(
            Variant(
                r"change root failed",
                "root in /etc/nvidia-container-runtime/config.toml names a directory that is missing or has no"
                " driver, such as /run/nvidia/driver of the GPU operator's driver container. No container gets a GPU",
                "If the driver is installed on the host itself, comment out the line root = … (and path = …, if it"
                " points there too). If the operator's container provides the driver, wait until that runs. Then start"
                " the container again",
            ),
            Variant(
                r"(?:capability change|privilege change|namespace association|process fork)[^\n]*",
                "the container toolkit lacks a permission that containers with GPUs need: Docker runs in a container,"
                " in an LXC guest or without root, or a security module denies it",
                "Give Docker's environment the missing permission (an LXC guest: nesting and the devices, no-cgroups"
                " = true in config.toml; rootless Docker: nvidia-ctk config --set nvidia-container-cli.no-cgroups"
                " --in-place). Read dmesg for AppArmor or SELinux. Then start the container again",
            ),
            Variant(
                r"Runtime Hook directly",
                "the toolkit's config.toml has mode = cdi (or a similar mode), but the container is started with"
                " --gpus, which calls the hook of another mode",
                "Start it with --runtime=nvidia, or with --device nvidia.com/gpu=all, or set mode = auto in"
                " /etc/nvidia-container-runtime/config.toml",
            ),
            Variant(
                r"input error",
                "the container passes an unsupported value to the toolkit, in NVIDIA_VISIBLE_DEVICES,"
                " NVIDIA_DRIVER_CAPABILITIES, NVIDIA_REQUIRE_… or --gpus",
                "Read the value in the message, and correct it in the command, the compose file or the image (docker"
                " inspect shows its variables)",
            ),
        ),
        sign=Sign("container", fails, (REACHES_DRIVER, NVIDIA_SMI)),
        treatment=Stuck("the container toolkit fails"),
        weight="consequence",
    ),
)
