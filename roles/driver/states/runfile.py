"""The NVIDIA driver from its ``.run`` installer: installed, built by DKMS, loaded, all at one version.

Four versions are compared: the user-space libraries, the module on disk for the running kernel, the module in the
kernel, and the stack's; of both modules also the kind, where the driver has more than one. The difference decides what
to do, from the least to the most disruptive: load, rebuild the module, run the installer, reboot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from hostwright.resources import (
    ABSENT,
    DPKG,
    KERNEL_GONE,
    NO_IDENTITY,
    PCI,
    RELEASE,
    Change,
    Deferred,
    Facts,
    NamedLike,
    Planned,
    Probe,
    Reboot,
    Refusal,
    Resource,
    Software,
    Step,
    display_controllers,
    dpkg_rows,
    few,
    host_path,
    kept_aside,
)
from hostwright.roles import Artifact, Pattern, sh_file
from hostwright.standard.roles.driver.modules import (
    Kind,
    installer_flags,
    kind_of_license,
    kinds_of,
    module_kind,
    signing_flags,
    unloaded_flags,
)
from hostwright.standard.roles.driver.section import DRIVER_PACKAGES, NOT_DRIVER
from hostwright.standard.roles.driver.states import steps
from hostwright.standard.roles.driver.states.gpu_use import DISPLAY, SECURE_BOOT, display, signing_key, unsigned_refused
from hostwright.standard.roles.driver.states.nouveau import NOUVEAU, boots_first
from hostwright.standard.roles.driver.states.removal import DriverGone, provisioned

#: what may be set aside, whatever a host says: a library of a driver, in a directory of the loader
_OTHER = Pattern(r"/(?:[^/]+/)+lib(?:cuda|nvidia-[a-z0-9-]+)\.so\.[0-9.]+")
#: likewise: a module of the driver, of some kernel
_STRAY = Pattern(
    r"(?:/usr)?/lib/modules/(?:[^/.][^/]*/)+nvidia(?:-uvm|-modeset|-drm|-peermem)?\.ko(?:\.(?:gz|xz|zst))?"
)
_VERSION = Pattern(r"[0-9]{1,9}(?:\.[0-9]{1,9})+")

#: where everybody's libraries lie: a file in such a directory is out of place, not the line that names the directory
_SYSTEM = Pattern(r"(?:/usr(?:/local)?)?/lib(?:64)?(?:/x86_64-linux-gnu)?")

#: What the installer disturbs: the loaded module must be removed from the kernel.
REPLACES = "replaces the driver"

#: what the state probe prints of the module in the kernel
_KINDS: Mapping[str, Kind] = {"open": "open", "proprietary": "proprietary"}

#: Without these no program runs on the GPU; the record of the installation covers the rest.
LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")
_NEEDED_PROGRAMS = ("nvidia-smi", "nvidia-modprobe", "nvidia-persistenced")


@dataclass(frozen=True, slots=True)
class Shadow:
    """A library that the loader opens in place of the driver's, and that ldconfig puts first again after any step."""

    path: str  #: as the loader's cache names it
    file: str  #: what it leads to
    package: str  #: that brought the file; empty: none did
    named_by: str  #: file and line that name its directory to ldconfig; empty: none does

    @classmethod
    def read(cls, text: str) -> Shadow:
        """A value of ``shadow=``."""
        path, file, package, named_by = (*text.split("\t"), "", "", "")[:4]
        return cls(path, file, package, named_by)

    def __str__(self) -> str:
        if self._by_line:
            return f"{self.named_by} names the directory of {self.path}, which wins over the driver's"
        package = f" of the package {self.package}" if self.package else ""
        leads = f", which leads to {self.file}{package}," if self._leads else package
        return f"{self.path}{leads} wins over the driver's"

    @property
    def cure(self) -> str:
        """What to do, as the beginning of a sentence."""
        if self._by_line:
            return f"take that line out of {self.named_by.rpartition(':')[0]}"
        of_package = self.package and not self._leads
        return f"remove the package {self.package}" if of_package else f"remove {self.path}"

    @property
    def _leads(self) -> bool:
        """Whether it is a link; /lib itself is one on newer systems."""
        return self.file.removeprefix("/usr") != self.path.removeprefix("/usr")

    @property
    def _by_line(self) -> bool:
        return bool(self.named_by) and not _SYSTEM.fullmatch(self.path.rpartition("/")[0])


