"""Signs of a host as a whole: its clock, its release record, its next boot, and the last job that ran on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from hostwright.failures import LAST_JOBS, FailureRule, ForPeople, Sign, Unread, Variant, ended, logs
from hostwright.resources import BOOT_LOADER, RELEASE, Probe, jobs, release, words_set
from hostwright.roles import Pattern, sh_file

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

CLOCK = Probe("date +%s")
PRELOAD = "/etc/ld.so.preload"  #: libraries that the loader puts before those of every program
#: what the loader prints about them for each program
PRELOADED = Probe(sh_file(__file__, "sh/preloaded.sh", file=PRELOAD))
#: what the next boot, login or job meets, as its first lines say
NEXT_BOOT = Probe(sh_file(__file__, "sh/nextboot.sh"), root=True)
AHEAD_S = 60  #: a larger difference cannot be explained by network latency
OFF_TARGETS = ("rescue.target", "emergency.target", "poweroff.target", "halt.target", "reboot.target", "kexec.target")
AWAKE = ("ignore", "lock")  #: of logind's actions, those after which the host goes on
LEAST_OF_USER = 1024  #: processes, or open files: a training with sixteen loaders has as many threads
LEAST_OF_HOST = 8192  #: processes of all
MOST_IN_HUGE_PAGES = 0.8  #: of the memory; our choice
_SPACE = ("as", "v")  #: CUDA reserves address space for the memory of the host and of all cards
_NEVER = (("vm.overcommit_memory", 2), ("kernel.modules_disabled", 1))
_ELSEWHERE = Pattern(
    r"single|[sS1]|rescue|emergency|-b|init=/\S+|systemd\.unit=(?:rescue|emergency|poweroff|halt|reboot|kexec)\.target"
)
_COUNT = Pattern("[0-9]{1,20}")
_DELETED = Pattern(r"(?:Job|deleting job) ([^\s/]{1,100}\.(?:service|socket))/start")
_LIMIT = Pattern(r"(?:[ \t](as|nproc|nofile)|-[SH]{0,2}([vun]))[ \t]+([0-9]{1,15})\b")
#: systemd's messages about a circle, with the units in it
CYCLE = (
    r"Found ordering cycle on [^\n]*(?:\n[^\n]*(?:Found dependency on|ordering cycle|break cycle)[^\n]*){0,9}"
    r"|[^\n]*(?:to break ordering cycle|Unable to break cycle|Breaking ordering cycle)"
)
BEHIND_S = 150  #: the host was probed before ``AuditContext.now``, by up to the longest time of all its answers (75 s)


def clock_off(ctx: AuditContext) -> Iterator[str]:
    """The host's clock is a minute ahead of this machine's, or two and a half behind."""
    answer = ctx.text(CLOCK).strip()
    if not (answer.isascii() and answer.isdigit() and len(answer) < 12):
        raise Unread("date does not say the time")
    ahead = int(answer) - ctx.now.timestamp()
    if ahead > AHEAD_S or ahead < -BEHIND_S:
        way = "ahead of" if ahead > 0 else "behind"
        yield f"its clock is {abs(ahead):.0f} s {way} this machine's"


def preload_missing(ctx: AuditContext) -> Iterator[str]:
    """/etc/ld.so.preload names a library that the loader does not load: it is missing, or is none of this machine's."""
    yield from dict.fromkeys(line for line in ctx.text(PRELOADED).splitlines() if f" from {PRELOAD} " in line)


def record_lost(ctx: AuditContext) -> Iterator[str]:
    """Nothing differs from the stack, and /var/lib/hostwright/release.json is missing or cannot be read."""
    answer = ctx.answer(RELEASE)
    if not any(ctx.changes.values()) and not release.read(ctx.facts):
        yield f"{release.PATH} is " + ("damaged" if answer.ok else "not there")


def job_failed(ctx: AuditContext) -> Iterator[str]:
    """The last job of a role ended with an error or was cut off, and that role's layer still differs from the stack."""
    ctx.require(jobs.RUNNING)
    at_work = {job.id for job in jobs.running(ctx.facts)}
    for job in ended(ctx.text(LAST_JOBS)):
        if job.status != 0 and job.id not in at_work and ctx.differs(job.role):
            known = ctx.named(logs.log_of(ctx.text(LAST_JOBS), job.role))
            yield str(replace(job, last_line=f"see `hostwright doctor --explain {known[0]}`") if known else job)


