"""Installation of a new operating system on one host: with a seed over its BMC, or by the site's command.

A seed is the installer's settings and the new host key. This machine generates the key and therefore has it before the
host first answers. The new key replaces the old key in known_hosts when the host first presents the new key.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial

from hostwright.apply.disturb import hooks, rebooting
from hostwright.apply.events import Note, Waiting
from hostwright.apply.run import Run
from hostwright.common.command import Command
from hostwright.common.durations import Clock
from hostwright.common.errors import HostError, Unreachable
from hostwright.common.text import printable, shown_limit
from hostwright.plan.host.hostfacts import OS_RELEASE, os_release
from hostwright.plan.observing import ask
from hostwright.plan.targets import TargetHost
from hostwright.rebuild.bmc import Controller
from hostwright.rebuild.host.clock import Phases
from hostwright.rebuild.install import pending
from hostwright.rebuild.install.rotating import rotate
from hostwright.rebuild.install.seeds.debian import FETCHED
from hostwright.rebuild.install.seeds.rendering import Seed, render_keys, render_seed
from hostwright.rebuild.install.seeds.settings import Install, Reinstall, reinstall_environment
from hostwright.rebuild.install.serving import Place, SeedServers
from hostwright.rebuild.install.sources import console_keys
from hostwright.rebuild.ways.means import Means, read_means
from hostwright.transport.identity.keys import HostKey, KeyPair, generate
from hostwright.transport.identity.keyscan import scan_key
from hostwright.transport.identity.trusting import known, replace
from hostwright.transport.root.rootshell import RootShell

POLL_S = 2.0
CONSOLE_POLL_S = 10.0  #: seconds between two queries of a host's console. A login at a BMC takes about 10 s.
#: time limit in seconds from power-on until the installer fetches a file; large servers boot in half that time
FETCH_TIMEOUT_S = 1200.0
LOOK_TIMEOUT_S = 30.0  #: time limit in seconds for one probe of the newly installed system
SHOWN = 40  #: maximum number of characters of an operating system's name or version in a message
SYSTEMS = {"ubuntu": "Ubuntu", "debian": "Debian"}


@dataclass(frozen=True)
class Installer:
    """Installs a new operating system on one host: by its BMC and a seed server, or by the site's command."""

    run: Run
    target: TargetHost
    open_bmc: Callable[[], Controller] | None
    servers: SeedServers
    clock: Clock

    def connect(self) -> RootShell:
        """Open a new connection to the host."""
        return self.run.connections.connect(self.target)

    @cached_property
    def means(self) -> Means:
        """Settings in the inventory for the host's rebuild."""
        return read_means(self.target.host)

    def __call__(self, reason: str, phases: Phases, begun: Callable[[], None]) -> None:
        """Reinstall the host and record its new host key; return when a login over SSH succeeds.

        ``reason`` is passed to the site's command. ``begun`` is called before the first change. Raises ``HostError`` if
        the installation fails, or does not end in time.
        """
        if install := self.means.install:
            self._by_seed(install, phases, begun)
        elif reinstall := self.means.reinstall:
            self._by_command(reinstall, reason, phases, begun)
        else:
            raise HostError(self.target.name, "no reinstall is configured for the host; set hostwright_install")

    def finish(self) -> None:
        """Complete an interrupted installation: replace the seed's host key if the host still uses it."""
        name = self.target.name
        seeded = pending.recall(name)
        if seeded is None:
            return
        if seeded.blob in {entry.blob for entry in known(self.target.host, self.target.options)}:
            with self.connect() as shell:
                self._rotate(shell, seeded)
        else:
            pending.forget(name)

    def _by_seed(self, install: Install, phases: Phases, begun: Callable[[], None]) -> None:
        keys, name = generate(), self.target.name
        with self.servers.place(name, install) as place:
            seed = render_seed(install, host=name, keys=keys, url=place.url)
            pending.remember(name, keys.public)
            place.publish(seed)
            self.run.emit(Note(name, f"start its installer with these kernel arguments: {seed.command_line}"))
            self.run.emit(Note(name, place.on_the_wire(seed)))
            began_s = self._start_installer(install, place, seed, phases, begun)
            with phases.phase("install"):
                stopped = partial(_going_on, install, place)
                self._await_key([keys.public], install.timeout_s, began_s=began_s, stopped=stopped)
        with phases.phase("install"):
            # The host is already installed, so an error of the BMC does not matter.
            with suppress(HostError), self._bmc() as bmc:
                bmc.boot_from_disk()
            with self._await_login(install.timeout_s) as shell:
                self._rotate(shell, keys.public)
                self._require_system(shell, install)

    def _start_installer(
        self, install: Install, place: Place, seed: Seed, phases: Phases, begun: Callable[[], None]
    ) -> float:
        """Boot the installer, wait until it has fetched ``seed``, and return the clock time of power-on.

        If the installer does not fetch the seed, the BMC is set to boot from the disk again, so that no later boot
        wipes the disk.
        """
        ordered = False
        try:
            with phases.phase("power"), self._bmc() as bmc:
                self.run.emit(Waiting(self.target.name, "its BMC"))
                begun()
                ordered = True
                bmc.boot_once(install.boot, image_url=install.image)
                bmc.cycle()
            with phases.phase("install"):
                began_s = self.clock.now_s()
                self._await_fetch(place, seed.first, min(FETCH_TIMEOUT_S, install.timeout_s), install.boot)
        except BaseException:
            if seed.first not in place.withdraw() and ordered:
                with suppress(HostError), phases.phase("power"), self._bmc() as bmc:
                    bmc.boot_from_disk()
            raise
        return began_s

    def _bmc(self) -> Controller:
        if self.open_bmc is None:
            raise HostError(self.target.name, "the host has no BMC in the inventory; set hostwright_bmc")
        return self.open_bmc()

    def _by_command(self, reinstall: Reinstall, reason: str, phases: Phases, begun: Callable[[], None]) -> None:
        name, keys = self.target.name, generate()
        given = reinstall.host_keys == "given"
        with phases.phase("install"):
            before = self._shown()
            with self.servers.place(name, reinstall) as place:
                if given:
                    pending.remember(name, keys.public)
                    place.publish(render_keys(keys))
                begun()
                trusted = str(place.authority.certificate_file) if given and place.authority else ""
                self._run(reinstall, reason, keys, place.url if given else "", trusted)
                wanted = [keys.public] if given else None
                self._await_key(wanted, reinstall.timeout_s, before=before)
            with self._await_login(reinstall.timeout_s) as shell:
                if given:
                    self._rotate(shell, keys.public)
        self.run.emit(Note(name, "the new operating system is installed, and its host key is recorded"))

    def _run(self, reinstall: Reinstall, reason: str, keys: KeyPair, seed: str, seed_ca: str) -> None:
        host = self.target.host
        environment = reinstall_environment(
            host=host.name, address=host.address or host.name, reason=reason, run=self.run.id,
            host_key=keys.public.line if seed else "", seed=seed, seed_ca=seed_ca,
        )  # fmt: skip
        self.run.emit(Waiting(host.name, "the reinstall command"))
        ended = hooks.run_here(reinstall.command, environment, reinstall.timeout_s)
        if ended.status == 0:
            return
        late = f"did not end within {shown_limit(reinstall.timeout_s)}"
        how = late if ended.status is None else f"ended with status {ended.status}"
        output = f": {ended.lines[-1][:200]}" if ended.lines else " and printed nothing"
        raise HostError(host.name, f"the command of hostwright_reinstall {how}{output}")

    def _await_fetch(self, place: Place, first: str, timeout_s: float, boot: str) -> None:
        name = self.target.name
        self.run.emit(Waiting(name, "the installer, which has not fetched its seed yet"))
        end_s = self.clock.now_s() + timeout_s
        while first not in place.fetched():
            self._go_on(lambda: " before its installer had the seed")
            if self.clock.now_s() >= end_s:
                late = f"{place.came()} within {shown_limit(timeout_s)} of the power cycle"
                raise HostError(
                    name,
                    f"the installer did not fetch its seed{late}: check on its console that the host boots from "
                    f"{boot}, and that the kernel's command line has the seed's address",
                )
            self.clock.sleep(POLL_S)
        self.run.emit(Note(name, "the installer has its seed"))

    def _await_key(
        self,
        wanted: list[HostKey] | None,
        timeout_s: float,
        *,
        began_s: float | None = None,
        before: HostKey | None = None,
        stopped: Callable[[], str] = lambda: "; what its reinstall command started continues by itself",
    ) -> None:
        """Wait until the host presents its new host key, and record the key in known_hosts.

        ``wanted`` are the keys that were delivered to the host; with ``None``, the console must confirm the new key.
        ``timeout_s`` counts from the clock time ``began_s``, by default from the call. ``before`` is the old key: the
        wait continues while the host presents it.
        """
        name, options = self.target.name, self.target.options
        old = {entry.blob for entry in known(self.target.host, options)}
        self.run.emit(Waiting(name, "the new system"))
        end_s, last = (self.clock.now_s() if began_s is None else began_s) + timeout_s, "nothing"
        pause_s, keys = POLL_S, wanted
        while True:
            self._go_on(stopped)
            shown = self._shown()
            if shown is not None:
                last = f"it showed {'its old' if shown.blob in old else 'an unknown'} key {shown}"
                if wanted is None and shown != before and shown.blob not in old:
                    (keys, last), pause_s = self._from_console(shown), CONSOLE_POLL_S
                elif wanted is None and shown.blob in old:
                    last += " (a new system must make a new key, or use the one from host_keys: given)"
                if keys and shown in keys:
                    break
            if self.clock.now_s() >= end_s:
                late = f"the installation did not finish within {shown_limit(timeout_s)}"
                raise HostError(name, f"{late}; last seen: {last}. Check the host's console")
            self.clock.sleep(pause_s)
        replaced = replace(self.target.host, options, keys)
        self.run.emit(Note(name, f"the new host key {keys[0]} is recorded in {', '.join(map(str, replaced.files))}"))

    def _from_console(self, shown: HostKey) -> tuple[list[HostKey], str]:
        """Return the host keys that the console's command prints, and a text about these keys for messages.

        If the command fails, no keys are returned. Raises ``HostError`` if no command is configured.
        """
        command = self.means.console_command
        if not command:
            raise HostError(
                self.target.name,
                f"the new system presents {shown}, and nothing confirms that key: set hostwright_host_keys, or "
                f"check its console and run {Command('trust', hosts=self.target.name, fingerprint='FINGERPRINT')}",
            )
        try:
            keys = list(console_keys(self.target.host, command))
        except HostError as error:
            # The installer has changed the host, so the error must not claim the opposite.
            return [], error.sentence.removesuffix(". Nothing was changed")
        return keys, f"it showed an unknown key {shown}, and its console shows {', '.join(map(str, keys))}"

    def _shown(self) -> HostKey | None:
        try:
            return scan_key(self.target.host, self.target.options)
        except Unreachable:
            return None

    def _await_login(self, timeout_s: float) -> RootShell:
        return rebooting.await_boot(
            self.target.host, self.connect, after="its installation", timeout_s=timeout_s, emit=self.run.emit,
            clock=self.clock,
        )  # fmt: skip

    def _rotate(self, shell: RootShell, seeded: HostKey) -> None:
        """Replace the host key ``seeded``, because others may have read this key in the seed on the network.

        If that fails, only emit a note.
        """
        name = self.target.name
        try:
            made = rotate(shell, self.target.host, self.target.options, seeded, self.clock)
        except HostError as error:
            self.run.emit(Note(name, f"the host still uses the host key from its seed: {error.sentence}"))
        else:
            pending.forget(name)
            self.run.emit(Note(name, f"the host generated the host key {made}, which is now the only recorded key"))

    def _require_system(self, shell: RootShell, install: Install) -> None:
        """Raise ``HostError`` if the site's PXE or image has installed another system or release than ``install``
        requires.
        """
        name = self.target.name
        answers = os_release(ask(shell, (OS_RELEASE,), timeout_s=LOOK_TIMEOUT_S))
        system, release = (printable(answers.get(key, ""))[:SHOWN] for key in ("ID", "VERSION_ID"))
        if (system, release) == (install.os, install.release):
            return
        installed = f"{SYSTEMS.get(system, system)} {release or 'without a release number'}"
        raise HostError(
            name,
            f"your {'PXE' if install.boot == 'network' else 'image'} installed "
            f"{installed if system else 'an unidentified system'}, but hostwright_install names "
            f"{SYSTEMS[install.os]} {install.release}: correct one of them, then run "
            f"{Command('rebuild', hosts=name, from_='reinstall')}",
        )

    def _go_on(self, stopped: Callable[[], str]) -> None:
        if self.run.stopping.is_set():
            raise HostError(self.target.name, f"stopped by the operator{stopped()}")


def _going_on(install: Install, place: Place) -> str:
    left = set(FETCHED) - place.fetched() if install.os == "debian" else set()
    if left:
        return f": its installer continues by itself and will fail at its end, without {', '.join(sorted(left))}"
    return ": its installer has its whole seed and continues by itself"
