"""Host faults that cannot be planted: full and broken disks, a wrong clock, an old processor, Docker's snap."""

from __future__ import annotations

from hostwright.plan.host.hostfacts import AVX
from hostwright.plan.model import Answer, Facts
from hostwright.resources.packages.packages import DPKG
from hostwright.standard.roles.base.failures.apt import HELD
from hostwright.standard.roles.base.failures.disks import FREE, INITRAMFS, MOUNTS
from hostwright.standard.roles.base.failures.host import CLOCK, NEXT_BOOT
from hostwright.standard.roles.base.failures.journal import JOURNAL
from hostwright.standard.roles.container.engine import SNAP_DOCKER
from hostwright.standard.roles.container.failures import NAME_SERVERS
from hostwright.standard.roles.container.failures.access import ACCESS
from hostwright.standard.roles.container.failures.state import INFO
from hostwright.standard.roles.container.failures.toolkit import REACHES_DRIVER
from hostwright.standard.roles.container.failures.units import FILES
from hostwright.standard.roles.cuda.compilers import OLDER_GCC
from hostwright.standard.roles.driver.states.device_files import DeviceLinks
from tests.lab.audit.made_up_case import Answers, Change, made_up, says, together

GIB = 2**20  #: in KiB, the unit of df
MANY = 16_777_216


