"""What the journal has of a host that nobody reads: failed units, and the kernel's messages about failing hardware."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, Sign, Variant, known_cause, last_words, once
from hostwright.resources import Probe
from hostwright.roles import Pattern, sh_file

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

LINES = 20  #: of a unit, and of the kernel's
MOST_UNITS = 12  #: failed ones that are read
#: words of the kernel's messages that a rule may know; the rules' own patterns are more precise
WORDS = (
    r"EDAC|Memory failure|[Mm]achine [Cc]heck|Hardware [Ee]rror|event severity|AER:|severity=Uncorrect|DPC:"
    r"|I/O error|medium error|target error|lost (async )?page write|offline device|Disk failure|failed command"
    r"|Sense Key"
    r"|EXT[234]-fs|XFS|BTRFS|JBD2|Aborting journal|FAT-fs|[Oo]ut of memory|oom-kill"
)
JOURNAL = Probe(sh_file(__file__, "sh/journal.sh", lines=LINES, most=MOST_UNITS, words=WORDS), root=True)

_FAILED = Pattern(r"failed (\S{1,200}) ?([\w-]{0,40})")
_NEEDS = Pattern(r"needs (\S{1,200}): (.{1,200})")
_UNIT = Pattern(r"unit (\S{1,200}): (.*)")
_NO_WORDS = ("start-limit-hit", "success")  #: results that say nothing of their own


@once
def failed_units(ctx: AuditContext) -> Mapping[str, str]:
    """What each failed unit ended with: its result, its last words, and what is known of them. Raises ``Unread``."""
    lines = ctx.text(JOURNAL).splitlines()
    said: dict[str, list[str]] = {}
    for match in filter(None, map(_UNIT.fullmatch, lines)):
        said.setdefault(match[1], []).append(match[2])
    found = {match[1]: match[2] for match in map(_FAILED.fullmatch, lines) if match}
    needs = {
        match[1]: f"required by {match[2].replace('.service', '')}" for match in map(_NEEDS.fullmatch, lines) if match
    }
    parts = {
        unit: ("" if result in _NO_WORDS else result, *_words(ctx, said.get(unit, ())), needs.get(unit, ""))
        for unit, result in found.items()
    }
    return {unit: "; ".join(filter(None, words)) for unit, words in parts.items()}


def _words(ctx: AuditContext, lines: Sequence[str]) -> tuple[str, ...]:
    return (*last_words(lines), *known_cause(ctx, lines, "start-limit"))


def other_unit_failed(ctx: AuditContext) -> Iterator[str]:
    """A systemd unit is failed that no role has a rule for."""
    yield from (f"{unit}: {words}".rstrip(": ") for unit, words in failed_units(ctx).items())


def in_kernel_log(pattern: str, unless: str = "") -> Callable[[AuditContext], Iterator[str]]:
    """A sign: the kernel has logged such a line since the boot, in the last seven days."""
    sought, harmless = Pattern(pattern), Pattern(unless) if unless else None

    def logged(ctx: AuditContext) -> Iterator[str]:
        """The kernel has logged such a message since the boot, in the last seven days."""
        lines = (line.removeprefix("kernel ") for line in ctx.text(JOURNAL).splitlines() if line.startswith("kernel "))
        yield from dict.fromkeys(one for one in lines if sought.search(one) and not (harmless and harmless.search(one)))

    return logged


def kernel_sign(pattern: str, unless: str = "") -> Sign:
    """The sign of a rule by the kernel's log."""
    return Sign("base", in_kernel_log(pattern, unless), (JOURNAL,), grave=False)


