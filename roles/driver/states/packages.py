"""NVIDIA driver from packages: exactly the stack's packages, held, with the matching module in the kernel.

After the old module is unloaded, one run of apt installs all packages, and DKMS builds the module during this run.
Damaged packages are reinstalled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from hostwright.resources import (
    ABSENT,
    DPKG_LOCK,
    KERNEL_GONE,
    MIRROR_TRIES,
    NO_IDENTITY,
    UNAME,
    AptComponents,
    Change,
    Debs,
    DebsGone,
    Deferred,
    Facts,
    PackageMirror,
    Planned,
    Probe,
    Reboot,
    Refusal,
    Resource,
    Software,
    Step,
    dpkg_table,
    few,
    named_like,
    reinstall_script,
    signed_repository,
)
from hostwright.roles import Stack, sh_file
from hostwright.standard.roles.driver.section import DriverSection
from hostwright.standard.roles.driver.states import steps
from hostwright.standard.roles.driver.states.gpu_use import DISPLAY, SECURE_BOOT, display, unsigned_refused
from hostwright.standard.roles.driver.states.nouveau import NOUVEAU, boots_first
from hostwright.standard.roles.driver.states.runfile import LIBRARIES, REPLACES, DriverState

COMPONENTS = "/etc/apt/sources.list.d/hostwright-driver.list"

#: name patterns of packages with a kernel module: built by DKMS, or precompiled
_MODULE = ("*-dkms", "nvidia-dkms-*", "linux-modules-nvidia-*", "linux-objects-nvidia-*", "linux-signatures-nvidia-*")


def sources(section: DriverSection, stack: Stack) -> Iterator[Resource]:
    """Yield the apt source of the driver's packages: a repository, or components of the distribution's archive."""
    if section.components:
        yield AptComponents(COMPONENTS, section.components)
    if section.repository:
        yield from signed_repository(section.repository, stack)


@dataclass(frozen=True, slots=True)
class NvidiaPackages(Resource):
    """The driver packages ``packages`` are installed at exact versions and held, and their module is built and loaded.

    ``force`` and ``allowed`` are as in ``NvidiaRunfile``. Without ``force``, a host with a display is refused if a
    loaded module must be unloaded.
    """

    packages: tuple[str, ...]  #: packages to install, each as ``name=version``
    version: str
    source: str = ""  #: path of the source list for the packages; empty: the host's own sources
    force: bool = field(default=False, metadata=NO_IDENTITY)
    allowed: bool = field(default=False, metadata=NO_IDENTITY)
    #: package mirror to install from; ``None``: the host's apt sources
    mirror: PackageMirror | None = field(default=None, repr=False, metadata=NO_IDENTITY)
    #: package names of the precompiled module, without the kernel version at the end
    precompiled: tuple[str, ...] = ()

    @property
    def _debs(self) -> Debs:
        return Debs(self.packages, hold=True, source=self.source, mirror=self.mirror)

    def _modules(self, facts: Facts) -> tuple[str, ...]:
        kernel = facts[UNAME].text.strip().partition(" ")[0] if UNAME in facts else ""
        return tuple(f"{name}-{kernel}" for name in self.precompiled) if kernel else ()

    @property
    def state_probe(self) -> Probe:
        """Probe for the driver's module and libraries. ``DriverState`` parses the output."""
        return Probe(sh_file(__file__, "sh/packaged.sh", version=self.version, libraries=LIBRARIES), root=True)

    def probes(self) -> tuple[Probe, ...]:
        return (*self._debs.probes(), self.state_probe, NOUVEAU, KERNEL_GONE, SECURE_BOOT, DISPLAY, UNAME)

    def plan(self, facts: Facts) -> Planned | None:
        state = DriverState.read(facts[self.state_probe].text)
        debs = replace(self._debs, rehearsed=bool(state.loaded))
        planned = debs.plan(facts)
        if modules := self._modules(facts):
            warnings = planned.warnings if isinstance(planned, Change) else ()
            planned = replace(debs, packages=(*self.packages, *modules)).plan(facts)
            planned = replace(planned, warnings=warnings) if isinstance(planned, Change) else planned
        if planned is not None:
            return self._install(planned, state, facts) if isinstance(planned, Change) else planned
        return self._installed(state, facts)

    def _installed(self, state: DriverState, facts: Facts) -> Planned | None:
        return self._links(state, facts) or self._module(state, facts) or self._loaded(state, facts)

    def _install(self, change: Change, state: DriverState, facts: Facts) -> Planned:
        """Add steps to ``change`` that unload the old module and load the new module.

        A change of package holds alone disturbs no running work.
        """
        table = dpkg_table(facts)
        words = [word.partition("=")[::2] for word in (*self.packages, *self._modules(facts))]
        if all((row := table.get(name)) and row.present and version in {"", row.version} for name, version in words):
            later = self._installed(state, facts)
            follows = (f"a reboot follows: {later.reason}",) if isinstance(later, Reboot) else ()
            return replace(change, warnings=(*change.warnings, *follows))
        what, want = "NVIDIA driver", f"{self.version}, from {len(self.packages)} packages, held, loaded"
        have = change.have if any(word.partition("=")[0] in table for word in self.packages) else str(state)
        if boots_first(facts):
            return Deferred(what, have, want, "reboot", change.artifacts)
        if sentence := self._unsigned(facts):
            return Refusal(what, have, want, "secure-boot", sentence)
        if sentence := _shown(facts, "replaced") if state.loaded and not self.force else "":
            return Refusal(what, have, want, "display", sentence)
        unload = (Step(steps.unload(force=self.force, build=False), timeout_s=300),) if state.loaded else ()
        # The rehearsal runs first, so that the module stays loaded if apt cannot install the packages.
        *rehearsal, install = change.steps
        todo = (*rehearsal, *unload, install, Step(steps.LOAD, timeout_s=300))
        return replace(
            change,
            what=what,
            have=have,
            want=want,
            steps=todo,
            disturbs=REPLACES if unload and not self.allowed else "",
        )

    def _unsigned(self, facts: Facts) -> str:
        """Return the reason why Secure Boot would reject the module that DKMS builds; else empty."""
        built = any(named_like(word.partition("=")[0], ("*-dkms", "nvidia-dkms-*")) for word in self.packages)
        return unsigned_refused(facts) if built else ""

    def _again(self, facts: Facts, *, module: bool) -> Step:
        table = dpkg_table(facts)
        names = [word.partition("=")[0] for word in (*self.packages, *self._modules(facts))]
        rows = tuple(table[name] for name in names if name in table and named_like(name, _MODULE) == module)
        return Step(reinstall_script(rows, self.source), DPKG_LOCK, timeout_s=3600, tries=MIRROR_TRIES)

    def _links(self, state: DriverState, facts: Facts) -> Planned | None:
        if state.linked(self.version):
            return None
        others = [path for path in state.libraries if path and not path.endswith(f".{self.version}")]
        want = f"libraries of {self.version}"
        if others:
            sentence = (
                f"{few(others)} takes precedence over the library from the driver packages; remove that file and "
                "run `ldconfig`"
            )
            return Refusal("NVIDIA driver", str(state), want, "other-library", sentence)
        return Change("NVIDIA driver", str(state), want, (self._again(facts, module=False),))

    def _module(self, state: DriverState, facts: Facts) -> Planned | None:
        """Plan to reinstall the packages with the module if the module on disk has another version. A loaded module
        stays loaded.
        """
        if state.module == self.version:
            return None
        want = f"{self.version}, of its package"
        if state.module and (modules := self._modules(facts)):
            sentence = (
                f"{modules[0]} has the module of driver {state.module}, but the stack has driver {self.version}; "
                "set that driver and its packages in the stack, or boot a kernel with the module of the stack's "
                "driver"
            )
            return Refusal("NVIDIA kernel module", str(state), want, "precompiled-module", sentence)
        if boots_first(facts):
            return Deferred("NVIDIA kernel module", str(state), want, "reboot")
        if sentence := self._unsigned(facts):
            return Refusal("NVIDIA kernel module", str(state), want, "secure-boot", sentence)
        load = () if state.loaded else (Step(steps.LOAD, timeout_s=300),)
        return Change("NVIDIA kernel module", str(state), want, (self._again(facts, module=True), *load))

    def _loaded(self, state: DriverState, facts: Facts) -> Planned | None:
        if state.loaded not in {"", self.version}:
            reason = f"driver {state.loaded} is loaded and {self.version} is installed"
            return Reboot("NVIDIA driver", str(state), self.version, reason)
        if state.loaded and state.kind and state.loaded_kind not in (None, state.kind):
            reason = f"the {state.loaded_kind} kernel module is loaded and the {state.kind} one is installed"
            return Reboot("NVIDIA driver", str(state), f"the {state.kind} one", reason)
        if state.loaded and state.uvm:
            return None
        what, have = "NVIDIA kernel module", "nvidia-uvm not loaded" if state.loaded else "not loaded"
        if boots_first(facts):
            return Deferred(what, have, "loaded", "reboot")
        if sentence := self._unsigned(facts):
            return Refusal(what, have, "loaded", "secure-boot", sentence)
        return Change(what, have, "loaded", (Step(steps.LOAD, timeout_s=300),))

    def waits_for_reboot(self, facts: Facts) -> bool:
        """Return whether the driver cannot run before a reboot, or another module stays loaded until a reboot."""
        return boots_first(facts) or isinstance(self.plan(facts), Reboot)

    def packages_for(self, facts: Facts | None, /) -> tuple[str, ...]:
        """Return the driver packages of the host's own apt sources; empty if the stack names a repository."""
        modules = self._modules(facts) if facts is not None and not self.source else ()
        return (*self._debs.packages_for(facts), *modules)

    def packages_from(self, list_file: str, /) -> tuple[str, ...]:
        """Return the driver packages if the apt source list ``list_file`` provides them, else nothing."""
        return self._debs.packages_from(list_file)

    def from_mirror(self, mirror: PackageMirror, /) -> NvidiaPackages:
        return replace(self, mirror=mirror)

    def notes(self, facts: Facts) -> tuple[str, ...]:
        half = DriverState.read(facts[self.state_probe].text).half_upgraded
        return (half,) if half else ()

    def software(self, facts: Facts) -> tuple[Software, ...]:
        state = DriverState.read(facts[self.state_probe].text)
        driver = Software("driver", "nvidia-driver", state.version, self.version, brought=True)
        return (driver, *self._debs.software(facts))

    def removal(self) -> tuple[Resource, ...]:
        names = tuple(word.partition("=")[0] for word in self.packages)
        patterns = tuple(f"{name}-[0-9]*" for name in self.precompiled)
        return (DriverPackagesGone(names, self.force, self.allowed, patterns),)