def in_circle(ctx: AuditContext) -> Iterator[str]:
    """systemd-analyze verify says of the default target that units wait for each other in a circle."""
    yield from _of_next_boot(ctx, "cycle")


def left_out(ctx: AuditContext) -> tuple[str, ...]:
    """The units that systemd leaves out at the boot to break a circle; none where that is not known."""
    try:
        return tuple(match[1] for line in in_circle(ctx) if (match := _DELETED.search(line)))
    except Unread:
        return ()


def requires_missing(ctx: AuditContext) -> Iterator[str]:
    """A unit that docker.service, containerd.service or ssh.service requires is masked, or there is no file of it."""
    for name, state, by, *_ in (f"{line}  ".split(" ") for line in _of_next_boot(ctx, "lacks")):
        yield f"{name}, which {by or 'Docker, containerd or sshd'} requires, is {state}"


def sshd_refuses(ctx: AuditContext) -> Iterator[str]:
    """sshd -t refuses the configuration as it is now; the running one was started with another."""
    yield from _of_next_boot(ctx, "sshd")


def sshd_unstarted(ctx: AuditContext) -> Iterator[str]:
    """Neither ssh.service nor sshd.service nor a socket of theirs is enabled, and one of them is there."""
    yield from _of_next_boot(ctx, "unstarted")


def logins_closed(ctx: AuditContext) -> Iterator[str]:
    """/etc/nologin is there."""
    yield from _of_next_boot(ctx, "nologin")


def other_target(ctx: AuditContext) -> Iterator[str]:
    """The default target is rescue, emergency or one that ends the host; or the kernel's command line in GRUB's files
    asks for such a one (systemd.unit=, single, rescue, emergency, init=).
    """
    yield from (f"default target: {name}" for name in _of_next_boot(ctx, "target") if name in OFF_TARGETS)
    for place, words in words_set(ctx.text(BOOT_LOADER)):
        yield from (f"{place}: {word}" for word in words if _ELSEWHERE.fullmatch(word))


def limited(ctx: AuditContext) -> Iterator[str]:
    """A file of /etc/security/limits.d, /etc/profile.d or sysctl.d, the last that sets it, or the unit of Docker,
    containerd, sshd or a user has a limit that programs on GPUs meet at once: of address space, below 1,024 processes
    or files of a user or 8,192 of the host, no overcommitted memory, huge pages that take most of
    the memory, or modules_disabled.
    """
    for line in _of_next_boot(ctx, "unit"):
        unit, _, setting = line.partition(" ")
        key, _, number = setting.partition("=")
        if _COUNT.fullmatch(number) and (key == "LimitAS" or int(number) < LEAST_OF_USER):
            yield f"{unit}: {setting} (systemctl cat {unit} names the file)"
    for line in _of_next_boot(ctx, "limit"):
        match = _LIMIT.search(line)
        if match and ({match[1], match[2]} & {*_SPACE} or int(match[3]) < LEAST_OF_USER):
            yield line
    kib, page_kib = next((map(int, line.split()) for line in _of_next_boot(ctx, "memory")), (0, 0))
    for row in (line.split() for line in _of_next_boot(ctx, "sysctl")):
        if len(row) != 3 or not (row[2].isascii() and row[2].isdigit() and len(row[2]) < 16):
            continue
        path, key, value = row[0], row[1], int(row[2])
        pages = key == "vm.nr_hugepages" and value * page_kib > MOST_IN_HUGE_PAGES * kib
        few = key in {"kernel.pid_max", "kernel.threads-max"} and value < LEAST_OF_HOST
        if pages or few or (key, value) in _NEVER:
            yield f"{path}: {key} = {value}"


def goes_to_sleep(ctx: AuditContext) -> Iterator[str]:
    """logind's IdleAction, in the last file that sets it, suspends the host or ends it."""
    for line in _of_next_boot(ctx, "sleeps"):
        path, _, setting = line.partition(" ")
        if setting.removeprefix("IdleAction=") not in AWAKE:
            yield f"{path}: {setting}"


