"""Signs of faulty disks and mounts: full, out of inodes, read-only after an error, noexec, or not mounted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, ForPeople, Hardware, NoRoom, Sign, Unread
from hostwright.resources import CACHE, Probe
from hostwright.roles import sh, sh_file, shown_bytes

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

GB, MB = 10**9, 10**6
LEAST_BYTES = 500 * MB  #: free bytes of a filesystem below which the filesystem may be reported as full (leptonai/gpud)
#: free share of a filesystem below which the filesystem may be reported as full (leptonai/gpud)
LEAST_SHARE = 0.10
LEAST_INODES = 0.01  #: minimum share of a filesystem's inodes that must be free
MOST_DIGITS = 18  #: maximum number of digits of a number in df's output. An exbibyte in KiB has 16 digits.
WORTH_NAMING_BYTES = 100 * MB  #: size in bytes from which the report on a full disk names a removable file

#: directories to which the stack, installers and containers write
UNPACKED = ("/tmp", "/var/tmp")  # noqa: S108 - where installers unpack
PLACES = (
    "/", "/boot", "/etc", "/opt", "/run", "/usr", "/var", "/var/cache", "/var/lib", "/var/lib/docker", "/var/log",
    *UNPACKED,
)  # fmt: skip

#: probe that prints ``df`` of ``PLACES`` in KiB, then in inodes
FREE = Probe(sh_file(__file__, "sh/free.sh", places=PLACES))

#: probe that prints ``df`` of /boot and the byte size of the largest initramfs
INITRAMFS = Probe(
    "timeout -k 1 3 df -Pk -- /boot; stat -L -c %s -- /boot/initrd.img-* | sort -n | tail -n 1", root=True
)

#: probe that prints size in KiB and path of each file that an installer left
LEFT_BEHIND = Probe(
    sh("for d in %s /var/cuda-repo-* /var/cache/apt/archives; do\n", CACHE)
    + '  [ -d "$d" ] && timeout -k 1 3 du -sk -- "$d"\ndone; exit 0'
)

#: directories that must allow running programs. /tmp is not listed, because hardened hosts mount it noexec.
PROGRAMS = ("/", "/usr", "/usr/local", "/opt", "/var", "/var/lib", "/var/lib/dkms", "/var/lib/dpkg", "/var/lib/docker")
SHARED = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - directories for all users
EVERYBODY = "1777"  #: file mode of directories for all users (hier(7))

#: probe that prints mounts and fstab entries. The first lines of ``mounts.sh`` describe the output.
MOUNTS = Probe(sh_file(__file__, "sh/mounts.sh", programs=PROGRAMS, shared=SHARED))

#: filesystem types that the kernel mounts read-only only after an error
_DISK_KINDS = {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "vfat"}


#: pattern of messages about a full /boot. The messages name a file there or an initramfs compressor.
BOOT_IS_FULL = (
    r"/boot/[^\n]{1,200}: [^\n]{0,80}no space left on device|no space left on device[^\n]{0,80}'?/boot/"
    r"|(?:gzip|zstd|lz4|xz|bzip2|lzma|lzop)\b[^\n]{0,80}no space left on device[^\n]{0,80}\n"
    r"(?:[^\n]*\n){0,4}?[^\n]*update-initramfs: failed for /boot/"
)


@dataclass(frozen=True, slots=True)
class Room:
    """Size and free space of the filesystem at ``mount``, in bytes or inodes. ``size`` excludes root's reserve."""

    mount: str
    size: int
    free: int

    @property
    def share(self) -> float:
        return self.free / self.size

    @property
    def full(self) -> bool:
        """Whether free space is below 500 MB and below a tenth of the size."""
        return self.free < min(LEAST_BYTES, LEAST_SHARE * self.size)

    def __str__(self) -> str:
        return f"{self.mount} has {shown_bytes(self.free)} of {shown_bytes(self.size)} free ({self.share:.0%})"


def full(ctx: AuditContext) -> Iterator[str]:
    """A filesystem that the stack writes to has less than 500 MB and less than a tenth of its size free."""
    rooms = _rooms(ctx, inodes=False)
    short = [room for room in rooms if room.full]
    yield from map(str, short)
    yield from _removable(ctx, rooms, short)


def nearly_full(ctx: AuditContext) -> Iterator[str]:
    """A filesystem that the stack writes to has less than a tenth of its size free."""
    rooms = _rooms(ctx, inodes=False)
    short = [room for room in rooms if room.share < LEAST_SHARE and not room.full]
    yield from map(str, short)
    yield from _removable(ctx, rooms, short)