def disk(mount: str, size_gib: float, free_gib: float, *, inodes: int = MANY, free_inodes: int = MANY // 2) -> Change:
    """Add a filesystem to the output of ``df``."""

    def change(facts: Facts) -> Answers:
        size, free = int(size_gib * GIB), int(free_gib * GIB)
        blocks, _, nodes = facts[FREE].text.partition("inodes\n")
        blocks += f"/dev/sdb1 {size} {size - free} {free} {100 - 100 * free // size}% {mount}\n"
        nodes += f"/dev/sdb1 {inodes} {inodes - free_inodes} {free_inodes} 99% {mount}\n"
        return {FREE: Answer(0, f"{blocks}inodes\n{nodes}")}

    return change


def clock(seconds: int) -> Change:
    """Set the host's clock ahead by this many seconds."""
    return lambda facts: {CLOCK: Answer(0, f"{int(facts[CLOCK].strip()) + seconds}\n")}


def mounted(row: str) -> Change:
    """Add a row about read-only mounts or fstab."""
    return lambda facts: {MOUNTS: Answer(0, f"{facts[MOUNTS].text}{row}\n")}


def unlinked(facts: Facts) -> Answers:
    """A card has no link in /dev/char, and Docker's cgroups are systemd's, which lab hosts cannot have."""
    (devices,) = DeviceLinks().probes()
    docker = facts[INFO].text.replace("cgroup cgroupfs", "cgroup systemd")
    return {devices: Answer(0, "device nvidia0\ndevice nvidiactl\nlink ../nvidiactl\n"), INFO: Answer(0, docker)}


def kernel_logged(*lines: str) -> Change:
    """Add lines to the kernel log since the boot."""
    return says(JOURNAL, "".join(f"kernel {line}\n" for line in lines))


def newer_gcc(facts: Facts) -> Answers:
    """The host's gcc is too new for nvcc, and an older one is installed beside it."""
    return {probe: Answer(0, "gcc 12\ninstalled 10\n") for probe in facts if OLDER_GCC in probe.script}


def podman(facts: Facts) -> Answers:
    """Docker's package is removed, and podman provides its command."""
    rows = (row for row in facts[DPKG].text.splitlines(keepends=True) if not row.startswith("docker"))
    return {DPKG: Answer(0, "".join([*rows, "podman-docker\t3.0.1\tii \tall\tlibpod\n"]))}


HOST = (
    made_up("a memory module with an error", kernel_logged("EDAC MC0: 1 UE memory read error on CPU_SrcID#0_Ha#0"),
            "memory-errors"),
    made_up("a machine check", kernel_logged("mce: [Hardware Error]: Machine check: 0 Bank 5: be00000000800400"),
            "machine-check"),
    made_up("a slot with errors", kernel_logged("pcieport 0000:00:02.0: AER: Uncorrected (Fatal) error received: id=1"),
            "pcie-error"),
    made_up("a disk with errors", kernel_logged("blk_update_request: critical medium error, dev sda, sector 1048576"),
            "disk-error"),
    made_up("a damaged filesystem", kernel_logged("EXT4-fs error (device sda1): ext4_lookup:1590: inode #2: comm ls"),
            "filesystem-error"),
    made_up("a host out of memory", kernel_logged("Out of memory: Killed process 811 (python3) total-vm:1kB"),
            "out-of-memory"),
    made_up("a container at its own limit of memory", kernel_logged("Memory cgroup out of memory: Killed process 811")),
    made_up("a link that corrects its errors",
            kernel_logged("pcieport 0000:00:03.1: AER: Correctable error message received from 0000:00:00.0")),
    made_up("an empty virtual drive", kernel_logged("blk_update_request: I/O error, dev sr0, sector 0")),
    made_up("programs on a filesystem mounted noexec", mounted("noexec /opt xfs rw,noexec,relatime"),
            "programs-not-run-there"),
    made_up("a big filesystem nearly full", disk("/var", 200, 12), "disk-nearly-full"),
    made_up("a filesystem full", disk("/opt", 20, 0.2), "no-space"),
    made_up("one full, one nearly", together(disk("/opt", 20, 0.2), disk("/var", 20, 1)), "no-space disk-nearly-full"),
    made_up("out of inodes", disk("/var", 200, 120, free_inodes=500), "inodes-exhausted"),
    made_up("a filesystem read-only after an error",
            mounted("mount /var/lib/docker ext4 ro,relatime,errors=remount-ro"), "mounted-read-only"),
    made_up("data that fstab wants writable, read-only",
            mounted("mount /data xfs ro,relatime\nfstab /data defaults,noatime"), "mounted-read-only"),
    made_up("a /boot without room for another initramfs",
            says(INITRAMFS, "Filesystem 1024-blocks Used Available Capacity Mounted on\n"
                            "/dev/sda1 476000 416000 60000 88% /boot\n81234567\n"), "boot-full"),
    made_up("a resolver of the host that has ended",
            says(NAME_SERVERS, "/etc/resolv.conf names only 127.0.0.1, where nothing listens on this host\n"),
            "container-name-servers"),
    made_up("clock an hour ahead", clock(3600), "clock-off"),
    made_up("clock ten minutes behind", clock(-600), "clock-off"),
    made_up("a processor from before AVX", says(AVX, status=1), "no-avx"),
    made_up("Docker from the snap", says(SNAP_DOCKER, "2893\n"), "docker-snap"),
    made_up("an apt that is at work", says(HELD, "/var/lib/dpkg/lock-frontend 275 30 unattended-upgr\n"),
            "apt-at-work"),
    made_up("a toolkit that does not find the driver's library",
            says(REACHES_DRIVER, "nvidia-container-cli: initialization error: load library failed: libcuda.so.1\n", 1),
            "driver-library-not-in-cache"),
    made_up("a socket of Docker's for everybody", says(ACCESS, "socket 666 root:docker\n"), "docker-socket-mode"),
    made_up("a proxy of Docker's that is gone",
            says(ACCESS, "socket 660 root:docker\nproxy HTTPS_PROXY proxy.old:3128 its name does not resolve\n"),
            "docker-proxy-dead"),
    made_up("a client of Docker's with a desktop's settings",
            says(ACCESS, "socket 660 root:docker\nhelper desktop /root/.docker/config.json\n"),
            "docker-credentials-helper"),
    made_up("a Docker that was upgraded beneath itself", says(FILES, "replaced docker.service /usr/bin/dockerd\n"),
            "program-replaced"),
    made_up("a host that is closed to everybody but root",
            lambda facts: {NEXT_BOOT: Answer(0, f"{facts[NEXT_BOOT].text}nologin /etc/nologin: planted\n")},
            "logins-closed"),
    made_up("podman in Docker's place", podman, "docker-is-podman"),
    made_up("a card without its link for containers", unlinked, "dev-char-links-missing"),
    made_up("a small /boot with enough room", disk("/boot", 1, 0.4)),
    made_up("a full /boot/efi", disk("/boot/efi", 0.1, 0.05)),
    made_up("a filesystem without counted inodes", disk("/var", 200, 120, inodes=0, free_inodes=0)),
    made_up("an image mounted read-only", mounted("mount /snap/core/1 squashfs ro,nodev,relatime")),
    made_up("a share that is read-only on purpose", mounted("mount /srv ext4 ro,relatime\nfstab /srv ro,noatime")),
    made_up("clock half a minute ahead", clock(30)),
    made_up("a newer gcc as the host's own", newer_gcc, "nvcc-compiler-unsupported"),
)  # fmt: skip
