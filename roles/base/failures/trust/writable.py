"""Sign of files and directories by which somebody other than root decides what root runs or trusts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, Sign
from hostwright.resources import Probe
from hostwright.roles import sh_file

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

#: Where root's programs are looked for, and single files that make it run or load something.
PLACES = (
    "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/etc", "/etc/environment", "/etc/profile",
    "/etc/ld.so.preload", "/etc/ld.so.conf", "/etc/sudoers", "/opt", "/opt/hostwright", "/var/lib/hostwright",
)  # fmt: skip
#: With what lies directly in them: what apt, dpkg, DKMS, the loader, the kernel's modules and systemd are told.
FOLDERS = (
    "/etc/apt", "/etc/apt/sources.list.d", "/etc/apt/apt.conf.d", "/etc/apt/preferences.d", "/etc/apt/auth.conf.d",
    "/etc/apt/keyrings", "/etc/apt/trusted.gpg.d", "/usr/share/keyrings", "/etc/dpkg", "/etc/dpkg/dpkg.cfg.d",
    "/etc/kernel/postinst.d", "/etc/dkms", "/etc/modprobe.d", "/etc/modules-load.d", "/etc/ld.so.conf.d",
    "/etc/profile.d", "/etc/sudoers.d", "/etc/systemd/system", "/etc/docker",
)  # fmt: skip

WRITABLE = Probe(sh_file(__file__, "writable.sh", places=PLACES, folders=FOLDERS), root=True)


def writable(ctx: AuditContext) -> Iterator[str]:
    """One of the files and directories that tell root what to run, load or trust belongs to somebody else, or others
    may write to it: apt's sources, keyrings, hooks and preferences, modprobe's, the loader's and systemd's."""
    for line in ctx.text(WRITABLE).split("\n"):
        if line.count("\t") == 3:
            user, group, mode, path = line.split("\t")
            yield f"{path} belongs to {user}:{group}, mode {mode}"


OTHERS_WRITE = FailureRule(
    "others-may-write",
    "",
    "users other than root may write to what tells root which programs to run or whom to trust; each of them can"
    " become root, and change what is installed",
    "Find out who changed the owner or the mode, and whether the contents are still what they should be; then chown"
    " root:root and chmod go-w what the evidence names",
    "sources.list(5), apt.conf(5), modprobe.d(5), systemd.unit(5)",
    sign=Sign("base", writable, (WRITABLE,), grave=False),
)