@dataclass(frozen=True, slots=True)
class DriverState:
    """What a host has of the driver; missing parts are empty."""

    module: str  #: version of the module on disk for the running kernel
    loaded: str  #: version of the module in the kernel
    libraries: tuple[str, ...]  #: the file that the loader would open for each library
    lost: tuple[str, ...]  #: files that are missing or differ from the installed ones
    dkms: bool  #: DKMS has built this version for the running kernel
    source: bool  #: and has what it needs to build it for the next kernel
    uvm: bool
    cut: bool  #: an installation was begun but not finished
    record: bool
    ours: str = ""  #: the version that Hostwright recorded as installed
    theirs: bool = False  #: that one was somebody else's, and only recorded
    others: tuple[str, ...] = ()  #: libraries of other versions, of no package: opened, or beside those that are
    strays: tuple[str, ...] = ()  #: modules of another version, of no package, that win over DKMS's, and their siblings
    packaged: tuple[str, ...] = ()  #: those of packages: ``PATH, of the package NAME``
    preferred: tuple[str, ...] = ()  #: lines of ``depmod.d`` that prefer another directory's: ``FILE:LINE``
    holders: tuple[str, ...] = ()  #: modules of others that use the driver's: it cannot be unloaded before them
    shadows: tuple[Shadow, ...] = ()  #: libraries that win in the loader's cache, whatever links lead to
    unlinked: tuple[str, ...] = ()  #: links to the recorded libraries that are missing, or lead elsewhere
    kind: Kind | None = None  #: of the module on disk
    loaded_kind: Kind | None = None  #: of the module in the kernel

    @classmethod
    def read(cls, text: str) -> DriverState:
        """The state in the answer to the state probe."""
        pairs = [line.partition("=")[::2] for line in text.splitlines() if "=" in line]
        values = dict(pairs)

        def all_of(name: str) -> tuple[str, ...]:
            return tuple(dict.fromkeys(value for key, value in pairs if key == name))

        return cls(
            module=values.get("module", ""),
            loaded=values.get("loaded", ""),
            libraries=tuple(values.get(name, "") for name in LIBRARIES),
            lost=all_of("lost"),
            dkms="dkms" in values,
            source="source" in values,
            uvm="uvm" in values,
            cut="cut" in values,
            record="record" in values,
            ours=values.get("ours", ""),
            theirs="theirs" in values,
            others=tuple(filter(_OTHER.fullmatch, all_of("other"))),
            strays=tuple(filter(_STRAY.fullmatch, all_of("stray"))),
            packaged=all_of("packaged"),
            preferred=all_of("preferred"),
            holders=all_of("holder"),
            shadows=tuple(map(Shadow.read, all_of("shadow"))),
            unlinked=all_of("unlinked"),
            kind=kind_of_license(values.get("license", "")),
            loaded_kind=_KINDS.get(values.get("loaded kind", "")),
        )

    @property
    def version(self) -> str:
        """The version of the libraries, else of the module; empty if there is neither."""
        name = self.libraries[0].rpartition("/")[2].removeprefix("libcuda.so.")
        known = name if _VERSION.fullmatch(name) else ""
        return known or self.module or self.loaded

    @property
    def absent(self) -> bool:
        """Whether there is no trace of any driver."""
        return not (self.module or self.loaded or any(self.libraries))

    def lost_to(self, version: str, *, provisioned: bool) -> tuple[str, ...]:
        """The driver of somebody else's that an installation of this version takes away; empty if there is none.

        Nobody has its installer here, so nothing brings it back. ``provisioned`` is whether this role was here before.
        """
        former = self.version
        mine = self.cut or (former == self.ours and not self.theirs) or (provisioned and not self.ours)
        lost = former not in {"", version} and not mine
        return (f"the driver {former} that somebody else installed",) if lost else ()

    @property
    def half_upgraded(self) -> str:
        """That libraries and loaded module are of two versions, as a sentence; empty where they are not."""
        library = self.libraries[0].rpartition("/")[2].removeprefix("libcuda.so.")
        if not self.loaded or not _VERSION.fullmatch(library) or library == self.loaded:
            return ""
        return (
            f"its driver is half upgraded: the libraries are {library} and the module in the kernel is {self.loaded}, "
            "so that programs find no GPU (Driver/library version mismatch)"
        )

    def linked(self, version: str) -> bool:
        """Whether the loader finds each library's file of this version under its name."""
        names = (path.rpartition("/")[2] for path in self.libraries)
        return all(name == wanted[:-1] + version for name, wanted in zip(names, LIBRARIES, strict=True))

    def winning(self, version: str) -> tuple[str, ...]:
        """The other libraries that the loader opens, or opens after the next ldconfig: it links to the newest file."""
        wanted = numbers(version)
        return tuple(
            path for path in self.others if path in self.libraries or numbers(path.rpartition(".so.")[2]) > wanted
        )

    def __str__(self) -> str:
        """The state in the words of the plan."""
        if self.absent:
            return ABSENT
        pairs = zip(LIBRARIES, self.libraries, strict=True)
        shadows = {shadow.file: shadow.path for shadow in self.shadows}
        links = ", ".join(f"{name} is {shadows.get(path, path.rpartition('/')[2]) or ABSENT}" for name, path in pairs)
        wins = next((f" ({file})" for file in (*self.strays, *self.packaged)), "")
        return f"{links}; module {self.module or ABSENT}{wins}, loaded {self.loaded or 'none'}"


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a driver's version; none for a text that is not one."""
    return tuple(map(int, version.split("."))) if _VERSION.fullmatch(version) else ()


