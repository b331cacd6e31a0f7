"""An emulated QEMU machine that boots Debian's real installer over PXE, as with a site's DHCP and TFTP servers.

Firmware, boot loader, kernel and installer are real. The network is QEMU's user mode network, in which this machine is
``HERE``. KVM is not used, because many machines lack it; the installer's first question appears after half a minute.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lab.image import ensure_programs

HERE = "10.0.2.2"  #: address of this machine's loopback in QEMU's user mode network
ADDRESS, NAMESERVER, MAC = "10.0.2.15/24", "10.0.2.3", "52:54:00:12:34:56"
_PACKAGE = re.compile(r"debian-installer-([0-9]+)-netboot-amd64")
#: Directory of the boot files in the installer's package, and the files: boot loader, kernel and initial ramdisk.
_IMAGES = "usr/lib/debian-installer/images/{release}/amd64/text/debian-installer/amd64"
_LOADER = ("pxelinux.0", "boot-screens/ldlinux.c32", "linux", "initrd.gz")
_EMULATOR = "qemu-system-x86_64"
_LEAST_S = 0.5  # interval between checks whether the emulator runs


@dataclass(frozen=True)
class Installer:
    """Debian's installer of one release, as a package in this machine's apt."""

    release: str
    package: str

    def images(self, unpacked: Path) -> Path:
        """Return the directory of the boot files below the unpacked package."""
        return unpacked / _IMAGES.format(release=self.release)


def newest_installer() -> Installer | None:
    """Return the newest installer in this machine's apt; ``None`` if apt has none, as on Ubuntu."""
    found = _installers()
    if not found:  # apt of a new machine has no lists yet
        subprocess.run(["apt-get", "update"], capture_output=True, check=True)
        found = _installers()
    return max(found, key=lambda one: int(one.release), default=None)


def _installers() -> list[Installer]:
    command = ["apt-cache", "pkgnames", "debian-installer-"]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return [Installer(match[1], match[0]) for name in names if (match := _PACKAGE.fullmatch(name))]


@dataclass
class Emulated:
    """A running emulated machine, with its installer's system log and the socket that receives the log."""

    emulator: subprocess.Popen[bytes]
    log: socket.socket
    screen: Path
    said: list[str] = field(default_factory=list)

    def await_line(self, pattern: str, timeout_s: float) -> str:
        """Wait for a line of the installer's log that matches ``pattern``, and return it.

        Raises ``AssertionError`` with the screen's text at the timeout: the installer may wait at a question.
        """
        end_s = time.monotonic() + timeout_s
        while time.monotonic() < end_s and self.emulator.poll() is None:
            try:
                line = self.log.recv(65536).decode(errors="replace").strip()
            except TimeoutError:
                continue
            self.said.append(line)
            if re.search(pattern, line):
                return line
        shown = re.sub(r"\x1b(\[[0-9;?]*[A-Za-z]|[()][0AB])", " ", self.screen.read_text(errors="replace"))
        said = "\n".join(self.said[-10:])
        raise AssertionError(f"no {pattern!r} within {timeout_s:.0f} s.\n{said}\n{' '.join(shown.split())[-1000:]}")


def log_arguments(log: socket.socket) -> list[str]:
    """Return kernel arguments that put the installer's screen on the serial line and send its log to ``log``."""
    return ["console=ttyS0,115200", f"log_host={HERE}", f"log_port={log.getsockname()[1]}"]


@contextmanager
def listener() -> Iterator[socket.socket]:
    """A socket for the installer's system log."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as log:
        log.bind(("127.0.0.1", 0))
        log.settimeout(_LEAST_S)
        yield log


@contextmanager
def booted(
    images: Path, command_line: str, log: socket.socket, folder: Path, *, part: Path | None = None
) -> Iterator[Emulated]:
    """Boot the machine over PXE into the installer with these images and this kernel command line.

    ``part`` is unpacked over the installer's own ramdisk.
    """
    ensure_programs({_EMULATOR: "qemu-system-x86"})
    tftp, screen = folder / "tftp", folder / "screen"
    (tftp / "pxelinux.cfg").mkdir(parents=True)
    for name in _LOADER:
        shutil.copyfile(images / name, tftp / Path(name).name)
    ramdisks = ["initrd.gz"]
    if part is not None:
        shutil.copyfile(part, tftp / part.name)
        ramdisks.append(part.name)
    entry = f"default install\nlabel install\n  kernel linux\n  append initrd={','.join(ramdisks)} {command_line}\n"
    (tftp / "pxelinux.cfg/default").write_text(entry)
    screen.touch()
    argv = [
        *(_EMULATOR, "-accel", "tcg", "-cpu", "max", "-m", "1024", "-nodefaults", "-display", "none"),
        *("-serial", f"file:{screen}", "-boot", "n"),
        *("-netdev", f"user,id=n,tftp={tftp},bootfile=pxelinux.0", "-device", f"virtio-net-pci,netdev=n,mac={MAC}"),
    ]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL) as emulator:
        try:
            yield Emulated(emulator, log, screen)
        finally:
            emulator.kill()
