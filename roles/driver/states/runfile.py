"""NVIDIA driver from its ``.run`` installer, with a module that DKMS builds, all at one version.

Four versions are compared: libraries, module on disk for the running kernel, loaded module, and the stack's driver. The
difference selects the least disruptive action: load the module, rebuild it, run the installer, reboot.
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

#: pattern of paths of driver libraries that the role may rename, in a directory of the loader
_OTHER = Pattern(r"/(?:[^/]+/)+lib(?:cuda|nvidia-[a-z0-9-]+)\.so\.[0-9.]+")
#: pattern of paths of driver modules that the role may rename, for any kernel
_STRAY = Pattern(
    r"(?:/usr)?/lib/modules/(?:[^/.][^/]*/)+nvidia(?:-uvm|-modeset|-drm|-peermem)?\.ko(?:\.(?:gz|xz|zst))?"
)
_VERSION = Pattern(r"[0-9]{1,9}(?:\.[0-9]{1,9})+")

#: pattern of system library directories. In these directories, a wrong library should be removed, not the directory's
#: line in ld.so.conf.
_SYSTEM = Pattern(r"(?:/usr(?:/local)?)?/lib(?:64)?(?:/x86_64-linux-gnu)?")

REPLACES = "replaces the driver"

#: text in the state probe's output for the kind of the loaded module → ``Kind``
_KINDS: Mapping[str, Kind] = {"open": "open", "proprietary": "proprietary"}

LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")
_NEEDED_PROGRAMS = ("nvidia-smi", "nvidia-modprobe", "nvidia-persistenced")


@dataclass(frozen=True, slots=True)
class Shadow:
    """Library that the loader opens in place of the driver's library, even after ldconfig."""

    path: str
    file: str  #: path of the file to which ``path`` leads
    package: str  #: name of the file's package; empty: none
    named_by: str  #: ``FILE:LINE`` that names the library's directory to ldconfig; empty: none

    @classmethod
    def read(cls, text: str) -> Shadow:
        path, file, package, named_by = (*text.split("\t"), "", "", "")[:4]
        return cls(path, file, package, named_by)

    def __str__(self) -> str:
        if self._by_line:
            return (
                f"{self.named_by} names the directory of {self.path}, which takes precedence over the driver's library"
            )
        package = f" of the package {self.package}" if self.package else ""
        leads = f", which leads to {self.file}{package}," if self._leads else package
        return f"{self.path}{leads} takes precedence over the driver's library"

    @property
    def cure(self) -> str:
        """Repair as an imperative clause, such as ``remove PATH``."""
        if self._by_line:
            return f"remove that line from {self.named_by.rpartition(':')[0]}"
        of_package = self.package and not self._leads
        return f"remove the package {self.package}" if of_package else f"remove {self.path}"

    @property
    def _leads(self) -> bool:
        return self.file.removeprefix("/usr") != self.path.removeprefix("/usr")

    @property
    def _by_line(self) -> bool:
        return bool(self.named_by) and not _SYSTEM.fullmatch(self.path.rpartition("/")[0])


