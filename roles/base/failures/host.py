"""Signs of failures that affect a whole host: its clock, its record of provisioning, next boot, and last job."""

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
PRELOAD = "/etc/ld.so.preload"  #: file with the libraries that the loader loads into every program
PRELOADED = Probe(sh_file(__file__, "sh/preloaded.sh", file=PRELOAD))
#: probe for facts about the next boot. The first lines of ``nextboot.sh`` describe the output.
NEXT_BOOT = Probe(sh_file(__file__, "sh/nextboot.sh"), root=True)
AHEAD_S = 60  #: maximum seconds that a host's clock may be ahead of the controller's clock
OFF_TARGETS = ("rescue.target", "emergency.target", "poweroff.target", "halt.target", "reboot.target", "kexec.target")
AWAKE = ("ignore", "lock")  #: values of logind's IdleAction with which an idle host keeps running
#: lowest acceptable limit of processes and of open files per user. A training job with sixteen data loaders needs as
#: many.
LEAST_OF_USER = 1024
LEAST_OF_HOST = 8192  #: lowest acceptable limit of processes of all users together
MOST_IN_HUGE_PAGES = 0.8  #: maximum share of the host's memory that huge pages may take (our choice)
#: names of the address-space limit in limits.conf and in ulimit
_SPACE = ("as", "v")
_NEVER = (("vm.overcommit_memory", 2), ("kernel.modules_disabled", 1))
_ELSEWHERE = Pattern(
    r"single|[sS1]|rescue|emergency|-b|init=/\S+|systemd\.unit=(?:rescue|emergency|poweroff|halt|reboot|kexec)\.target"
)
_COUNT = Pattern("[0-9]{1,20}")
_DELETED = Pattern(r"(?:Job|deleting job) ([^\s/]{1,100}\.(?:service|socket))/start")
_LIMIT = Pattern(r"(?:[ \t](as|nproc|nofile)|-[SH]{0,2}([vun]))[ \t]+([0-9]{1,15})\b")
CYCLE = (
    r"Found ordering cycle on [^\n]*(?:\n[^\n]*(?:Found dependency on|ordering cycle|break cycle)[^\n]*){0,9}"
    r"|[^\n]*(?:to break ordering cycle|Unable to break cycle|Breaking ordering cycle)"
)
#: maximum seconds that a host's clock may be behind the controller's. The clock may be read up to 75 s before
#: ``AuditContext.now``.
BEHIND_S = 150


def clock_off(ctx: AuditContext) -> Iterator[str]:
    """The host's clock is more than a minute ahead of the controller's, or more than two and a half minutes behind."""
    answer = ctx.text(CLOCK).strip()
    if not (answer.isascii() and answer.isdigit() and len(answer) < 12):
        raise Unread("the command `date` printed no valid time")
    ahead = int(answer) - ctx.now.timestamp()
    if ahead > AHEAD_S or ahead < -BEHIND_S:
        way = "ahead of" if ahead > 0 else "behind"
        yield f"its clock is {abs(ahead):.0f} s {way} this machine's"


def preload_missing(ctx: AuditContext) -> Iterator[str]:
    """/etc/ld.so.preload names a library that is missing or built for another architecture."""
    yield from dict.fromkeys(line for line in ctx.text(PRELOADED).splitlines() if f" from {PRELOAD} " in line)


def record_lost(ctx: AuditContext) -> Iterator[str]:
    """The host matches the stack, but /var/lib/hostwright/release.json is missing or unreadable."""
    answer = ctx.answer(RELEASE)
    if not any(ctx.changes.values()) and not release.read(ctx.facts):
        yield f"{release.PATH} is " + ("damaged" if answer.ok else "not there")


def job_failed(ctx: AuditContext) -> Iterator[str]:
    """The last job of a role failed or was interrupted, and the role's layer still differs from the stack."""
    ctx.require(jobs.RUNNING)
    at_work = {job.id for job in jobs.running(ctx.facts)}
    for job in ended(ctx.text(LAST_JOBS)):
        if job.status != 0 and job.id not in at_work and ctx.differs(job.role):
            known = ctx.named(logs.log_of(ctx.text(LAST_JOBS), job.role))
            yield str(replace(job, last_line=f"see `hostwright doctor --explain {known[0]}`") if known else job)


def in_circle(ctx: AuditContext) -> Iterator[str]:
    """systemd-analyze verify reports an ordering cycle for the default target."""
    yield from _of_next_boot(ctx, "cycle")


