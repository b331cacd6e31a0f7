"""States of kernels: files, headers and initramfs of the running kernel, and holds of kernel packages.

A driver that was built for one kernel does not work with another kernel, and unattended-upgrades may install a new
kernel at any time. Therefore every installed kernel package is held.

A newer installed kernel does not matter until it is booted. A reboot is required only if the running kernel's own files
were removed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hostwright.common.quoting import sh, sh_file, words
from hostwright.plan.host.hostfacts import UNAME
from hostwright.plan.model import Change, Deferred, Facts, Probe, Reboot, Refusal, RemovalState, Resource, Step
from hostwright.plan.roles.software import Software
from hostwright.plan.stacks.distribution import distribution_of
from hostwright.plan.state_identity import NO_IDENTITY
from hostwright.resources.files.paths import ABSENT
from hostwright.resources.packages.debs_gone import Database, DebsGone
from hostwright.resources.packages.dpkg import APT_OPTIONS, HOLD, LISTS, PATIENCE, deb_software, mend_cut_script
from hostwright.resources.packages.mirrored import PROBES, Taken, take
from hostwright.resources.packages.packaged import reinstall_script
from hostwright.resources.packages.packages import (
    DPKG,
    DPKG_LOCK,
    MIRROR_TRIES,
    PATIENTLY,
    Installed,
    dpkg_rows,
    dpkg_table,
    install_script,
    named_like,
)
from hostwright.stack.store.debs import PackageMirror

#: prefix of names of packages with kernel headers, also of the meta package for the newest kernel
HEADERS_NAME = "linux-headers-"
KERNEL_PACKAGES = ("linux-image-*", "linux-headers-*", "linux-generic*")


@dataclass(frozen=True, slots=True)
class KernelsAsBefore(RemovalState):
    """Kernel packages are held only if they were held before, and new headers are removed unless other packages need
    them.

    Kernels are never removed. Without a record of the original state nothing changes.
    """

    def probes(self) -> tuple[Probe, ...]:
        return DebsGone(()).probes()

    def plan(self, facts: Facts) -> Change | None:
        db = Database(facts)
        if db.before is None:
            return None
        kernels = sorted(name for name in db.present if named_like(name, KERNEL_PACKAGES))
        headers = tuple(name for name in kernels if name.startswith(HEADERS_NAME) and not db.was_there(name))
        gone = DebsGone(headers, label="kernel").plan(facts)
        unheld = tuple(name for name in kernels if db.became_held(name) and name not in headers)
        have = [gone.have] if gone is not None else []
        want = [gone.want] if gone is not None else []
        steps = gone.steps if gone is not None else ()
        if unheld:
            have += [f"{name} held" for name in unheld]
            want += ["kernel packages with their former holds"]
            unhold = mend_cut_script() + "\n" + PATIENTLY + " apt-mark unhold " + words(unheld)
            steps = (Step(unhold, DPKG_LOCK, timeout_s=1800, tries=MIRROR_TRIES), *steps)
        return Change("kernel packages", ", ".join(have), "; ".join(want), steps) if steps else None


#: shell command that sets ``$k`` to the running kernel's version without starting a process
RUNNING = "read -r k </proc/sys/kernel/osrelease; "
#: probe for the running kernel's headers at the path where dkms and driver installers search for headers
HEADERS = Probe(f'{RUNNING}test -e "/lib/modules/$k/build/Makefile"', shared=True)

#: probe for the installed kernels; prints nothing if the running kernel has its files or runs in a container
KERNEL_GONE = Probe(
    f'{RUNNING}[ -d "/lib/modules/$k" ] || [ -e "/boot/vmlinuz-$k" ] || systemd-detect-virt --quiet --container ||\n'
    'for i in /boot/vmlinuz-*; do v=${i#/boot/vmlinuz-}; [ ! -d "/lib/modules/$v" ] || echo "$v"; done; :',
    shared=True,
)


@dataclass(frozen=True, slots=True)
class KernelThere(Resource):
    r"""The running kernel's own files exist; without them no module can be built or loaded for this kernel.

    If the kernel's package was removed while the kernel ran, a reboot into an installed kernel is planned. Containers
    are left unchanged, because they cannot choose their kernel.

    >>> print(plan_text(KernelThere(), {"uname -rm": "6.1.0-9-amd64 x86_64\n", "/boot/vmlinuz-": "6.1.0-12-amd64\n"}))
    ~ running kernel: 6.1.0-9-amd64, removed → an installed kernel (6.1.0-12-amd64)
      then a reboot: the running kernel 6.1.0-9-amd64 has been removed, and 6.1.0-12-amd64 is installed
    """

    def probes(self) -> tuple[Probe, ...]:
        return (UNAME, KERNEL_GONE)

    def plan(self, facts: Facts) -> Reboot | None:
        others = facts[KERNEL_GONE].strip().splitlines()
        if not others:
            return None
        running = facts[UNAME].strip().partition(" ")[0]
        reason = f"the running kernel {running} has been removed, and {', '.join(others)} is installed"
        return Reboot("running kernel", f"{running}, removed", f"an installed kernel ({', '.join(others)})", reason)

    def removal(self) -> tuple[Resource, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class KernelPackages(Resource):
    r"""The headers of the running kernel are installed, and every installed kernel package is held.

    If the running kernel was removed, the change waits for the reboot (``KernelThere``). When the role is removed,
    Hostwright's holds are removed, and so are headers that Hostwright installed, unless other packages need them.
    Kernels are kept.

    >>> answers = {"uname -rm": "6.1.0-9-amd64 x86_64\n", "dpkg-query": "linux-image-amd64\t6.1\tii \n"}
    >>> print(plan_text(KernelPackages(), answers))
    ~ kernel packages: linux-headers-6.1.0-9-amd64 absent, linux-image-amd64 not held
    → headers of the running kernel, every kernel package held
    """

    #: mirror from which the host gets the packages; default: the host's own sources
    mirror: PackageMirror | None = field(default=None, repr=False, metadata=NO_IDENTITY)

    def probes(self) -> tuple[Probe, ...]:
        return (*dict.fromkeys((UNAME, HEADERS, DPKG, KERNEL_GONE, *(PROBES if self.mirror else ()))),)

    def plan(self, facts: Facts) -> Change | Deferred | Refusal | None:
        change = self._plan(facts)
        if change is None or not facts[KERNEL_GONE].strip():
            return change
        return Deferred(change.what, change.have, change.want, "reboot")

    def _plan(self, facts: Facts) -> Change | Refusal | None:
        headers = _headers_of(facts)
        has_headers = facts[HEADERS].ok
        loose = tuple(row.name for row in dpkg_rows(facts, is_loose_kernel))
        if has_headers and not loose:
            return None
        lacking = [] if has_headers else [f"{headers} {ABSENT}"]
        row = dpkg_table(facts).get(headers)
        again = row is not None and row.present
        taken = Taken() if has_headers else take(self.mirror, facts, self._again(facts) if again else (headers,))
        what, have = "kernel packages", ", ".join([*lacking, *(f"{name} not held" for name in loose)])
        want = "headers of the running kernel, every kernel package held"
        if taken.lacking:
            return taken.refusal(what, have, want)
        script = []
        if not has_headers:
            script.append(
                self._headers_again(headers, facts, taken)
                if again
                else install_script((headers,), mirrored=taken.files)
            )
        step = Step("\n".join([*script, _HOLD]), lock=DPKG_LOCK, timeout_s=1800, tries=MIRROR_TRIES)
        return Change(what, have, want + taken.noted, (step,), artifacts=taken.names)

    def _parts(self, facts: Facts) -> tuple[Installed, ...]:
        found = self.mirror.closure(distribution_of(facts), (_headers_of(facts),)) if self.mirror else ()
        table = dpkg_table(facts)
        names = (deb.package for deb in found if named_like(deb.package, KERNEL_PACKAGES))
        return tuple(row for name in names if (row := table.get(name)) and row.present)

    def _again(self, facts: Facts) -> tuple[str, ...]:
        return tuple(f"{row.name}={row.version}" for row in self._parts(facts)) or (_headers_of(facts),)

    def _headers_again(self, headers: str, facts: Facts, taken: Taken) -> str:
        if taken.files:
            return reinstall_script(self._parts(facts), "", taken.files)
        return _headers_again(headers)

    def packages_for(self, facts: Facts | None, /) -> tuple[str, ...]:
        if facts is None or UNAME not in facts or (HEADERS in facts and facts[HEADERS].ok):
            return ()
        return (_headers_of(facts),)

    def from_mirror(self, mirror: PackageMirror, /) -> KernelPackages:
        return replace(self, mirror=mirror)

    def software(self, facts: Facts) -> tuple[Software, ...]:
        kernels = (name for name, row in dpkg_table(facts).items() if row.present and named_like(name, KERNEL_PACKAGES))
        return tuple(deb_software(facts, name) for name in kernels)

    def removal(self) -> tuple[Resource, ...]:
        return (KernelsAsBefore(),)


def _headers_of(facts: Facts) -> str:
    return f"linux-headers-{facts[UNAME].strip().split(' ')[0]}"


def is_loose_kernel(row: Installed) -> bool:
    """Whether ``row`` is an installed kernel package that is not held; a filter for ``dpkg_rows``."""
    return row.present and not row.held and named_like(row.name, KERNEL_PACKAGES)


def _headers_again(package: str) -> str:
    values = {"package": package, "apt_options": APT_OPTIONS, "patiently": PATIENCE}
    return LISTS + sh_file(__file__, "sh/headers_again.sh", **values).rstrip("\n")


#: shell command that holds the installed kernel packages, also those that apt chose after the plan
_HOLD = (
    "dpkg-query -W -f='${db:Status-Status} ${Package}\\n' "
    + words(KERNEL_PACKAGES)
    + " 2>/dev/null | sed -n 's/^installed //p' | xargs -r "
    + HOLD
)


@dataclass(frozen=True, slots=True)
class Initramfs(Resource):
    """The running kernel's initramfs is newer than a file, so that it contains the file.

    The change rebuilds the initramfs of all installed kernels. A host without an initramfs (a container, a kernel with
    built-in drivers) is left unchanged. When the role is removed, the state that removes the file rebuilds the
    initramfs.

    >>> print(plan_text(Initramfs("/etc/modprobe.d/no-floppy.conf")))
    ~ initramfs: older than /etc/modprobe.d/no-floppy.conf → rebuilt
    """

    after: str  #: path of the file that the initramfs must contain, for example a modprobe configuration

    def probes(self) -> tuple[Probe, ...]:
        script = 'i=/boot/initrd.img-$k; [ ! -e "$i" ] || [ ! %s -nt "$i" ]'
        return (Probe(RUNNING + sh(script, self.after), shared=True),)

    def plan(self, facts: Facts) -> Change | None:
        if facts[self.probes()[0]].ok:
            return None
        return Change("initramfs", f"older than {self.after}", "rebuilt", (Step(UPDATE_INITRAMFS, lock=DPKG_LOCK),))

    def removal(self) -> tuple[Resource, ...]:
        return ()


#: command that rebuilds the initramfs of all kernels; needs dpkg's lock, because dpkg's triggers do this too
UPDATE_INITRAMFS = "if command -v update-initramfs >/dev/null; then update-initramfs -u -k all; fi"