def own_name_unresolved(ctx: AuditContext) -> Iterator[str]:
    """getent finds no address of the name that hostname prints, or does not answer within five seconds."""
    yield from (f"{name} has no address" for name in _of_next_boot(ctx, "unresolved"))


def closed_paths(ctx: AuditContext) -> Iterator[str]:
    """A library of the loader's cache, a path that a file of profile.d names, the target of a link in /usr/local or
    /opt, or a directory above one of these has the group root and a mode that keeps others out.
    """
    for path, _, mode in (line.rpartition(" ") for line in _of_next_boot(ctx, "closed")):
        yield f"{path} has the mode {mode}"


def _of_next_boot(ctx: AuditContext, kind: str) -> tuple[str, ...]:
    lines = ctx.text(NEXT_BOOT).splitlines()
    return tuple(line.removeprefix(f"{kind} ") for line in lines if line.startswith(f"{kind} "))


HOST_RULES = (
    FailureRule(
        "clock-behind",
        r"is not valid yet \(invalid for another [0-9][0-9dhmins ]{1,40}\)|\bNot live until [0-9]{4}-[^\n]*",
        "the host's clock is behind{, by LATE or more|}: what was signed since is not valid to it, nor are"
        " certificates",
        "Set it (timedatectl set-ntp true, or chronyc makestep), look at timedatectl and the hardware's clock"
        " (hwclock), and do again what failed; the repository and its key are well",
        "apt-pkg/deb/debmetaindex.cc, Date; apt-secure(8); pythops/jetson-image#118",
        names=(r"invalid for another (?P<late>[0-9][0-9dhmins ]{1,40})\)",),
        transient=False,
    ),
    FailureRule(
        "clock-off",
        r"[Cc]ertificate is not yet valid|not yet valid: current time \S+ is before|uses not yet valid certificate"
        r"|Superblock last (?:mount|write) time [^\n]+(?:\n[^\n]*)?is in the future"
        r"|certificate is not yet activated|time stamp .+ is [0-9]{4,12}[0-9.]* s in the future",
        "the host's clock, or this machine's, is wrong: certificates and apt's Release files are then not valid",
        "Let the host keep time (timedatectl set-ntp true, or chrony) and look at timedatectl on both machines",
        "apt-secure(8); RFC 5280, validity of certificates",
        sign=Sign("base", clock_off, (CLOCK,), grave=False),
        unless=r"by less than a day",
    ),
    FailureRule(
        "preload-missing",
        r"ERROR: ld\.so: object '[^'\n]{1,300}' from (?:/etc/ld\.so\.preload|LD_PRELOAD) cannot be preloaded",
        "WHERE names the library OBJECT, which cannot be loaded, so that every program prints a line about it: programs"
        " that take any output of another for a failure do not work, such as Docker, which calls iptables",
        "Take the line out of WHERE, or bring the library back if something needs it (what it was for says who wrote"
        " it: vGPU software, jemalloc, a security agent); then start what failed again, such as docker",
        "ld.so(8), FILES; Project-HAMi/HAMi#777",
        names=(r"ld\.so: object '(?P<object>[^'\n]{1,300})' from (?P<where>\S{1,100}) cannot",),
        sign=Sign("base", preload_missing, (PRELOADED,)),
        treatment=ForPeople(),
        weight="general",
    ),
    FailureRule(
        "limits-too-low",
        "",
        "a file gives logins, or the kernel at its next boot, a limit that programs on GPUs meet at once",
        "Take the line out of the file that the evidence names, or raise it: as and ulimit -v unlimited (CUDA reserves"
        " address space for the memory of the host and all cards), nproc, nofile, pid_max and threads-max in the tens"
        " of thousands, vm.overcommit_memory 0, fewer huge pages than the memory, modules_disabled 0 (the driver is"
        " loaded after it), TasksMax and Limit… of a unit infinity (systemctl edit UNIT; a restart of docker ends its"
        " containers unless live-restore is on). Then log in anew, or sysctl --system",
        "limits.conf(5); sysctl.d(5); Linux Documentation/admin-guide/sysctl/vm.rst; rapidsai/velox-testing#425",
        sign=Sign("base", limited, (NEXT_BOOT,), grave=False),
    ),
    FailureRule(
        "host-sleeps",
        r"systemd-logind\[[0-9]{1,9}\]: (?:Suspending\.\.\.|The system will (?:suspend|hibernate) now)",
        "the host suspends itself, or ends, when nobody is logged in for a while: its jobs stop, and after a suspend"
        " the driver may have lost its GPUs until a reboot",
        "Set IdleAction=ignore in a file of /etc/systemd/logind.conf.d that is read last, and forbid sleep altogether:"
        " systemctl mask sleep.target suspend.target hibernate.target hybrid-sleep.target. It counts after the next"
        " boot, or systemctl kill -s HUP systemd-logind; a desktop's own power settings ask too",
        "logind.conf(5), IdleAction; systemd.special(7), sleep.target; tensorflow/tensorflow#5777",
        transient=False,
        sign=Sign("base", goes_to_sleep, (NEXT_BOOT,), grave=False),
    ),
    FailureRule(
        "own-name-unresolved",
        "",  # sudo warns of it and goes on
        "the host does not resolve its own name: sudo warns or waits at each call, and jobs of several processes or"
        " hosts (torchrun, MPI, NCCL's bootstrap, Slurm) do not find this one by it",
        "Add a line ADDRESS NAME to /etc/hosts, with the address at which other hosts reach this one and the name that"
        " hostname prints (127.0.1.1 is enough for sudo, not for jobs of several hosts). Where cloud-init writes the"
        " file (manage_etc_hosts), change its template in /etc/cloud/templates too",
        'hosts(5); sudo, "unable to resolve host"; cloud-init, cc_update_etc_hosts',
        sign=Sign("base", own_name_unresolved, (NEXT_BOOT,), grave=False),
    ),
    FailureRule(
        "path-closed-to-users",
        r"^ldconfig: (?:Can't open|Cannot stat) (?:directory|configuration directory) [^\n]+: Permission denied"
        r"|-?bash: /etc/profile\.d/\S{1,200}: Permission denied",
        "only root reaches a path of the installed software: programs of everybody else do not find it, mostly since it"
        " was installed with umask 077",
        "Look whether somebody closed it on purpose (then give it to a group: chgrp GROUP PATH; chmod g+rX PATH). If"
        " not, chmod go+rx on the directory that the evidence names, go+r on a file; after an installation with umask"
        " 077 chmod -R go+rX on that toolkit's tree, never on / or /etc. Move out what lies in a home",
        "chmod(1), X; umask(2)",
        transient=False,
        sign=Sign("base", closed_paths, (NEXT_BOOT,), grave=False),
    ),
    FailureRule(
        "boot-target",
        "",
        "the next boot ends in a target without sshd, Docker and the driver's units, or goes down at once",
        "Set the one that servers have: systemctl set-default multi-user.target; a word of the kernel's command line is"
        " taken out of the file that the evidence names, then update-grub",
        "systemd.special(7); systemctl(1), set-default",
        sign=Sign("base", other_target, (NEXT_BOOT, BOOT_LOADER)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "unit-ordering-cycle",
        CYCLE,
        "units wait for each other in a circle (UNIT is in it), so that systemd leaves one of them out at the boot:"
        " Docker, sshd or another that is well itself",
        "Of the units that the lines name, one is a package's or somebody's own: take its After= or Before= out, or its"
        " DefaultDependencies (systemctl cat NAME; systemctl edit --full NAME), or upgrade its package; then systemctl"
        " daemon-reload, until systemd-analyze verify default.target says nothing of a cycle, and start what is"
        " missing",
        "systemd src/core/transaction.c; canonical/hotsos#958; NVIDIA/nvidia-container-toolkit#1735",
        transient=False,
        names=(
            r"(?:Job|deleting job) (?P<unit>[^\s/]{1,100})/",
            r"Found ordering cycle on (?P<unit>[^\s/]{1,100})/",
        ),
        sign=Sign("base", in_circle, (NEXT_BOOT,), grave=False),
    ),
    FailureRule(
        "unit-dependency",
        r"(?:^[^\n]*(?:Failed with result|Failed to (?:start|listen|mount))[^\n]*\n(?:[^\n]*\n){0,3}?)?"
        r"[^\n]*(?:Dependency failed for |failed with result 'dependency'|dependency job for \S{1,200} failed)",
        "UNIT does not start, since a unit that it requires did not, or is not there at the next boot",
        "Find that one (systemctl --failed; systemctl list-dependencies UNIT) and read its journal (journalctl -b -u"
        " NAME): start it, then UNIT. Of one that is not-found or masked: take Requires= out of the drop-in that has it"
        " (systemctl cat docker), or bring it back",
        "systemd.unit(5), Requires; geerlingguy/internet-pi#396",
        names=(
            r"(?P<unit>[^\s/:]{1,100}): Job [^\n]* failed with result 'dependency'",
            r"job for (?P<unit>[^\s/]{1,100}) failed",
            r"^(?P<needed>\S{1,100}), which (?P<unit>[^,\n]{1,100}) requires, is ",
            r"Dependency failed for (?P<unit>[^\n]{1,100}?)\.?$",
        ),
        variants=(
            Variant(
                r", which [^,\n]{1,100} requires, is not-found",
                "UNIT does not start any more, at the next boot at the latest: the unit NEEDED, which it"
                " requires, has no file",
                "Bring its file back: where a role of the host owns its package, the plan shows it and provision does;"
                " else apt-get install --reinstall with the package that brought it, or take Requires= out of the"
                " drop-in that has it (systemctl cat docker containerd ssh), then systemctl daemon-reload",
            ),
            Variant(
                r", which [^,\n]{1,100} requires, is masked",
                "UNIT does not start any more, at the next boot at the latest: the unit NEEDED, which it"
                " requires, is masked",
                "Find out who masked it and why, then systemctl unmask NEEDED; or take Requires= out of the drop-in"
                " that has it (systemctl cat docker containerd ssh), then systemctl daemon-reload",
            ),
        ),
        weight="consequence",
        sign=Sign("base", requires_missing, (NEXT_BOOT,), grave=False),
    ),
    FailureRule(
        "sshd-config",
        r"sshd_config[^\n]{0,40}(?: line [0-9]{1,6}: |: terminating, |: Bad configuration)|no hostkeys available"
        r"|sshd: no host ?keys",
        "sshd does not start with its configuration as it is now: nobody can log in after its next restart, or a"
        " reboot",
        "Correct the line that it names (sshd -t names it until all is well), before sshd is restarted; ssh-keygen -A"
        " makes missing host keys",
        "OpenSSH servconf.c, sshd.c; dev-sec/ansible-ssh-hardening#115",
        transient=False,
        unless=r"Deprecated option|Unsupported option|ssh_config",
        sign=Sign("base", sshd_refuses, (NEXT_BOOT,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "sshd-not-at-boot",
        "",
        "no boot starts sshd: the host runs on after a reboot, and nobody can log in to it",
        "Before the next reboot: systemctl enable ssh.service (Red Hat: sshd.service; a masked one first systemctl"
        " unmask). Where logins go another way, lock the host or leave it out of what reboots it",
        "systemctl(1), is-enabled",
        sign=Sign("base", sshd_unstarted, (NEXT_BOOT,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "logins-closed",
        r"Unprivileged users are not permitted to log in|see pam_nologin\(8\)",
        "everybody but root is refused at login: /etc/nologin is there, or the host is just going down or coming up",
        "Ask who made the file (its text is what people see, ls -l says when), and remove it when their work is done;"
        " no reboot takes it away. While a host boots or shuts down, wait",
        "pam_nologin(8); systemd-user-sessions.service(8)",
        sign=Sign("base", logins_closed, (NEXT_BOOT,), grave=False),
    ),
    FailureRule(
        "release-record-lost",
        "",
        "the host is as desired and its release record does not say so, so that no audit can tell drift from intent",
        "Provision again: it changes nothing else and writes the record",
        "hostwright's own record",
        sign=Sign("base", record_lost, (RELEASE,), grave=False, provision=True),
    ),
    FailureRule(
        "job-failed",
        "",
        "the last provisioning run of a layer failed on this host or was cut off, and the layer still differs from the"
        " stack",
        "Read the whole log (`invoke runs.show`, or /var/lib/hostwright/jobs/JOB/log on the host), fix the cause and"
        " provision again",
        "hostwright's own jobs",
        sign=Sign("base", job_failed, (LAST_JOBS, jobs.RUNNING), grave=False, provision=True),
    ),
)