def left_out(ctx: AuditContext) -> tuple[str, ...]:
    """Return the units that systemd does not start at boot, to break an ordering cycle; empty if unknown."""
    try:
        return tuple(match[1] for line in in_circle(ctx) if (match := _DELETED.search(line)))
    except Unread:
        return ()


def requires_missing(ctx: AuditContext) -> Iterator[str]:
    """A unit that docker.service, containerd.service or ssh.service requires is masked, or has no file."""
    for name, state, by, *_ in (f"{line}  ".split(" ") for line in _of_next_boot(ctx, "lacks")):
        yield f"{name}, which {by or 'Docker, containerd or sshd'} requires, is {state}"


def sshd_refuses(ctx: AuditContext) -> Iterator[str]:
    """``sshd -t`` rejects the current configuration, although sshd still runs with an earlier one."""
    yield from _of_next_boot(ctx, "sshd")


def sshd_unstarted(ctx: AuditContext) -> Iterator[str]:
    """ssh.service or sshd.service exists, but neither unit nor its socket is enabled."""
    yield from _of_next_boot(ctx, "unstarted")


def logins_closed(ctx: AuditContext) -> Iterator[str]:
    """/etc/nologin exists."""
    yield from _of_next_boot(ctx, "nologin")


def other_target(ctx: AuditContext) -> Iterator[str]:
    """The default target, or the kernel's command line in GRUB's files, selects rescue, emergency or a target that
    stops the host.
    """
    yield from (f"default target: {name}" for name in _of_next_boot(ctx, "target") if name in OFF_TARGETS)
    for place, words in words_set(ctx.text(BOOT_LOADER)):
        yield from (f"{place}: {word}" for word in words if _ELSEWHERE.fullmatch(word))


def limited(ctx: AuditContext) -> Iterator[str]:
    """A setting restricts GPU programs: a limit on address space, processes or files, no overcommitted memory, huge
    pages that take most of the memory, or modules_disabled. The sources are limits.d, profile.d, sysctl.d, and the
    units of Docker, containerd, sshd and users.
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
    """logind's IdleAction suspends or stops the host."""
    for line in _of_next_boot(ctx, "sleeps"):
        path, _, setting = line.partition(" ")
        if setting.removeprefix("IdleAction=") not in AWAKE:
            yield f"{path}: {setting}"


def own_name_unresolved(ctx: AuditContext) -> Iterator[str]:
    """getent finds no address for the host's own name within five seconds."""
    yield from (f"{name} has no address" for name in _of_next_boot(ctx, "unresolved"))