def _shown(facts: Facts, what: str) -> str:
    shown = display(facts)
    sentence = f"the driver must be {what}, but the GPU drives a display ({shown}); "
    return f"{sentence}stop the display first, or set driver_force: true to stop it" if shown else ""


LOADED = Probe('read -r version </sys/module/nvidia/version; echo "$version"')


@dataclass(frozen=True, slots=True)
class DriverPackagesGone(Resource):
    """The driver packages that Hostwright installed are removed, and their module is unloaded."""

    packages: tuple[str, ...]
    force: bool = field(default=False, metadata=NO_IDENTITY)
    allowed: bool = field(default=False, metadata=NO_IDENTITY)
    patterns: tuple[str, ...] = ()  #: name patterns of further packages to remove, such as modules for all kernels

    def probes(self) -> tuple[Probe, ...]:
        return (*DebsGone(self.packages).probes(), LOADED, DISPLAY)

    def plan(self, facts: Facts) -> Change | Refusal | None:
        modules = (name for name, row in dpkg_table(facts).items() if row.present and named_like(name, self.patterns))
        change = DebsGone((*self.packages, *modules)).plan(facts)
        loaded = facts[LOADED].strip()
        if change is None or not loaded or ABSENT not in change.want:
            return change
        if sentence := _shown(facts, "removed") if not self.force else "":
            return Refusal("NVIDIA driver", loaded, ABSENT, "display", sentence)
        unload = Step(steps.unload(force=self.force, build=False), timeout_s=300)
        returned = Step(steps.returned(start=False))
        disturbs = "" if self.allowed else "takes the driver away"
        return replace(change, steps=(unload, *change.steps, returned), disturbs=disturbs)

    def removal(self) -> tuple[Resource, ...]:
        return ()