def no_inodes(ctx: AuditContext) -> Iterator[str]:
    """A filesystem that the stack writes to has less than a hundredth of its inodes free (df -i)."""
    for room in _rooms(ctx, inodes=True):
        if room.share < LEAST_INODES:
            yield f"{room.mount} has {room.free} of {room.size} inodes free"


def no_room_for_initramfs(ctx: AuditContext) -> Iterator[str]:
    """/boot has less free space than its largest initramfs, beside which an update writes a new one."""
    *rows, size = ctx.text(INITRAMFS).splitlines() or [""]
    rooms = _by_mount(rows)
    if not rooms or not _is_number(size):
        return
    for room in rooms:
        if room.free < int(size):
            yield f"{room}, and an initramfs takes {shown_bytes(int(size))}"


def read_only(ctx: AuditContext) -> Iterator[str]:
    """A filesystem to which the stack writes, or which /etc/fstab mounts writable, is mounted read-only."""
    rows = _mounts(ctx)
    asked = {row[1]: row[2].split(",") for row in rows if row[0] == "fstab" and len(row) == 3}
    for row in rows:
        if row[0] != "mount" or len(row) != 4:
            continue
        _, mount, kind, options = row
        wanted = asked.get(mount)
        written = mount in PLACES or (wanted is not None and kind in _DISK_KINDS)
        if written and "ro" not in (wanted or ()):
            yield f"{mount} ({kind}) is mounted {options}"


def next_read_only(ctx: AuditContext) -> Iterator[str]:
    """The stack writes to a filesystem that is writable now, and that /etc/fstab mounts read-only at the next boot."""
    rows = _mounts(ctx)
    now = {row[1] for row in rows if row[0] == "mount"}
    for row in rows:
        if row[0] == "fstab" and row[1] in PLACES and row[1] not in now and "ro" in row[2].split(","):
            yield f"/etc/fstab: {row[1]} {row[2]}"


def not_executable(ctx: AuditContext) -> Iterator[str]:
    """A filesystem with programs or libraries, such as /opt or /var, is mounted noexec."""
    yield from (f"{row[1]} ({row[2]}) is mounted {row[3]}" for row in _mounts(ctx) if row[0] == "noexec")


def not_mounted(ctx: AuditContext) -> Iterator[str]:
    """A filesystem that /etc/fstab lists without noauto, and for which a boot does not wait, is not mounted."""
    rows = (row for row in _mounts(ctx) if row[0] in {"absent", "device"} and not _waits(row))
    yield from (f"{row[1]}: {row[2]} is not mounted" for row in rows)


def boot_waits(ctx: AuditContext) -> Iterator[str]:
    """A line of /etc/fstab names a disk that does not exist, with neither noauto nor nofail."""
    yield from (f"/etc/fstab: {row[1]}: {row[2]} is not there" for row in _mounts(ctx) if _waits(row))


def closed_to_others(ctx: AuditContext) -> Iterator[str]:
    """A directory for all users (/tmp, /var/tmp, /dev/shm) has another mode than 1777."""
    rows = (row for row in _mounts(ctx) if row[0] == "mode" and len(row) == 3)
    yield from (f"{row[1]} has mode {row[2]}" for row in rows if row[2] != EVERYBODY)


def _waits(row: list[str]) -> bool:
    return row[0] == "device" and "nofail" not in row[-1].split(",")


def _mounts(ctx: AuditContext) -> list[list[str]]:
    return [row for line in ctx.text(MOUNTS).splitlines() if len(row := line.split(" ")) >= 3]


def _rooms(ctx: AuditContext, *, inodes: bool) -> tuple[Room, ...]:
    """Return the different filesystems that the stack writes to. Raises ``Unread`` if ``df`` printed nothing."""
    blocks, _, nodes = f"\n{ctx.text(FREE)}".partition("\ninodes\n")
    rooms = _by_mount((nodes if inodes else blocks).splitlines(), unit=1 if inodes else 1024)
    if not rooms:
        raise Unread("the command `df` printed nothing")
    # Btrfs reports 0 inodes because the number of inodes in btrfs is not fixed.
    return tuple(room for room in rooms if room.size > 0)