@dataclass(frozen=True, slots=True)
class NvidiaRunfile(Resource):
    """This version of the driver, installed by its own installer with DKMS, and loaded.

    With ``force``, the driver is replaced even if processes or a display use the GPU, and these are ended. Without it,
    a host with a display is refused if the installer has to run, and replacing a loaded driver is a change that
    ``disturbs``.
    """

    artifact: Artifact
    version: str
    flags: tuple[str, ...] = ()
    force: bool = field(default=False, metadata=NO_IDENTITY)
    #: the inventory allows it (``driver_force``): whoever uses the GPU is neither waited for nor named
    allowed: bool = field(default=False, metadata=NO_IDENTITY)
    module: str = "auto"  #: the kind of its kernel module: ``open``, ``proprietary``, or what branch and cards need

    def kind(self, facts: Facts) -> Kind:
        """The kind of kernel module that this host gets. Reads ``PCI``."""
        cards = tuple((card.vendor, card.device) for card in display_controllers(facts))
        return module_kind(self.module, self.version, cards)

    @property
    def state_probe(self) -> Probe:
        """Everything about the driver on the host, in a single probe."""
        script = sh_file(
            __file__,
            "sh/runfile.sh",
            version=self.version,
            installing=steps.INSTALLING,
            record=steps.RECORD,
            libraries=LIBRARIES,
            links=steps.LINKS,
            programs=_NEEDED_PROGRAMS,
        )
        return Probe(steps.HELD_BY + script, root=True)

    def probes(self) -> tuple[Probe, ...]:
        return (self.state_probe, DPKG, NOUVEAU, KERNEL_GONE, SECURE_BOOT, DISPLAY, RELEASE, PCI)

    def plan(self, facts: Facts) -> Planned | None:
        state = DriverState.read(facts[self.state_probe].text)
        if shadowed := self._shadowed(state, facts):
            return shadowed
        if reasons := self._install_reasons(state, facts):
            return self._install(state, ABSENT if state.absent else "; ".join(reasons), facts)
        return (
            self._links(state) or self._module(state, facts) or self._loaded(state, facts) or self._record(state, facts)
        )

    def losses(self, facts: Facts) -> tuple[str, ...]:
        state = DriverState.read(facts[self.state_probe].text)
        if driver_packages(facts) or not self._install_reasons(state, facts):  # packages can be installed again
            return ()
        return state.lost_to(self.version, provisioned=provisioned(facts))

    def notes(self, facts: Facts) -> tuple[str, ...]:
        half = DriverState.read(facts[self.state_probe].text).half_upgraded
        return (half,) if half else ()

    def software(self, facts: Facts) -> tuple[Software, ...]:
        state = DriverState.read(facts[self.state_probe].text)
        ours = state.version == self.version and not state.theirs
        planned = self.plan(facts) if ours else None
        artifact = self.artifact if ours else None
        flaw = planned.have if planned else ""
        return (Software("driver", "nvidia-driver", state.version, self.version, flaw, artifact, brought=True),)

    def removal(self) -> tuple[Resource, ...]:
        return (DriverGone(self.force, self.allowed),)

    def waits_for_reboot(self, facts: Facts) -> bool:
        """Whether our driver cannot run before a reboot, or another version stays in the kernel until then."""
        if boots_first(facts):
            return True
        state = DriverState.read(facts[self.state_probe].text)
        other = state.loaded not in {"", self.version} or self._wrong(state.loaded_kind, facts)
        return other and not self._install_reasons(state, facts)

    def _install_reasons(self, state: DriverState, facts: Facts) -> list[str]:
        """Why the installer must run; empty if it need not. Wrong links alone are corrected without it."""
        foreign = driver_packages(facts)
        intact = state.record and not state.lost
        return [
            *(["an installation that was not completed"] if state.cut else []),
            *([f"packages of another driver ({', '.join(foreign)})"] if foreign else []),
            *([str(state)] if not state.linked(self.version) and not (intact and state.source) else []),
            *([f"missing or changed: {', '.join(state.lost)}"] if state.lost else []),
            *(["no sources for DKMS"] if not state.source and state.version in {"", self.version} else []),
            *([f"its {state.kind} kernel module"] if self._wrong(state.kind, facts) else []),
        ]

    def _wrong(self, kind: Kind | None, facts: Facts) -> bool:
        """Whether a module is of another kind than this host gets; a driver with one kind alone is never wrong."""
        return kind is not None and len(kinds_of(self.version)) > 1 and kind != self.kind(facts)

    def _install(self, state: DriverState, have: str, facts: Facts) -> Change | Deferred | Refusal:
        kinds = f" with its {self.kind(facts)} kernel module" if len(kinds_of(self.version)) > 1 else ""
        what, want = "NVIDIA driver", f"{self.version}{kinds}, by DKMS, loaded"
        waits = boots_first(facts)
        builds = not (facts[KERNEL_GONE].strip() or state.loaded or display(facts))
        unloaded = unloaded_flags(self.version) if waits and builds else ()
        if waits and not unloaded:  # the file is still named: a missing file must be noticed before the reboot
            return Deferred(what, have, want, "reboot", (self.artifact.name,))
        if sentence := unsigned_refused(facts):
            return Refusal(what, have, want, "secure-boot", sentence)
        if sentence := self._shown(facts):
            return Refusal(what, have, want, "display", sentence)
        if state.holders:
            sentence = (
                f"the kernel module {few([*state.holders])}, of somebody else, uses the loaded driver, which cannot be "
                f"replaced before: end what uses it, then modprobe -r {' '.join(state.holders)} on the host"
            )
            return Refusal(what, have, want, "module-held", sentence)
        signing = signing_flags(self.version, *signing_key(facts))
        flags = (*installer_flags(self.version, self.kind(facts)), *signing, *unloaded, *self.flags)
        run = steps.install(host_path(self.artifact), self.version, flags)
        unload, install = Step(steps.unload(force=self.force), timeout_s=300), Step(run, timeout_s=3600)
        load = () if waits else (Step(steps.LOAD),)
        want = f"{want} after the reboot" if waits else want
        todo = (unload, install, *_set_aside(state), *load)
        disturbs = REPLACES if state.loaded and not self.allowed else ""
        aside = kept_aside("DKMS", state.strays)
        return Change(what, have, want, todo, artifacts=(self.artifact.name,), disturbs=disturbs, warnings=aside)

    def _shadowed(self, state: DriverState, facts: Facts) -> Refusal | None:
        """No step of ours lasts while the loader's cache has another library first, but that of a driver's package."""
        if not state.shadows or driver_packages(facts):
            return None
        by_cure = {shadow.cure: str(shadow) for shadow in reversed(state.shadows)}
        sentence = f"{'; '.join(by_cure.values())}: {', and '.join(by_cure)}, then run ldconfig"
        return Refusal("NVIDIA driver", str(state), f"links to {self.version}", "other-library", sentence)

    def _links(self, state: DriverState) -> Change | None:
        winning = state.winning(self.version)
        if state.linked(self.version) and not winning and not state.unlinked:
            return None
        beside = (f"newer libraries beside it: {few([*winning])}",) if winning else ()
        wrong = (f"missing or leading elsewhere: {few([*state.unlinked])}",) if state.unlinked else ()
        have = "; ".join((*beside, *wrong)) if state.linked(self.version) else str(state)
        want = f"links to {self.version}" + (f", without {few([*winning])}" if winning else "")
        step = Step(steps.relink(self.version, winning))
        return Change("NVIDIA driver", have, want, (step,), warnings=kept_aside("the driver", winning))

    def _module(self, state: DriverState, facts: Facts) -> Planned | None:
        """DKMS builds the module from the installed sources; the loaded module stays in the kernel."""
        wrong = state.module != self.version or state.strays or state.packaged
        if state.dkms and not wrong:
            return None
        have = str(state) if wrong else "not built by DKMS for the running kernel"
        if state.packaged and state.dkms:
            sentence = (
                f"{state.packaged[0]}, wins over the module that DKMS built: remove that package"
                f"{''.join(f', or the line {line}' for line in state.preferred)}, then run depmod -a"
            )
            return Refusal("NVIDIA kernel module", have, f"{self.version}, by DKMS, loaded", "other-module", sentence)
        todo = (*_set_aside(state), Step(steps.rebuild(self.version)), *self._load(state))
        return self._kernel_change(have, facts, todo, (*kept_aside("DKMS", state.strays), *_preferring(state)))

    def _loaded(self, state: DriverState, facts: Facts) -> Planned | None:
        if state.loaded and state.loaded != self.version:
            reason = f"driver {state.loaded} is loaded and {self.version} is installed"
            return Reboot("NVIDIA driver", str(state), self.version, reason)
        if state.loaded and self._wrong(state.loaded_kind, facts):
            have, kind = f"the {state.loaded_kind} kernel module loaded", self.kind(facts)
            reason = f"the {state.loaded_kind} kernel module is loaded and the {kind} one is installed"
            return Reboot("NVIDIA driver", have, f"the {kind} one", reason)
        todo = self._load(state)
        have = "nvidia-uvm not loaded" if state.loaded else "not loaded"
        return self._kernel_change(have, facts, todo) if todo else None

    def _load(self, state: DriverState) -> tuple[Step, ...]:
        """Loads the modules; a module does not work with one of another version that is still in the kernel."""
        complete = state.loaded == self.version and state.uvm
        return () if complete or state.loaded not in {"", self.version} else (Step(steps.LOAD, timeout_s=300),)

    def _record(self, state: DriverState, facts: Facts) -> Change | None:
        step = Step(steps.record(self.version, theirs=not provisioned(facts)))
        return None if state.record else Change("NVIDIA driver", "files not recorded", "recorded", (step,))

    def _kernel_change(
        self, have: str, facts: Facts, todo: tuple[Step, ...], warnings: tuple[str, ...] = ()
    ) -> Change | Deferred | Refusal:
        what, want = "NVIDIA kernel module", f"{self.version}, by DKMS, loaded"
        if boots_first(facts):
            return Deferred(what, have, want, "reboot")
        if sentence := unsigned_refused(facts):
            return Refusal(what, have, want, "secure-boot", sentence)
        return Change(what, have, want, todo, warnings=warnings)

    def _shown(self, facts: Facts) -> str:
        """The sentence with which a host with a display is refused: a display cannot be drained."""
        shown = "" if self.force else display(facts)
        if not shown:
            return ""
        return (
            f"the driver must be replaced and the GPU shows a screen ({shown}): "
            "end that first, or set driver_force: true to have it ended"
        )