def closed_paths(ctx: AuditContext) -> Iterator[str]:
    """A path of installed software, or a directory above it, is not accessible for other users than root. Checked are
    libraries of the loader's cache, paths in profile.d, and links in /usr/local and /opt.
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
        "the host's clock is behind{, by LATE or more|}: signatures and certificates issued since are not valid for it",
        "Set the clock (timedatectl set-ntp true, or chronyc makestep), check timedatectl and the hardware clock "
        "(hwclock), and repeat the failed command. The repository and its key are not the cause",
        "apt-pkg/deb/debmetaindex.cc, Date; apt-secure(8); pythops/jetson-image#118",
        names=(r"invalid for another (?P<late>[0-9][0-9dhmins ]{1,40})\)",),
        transient=False,
    ),
    FailureRule(
        "clock-off",
        r"[Cc]ertificate is not yet valid|not yet valid: current time \S+ is before|uses not yet valid certificate"
        r"|Superblock last (?:mount|write) time [^\n]+(?:\n[^\n]*)?is in the future"
        r"|certificate is not yet activated|time stamp .+ is [0-9]{4,12}[0-9.]* s in the future",
        "the host's clock, or this machine's, is wrong, so certificates and apt's Release files are not valid",
        "Synchronise the host's clock (timedatectl set-ntp true, or chrony) and check timedatectl on both machines",
        "apt-secure(8); RFC 5280, validity of certificates",
        sign=Sign("base", clock_off, (CLOCK,), grave=False),
        unless=r"by less than a day",
    ),
    FailureRule(
        "preload-missing",
        r"ERROR: ld\.so: object '[^'\n]{1,300}' from (?:/etc/ld\.so\.preload|LD_PRELOAD) cannot be preloaded",
        "WHERE names the library OBJECT, which cannot be loaded, so every program prints a line about it. Programs "
        "that treat any output of another as a failure do not work, such as Docker, which calls iptables",
        "Remove the line from WHERE, or install the library again if something needs it (its purpose shows who wrote "
        "the line: vGPU software, jemalloc, a security agent); then start the failed service again, such as docker",
        "ld.so(8), FILES; Project-HAMi/HAMi#777",
        names=(r"ld\.so: object '(?P<object>[^'\n]{1,300})' from (?P<where>\S{1,100}) cannot",),
        sign=Sign("base", preload_missing, (PRELOADED,)),
        treatment=ForPeople(),
        weight="general",
    ),
    FailureRule(
        "limits-too-low",
        "",
        "a file sets a limit for logins, or for the kernel at its next boot, that GPU programs quickly reach",
        "Remove the line from the file that the evidence names, or raise the limit: as and ulimit -v unlimited (CUDA "
        "reserves address space for the memory of the host and all cards); nproc, nofile, pid_max and threads-max in "
        "the tens of thousands; vm.overcommit_memory 0; fewer huge pages than the memory; modules_disabled 0 (the "
        "driver is loaded later); TasksMax and Limit… of a unit infinity (systemctl edit UNIT; a restart of docker "
        "ends its containers unless live-restore is on). Then log in again, or run sysctl --system",
        "limits.conf(5); sysctl.d(5); Linux Documentation/admin-guide/sysctl/vm.rst; rapidsai/velox-testing#425",
        sign=Sign("base", limited, (NEXT_BOOT,), grave=False),
    ),
    FailureRule(
        "host-sleeps",
        r"systemd-logind\[[0-9]{1,9}\]: (?:Suspending\.\.\.|The system will (?:suspend|hibernate) now)",
        "the host suspends or stops if nobody is logged in for a while: its jobs stop, and after a suspend the "
        "driver may not have its GPUs until a reboot",
        "Set IdleAction=ignore in the last file of /etc/systemd/logind.conf.d, and run systemctl mask sleep.target "
        "suspend.target hibernate.target hybrid-sleep.target. It takes effect after the next boot, or systemctl kill "
        "-s HUP systemd-logind. Also check a desktop's own power settings",
        "logind.conf(5), IdleAction; systemd.special(7), sleep.target; tensorflow/tensorflow#5777",
        transient=False,
        sign=Sign("base", goes_to_sleep, (NEXT_BOOT,), grave=False),
    ),
    FailureRule(
        "own-name-unresolved",
        "",
        "the host does not resolve its own name: sudo warns or waits at each call, and jobs of several processes or "
        "hosts (torchrun, MPI, NCCL's bootstrap, Slurm) do not find this host by name",
        "Add a line ADDRESS NAME to /etc/hosts, with the address at which other hosts reach this one and the output "
        "of hostname (127.0.1.1 is enough for sudo, not for jobs of several hosts). If cloud-init writes the file "
        "(manage_etc_hosts), change its template in /etc/cloud/templates too",
        'hosts(5); sudo, "unable to resolve host"; cloud-init, cc_update_etc_hosts',
        sign=Sign("base", own_name_unresolved, (NEXT_BOOT,), grave=False),
    ),
    FailureRule(
        "path-closed-to-users",
        r"^ldconfig: (?:Can't open|Cannot stat) (?:directory|configuration directory) [^\n]+: Permission denied"
        r"|-?bash: /etc/profile\.d/\S{1,200}: Permission denied",
        "only root can access a path of the installed software: other users' programs do not find it, usually "
        "because it was installed with umask 077",
        "Find out whether access was restricted on purpose; then give it to a group: chgrp GROUP PATH; chmod g+rX "
        "PATH. If not, run chmod go+rx on the directory that the evidence names, go+r on a file; after an "
        "installation with umask 077, chmod -R go+rX on that toolkit's tree, never on / or /etc. Move software out "
        "of home directories",
        "chmod(1), X; umask(2)",
        transient=False,
        sign=Sign("base", closed_paths, (NEXT_BOOT,), grave=False),
    ),
    FailureRule(
        "boot-target",
        "",
        "the next boot ends in a target without sshd, Docker and the driver's units, or shuts down at once",
        "Run systemctl set-default multi-user.target. If the kernel's command line has the word, remove it from the "
        "file that the evidence names, then run update-grub",
        "systemd.special(7); systemctl(1), set-default",
        sign=Sign("base", other_target, (NEXT_BOOT, BOOT_LOADER)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "unit-ordering-cycle",
        CYCLE,
        "units have an ordering cycle (with UNIT), so systemd drops one of them at boot: Docker, sshd or another one "
        "that is not faulty itself",
        "Find the unit among those in the lines that causes it, usually from a package or written by hand. Remove "
        "its After= or Before=, or its DefaultDependencies (systemctl cat NAME; systemctl edit --full NAME), or "
        "upgrade its package. Then run systemctl daemon-reload, until systemd-analyze verify default.target reports "
        "no cycle, and start the missing units",
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
        "UNIT does not start, because a unit that it requires failed, or will be missing at the next boot",
        "Find that unit (systemctl --failed; systemctl list-dependencies UNIT) and check its journal (journalctl -b "
        "-u NAME): start it, then UNIT. If it is not-found or masked, remove Requires= from the drop-in that has it "
        "(systemctl cat docker), or restore the unit",
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
                "UNIT will not start, at the next boot at the latest: the unit NEEDED, which it requires, has no file",
                "Restore its file. If a role of the host owns its package, the plan shows it and provision restores "
                "it. Otherwise run apt-get install --reinstall with its package, or remove Requires= from the "
                "drop-in that has it (systemctl cat docker containerd ssh), then run systemctl daemon-reload",
            ),
            Variant(
                r", which [^,\n]{1,100} requires, is masked",
                "UNIT will not start, at the next boot at the latest: the unit NEEDED, which it requires, is masked",
                "Find out who masked it and why, then run systemctl unmask NEEDED; or remove Requires= from the "
                "drop-in that has it (systemctl cat docker containerd ssh), then run systemctl daemon-reload",
            ),
        ),
        weight="consequence",
        sign=Sign("base", requires_missing, (NEXT_BOOT,), grave=False),
    ),
    FailureRule(
        "sshd-config",
        r"sshd_config[^\n]{0,40}(?: line [0-9]{1,6}: |: terminating, |: Bad configuration)|no hostkeys available"
        r"|sshd: no host ?keys",
        "sshd cannot start with its current configuration: nobody can log in after its next restart, or a reboot",
        "Correct the line that sshd -t names, until it prints nothing, before sshd is restarted; ssh-keygen -A "
        "creates missing host keys",
        "OpenSSH servconf.c, sshd.c; dev-sec/ansible-ssh-hardening#115",
        transient=False,
        unless=r"Deprecated option|Unsupported option|ssh_config",
        sign=Sign("base", sshd_refuses, (NEXT_BOOT,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "sshd-not-at-boot",
        "",
        "sshd is not started at boot: the host runs after a reboot, and nobody can log in to it",
        "Before the next reboot, run systemctl enable ssh.service (Red Hat: sshd.service; if it is masked, first "
        "systemctl unmask). If logins use another way, lock the host or exclude it from runs that reboot it",
        "systemctl(1), is-enabled",
        sign=Sign("base", sshd_unstarted, (NEXT_BOOT,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "logins-closed",
        r"Unprivileged users are not permitted to log in|see pam_nologin\(8\)",
        "all users except root are refused at login: /etc/nologin exists, or the host is shutting down or booting",
        "Find out who created the file (its text is shown to users, ls -l has the date), and remove it when their "
        "work is done; a reboot does not remove it. While a host boots or shuts down, wait",
        "pam_nologin(8); systemd-user-sessions.service(8)",
        sign=Sign("base", logins_closed, (NEXT_BOOT,), grave=False),
    ),
    FailureRule(
        "release-record-lost",
        "",
        "the host matches the stack, and its release record does not confirm it, so audits cannot distinguish "
        "drift from intent",
        "Provision again: this only writes the record",
        "hostwright's own record",
        sign=Sign("base", record_lost, (RELEASE,), grave=False, provision=True),
    ),
    FailureRule(
        "job-failed",
        "",
        "the last provisioning run of a layer failed on this host or was interrupted, and the layer still differs "
        "from the stack",
        "Check the whole log (`invoke runs.show`, or /var/lib/hostwright/jobs/JOB/log on the host), fix the cause "
        "and provision again",
        "hostwright's own jobs",
        sign=Sign("base", job_failed, (LAST_JOBS, jobs.RUNNING), grave=False, provision=True),
    ),
)
