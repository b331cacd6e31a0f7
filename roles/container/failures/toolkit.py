"""Signs about NVIDIA's container toolkit: its four packages, its former names, and whether it reaches the driver."""

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

#: The toolkit's first action for every container: it opens the driver's management library. Without -k it loads no
#: module, and for ``info`` it makes no device file.
REACHES_DRIVER = Probe(
    "command -v nvidia-container-cli >/dev/null || exit 3\ntimeout -k 1 5 nvidia-container-cli info 2>&1", root=True
)
#: ``LINE:no-cgroups = true``, where the toolkit's configuration has it, and ``gone KEY PATH`` of each path in it that
#: leads nowhere
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
    """The installed packages of the toolkit. Raises ``Unread``."""
    rows = (ctx.packages.get(name) for name in ctx.section(ContainerSection).toolkit.packages)
    return tuple(row for row in rows if row and row.present)


def moved(ctx: AuditContext) -> Iterator[str]:
    """The toolkit's packages are of different versions, or not at the one that the host was brought to."""
    wanted, packages = ctx.section(ContainerSection).toolkit.version, _toolkit(ctx)
    mixed = len({row.version for row in packages}) > 1
    if mixed or _was_at(ctx, wanted):
        yield from (
            f"{row.name} {row.version}, and the stack says {wanted}" for row in packages if row.version != wanted
        )


def _was_at(ctx: AuditContext, version: str) -> bool:
    """Whether the last successful run left the toolkit at this version, so that any difference arose since."""
    record = release.read(ctx.facts) if RELEASE in ctx.facts else {}
    versions = record.get("versions")
    return isinstance(versions, dict) and versions.get("container-toolkit") == version


def not_held(ctx: AuditContext) -> Iterator[str]:
    """A package of the toolkit is at the stack's version, and dpkg does not say that it is held."""
    wanted = ctx.section(ContainerSection).toolkit.version
    yield from (f"{row.name} is not held" for row in _toolkit(ctx) if row.version == wanted and not row.held)


def former_names(ctx: AuditContext) -> Iterator[str]:
    """nvidia-docker2 or nvidia-container-runtime is installed, or apt reads a repository of theirs."""
    rows = (ctx.packages.get(name) for name in OLD_PACKAGES)
    yield from (f"{row.name} {row.version} is installed" for row in rows if row and (row.present or row.broken))
    keep = ctx.section(ContainerSection).toolkit.repository.list_file
    ctx.require(FORMER_SOURCES)
    change = SourcesDisabled(OLD_SOURCES, "", keep).plan(ctx.facts)
    yield from change.have.split("; ") if change else ()


def without_driver(ctx: AuditContext) -> Iterator[str]:
    """The driver's layer is as desired, and nvidia-container-cli info says that the driver is not loaded."""
    complaint = _complaint(ctx)
    if _NOT_LOADED.search(complaint):
        yield complaint


def library_not_found(ctx: AuditContext) -> Iterator[str]:
    """The driver's layer is as desired, and nvidia-container-cli info does not find the driver's library."""
    complaint = _complaint(ctx)
    if _NOT_FOUND.search(complaint):
        yield complaint