@dataclass(frozen=True, slots=True)
class DriverState:
    """State of the driver on a host. Fields of missing parts are empty."""

    module: str  #: version of the driver's module on disk
    loaded: str  #: version of the driver's loaded module
    libraries: tuple[str, ...]  #: path of the file that the loader would open for each library of ``LIBRARIES``
    lost: tuple[str, ...]  #: driver files that are missing or differ from the installer's record
    dkms: bool  #: whether DKMS has built the driver's module for the running kernel
    source: bool  #: whether DKMS can build the driver's module for the next kernel
    uvm: bool
    cut: bool  #: whether an installation of the driver was interrupted
    record: bool
    ours: str = ""  #: driver version that Hostwright recorded as installed; empty: none
    theirs: bool = False  #: whether somebody else installed the driver version of ``ours``
    #: paths of driver libraries of other versions that belong to no package, in the loader's directories
    others: tuple[str, ...] = ()
    #: paths of modules outside packages that modprobe prefers to DKMS's
    strays: tuple[str, ...] = ()
    #: modules of packages that modprobe prefers to DKMS's: ``PATH, of the package NAME``
    packaged: tuple[str, ...] = ()
    #: lines of ``depmod.d`` that prefer another directory to DKMS's: ``FILE:LINE``
    preferred: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()  #: other modules that use the driver's module and must be unloaded first
    shadows: tuple[Shadow, ...] = ()  #: libraries that precede the driver's libraries in the loader's cache
    unlinked: tuple[str, ...] = ()  #: links to the driver's libraries that are missing or lead elsewhere
    kind: Kind | None = None
    loaded_kind: Kind | None = None

    @classmethod
    def read(cls, text: str) -> DriverState:
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
        """Version of the libraries, else of the module on disk, else of the loaded module; else empty."""
        name = self.libraries[0].rpartition("/")[2].removeprefix("libcuda.so.")
        known = name if _VERSION.fullmatch(name) else ""
        return known or self.module or self.loaded

    @property
    def absent(self) -> bool:
        return not (self.module or self.loaded or any(self.libraries))

    def lost_to(self, version: str, *, provisioned: bool) -> tuple[str, ...]:
        """Return a text about the present driver if installing ``version`` would lose it, and Hostwright did not
        install it.

        ``provisioned``: the role ``driver`` was applied to the host before.
        """
        former = self.version
        mine = self.cut or (former == self.ours and not self.theirs) or (provisioned and not self.ours)
        lost = former not in {"", version} and not mine
        return (f"the driver {former} that somebody else installed",) if lost else ()

    @property
    def half_upgraded(self) -> str:
        """Sentence about different versions of libraries and loaded module; empty if the versions are equal."""
        library = self.libraries[0].rpartition("/")[2].removeprefix("libcuda.so.")
        if not self.loaded or not _VERSION.fullmatch(library) or library == self.loaded:
            return ""
        return (
            f"the driver is half upgraded: the libraries are {library} and the loaded module is {self.loaded}, so "
            "programs find no GPU (Driver/library version mismatch)"
        )

    def linked(self, version: str) -> bool:
        """Return whether the loader opens the file of ``version`` for each library in ``LIBRARIES``."""
        names = (path.rpartition("/")[2] for path in self.libraries)
        return all(name == wanted[:-1] + version for name, wanted in zip(names, LIBRARIES, strict=True))

    def winning(self, version: str) -> tuple[str, ...]:
        """Return driver libraries of other versions than ``version`` that the loader opens now or after the next
        ldconfig.

        ldconfig prefers the newest file.
        """
        wanted = numbers(version)
        return tuple(
            path for path in self.others if path in self.libraries or numbers(path.rpartition(".so.")[2]) > wanted
        )

    def __str__(self) -> str:
        if self.absent:
            return ABSENT
        pairs = zip(LIBRARIES, self.libraries, strict=True)
        shadows = {shadow.file: shadow.path for shadow in self.shadows}
        links = ", ".join(f"{name} is {shadows.get(path, path.rpartition('/')[2]) or ABSENT}" for name, path in pairs)
        wins = next((f" ({file})" for file in (*self.strays, *self.packaged)), "")
        return f"{links}; module {self.module or ABSENT}{wins}, loaded {self.loaded or 'none'}"


def numbers(version: str) -> tuple[int, ...]:
    """Return the parts of a driver version as numbers; empty for any other text."""
    return tuple(map(int, version.split("."))) if _VERSION.fullmatch(version) else ()


