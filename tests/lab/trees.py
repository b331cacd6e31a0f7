"""A list of all files of a lab host, and the differences between two lists.

Each path has its type, mode, owner, and size and checksum or the target of a link. Times are left out. Two short tables
list the excluded paths, each with its reason. dpkg's files are compared by dpkg's own output.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lab.config import Machine
from lab.machine import console

#: Directories left out of the list.
LEFT_OUT = {
    "/dev": "the kernel's",
    "/proc": "the kernel's",
    "/sys": "the kernel's",
    "/run": "until the next boot",
    "/tmp": "until the next boot",  # noqa: S108 - a path on the host
    "/var/tmp": "of whoever runs now",  # noqa: S108
    "/var/log": "what happened on a host is its history",
    "/opt/hostwright-lab": "the lab's own",
    "/var/lib/dpkg": "compared as what dpkg and update-alternatives say",
    "/var/lib/apt/lists": "fetched anew by anybody; which sources there are is compared",
    "/var/cache/apt": "apt's cache",
    "/var/cache/ldconfig": "ldconfig's cache of what it read; what it found is /etc/ld.so.cache",
    "/var/cache/debconf": "a package's questions, as far as it asked them; kept by debconf for good",
}

#: Paths that a removal leaves or creates.
MAY_COME = {
    r"/usr/lib/python3/dist-packages/__pycache__(/lsb_release\..*)?": "Python's, of a program that its package forgets",
}

#: Creates the module index of a kernel package, which lab hosts lack.
KERNEL_INDEX = """
index="/lib/modules/$(uname -r)"
mkdir -p "$index"
touch "$index/modules.order" "$index/modules.builtin"
depmod
rm "$index/modules.order" "$index/modules.builtin"  # the lab's headers bring these two, and take them along
"""

#: A Debian host has its kernel's package, and Debian 13's headers depend on their kernel's. A lab host gets an empty
#: package in place of both.
KERNEL_PACKAGE = """
apt-get update -q
kernel=$(apt-cache depends linux-headers-amd64 | sed -n 's/.*Depends: linux-headers-//p')
version=$(apt-cache show --no-all-versions "linux-headers-$kernel" | sed -n 's/^Version: //p')
mkdir -p /tmp/kernel/DEBIAN
printf '%s\\n' "Package: linux-image-$(uname -r)" "Version: 1.0" "Architecture: all" \\
    "Provides: linux-image-$kernel (= $version)" "Maintainer: lab <lab@localhost>" \\
    "Description: stand-in for the running kernel" >/tmp/kernel/DEBIAN/control
dpkg-deb --build /tmp/kernel /tmp/kernel.deb
dpkg -i /tmp/kernel.deb
"""

#: dockerd's mode of a disk that is mounted there
DISK = "chmod 710 /var/lib/docker\n"

#: Paths that exist on both sides with different content.
OTHER_BYTES = {
    r"/var/lib/apt/extended_states": "compared as what apt-mark says",
    r"/var/lib/systemd/random-seed": "a new one at each boot",
    r"/etc/(passwd|group|shadow|gshadow|subuid|subgid)-": "the copy from before the last change of accounts",
    r"/etc/\.pwd\.lock": "a lock",
    r".*\.pyc": "holds the time of its source",
    r"/etc/docker/key\.json": "made up by the engine when it starts for the first time",
    r"/var/lib/docker/network/files/local-kv\.db": "the same",
    r"/var/lib/dkms/.*/log/make\.log": "says when",
    r"/var/lib/hostwright/(driver\.files|release\.json)": "says when",
}
#: Hostwright's jobs on the host, one directory per job
JOBS = r"/var/lib/hostwright/jobs/.*"
_PROCESS = re.compile(r"\.before-hostwright\.[0-9T.-]+")

#: Lists all files: a row for each path, then the checksums of regular files.
_LIST = """\
set -eu
cd /
find / {prune} -printf '%y\\t%m\\t%u:%g\\t%s\\t%l\\t%p\\n'
echo =
find / {prune} -type f -print0 | xargs -0 -r sha256sum
"""
_DPKG = """\
set -eu
dpkg-query -W -f='${Package} ${Version} ${db:Status-Abbrev} ${Conffiles}\\n'
apt-mark showhold | sed 's/^/hold /'
apt-mark showmanual | sed 's/^/manual /'
for f in /var/lib/dpkg/alternatives/*; do
  echo "alternative $(update-alternatives --query "${f##*/}" | tr '\\n' ' ')"
done
for f in /var/lib/dpkg/diversions /var/lib/dpkg/statoverride; do sed "s,^,$f ," "$f"; done
getent passwd | sed 's/^/passwd /'
getent group | sed 's/^/group /'
"""


@dataclass(frozen=True)
class Tree:
    """The files of a host, path → description, and the output of dpkg, apt and the accounts' database."""

    paths: Mapping[str, str]
    rows: frozenset[str]

    @classmethod
    def of(cls, machine: Machine) -> Tree:
        """Return the tree of a host."""
        prune = r"\( " + " -o ".join(f"-path {path}" for path in LEFT_OUT) + r" \) -prune -o"
        rows, _, sums = console(machine, "sh", "-c", _LIST.format(prune=prune)).partition("\n=\n")
        checksums = {path: digest for digest, path in (line.split("  ", 1) for line in sums.splitlines())}
        return cls(
            dict(_path(row, checksums) for row in rows.splitlines()),
            frozenset(console(machine, "sh", "-c", _DPKG).splitlines()),
        )

    def differences(self, later: Tree, but: str = "") -> list[str]:
        """Return the differences of ``later`` from this tree, one per line; empty if the hosts are equal.

        ``but`` is a regular expression for paths to ignore.
        """
        passed = re.compile("|".join([*MAY_COME, *([but] if but else [])]))
        lines = [
            f"{path}: {self.paths.get(path, 'absent')} → {later.paths.get(path, 'absent')}"
            for path in sorted({*self.paths, *later.paths})
            if self.paths.get(path) != later.paths.get(path) and not passed.fullmatch(path)
        ]
        lines += [f"gone: {row}" for row in sorted(self.rows - later.rows)]
        return lines + [f"come: {row}" for row in sorted(later.rows - self.rows)]


_VOLATILE = re.compile("|".join(OTHER_BYTES))


def _path(row: str, checksums: Mapping[str, str]) -> tuple[str, str]:
    kind, mode, owner, size, target, real = row.split("\t")
    path = _PROCESS.sub(".before-hostwright.PID", real)
    if kind == "l":
        return path, f"link to {target}, {owner}"
    if kind != "f":
        return path, f"{kind} {mode} {owner}"
    content = "" if _VOLATILE.fullmatch(path) else f" {size} {checksums.get(real, 'vanished')[:16]}"
    return path, f"{kind} {mode} {owner}{content}"
