"""Signs in a host's journal: failed units, and the kernel's messages about failing hardware."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, Sign, Variant, known_cause, last_words, once
from hostwright.resources import Probe
from hostwright.roles import Pattern, sh_file

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

LINES = 20  #: maximum number of journal lines to read, per failed unit and for the kernel
MOST_UNITS = 12  #: maximum number of failed units whose journals are read
#: words that preselect kernel messages before failure rules match their patterns
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
_NO_WORDS = ("start-limit-hit", "success")  #: results of failed systemd units that contain no reason for the failure


@once
def failed_units(ctx: AuditContext) -> Mapping[str, str]:
    """Return each failed systemd unit → result, last log lines and known cause.

    Raises ``Unread`` if the journal was not read.
    """
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
    """A systemd unit has failed, and no role has a rule for this unit."""
    yield from (f"{unit}: {words}".rstrip(": ") for unit, words in failed_units(ctx).items())


def in_kernel_log(pattern: str, unless: str = "") -> Callable[[AuditContext], Iterator[str]]:
    """Return a function that yields the kernel log lines that match ``pattern``, but not ``unless``.

    The lines are from the current boot, and at most seven days old.
    """
    sought, harmless = Pattern(pattern), Pattern(unless) if unless else None

    def logged(ctx: AuditContext) -> Iterator[str]:
        """The kernel log since the boot has a message of this rule, at most seven days old."""
        lines = (line.removeprefix("kernel ") for line in ctx.text(JOURNAL).splitlines() if line.startswith("kernel "))
        yield from dict.fromkeys(one for one in lines if sought.search(one) and not (harmless and harmless.search(one)))

    return logged


def kernel_sign(pattern: str, unless: str = "") -> Sign:
    """Return the symptom of a failure rule: a kernel log line matches ``pattern``, but not ``unless``."""
    return Sign("base", in_kernel_log(pattern, unless), (JOURNAL,), grave=False)


#: failure rules about systemd units and limits, for messages that no other role's rule matches
UNIT_TEXTS = (
    FailureRule(
        "unit-masked",
        r"Unit (?:file )?\S{1,200} is masked",
        "UNIT is masked, so it cannot be started or enabled",
        "Find out who masked it and why (ls -l /etc/systemd/system), then run systemctl unmask on it and repeat "
        "the failed command",
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
        "the account or group in the file of UNIT does not exist (ACCOUNT), so systemd does not start it",
        "Compare systemctl show -p User -p Group -p SupplementaryGroups -p SocketUser -p SocketGroup UNIT with "
        "getent passwd and getent group. Create the missing account as its package does (systemd-sysusers, or "
        "apt-get install --reinstall with the package that dpkg -S prints for the unit's file; else groupadd "
        "--system, useradd --system), then run systemctl reset-failed UNIT and start it",
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
        "the host has no unit UNIT: its package is not installed, or the unit has another name here",
        "Find its name (systemctl list-unit-files | grep -i with a part of it), or install its package (for the "
        "driver's daemons: the driver contains nvidia-persistenced; nvidia-fabricmanager and nvidia-imex are "
        "separate packages at exactly the driver's version). After adding a unit file by hand, run systemctl "
        "daemon-reload",
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
        "UNIT was started and failed; this message of systemd has no reason",
        "Run journalctl -u UNIT -n 50 --no-pager (systemctl status UNIT shows only ten lines). The program's own "
        "line, above systemd's, has the cause",
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
        "systemd cannot start a unit as its file requires, before any program of it runs (STEP)",
        "Check its file and its drop-ins (systemctl cat UNIT, /etc/systemd/system/UNIT.d). EXEC: the program of "
        "ExecStart is missing or not executable; CHDIR: the WorkingDirectory is missing; NAMESPACE: a path in its "
        "options is missing. Then run systemctl daemon-reload and restart it",
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
                "systemd cannot start {UNIT|the unit}: the program of its ExecStart{, PROGRAM,|} is missing, or not "
                "executable (EXEC)",
                "Install the package of {PROGRAM|the program} again (dpkg -S with its path prints the package), or "
                "correct the path in the unit or its drop-in (systemctl cat {UNIT|the unit}); a script needs its "
                "first line and chmod +x. Then run systemctl daemon-reload and systemctl restart {UNIT|the unit}",
            ),
            Variant(
                r"Failed to load environment files: No such file",
                "systemd cannot start {UNIT|the unit}: its environment file (EnvironmentFile=) is missing",
                "Find the file and the unit or drop-in that names it (systemctl show -p EnvironmentFiles -p "
                "FragmentPath -p DropInPaths UNIT). Remove the line, or a copy of the unit in /etc/systemd/system "
                "that overrides the package's; or restore the file, or make it optional with - before its name. Then "
                "run systemctl daemon-reload and systemctl restart {UNIT|the unit}",
            ),
            Variant(
                r"step EXEC spawning [^\n]*Permission denied",
                "systemd may not execute PROGRAM, the program of {UNIT|the unit} (EXEC): its mode, a mount with noexec,"
                " or SELinux forbids it",
                "Check ls -l PROGRAM and findmnt -T PROGRAM: run chmod +x on the file, or move it off the filesystem "
                "that is noexec. Then run systemctl restart {UNIT|the unit}",
            ),
            Variant(
                r"step EXEC spawning [^\n]*Exec format error",
                "PROGRAM, the program of {UNIT|the unit}, cannot run on this machine: it is built for another "
                "architecture, empty, or a script without its first line (#!)",
                "Run file PROGRAM: install the build for this machine again, or add the script's first line. Then "
                "run systemctl restart {UNIT|the unit}",
            ),
            Variant(
                r"step CHDIR|200/CHDIR",
                "systemd cannot start {UNIT|the unit}: its WorkingDirectory is missing (CHDIR)",
                "Run systemctl show -p WorkingDirectory UNIT and create the directory, or correct the line; then run "
                "systemctl daemon-reload and restart the unit",
            ),
            Variant(
                r"step (?:NAMESPACE|STATE_DIRECTORY|RUNTIME_DIRECTORY|LOGS_DIRECTORY|CACHE_DIRECTORY)|226/NAMESPACE",
                "systemd cannot start {UNIT|the unit}: a directory in its file (ReadWritePaths, BindPaths, "
                "StateDirectory …) is missing or cannot be created (STEP)",
                "Find the directory in the journal (journalctl -u UNIT -n 20) and create it, or remove it from the "
                "unit's file or drop-in; then run systemctl daemon-reload and restart the unit",
            ),
        ),
    ),
    FailureRule(
        "locked-memory-limit",
        r"ibv_(?:reg_mr|create_cq|create_qp|alloc_pd|open_device)\w{0,12}(?:\([^)\n]{0,60}\))?[^\n]{0,40}"
        r"Cannot allocate memory|max locked memory (?:limit )?[^\n]{0,40}too low|set max locked memory \(ulimit -l\)"
        r"|RLIMIT_MEMLOCK[^\n]{0,60}(?:too (?:low|small)|unlimited|exceeded)",
        "a program may lock too little memory (ulimit -l) for InfiniBand, RoCE or a virtual machine, whose buffers "
        "must be locked",
        "Set it to unlimited: LimitMEMLOCK=infinity in the unit (slurmd, docker, the job's own), memlock unlimited "
        "in /etc/security/limits.d for logins, --ulimit memlock=-1 and --cap-add=IPC_LOCK for a container; then log "
        "in or start again",
        "NCCL user guide, troubleshooting InfiniBand; NVIDIA/nccl-tests#206; openucx/ucx#7930",
        transient=False,
    ),
    FailureRule(
        "kdump-not-armed",
        r"No memory reserved for crash ?kernel|Starting kdump: \[FAILED\]|no crashkernel= parameter"
        r"|crashkernel reservation failed",
        "kdump is not ready, so a kernel crash leaves no dump: no memory is reserved for it, or its initramfs could "
        "not be created. The host's work is not affected",
        "Add crashkernel=512M (more on hosts with many cards) to the kernel's command line and reboot, or disable "
        "kdump; exclude nvidia and nouveau from its initramfs",
        "kdump(8), kdump-tools; rhkdump/kdump-utils#65",
        weight="consequence",
    ),
    FailureRule(
        "boot-module-missing",
        r"systemd-modules-load\[[0-9]{1,9}\]: Failed to find module '",
        "a file of modules-load.d names MODULE, which the running kernel does not have",
        "Install its package for this kernel (linux-modules-extra, its -dkms package), or remove its name from "
        "/etc/modules-load.d and /etc/modules (find it with grep -rn)",
        "modules-load.d(5)",
        names=(r"Failed to find module '(?P<module>[\w-]{1,60})'",),
        weight="consequence",
    ),
    FailureRule(
        "access-control-denied",
        r"avc: {1,3}denied|SELinux is preventing|apparmor=\"DENIED\"[^\n]*(?:nvidia|docker-default|containerd)",
        "the host's access control (SELinux or AppArmor) denied a program access, regardless of the file's own mode",
        "In the line, comm is the program and path the denied file. Restore the file's label (restorecon -Rv PATH), "
        "allow the access in a policy module or profile (audit2allow, aa-logprof), or for a container use "
        "--security-opt label=disable",
        "SELinux notebook, AVC audit events; apparmor.d(5); NVIDIA/gpu-operator#553",
        weight="consequence",
    ),
    FailureRule(
        "ssh-too-many-logins",
        r"Exceeded MaxStartups|beginning MaxStartups throttling",
        "sshd rejects further logins while too many others are in progress (MaxStartups)",
        "Log in to fewer hosts at once through this one (--batch, a separate jump host), or raise MaxStartups in "
        "/etc/ssh/sshd_config; password attempts from outside count too",
        "sshd_config(5), MaxStartups",
    ),
)

UNIT_RULES = (
    *UNIT_TEXTS,
    FailureRule(
        "other-unit-failed",
        "",
        "a unit of the host failed, so its function (a mount, a daemon, a job at boot) is missing",
        "Check its journal (journalctl -b -u UNIT) and fix the error in its last lines, then run systemctl restart "
        "UNIT. If nobody needs it, run systemctl disable UNIT and systemctl reset-failed UNIT",
        "systemctl(1), list-units --failed",
        names=(r"^(?P<unit>[^\s:]{1,100}\.[a-z]{3,10})(?::|$)",),
        sign=Sign("base", other_unit_failed, (JOURNAL,), grave=False),
    ),
)