def _by_mount(lines: list[str], unit: int = 1024) -> tuple[Room, ...]:
    rows = (line.split(None, 5) for line in lines)
    by_mount = {row[5]: row for row in rows if len(row) == 6 and all(map(_is_number, row[1:4]))}
    return tuple(Room(mount, (int(row[2]) + int(row[3])) * unit, int(row[3]) * unit) for mount, row in by_mount.items())


def _removable(ctx: AuditContext, rooms: tuple[Room, ...], short: list[Room]) -> Iterator[str]:
    if not short or LEFT_BEHIND not in ctx.facts:
        return
    for line in ctx.facts[LEFT_BEHIND].text.splitlines():
        kib, _, path = line.partition("\t")
        if not _is_number(kib) or int(kib) * 1024 < WORTH_NAMING_BYTES:
            continue
        on = max((room for room in rooms if _below(path, room.mount)), key=lambda room: len(room.mount), default=None)
        if on in short:
            yield f"{path} takes {shown_bytes(int(kib) * 1024)}"


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= MOST_DIGITS


def _below(path: str, mount: str) -> bool:
    return path == mount or path.startswith(f"{mount.rstrip('/')}/")


FULL = Sign("base", full, (FREE, LEFT_BEHIND))

DISK_RULES = (
    FailureRule(
        "programs-not-run-there",
        r"failed to map segment from shared object: Operation not permitted"
        r"|/tmp/(?:selfgz|makeself)[^\n]{0,200}: (?:Permission denied|cannot execute)",
        "a program or library is on a filesystem mounted noexec, from which nothing may be executed: a hardened "
        "host's /tmp, or a home directory",
        "Check the mount (findmnt -T FILE). Let the program unpack elsewhere (TMPDIR=/var/lib/hostwright, an "
        "installer's --tmpdir or --target), rather than change the mount",
        "mount(8), noexec; glibc elf/dl-map-segments.h",
        sign=Sign("base", not_executable, (MOUNTS,), grave=False),
    ),
    FailureRule(
        "filesystem-not-mounted",
        "",
        "a filesystem of /etc/fstab is not mounted: its files are missing, and files written to its mount point fill "
        "the disk below",
        "Move files that were written below the mount point meanwhile, then run mount POINT (if it fails, journalctl "
        "-b -u POINT's .mount has the reason), or remove the line from /etc/fstab",
        "fstab(5); systemd.mount(5)",
        names=(r"^(?P<point>/[^\s:]{0,200}): ",),
        sign=Sign("base", not_mounted, (MOUNTS,), grave=False),
    ),
    FailureRule(
        "boot-needs-missing-disk",
        r"Timed out waiting for device [^\n]+|Dependency failed for (?:/\S+\.?|Local File Systems)"
        r"|You are in emergency mode",
        "/etc/fstab names a disk that does not exist: a boot waits for it and then stops in emergency mode, "
        "without ssh",
        "Before the next reboot, correct the line in /etc/fstab (blkid lists the disks), remove it, or add the "
        "option nofail. On a host that already hangs, do it at its console",
        "systemd.mount(5), nofail; systemd-fstab-generator(8)",
        transient=False,
        sign=Sign("base", boot_waits, (MOUNTS,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "boot-read-only",
        "",
        "/etc/fstab mounts a filesystem read-only that is writable now: after the next boot Docker, apt, logs and "
        "jobs cannot write there",
        "Before the next reboot, remove ro from the line's options (use defaults or rw; errors=remount-ro may stay), "
        "then run findmnt --verify and systemctl daemon-reload. A host that must stay read-only cannot be provisioned",
        "fstab(5); systemd-remount-fs.service(8)",
        sign=Sign("base", next_read_only, (MOUNTS,), grave=False),
    ),
    FailureRule(
        "directory-not-for-everybody",
        r"(?:shm_open failed|[Ee]rror (?:opening|creating) [^\n]{0,60}/dev/shm)[^\n]*Permission denied"
        r"|Permission denied: '/dev/shm|Couldn't create temporary file /tmp/|Unable to mkstemp /tmp/"
        r"|mktemp: failed to create (?:file|directory) via template '/tmp/[^\n]*Permission denied",
        "a directory for all users (/tmp, /var/tmp or /dev/shm) is not writable for them (mode 1777): apt's own user, "
        "NCCL, Python's processes and users' programs fail there",
        "Run chmod 1777 on the directory that the evidence names, and find out what changed it (a mount with mode=, "
        "a hardening script). For a container, start it with --shm-size or --ipc=host instead",
        "hier(7); shm_open(3), EACCES; NVIDIA/nccl#328",
        sign=Sign("base", closed_to_others, (MOUNTS,), grave=False),
    ),
    FailureRule(
        "disk-nearly-full",
        "",
        "a filesystem is nearly full; images and logs of containers, packages and installers take the most space",
        "Free space: docker system df shows unneeded images, apt-get clean removes packages; files in "
        "/var/cache/hostwright/artifacts may be deleted and are downloaded again when needed",
        "leptonai/gpud disk; LBNL nhc check_fs_used",
        sign=Sign("base", nearly_full, (FREE, LEFT_BEHIND), grave=False),
        treatment=NoRoom(nearly=True),
    ),
    FailureRule(
        "boot-full",
        r"[Ww]rite error ?: ?cannot write (?:compressed )?block|" + BOOT_IS_FULL,
        "/boot has no space for another initramfs, which is written beside the old one: the next update of a kernel "
        "or a driver fails, and may leave packages half configured",
        "Make each initramfs smaller (COMPRESS=xz, or MODULES=dep if the host boots from a plain disk, in "
        "/etc/initramfs-tools/initramfs.conf), remove kernels that neither run nor boot next (dpkg -l "
        "'linux-image-*' lists them; apt-get -s autoremove shows what it would remove), or enlarge /boot; then run "
        "dpkg --configure -a",
        "nodejs/build#3296, linuxmint/mintupdate#823, ROCm/rocm-install-on-linux#629",
        transient=False,
        sign=Sign("base", no_room_for_initramfs, (INITRAMFS,), grave=False),
        treatment=ForPeople(),
    ),
    FailureRule(
        "inodes-exhausted",
        r"^Filesystem {1,40}Inodes [^\n]*(?:\n[^\n]*){0,20}?"
        r"\n/dev/(?:[a-km-rt-z]|s[a-qs-z])\S* {1,40}\S{1,15} {1,15}\S{1,15} {1,15}0 {1,9}100% ",
        "a filesystem has no inodes for another file, even with free bytes: it has millions of small files",
        "Find the directory with these files (du --inodes -xd2 / | sort -n | tail) and delete them",
        "df(1); LBNL nhc check_fs_ifree",
        sign=Sign("base", no_inodes, (FREE,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "mounted-read-only",
        r"[:)\]] ?\"?read-only file system",
        "a filesystem is read-only, because the kernel found an error on it, or by an operator's mount",
        "Search dmesg for errors of the disk. If there are any, replace the disk, check the filesystem (fsck) and "
        "reboot. If not, find out who mounted it read-only, then run mount -o remount,rw",
        "ext4(5), errors=remount-ro",
        unless=r"nvidia-container-cli|/proc/|/sys/",
        transient=False,
        sign=Sign("base", read_only, (MOUNTS,)),
        treatment=Hardware(
            "hand over", "ext4(5), errors=remount-ro: the disk failed, and a new system on it would too", tries=0
        ),
    ),
    FailureRule(
        "file-immutable",
        r"(?:unable to|error|failed to|cannot|couldn't|changing) [^\n]*['\" ]\.?/[^\n]*(?:: |\()Operation not permitted"
        r"|\[Errno 1\] Operation not permitted: ['\"]/"
        r"|^tar: [^\n]*: Cannot (?:open|unlink|rename|create)[^\n]*: Operation not permitted"
        r"|^(?:[/\w-]*sh|tee)(?:: line [0-9]{1,6})?: /[^\n]*: Operation not permitted",
        "FILE cannot be changed, even by root: it or its directory is probably immutable or append-only, set with "
        "chattr to protect it",
        "Run lsattr -d on FILE and on its directory. If it prints i or a, find out who set it, run chattr -i (or "
        "-a), and repeat the failed command",
        "chattr(1); rename(2) and unlink(2), EPERM",
        unless=r"hard link|own(?:er|ership)\b|[('\" ](?:/proc|/sys|/dev)/|mount|insert|modprobe|nvidia-container-cli"
        r"|new backup file",
        transient=False,
        weight="root cause",
        names=(
            r" to ['\"]\.?(?P<file>/[^'\"\n]+)['\"]",
            r"['\"]\.?(?P<file>/[^'\"\n]+)['\"]",
            r" (?P<file>/\S*/)sed\w{6}\b",
            r"[ (](?P<file>/[^\s:'\"()]+)",
        ),
    ),
)