#: Messages about units and limits that no layer knows better.
UNIT_TEXTS = (
    FailureRule(
        "unit-masked",
        r"Unit (?:file )?\S{1,200} is masked",
        "somebody masked UNIT, so that nothing can start or enable it",
        "Find out who did it and why (ls -l /etc/systemd/system), then systemctl unmask it and do again what failed",
        "systemctl(1), mask; NVIDIA/ansible-role-nvidia-driver#79",
        transient=False,
        unless=r"Activation via systemd|dbus-org",
        names=(r"Unit (?:file )?(?:/\S{1,200}/)?(?P<unit>[^/\s]{1,100}) is masked",),
    ),
    FailureRule(
        "unit-account-missing",
        r"Failed to (?:resolve|look up) (?:user|group) [^\n]*|Failed to chown socket at step (?:USER|GROUP)[^\n]*"
        r"|Failed to determine (?:user|group|supplementary group)s?\b[^\n]*"
        r"|Failed at step (?:USER|GROUP) spawning [^\n]*|status=21[67]/(?:USER|GROUP)",
        "the account or group that the file of UNIT names does not exist (ACCOUNT), so that systemd does not start it",
        "Look at systemctl show -p User -p Group -p SupplementaryGroups -p SocketUser -p SocketGroup UNIT and at getent"
        " passwd and getent group. Make the missing one again as its package does (systemd-sysusers, or apt-get"
        " install --reinstall with the package that dpkg -S names for the unit's file; else groupadd --system, useradd"
        " --system), then systemctl reset-failed UNIT and start it",
        "systemd.exec(5), User=, Group= and process exit codes 216, 217; systemd.socket(5), SocketGroup=",
        transient=False,
        beside=r"Failed to (?:resolve|look up) (?:user|group) |\.(?:service|socket): ",
        names=(
            r"Failed to (?:resolve|look up) (?:user|group) (?P<account>[\w.@-]{1,60})",
            r"(?P<unit>[\w@.-]{1,100}\.(?:service|socket|mount|timer)): ",
            r"Failed at step (?P<account>USER|GROUP)",
            r"at step (?P<account>USER|GROUP)",
            r"status=21[67]/(?P<account>USER|GROUP)",
        ),
    ),
    FailureRule(
        "unit-not-there",
        r"Unit (?:file )?\S{1,200}\.(?:service|socket|timer|mount)(?: could)? not (?:be )?found"
        r"|Unit file \S{1,200} does not exist"
        r"|Could not find the requested service \S{1,100}",
        "there is no unit UNIT on the host: what brings it is not installed, or it has another name here",
        "Look for its name (systemctl list-unit-files | grep -i with a part of it); install the package that brings it"
        " (of the driver's daemons: nvidia-persistenced comes with the driver, nvidia-fabricmanager and nvidia-imex are"
        " packages of their own of exactly the driver's version). After a unit's file was added by hand, systemctl"
        " daemon-reload",
        "systemctl(1); Ansible modules/systemd.py; yavdr/yavdr-ansible#12",
        names=(
            r"Unit (?:file )?(?P<unit>[\w@.-]{1,100}\.(?:service|socket|timer|mount))",
            r"requested service [\"'\\]{0,3}(?P<unit>[\w@.-]{1,100})",
        ),
        transient=False,
        weight="wrapper",
    ),
    FailureRule(
        "unit-start-failed",
        r"Job for \S{1,200} failed because |Unable to (?:re)?start service \S{1,100}:",
        "UNIT was started and failed; systemd says no more here",
        "Read its own last lines: journalctl -u UNIT -n 50 --no-pager (systemctl status UNIT has ten of them). The line"
        " of the program itself, above systemd's, is the cause: look at what it names",
        "systemctl(1), systemd src/shared/bus-wait-for-jobs.c; fgci-org/ansible-role-cuda#20",
        names=(
            r"Job for (?P<unit>[\w@.-]{1,100}) failed",
            r"start service (?P<unit>[\w@.-]{1,100}):",
        ),
        weight="wrapper",
    ),
    FailureRule(
        "unit-not-startable",
        r"Failed at step [A-Z_]{2,30} spawning |status=2(?:[02-4][0-9]|1[0-589])/[A-Z_]{2,30}"
        r"|has a bad unit file setting|lacks (?:both )?ExecStart|Failed to load environment files"
        r"|Neither a valid executable name nor"
        r"|Failed to locate executable ",
        "systemd cannot start a unit as its file says, before any program of it runs (STEP)",
        "Read its file and the drop-ins that change it (systemctl cat UNIT, /etc/systemd/system/UNIT.d). EXEC: the"
        " program of ExecStart is not there or cannot be executed; CHDIR: the WorkingDirectory is missing; NAMESPACE: a"
        " path that it names is. Then systemctl daemon-reload and restart it",
        "systemd.exec(5), process exit codes; systemd.service(5)",
        names=(
            r"at step (?P<step>[A-Z_]{2,30}) spawning",
            r"status=2[0-4][0-9]/(?P<step>[A-Z_]{2,30})",
            r"Failed to locate (?P<step>executable)",
            r"(?P<step>bad unit file setting|lacks [^\n.]{5,40}"
            r"|environment files|executable name)",
            r"(?P<unit>[\w@.-]{1,100}\.(?:service|socket|mount|timer)): ",
            r"spawning (?P<program>/[^\s:]{1,200})",
            r"Failed to locate executable (?P<program>[^\s:]{1,200})",
        ),
        variants=(
            Variant(
                r"(?:step EXEC spawning|Failed to locate executable) [^\n]*No such file|203/EXEC",
                "systemd cannot start {UNIT|the unit}: the program of its ExecStart{, PROGRAM,|} is not there, or"
                " cannot be executed (EXEC)",
                "Install what brings {PROGRAM|the program} again (dpkg -S with its path names the package), or correct"
                " the path in the unit or the drop-in that names it (systemctl cat {UNIT|the unit}); a script needs its"
                " first line and chmod +x. Then systemctl daemon-reload and systemctl restart {UNIT|the unit}",
            ),
            Variant(
                r"Failed to load environment files: No such file",
                "systemd cannot start {UNIT|the unit}: a file that it reads its environment from (EnvironmentFile=) is"
                " not there",
                "See which one, and who names it (systemctl show -p EnvironmentFiles -p FragmentPath -p DropInPaths"
                " UNIT): a copy of the unit in /etc/systemd/system that covers the package's is removed, or the"
                " line in it; a file that is to be there is brought back, or named with - before it, which makes it"
                " optional. Then systemctl daemon-reload and systemctl restart {UNIT|the unit}",
            ),
            Variant(
                r"step EXEC spawning [^\n]*Permission denied",
                "systemd may not execute PROGRAM, the program of {UNIT|the unit} (EXEC): its mode, a mount with noexec,"
                " or SELinux forbids it",
                "Look at ls -l PROGRAM and findmnt -T PROGRAM: chmod +x the file, or move it off the filesystem that is"
                " noexec. Then systemctl restart {UNIT|the unit}",
            ),
            Variant(
                r"step EXEC spawning [^\n]*Exec format error",
                "PROGRAM, the program of {UNIT|the unit}, is none that this machine runs: it is of another"
                " architecture, empty, or a script without its first line (#!)",
                "Look at it (file PROGRAM): install the build for this machine again, or give the script its first"
                " line. Then systemctl restart {UNIT|the unit}",
            ),
            Variant(
                r"step CHDIR|200/CHDIR",
                "systemd cannot start {UNIT|the unit}: its WorkingDirectory is not there (CHDIR)",
                "See which one it is (systemctl show -p WorkingDirectory UNIT) and make it, or correct the line;"
                " then systemctl daemon-reload and restart it",
            ),
            Variant(
                r"step (?:NAMESPACE|STATE_DIRECTORY|RUNTIME_DIRECTORY|LOGS_DIRECTORY|CACHE_DIRECTORY)|226/NAMESPACE",
                "systemd cannot start {UNIT|the unit}: a directory that its file names (ReadWritePaths, BindPaths,"
                " StateDirectory …) is not there or cannot be made (STEP)",
                "See which one the journal names (journalctl -u UNIT -n 20) and make it, or take it out of the"
                " unit's file or drop-in; then systemctl daemon-reload and restart it",
            ),
        ),
    ),
    FailureRule(
        "locked-memory-limit",
        r"ibv_(?:reg_mr|create_cq|create_qp|alloc_pd|open_device)\w{0,12}(?:\([^)\n]{0,60}\))?[^\n]{0,40}"
        r"Cannot allocate memory|max locked memory (?:limit )?[^\n]{0,40}too low|set max locked memory \(ulimit -l\)"
        r"|RLIMIT_MEMLOCK[^\n]{0,60}(?:too (?:low|small)|unlimited|exceeded)",
        "a program may lock too little memory (ulimit -l) for InfiniBand, RoCE or a virtual machine, whose buffers are"
        " locked",
        "Let it be unlimited: LimitMEMLOCK=infinity in the unit (slurmd, docker, a job's own), memlock unlimited in"
        " /etc/security/limits.d for logins, --ulimit memlock=-1 and --cap-add=IPC_LOCK for a container; then log in"
        " or start again",
        "NCCL user guide, troubleshooting InfiniBand; NVIDIA/nccl-tests#206; openucx/ucx#7930",
        transient=False,
    ),
    FailureRule(
        "kdump-not-armed",
        r"No memory reserved for crash ?kernel|Starting kdump: \[FAILED\]|no crashkernel= parameter"
        r"|crashkernel reservation failed",
        "kdump is not ready, so that a crash of the kernel leaves no dump: no memory is kept for it, or its own"
        " initramfs could not be made; the host's work is not touched",
        "Put crashkernel=512M (more on hosts with many cards) on the kernel's command line and reboot, or disable"
        " kdump; keep nvidia and nouveau out of its initramfs",
        "kdump(8), kdump-tools; rhkdump/kdump-utils#65",
        weight="consequence",
    ),
    FailureRule(
        "boot-module-missing",
        r"systemd-modules-load\[[0-9]{1,9}\]: Failed to find module '",
        "a file of modules-load.d names MODULE, which the running kernel does not have",
        "Install what brings it for this kernel (linux-modules-extra, its -dkms package), or take its name out of"
        " /etc/modules-load.d and /etc/modules (grep -rn finds it)",
        "modules-load.d(5)",
        names=(r"Failed to find module '(?P<module>[\w-]{1,60})'",),
        weight="consequence",
    ),
    FailureRule(
        "access-control-denied",
        r"avc: {1,3}denied|SELinux is preventing|apparmor=\"DENIED\"[^\n]*(?:nvidia|docker-default|containerd)",
        "the host's access control (SELinux or AppArmor) refused it to a program, whatever the file's own mode says",
        "Read the line: comm is the program, path what it wanted. Restore the file's label (restorecon -Rv PATH), allow"
        " it by a module of the policy or the profile (audit2allow, aa-logprof), or for a container use"
        " --security-opt label=disable",
        "SELinux notebook, AVC audit events; apparmor.d(5); NVIDIA/gpu-operator#553",
        weight="consequence",
    ),
    FailureRule(
        "ssh-too-many-logins",
        r"Exceeded MaxStartups|beginning MaxStartups throttling",
        "sshd takes no further login while so many others are under way (MaxStartups)",
        "Log in to fewer hosts at once through this one (--batch, a jump host of its own), or raise MaxStartups in"
        " /etc/ssh/sshd_config; who tries passwords there from outside fills it too",
        "sshd_config(5), MaxStartups",
    ),
)

UNIT_RULES = (
    *UNIT_TEXTS,
    FailureRule(
        "other-unit-failed",
        "",
        "a unit of the host failed: what it does for the host (a mount, a daemon, a job at boot) is not done",
        "Read its journal (journalctl -b -u UNIT) and fix what its last lines say, then systemctl restart UNIT; where"
        " nobody needs it, systemctl disable UNIT and systemctl reset-failed UNIT",
        "systemctl(1), list-units --failed",
        names=(r"^(?P<unit>[^\s:]{1,100}\.[a-z]{3,10})(?::|$)",),
        sign=Sign("base", other_unit_failed, (JOURNAL,), grave=False),
    ),
)