def fails(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi works, nothing differs in driver and container layer, and nvidia-container-cli info fails."""
    if ctx.differs("container") or not ctx.answer(NVIDIA_SMI).ok:
        return
    complaint = _complaint(ctx)
    if complaint and not _NOT_LOADED.search(complaint) and not _NOT_FOUND.search(complaint):
        yield complaint


def no_cgroups(ctx: AuditContext) -> Iterator[str]:
    """The toolkit is installed, and its config.toml says ``no-cgroups = true``."""
    if _toolkit(ctx):
        lines = (line for line in ctx.text(NO_CGROUPS).splitlines() if not line.startswith("gone "))
        yield from (f"{TOOLKIT_CONFIG}:{line.strip()}" for line in lines)


def paths_gone(ctx: AuditContext) -> Iterator[str]:
    """The toolkit is installed, and ``ldconfig``, ``path`` or ``root`` in its config.toml names what is not there."""
    rows = (line.split(" ", 2) for line in ctx.text(NO_CGROUPS).splitlines() if _toolkit(ctx))
    yield from (f"{TOOLKIT_CONFIG}: {row[1]} = {row[2]}, which is not there" for row in rows if row[0] == "gone")


def _complaint(ctx: AuditContext) -> str:
    """Why the toolkit's program fails, in its words; empty if it works, is missing, or the driver differs."""
    answer = ctx.answer(REACHES_DRIVER)
    if answer.ok or answer.status == NO_PROGRAM or ctx.differs("driver"):
        return ""
    if answer.status in TIMED_OUT:
        raise Unread("nvidia-container-cli did not answer within 5 s")
    return _last_words(answer)


def _last_words(answer: Answer) -> str:
    lines = [line for line in answer.text.splitlines() if line.strip()]
    named = [match[0] for line in lines if (match := _SAYS.search(line))]
    return (named or lines or [f"nvidia-container-cli info ended with status {answer.status}"])[-1]


TOOLKIT_RULES = (
    FailureRule(
        "toolkit-no-cgroups",
        "",
        "no-cgroups = true, a setting for rootless Docker, keeps the devices of the GPUs from containers of root's"
        " Docker: nvidia-smi in them ends with Failed to initialize NVML: Unknown Error",
        f"Set no-cgroups = false in {TOOLKIT_CONFIG}, and start the containers anew; leave it only where Docker itself"
        " runs in a container that gives it the devices, as in LXC",
        "NVIDIA/nvidia-container-toolkit#85, #381",
        sign=Sign("container", no_cgroups, (DPKG, NO_CGROUPS), grave=False),
        treatment=ForPeople(),
    ),
    FailureRule(
        "toolkit-moved",
        "",
        "the container toolkit was changed by somebody else, usually by apt upgrade; its packages fit only each other",
        "Provision again: the container role puts all four packages at the stack's version and holds them",
        "NVIDIA container toolkit, installation guide",
        sign=Sign("container", moved, (DPKG, RELEASE), grave=False, provision=True),
    ),
    FailureRule(
        "toolkit-not-held",
        "",
        "nothing keeps apt from upgrading the container toolkit past the stack's version",
        "Provision again: the container role holds its packages (apt-mark hold)",
        "apt-mark(8)",
        sign=Sign("container", not_held, (DPKG,), grave=False, provision=True),
    ),
    FailureRule(
        "toolkit-former-names",
        "",
        "the container toolkit is installed under its names of before 2023, or apt reads their repository, which gets"
        " no updates",
        "Provision again: the container role removes the packages, keeps daemon.json and disables the repository",
        "NVIDIA/nvidia-docker, archived 2024",
        sign=Sign("container", former_names, (DPKG, FORMER_SOURCES), grave=False, provision=True),
    ),
    FailureRule(
        "toolkit-config",
        "",
        "config.toml of the container toolkit names a file that is not on the host: the next container with GPUs does"
        " not start",
        "Correct that line: ldconfig is @/sbin/ldconfig, on Ubuntu @/sbin/ldconfig.real; root and path are commented"
        " out where the driver is installed on the host itself, and not by the GPU operator's container",
        "NVIDIA/nvidia-container-toolkit internal/config; OE4T/meta-tegra#1516",
        sign=Sign("container", paths_gone, (DPKG, NO_CGROUPS), grave=False),
    ),
    FailureRule(
        "toolkit-ldconfig",
        r"nvidia-container-cli[.a-z]{0,8}: ldcache error: [^\n]*",
        "ldconfig, which the toolkit runs for the container with the host's program, failed: the image or its file"
        " system does not let it write /etc/ld.so.cache, a library in it is empty, or config.toml names another"
        " ldconfig",
        "Try another image first (docker run --gpus all ubuntu nvidia-smi): where that works, run ldconfig in the"
        " failing one and read its message (no room, read-only, an empty libnvidia file: docker system df, then pull it"
        " again); where none works, see that ldconfig in /etc/nvidia-container-runtime/config.toml is @/sbin/ldconfig,"
        " on Ubuntu @/sbin/ldconfig.real, and that the host's ldconfig runs without an error",
        "NVIDIA/libnvidia-container src/nvc_ldcache.c, #177; NVIDIA/nvidia-docker#1456",
        names=(
            r"open failed: (?P<program>/\S{1,120}ldconfig\S{0,10}?): [Nn]o such",
            r"terminated with signal (?P<signal>[0-9]{1,2})",
        ),
        variants=(
            Variant(
                r"terminated with signal",
                "ldconfig, which the toolkit starts for the container in a sandbox of its own, was killed (signal"
                " SIGNAL): mostly this release of libnvidia-container does not go with the host's C library or kernel,"
                " as after an upgrade; 31 is its filter of system calls, 9 may be the container's limit of memory",
                "Bring nvidia-container-toolkit and libnvidia-container1 up to date. Where it stays, in every image,"
                " let the runtime do without the sandbox, by CDI: nvidia-ctk cdi generate"
                " --output=/etc/cdi/nvidia.yaml, nvidia-ctk config --in-place --set nvidia-container-runtime.mode=cdi,"
                " and start containers with --device nvidia.com/gpu=all. Driver and cards are not at fault",
            ),
            Variant(
                r"open failed: \S+ldconfig\S*: [Nn]o such",
                "the toolkit is to run the host's PROGRAM for the container, and the host has none there: config.toml"
                " is another distribution's (Ubuntu alone has /sbin/ldconfig.real), or it lies elsewhere, as on NixOS",
                "Name the real one (command -v ldconfig) in /etc/nvidia-container-runtime/config.toml"
                ' (nvidia-container-cli.ldconfig = "@/PATH/TO/ldconfig"; on Ubuntu @/sbin/ldconfig.real), or use CDI,'
                " which needs none: nvidia-ctk cdi generate, then --device nvidia.com/gpu=all. On NixOS"
                " hardware.nvidia-container-toolkit.enable does that",
            ),
        ),
        weight="consequence",
    ),
    FailureRule(
        "toolkit-outdated",
        r"nvidia-container-cli[.a-z]{0,8}:? (?:mount error: stat failed: /[A-Z][^\n/:]{0,80}: no such file"
        r"|[a-z]{1,12}: unrecognized option[^\n\\]{0,80})"
        r"|error parsing IMEX info: unsupported IMEX channel value: [\w,-]{1,40}",
        "libnvidia-container is too old for this host: it takes a part of a card's name, PLACE, for a path, as releases"
        " before 1.0.2 do",
        "Bring the toolkit's packages to one newer release: provision again, which installs the stack's; elsewhere"
        " apt-get install libnvidia-container1 libnvidia-container-tools nvidia-container-toolkit. To install the"
        " present release again changes nothing, and the driver and the image are not to blame",
        "NVIDIA/nvidia-docker#957; NVIDIA/nvidia-container-runtime#26; NVIDIA container toolkit, release notes of"
        " 1.17.2",
        names=(
            r"stat failed: (?P<place>/[A-Z][^\n/:]{0,80}): no such",
            r"unrecognized option '(?P<option>[\w-]{1,60})'",
        ),
        variants=(
            Variant(
                r"unrecognized option",
                "nvidia-container-cli is older than the part of the toolkit that calls it: it does not know"
                " {the option OPTION|one of its options}",
            ),
            Variant(
                r"unsupported IMEX channel value",
                "the container toolkit is 1.17.0 or 1.17.1, which ask for the IMEX channels 'all' for older images, and"
                " its own nvidia-container-cli does not know that word: a fault of these releases",
                "Bring all packages of the toolkit to one release with the fix, 1.17.2 or later, or back to 1.16.2, and"
                " hold it: provision again, which installs the stack's and holds them. The host needs no IMEX for it;"
                " driver and image are not to blame",
            ),
        ),
    ),
    FailureRule(
        "toolkit-file-gone",
        r"nvidia-container-cli[.a-z]{0,8}: (?:detection|initialization) error: (?:open|stat|path)[a-z ]{0,20}: "
        r"/[^\s:]{1,200}: no such file or directory",
        "the container toolkit does not find PLACE on the host, so that no container gets a GPU",
        "See whose it is (dpkg -S PLACE), bring it back (apt-get install --reinstall with that package), then start the"
        " container again",
        "NVIDIA/libnvidia-container src/ldcache.c",
        names=(r" (?P<place>/[^\s:]{1,200}): no such file",),
        variants=(
            Variant(
                r"/etc/ld\.so\.cache: no such file",
                "the host has no /etc/ld.so.cache, the loader's list of libraries, which an image or a clean-up may"
                " lack: the container toolkit finds the driver's libraries in it, so that no container gets a GPU",
                "Run ldconfig as root, which writes it, then start the container again",
            ),
            Variant(
                r": /(?:dev/nvidia|proc/driver/nvidia)\S*: no such file",
                cure="Load the driver's module and have its device files made (nvidia-smi as root; nvidia-modprobe -u"
                " -c 0), then start the container again; where nvidia-smi fails too, mend the driver first",
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
        "the container toolkit cannot reach the GPUs although the driver works, so no container gets one",
        "Read its message; /etc/nvidia-container-runtime/config.toml has usually been changed by hand: compare it with"
        " that of another host; or install the packages again (apt-get install --reinstall --allow-change-held-packages"
        " libnvidia-container1=VERSION, the one that dpkg -l says) and provision again, which holds them",
        "NVIDIA/libnvidia-container",
        unless="container error: (?:cgroup|failed to)",
        variants=(
            Variant(
                r"change root failed",
                "root in /etc/nvidia-container-runtime/config.toml names a directory that is not on the host or holds"
                " no driver, such as /run/nvidia/driver of the GPU operator's driver container: no container gets a"
                " GPU",
                "Where the driver is installed on the host itself, comment the line root = … out (and path = …, if it"
                " leads there too); where the operator's container brings it, wait until that runs. Then start the"
                " container again",
            ),
            Variant(
                r"(?:capability change|privilege change|namespace association|process fork)[^\n]*",
                "the container toolkit may not do what it must for a container with GPUs: Docker runs in a container,"
                " an LXC guest or without root, or a security module forbids it",
                "Give the place that Docker runs in what it lacks (an LXC guest: nesting and the devices, no-cgroups ="
                " true in config.toml; rootless Docker: nvidia-ctk config --set nvidia-container-cli.no-cgroups"
                " --in-place); read dmesg for AppArmor or SELinux. Then start the container again",
            ),
            Variant(
                r"Runtime Hook directly",
                "the toolkit's config.toml has mode = cdi (or the like), and the container is started with --gpus,"
                " which calls the hook for another mode: the two do not go together",
                "Start it with --runtime=nvidia, or with --device nvidia.com/gpu=all, or set mode = auto in"
                " /etc/nvidia-container-runtime/config.toml",
            ),
            Variant(
                r"input error",
                "the container asks the toolkit for something that it does not know: NVIDIA_VISIBLE_DEVICES,"
                " NVIDIA_DRIVER_CAPABILITIES, NVIDIA_REQUIRE_… or --gpus of the container have a wrong value",
                "Read the value in the message, and correct it in the call, the compose file or the image (docker"
                " inspect shows its variables)",
            ),
        ),
        sign=Sign("container", fails, (REACHES_DRIVER, NVIDIA_SMI)),
        treatment=Stuck("the container toolkit fails"),
        weight="consequence",
    ),
)