@dataclass(frozen=True, slots=True)
class NvidiaRunfile(Resource):
    """The driver ``version`` is installed by its ``.run`` with DKMS, and loaded.

    With ``force``, processes and displays that use the GPU are ended. Without ``force``, a host with a display is
    refused if the installer has to run. Replacing a loaded driver is then a change that ``disturbs``.
    """

    artifact: Artifact
    version: str
    flags: tuple[str, ...] = ()
    force: bool = field(default=False, metadata=NO_IDENTITY)
    #: ``driver_force`` of the inventory: replace the driver without waiting for users of the GPU
    allowed: bool = field(default=False, metadata=NO_IDENTITY)
    module: str = "auto"  #: kind of the kernel module: ``open``, ``proprietary``, or ``auto`` (by branch and GPUs)

    def kind(self, facts: Facts) -> Kind:
        """Return the kind of kernel module that the host needs. Requires the probe ``PCI``."""
        cards = tuple((card.vendor, card.device) for card in display_controllers(facts))
        return module_kind(self.module, self.version, cards)

    @property
    def state_probe(self) -> Probe:
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
        # A driver from packages can be installed again, so nothing is lost.
        if driver_packages(facts) or not self._install_reasons(state, facts):
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
        """Return whether the driver cannot run before a reboot, or another module stays loaded until a reboot."""
        if boots_first(facts):
            return True
        state = DriverState.read(facts[self.state_probe].text)
        other = state.loaded not in {"", self.version} or self._wrong(state.loaded_kind, facts)
        return other and not self._install_reasons(state, facts)

    def _install_reasons(self, state: DriverState, facts: Facts) -> list[str]:
        """Return the reasons to run the installer. Wrong links to the libraries alone are not a reason."""
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
        return kind is not None and len(kinds_of(self.version)) > 1 and kind != self.kind(facts)

    def _install(self, state: DriverState, have: str, facts: Facts) -> Change | Deferred | Refusal:
        kinds = f" with its {self.kind(facts)} kernel module" if len(kinds_of(self.version)) > 1 else ""
        what, want = "NVIDIA driver", f"{self.version}{kinds}, by DKMS, loaded"
        waits = boots_first(facts)
        builds = not (facts[KERNEL_GONE].strip() or state.loaded or display(facts))
        unloaded = unloaded_flags(self.version) if waits and builds else ()
        # The artifact is also checked before the reboot, so that a missing file is reported early.
        if waits and not unloaded:
            return Deferred(what, have, want, "reboot", (self.artifact.name,))
        if sentence := unsigned_refused(facts):
            return Refusal(what, have, want, "secure-boot", sentence)
        if sentence := self._shown(facts):
            return Refusal(what, have, want, "display", sentence)
        if state.holders:
            sentence = (
                f"the kernel module {few([*state.holders])}, which is not part of the driver, uses the loaded driver, "
                "so the driver cannot be replaced; stop the programs that use that module, then run modprobe -r "
                f"{' '.join(state.holders)} on the host"
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
        """Refuse the host if a foreign library precedes the driver's in the loader's cache.

        The next ldconfig would undo any repair.
        """
        if not state.shadows or driver_packages(facts):
            return None
        by_cure = {shadow.cure: str(shadow) for shadow in reversed(state.shadows)}
        sentence = f"{'; '.join(by_cure.values())}; {', and '.join(by_cure)}, then run `ldconfig`"
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
        """Plan to build the kernel module from the installed sources with DKMS. A loaded module stays loaded."""
        wrong = state.module != self.version or state.strays or state.packaged
        if state.dkms and not wrong:
            return None
        have = str(state) if wrong else "not built by DKMS for the running kernel"
        if state.packaged and state.dkms:
            sentence = (
                f"{state.packaged[0]}, takes precedence over the module that DKMS built; remove that "
                f"package{''.join(f', or the line {line}' for line in state.preferred)}, then run `depmod -a`"
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
        shown = "" if self.force else display(facts)
        if not shown:
            return ""
        return (
            f"the driver must be replaced, but the GPU drives a display ({shown}); stop the display first, or "
            "set driver_force: true to stop it"
        )


def _set_aside(state: DriverState) -> tuple[Step, ...]:
    return (Step(steps.modules_aside(state.strays)),) if state.strays else ()


def _preferring(state: DriverState) -> tuple[str, ...]:
    return (f"depmod.d prefers another directory's modules: {few([*state.preferred])}",) if state.preferred else ()


def driver_packages(facts: Facts, kept: tuple[str, ...] = NOT_DRIVER) -> tuple[str, ...]:
    """Return the installed packages of NVIDIA drivers, except packages that match a pattern in ``kept``."""
    return tuple(row.name for row in dpkg_rows(facts, NamedLike(DRIVER_PACKAGES, kept)))


class Loadable(Protocol):
    """Resource that installs a driver, from any source, and reports the driver's state."""

    @property
    def state_probe(self) -> Probe:
        """Probe that prints the driver's state, for ``DriverState``."""

    def probes(self) -> tuple[Probe, ...]:
        """Probes that ``waits_for_reboot`` requires."""

    def waits_for_reboot(self, facts: Facts, /) -> bool:
        """Return whether the driver cannot run before a reboot, or another module stays loaded until a reboot."""


@dataclass(frozen=True, slots=True)
class WithDriver(Resource):
    """Wrapper that applies ``resource`` only with the stack's driver loaded.

    If ``driver`` needs a reboot, ``resource`` is applied after the reboot.
    """

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