def _set_aside(state: DriverState) -> tuple[Step, ...]:
    return (Step(steps.modules_aside(state.strays)),) if state.strays else ()


def _preferring(state: DriverState) -> tuple[str, ...]:
    return (f"depmod.d prefers modules of another directory: {few([*state.preferred])}",) if state.preferred else ()


def driver_packages(facts: Facts, kept: tuple[str, ...] = NOT_DRIVER) -> tuple[str, ...]:
    """The installed packages of another driver; those that match ``kept`` are not."""
    return tuple(row.name for row in dpkg_rows(facts, NamedLike(DRIVER_PACKAGES, kept)))


class Loadable(Protocol):
    """The state of a driver, wherever it comes from."""

    @property
    def state_probe(self) -> Probe:
        """What ``DriverState`` reads."""

    def probes(self) -> tuple[Probe, ...]:
        """The questions on which ``waits_for_reboot`` stands."""

    def waits_for_reboot(self, facts: Facts, /) -> bool:
        """Whether the driver cannot run before a reboot."""


@dataclass(frozen=True, slots=True)
class WithDriver(Resource):
    """A resource that works only with the stack's driver in the kernel; if that needs a reboot, it comes afterwards."""

    driver: Loadable
    resource: Resource

    def probes(self) -> tuple[Probe, ...]:
        return (*self.driver.probes(), *self.resource.probes())

    def plan(self, facts: Facts) -> Planned | None:
        planned = self.resource.plan(facts)
        if planned is None or not self.driver.waits_for_reboot(facts):
            return planned
        return Deferred(planned.what, planned.have, planned.want, "reboot")

    def users(self, facts: Facts) -> tuple[str, ...]:
        return self.resource.users(facts)

    def software(self, facts: Facts) -> tuple[Software, ...]:
        return self.resource.software(facts)

    def removal(self) -> tuple[Resource, ...]:
        return self.resource.removal()
