"""Signs that dpkg was interrupted, that another process locks apt or dpkg, or that apt cannot read its source lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, ForPeople, Sign, Unread
from hostwright.resources import DPKG, JOURNAL, Change, DpkgInOrder, Installed, Probe, is_broken, jobs
from hostwright.roles import Pattern, sh_file
from hostwright.standard.roles.base.failures.trust import RELEASES

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

DPKG_LOCKS = ("/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock")
LOCKS = (*DPKG_LOCKS, "/var/lib/apt/lists/lock", "/var/cache/apt/archives/lock")
MOMENT_S = 10  #: age in seconds from which a process with an apt lock is reported (our choice)
PATIENCE_S = 600  #: age in seconds from which a process with an apt lock is reported as stuck

IN_ORDER = DpkgInOrder()

#: probe that prints ``FILE PID AGE_S NAME`` for each process with an apt or dpkg lock
HELD = Probe(sh_file(__file__, "sh/holders.sh", locks=LOCKS), root=True)


#: probe for traces of failed package installations. The first lines of ``conflicts.sh`` describe the output.
CONFLICTS = Probe(sh_file(__file__, "sh/conflicts.sh"), root=True)
_OVERWRITES = Pattern(r".*?([^/\s]+\.deb) .*(trying to overwrite .*, which is also in package (\S+) (\S+))\s*")

_REMOVAL = Pattern(r"error processing (?:package )?([a-z0-9][\w.+:-]{1,100}) \(--(?:remove|purge)\)")

_PIN = Pattern(r"pin (/etc/apt/\S{1,200}) (-[0-9]{1,9}) +(\S.{0,400})")

_UNREAD = "E: The list of sources could not be read."
_REGARDING = Pattern(r"regarding source ([^\s:]{1,9}://[^\s'\"]{1,200})")
_ENTRY = Pattern(r"(/etc/apt/[^:\n]{1,300}):([0-9]{1,7}):")
_CONFLICT = "Conflicting values set for option Signed-By"
_TWICE = Pattern(r"W: Target .* is configured multiple times in (.*)")
_HELD = Pattern(r"(/\S+) (\d{1,10}) (\d{1,10}) (.*)")


def interrupted(ctx: AuditContext) -> Iterator[str]:
    """No dpkg runs, and dpkg's journal is not empty, a package is half-installed, or a package that a role of the host
    installs or removes is half-configured.
    """
    failed, journal = _failed(ctx), _journal(ctx)
    for probe in IN_ORDER.probes():
        ctx.require(probe)
    if IN_ORDER.plan(ctx.facts) is None:
        return
    yield from (_told(row) for row in ctx.packages_where(is_broken) if row not in failed)
    yield from (f"/var/lib/dpkg/updates/{name}" for name in journal)


def script_failed(ctx: AuditContext) -> Iterator[str]:
    """A package that no role of the host installs or removes is half-configured. No dpkg runs, and dpkg's journal is
    empty, so the package's own script failed.
    """
    yield from map(_told, _failed(ctx))


def _failed(ctx: AuditContext) -> tuple[Installed, ...]:
    if _journal(ctx):
        return ()
    half = [row for row in ctx.packages_where(is_broken) if row.state[1:] == "F "]
    if not half:
        return ()
    states = [state for role in ctx.desired.roles for state in role.resources]
    wanted_debs = {deb.name for state in states for deb in state.software(ctx.facts)}
    state = next((one for one in states if isinstance(one, DpkgInOrder)), IN_ORDER)
    removed = state.removed(ctx.facts)
    return tuple(row for row in half if row.base not in wanted_debs and row.name not in removed)


def _journal(ctx: AuditContext) -> list[str]:
    """Raise ``Unread`` while dpkg runs, because only the journal of an interrupted dpkg counts."""
    ctx.require(JOURNAL)
    working = [name for path, _, _, name in _holders(ctx) if path in DPKG_LOCKS]
    if working:
        raise Unread(f"dpkg is running ({working[0]}); wait until it ends, then repeat the audit")
    return ctx.answer(JOURNAL).strip().splitlines()


def _told(row: Installed) -> str:
    return f"{row.name} {row.version}: {row.state.strip()}"


def modules_dep(ctx: AuditContext) -> Iterator[str]:
    """A kernel package, or initramfs-tools, is half-configured, and MODULES=dep is set for initramfs-tools."""
    kernels = (row for row in _failed(ctx) if row.base.startswith("linux-image") or row.base == "initramfs-tools")
    files = [line.removeprefix("dep ") for line in ctx.text(CONFLICTS).splitlines() if line.startswith("dep ")]
    yield from (f"{_told(row)}; {', '.join(files)} has MODULES=dep" for row in kernels if files)


def grub_device(ctx: AuditContext) -> Iterator[str]:
    """grub-pc is half-configured, and debconf names no existing disk for it."""
    disks = [line.removeprefix("grub ") for line in ctx.text(CONFLICTS).splitlines() if line.startswith("grub ")]
    if all(disk.endswith(" gone") for disk in disks):
        named = ", ".join(disk.removesuffix(" gone") for disk in disks)
        why = f"debconf names {named}, which is not there" if named else "debconf names no disk for it"
        yield from (f"{_told(row)}; {why}" for row in _failed(ctx) if row.base == "grub-pc")


def not_removed(ctx: AuditContext) -> Iterator[str]:
    """A package's script failed in apt's last removal of the package (/var/log/apt/term.log), and the package is still
    installed, fully or in part.
    """
    changes = (change for some in ctx.changes.values() for change in some if isinstance(change, Change))
    named = {word.rstrip(",;") for change in changes for word in f"{change.what} {change.have}".split()}
    for line in ctx.text(CONFLICTS).splitlines():
        match = _REMOVAL.search(line) if line.startswith("script ") else None
        row = ctx.packages.get(match[1]) or ctx.packages.get(match[1].partition(":")[0]) if match else None
        if row and (row.broken or (row.present and row.base in named)):
            yield f"{_told(row)}; {line.removeprefix('script ')}"


def pinned_away(ctx: AuditContext) -> Iterator[str]:
    """A role of the host needs a package that is not installed, and a file of apt's preferences gives the package a
    negative priority.
    """
    pins = [match for line in ctx.text(CONFLICTS).splitlines() if (match := _PIN.fullmatch(line))]
    if not pins:
        return
    wanted = {deb.name for role in ctx.desired.roles for state in role.resources for deb in state.software(ctx.facts)}
    missing = sorted(name for name in wanted if not (row := ctx.packages.get(name)) or not row.present)
    for match in pins:
        patterns = [word for word in match[3].split() if word.strip("*")]
        forbidden = [name for name in missing if any(fnmatchcase(name, word) for word in patterns)]
        if forbidden:
            yield f"{match[1]}: Pin-Priority {match[2]} of {', '.join(forbidden)}"


def packages_of(evidence: Iterable[str]) -> Iterator[str]:
    """Yield the package name at the start of each line of ``evidence`` (rule ``package-script-failed``)."""
    yield from (line.partition(";")[0] for line in evidence)


def overwrites(ctx: AuditContext) -> Iterator[str]:
    """dpkg has a broken package. In apt's last run, dpkg did not unpack a package, because another package contains one
    of the same files.
    """
    if not ctx.packages_where(is_broken):
        return
    for line in ctx.text(CONFLICTS).splitlines():
        match = _OVERWRITES.fullmatch(line)
        owner = ctx.packages.get(match[3]) or ctx.packages.get(match[3].partition(":")[0]) if match else None
        if match and owner and owner.version == match[4]:
            yield f"{match[1]}: {match[2]}"


def locked(ctx: AuditContext) -> Iterator[str]:
    """A process outside Hostwright holds a lock of apt or dpkg (/proc/locks), and has run for over ten minutes."""
    ctx.require(jobs.RUNNING)
    if jobs.running(ctx.facts):
        return
    for path, pid, age_s, name in _holders(ctx):
        if age_s > PATIENCE_S:
            yield f"{path} is held by {name} ({pid}), which runs for {age_s // 60} min"


def at_work(ctx: AuditContext) -> Iterator[str]:
    """A process outside Hostwright holds a lock of apt or dpkg (/proc/locks), and has run for ten seconds to ten
    minutes.
    """
    ctx.require(jobs.RUNNING)
    if jobs.running(ctx.facts):
        return
    for path, pid, age_s, name in _holders(ctx):
        if MOMENT_S <= age_s <= PATIENCE_S:
            yield f"{path} is held by {name} ({pid}), which runs for {age_s} s"


def conflicting(ctx: AuditContext) -> Iterator[str]:
    """apt reports that two entries for one repository name different keys (Signed-By)."""
    for line in (line for line in _complaints(ctx) if _CONFLICT in line):
        address = _REGARDING.search(line)
        entries = [entry for entry in _complaints(ctx) if _ENTRY.match(entry)]
        yield line
        yield from (f"{entry} ({line})" for entry in entries if address and _is_of(entry, address[1]))


def _is_of(entry: str, address: str) -> bool:
    words = (word.partition("$(")[0].rstrip("/") for word in entry.split() if "://" in word)
    return any(address.startswith(word) for word in words)


def unreadable(ctx: AuditContext) -> Iterator[str]:
    """apt reports an error when it reads its sources (apt-get indextargets)."""
    errors = [line for line in _complaints(ctx) if line.startswith("E: ")]
    if _UNREAD in errors and not any(_CONFLICT in line for line in errors):
        yield from (line for line in errors if line != _UNREAD)


def doubled(ctx: AuditContext) -> Iterator[str]:
    """apt reports that a repository is configured multiple times (apt-get indextargets)."""
    yield from dict.fromkeys(match[1] for line in _complaints(ctx) if (match := _TWICE.fullmatch(line)))


def _holders(ctx: AuditContext) -> Iterator[tuple[str, str, int, str]]:
    """Yield lock file, process id, process age in seconds and process name for each holder of a lock of apt or dpkg.

    Raises ``Unread`` if the probe was not answered.
    """
    for line in ctx.text(HELD).splitlines():
        if match := _HELD.fullmatch(line):
            yield match[1], match[2], int(match[3]), match[4]


def _complaints(ctx: AuditContext) -> tuple[str, ...]:
    """Return apt's warnings and errors about its sources, without duplicates. Raises ``Unread`` if apt's output was not
    read.
    """
    return tuple(dict.fromkeys(line.strip() for line in ctx.text(RELEASES).splitlines()))


INTERRUPTED = Sign("base", interrupted, (*IN_ORDER.probes(), HELD), provision=True)
SCRIPT_FAILED = Sign("base", script_failed, (*IN_ORDER.probes(), HELD))
LOCKED = Sign("base", locked, (HELD, jobs.RUNNING), grave=False)
AT_WORK = Sign("base", at_work, (HELD, jobs.RUNNING), grave=False)
MODULES_DEP = Sign("base", modules_dep, (*IN_ORDER.probes(), HELD, CONFLICTS))
GRUB_DEVICE = Sign("base", grub_device, (*IN_ORDER.probes(), HELD, CONFLICTS))
OVERWRITES = Sign("base", overwrites, (CONFLICTS, DPKG))
NOT_REMOVED = Sign("base", not_removed, (CONFLICTS, DPKG))
CONFLICTING = Sign("base", conflicting, (RELEASES,))

APT_RULES = (
    FailureRule(
        "apt-pin-forbids",
        r"(?:Candidate|Installationskandidat|Candidat ?|Candidato): \([a-zà-ÿ]{4,10}\)\s{1,9}"
        r"[^\n:]{5,20}:\n[^\n]{1,120} -[0-9]{1,9}$|Version table:\n {3,9}[0-9]\S{0,80} -[0-9]{1,9}$",
        "apt's preferences forbid {NAMES|the package}: a pin has a negative priority, so apt installs no version of "
        "it and reports no installation candidate",
        "Find out who wrote the pin and why ({PLACE|grep -rn Pin-Priority /etc/apt/preferences "
        "/etc/apt/preferences.d}), remove that stanza or set its priority to 500, then provision again",
        "apt_preferences(5); apt policy.cc",
        sign=Sign("base", pinned_away, (CONFLICTS, DPKG)),
        treatment=ForPeople(),
        names=(r"^(?P<place>/etc/apt/\S{1,200}): Pin-Priority \S{1,12} of (?P<names>[^\n]{1,200})",),
    ),
    FailureRule(
        "apt-pin-keeps",
        # This part skips newer versions with a priority below 990, which apt lists above the installed version.
        r"^[a-z0-9][\w.+:-]{1,80}:\n(?:  [^\n]*\n){3}"
        r"(?:     [0-9]\S* [1-9][0-9]{0,2}\n(?:        [^\n]*\n){0,8}?){1,20}?"
        r"(?:        [^\n]*)? \*\*\* \S{1,80} (?:99[1-9]|1[0-9]{3,4})$",
        "apt's preferences keep {PACKAGE|the package} at VERSION: a pin of priority PRIORITY outweighs {NEWER|the "
        "newer version} in a repository of the host, so upgrades do not install it",
        "If the installed version is intended, no action is needed. If the newer one is, find the pin (grep -rn -A 2 "
        "{PACKAGE|the package's name} /etc/apt/preferences /etc/apt/preferences.d; apt-cache policy shows all; a "
        "package nvidia-driver-pinning-… contains NVIDIA's), change or remove that stanza, and name the version in "
        "the stack, whose roles write pins too",
        "apt_preferences(5); elFarto/nvidia-vaapi-driver#312",
        names=(
            r"^(?P<package>[a-z0-9][\w.+:-]{1,80}):\n",
            r"^     (?P<newer>[0-9]\S{0,80}) [0-9]",
            r" \*\*\* (?P<version>\S{1,80}) (?P<priority>[0-9]{3,5})$",
        ),
        weight="consequence",
    ),
    FailureRule(
        "apt-sources-unreadable",
        r"The list of sources could not be read|Malformed (?:entry|line|stanza) [0-9]{1,6} in (?:source )?list"
        r"|Type '[^'\n]+' is not known on (?:line|stanza)",
        "FILE has a line that apt cannot parse, so apt rejects all source lists",
        "Correct or remove the line, then provision again. If `invoke plan` shows that a layer writes the list "
        "itself, provision that layer first (`invoke provision --roles LAYER`)",
        "apt sourcelist.cc; sources.list(5)",
        sign=Sign("base", unreadable, (RELEASES,)),
        treatment=ForPeople(),
        names=(r"(?P<file>/etc/apt/[^\s:]*[^\s:,.)])",),
    ),
    FailureRule(
        "apt-sources-twice",
        "",
        "the same repository is in two source lists: apt warns at every run, and the settings of one list "
        "override the other's",
        "Remove one of the two files that the evidence names",
        "apt acquire-item.cc; sources.list(5)",
        sign=Sign("base", doubled, (RELEASES,), grave=False),
    ),
)
