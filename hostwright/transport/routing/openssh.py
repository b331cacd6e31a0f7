"""Reads ``ssh_config`` with OpenSSH's client: ``ssh -G`` prints the settings of a host.

Each run of ``ssh -G`` takes some milliseconds and 10 MB, so ``ssh -G`` runs only for the first two hosts of a group:
see ``OpenSsh.answer``.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from hostwright.common.errors import InputError
from hostwright.transport.routing.stanzas import Stanzas

_READING_S = 30.0  #: time limit in seconds for one run of ``ssh -G``. A ``Match exec`` may query a directory service.
#: maximum number of parallel runs of ``ssh -G``; each run needs 10 MB
_AT_ONCE = 4
#: seconds after which a run of ``ssh -G`` no longer counts for ``_AT_ONCE``, as it probably waits for ``Match exec``
_WORKING_S = 0.5
#: seconds that a thread waits for another thread's first run of ``ssh -G`` (our choice)
_LEARNING_S = 5.0
_FILE = re.compile(r"debug1: Reading configuration data (.+)")
_CUT = 200  #: number of characters to which ssh truncates a file name in debug output
#: prefixes of output lines that do not explain why ssh failed
_ASIDE = ("debug1:", "OpenSSH_", "Pseudo-terminal")
#: pattern for unused settings that would differ between hosts, because ``ssh -G`` expands tokens in them
_FILLED_IN = re.compile(r"(?m)^(?:controlpath|remotecommand|identityagent|localforward|remoteforward|setenv) .*\n")
_NAME = "\0"  #: placeholder for the host's name in ``ssh -G`` output that a group of hosts shares
#: pattern for names of settings about host keys (see docs/trust.md)
_TRUST = re.compile("hostkey|knownhosts|revoked|casignature|checkhostip|nohostauth|rsasize")
_UNDERSTOOD = (
    "casignaturealgorithms",
    "checkhostip",
    "globalknownhostsfile",
    "hashknownhosts",
    "hostkeyalgorithms",
    "hostkeyalias",
    "knownhostscommand",
    "nohostauthenticationforlocalhost",
    "requiredrsasize",
    "revokedhostkeys",
    "stricthostkeychecking",
    "updatehostkeys",
    "userknownhostsfile",
    "verifyhostkeydns",
    "visualhostkey",
)


@dataclass(frozen=True, slots=True)
class Destination:
    """The host, user and port of a server from the inventory or a hop of ProxyJump; unset values are empty."""

    alias: str
    user: str = ""
    port: int = 0

    @property
    def options(self) -> tuple[str, ...]:
        """The command-line options of ``ssh`` that set user and port."""
        user = ("-l", self.user) if self.user else ()
        return (*user, *(("-p", str(self.port)) if self.port else ()))


class SshSettings:
    """The settings that ``ssh -G`` printed: lowercase keywords with their values."""

    def __init__(self, stdout: str):
        self._values: dict[str, list[str]] = {}
        for line in stdout.splitlines():
            keyword, _, value = line.partition(" ")
            self._values.setdefault(keyword.lower(), []).append(value.strip())

    def all(self, keyword: str) -> list[str]:
        """All values of ``keyword``; a keyword may occur several times."""
        return self._values.get(keyword, [])

    def text(self, keyword: str) -> str:
        """The first value of ``keyword``; empty if the keyword is missing or its value is ``none``."""
        value = self.all(keyword)[:1]
        return "" if not value or value[0].lower() == "none" else value[0]

    def flag(self, keyword: str) -> bool:
        """Whether the setting ``keyword`` is on; the value ``ask`` also counts as on."""
        return self.text(keyword).lower() not in ("", "no", "false", "off")

    def names(self, keyword: str) -> tuple[str, ...]:
        """The comma-separated values of the setting ``keyword``."""
        return tuple(name for name in self.text(keyword).split(",") if name)

    def unknown(self) -> list[str]:
        """Keywords about host keys that a later OpenSSH has and Hostwright does not support."""
        return [word for word in self._values if _TRUST.search(word) and word not in _UNDERSTOOD]


@dataclass(slots=True)
class _Group:
    final: bool  #: whether ssh reads the configuration again for the value of ``HostName`` (``Match final``)
    lock: threading.Lock = field(default_factory=threading.Lock)
    first: str = ""  #: name of the first host of the group for which ``ssh -G`` ran
    shared: str = ""  #: ``ssh -G`` output for the first host, with ``_NAME`` in place of the host's name
    jumps: str = ""  #: value of ``ProxyJump`` for the first host
    sure: bool = False  #: whether the output for a second host differed only in the host's name
    apart: bool = False  #: whether outputs may differ in more than the host's name

    def learn(self, name: str, stdout: str) -> None:
        shared = re.sub(rf"(?m)(?!^)(?<![\w.-]){re.escape(name)}(?![\w-])", _NAME, stdout)
        if not self.first:
            settings = SshSettings(shared)
            resolved = settings.flag("canonicalizehostname") or settings.text("canonicalizepermittedcnames")
            self.first, self.shared, self.jumps = name, shared, settings.text("proxyjump")
            self.apart = bool(resolved) or (self.final and settings.text("hostname") != _NAME)
        elif name != self.first and not self.sure:
            self.sure, self.apart = shared == self.shared, shared != self.shared


class OpenSsh:
    """Runs ``ssh -G``. Use one object for all hosts of a run. Thread-safe."""

    def __init__(self) -> None:
        self._slots = threading.Semaphore(_AT_ONCE)
        self._lock = threading.Lock()
        self._stanzas: dict[Path | None, Stanzas | None] = {}
        self._groups: dict[object, _Group] = {}

    def answer(self, destination: Destination, ssh_config: Path | None) -> str:
        """Return the output of ``ssh -G`` for a host, without settings that Hostwright's connections do not use.

        Hosts with the same user, port and ``Host`` lines form a group. If the outputs for the first two hosts of a
        group differ only in the host's name, every other host gets this output with its own name.

        Raises ``InputError`` for an invalid ``ssh_config``, and if OpenSSH is missing or does not respond.
        """
        if ssh_config and not os.access(ssh_config, os.R_OK):
            raise InputError(
                "the file does not exist or is not readable; correct the path of ssh_config", str(ssh_config)
            )
        if not self._lock.acquire(timeout=_LEARNING_S):
            return self._ask(destination, ssh_config)[0]
        try:
            if ssh_config not in self._stanzas:
                stdout, files = self._ask(destination, ssh_config)
                self._stanzas[ssh_config] = Stanzas.read(files)
                return stdout
            group = self._group(destination, ssh_config)
        finally:
            self._lock.release()
        if group is None or group.apart:
            return self._ask(destination, ssh_config)[0]
        with group.lock:
            return self._of_group(group, destination, ssh_config)

    def _group(self, destination: Destination, ssh_config: Path | None) -> _Group | None:
        stanzas = self._stanzas[ssh_config]
        applying = stanzas.applying(destination.alias) if stanzas else None
        if stanzas is None or applying is None:
            return None
        key = (ssh_config, destination.user, destination.port, applying)
        return self._groups.setdefault(key, _Group(stanzas.final))

    def _of_group(self, group: _Group, destination: Destination, ssh_config: Path | None) -> str:
        name = destination.alias
        # ``ssh -G`` must run for a host that is its own jump host, because ssh reports this error.
        if group.sure and not group.apart and name not in group.jumps:
            return group.shared.replace(_NAME, name)
        try:
            stdout, _ = self._ask(destination, ssh_config)
        except InputError:
            # The error names one host, so ``ssh -G`` must run for each other host of the group.
            group.apart = True
            raise
        group.learn(name, stdout)
        return stdout

    def _ask(self, destination: Destination, ssh_config: Path | None) -> tuple[str, list[str]]:
        given = ["-F", str(ssh_config)] if ssh_config else []
        try:
            stdout, stderr, status = self._run(
                ["ssh", "-v", "-G", *given, *destination.options, "--", destination.alias]
            )
        except FileNotFoundError:
            raise InputError(
                "OpenSSH's client, which reads ssh_config, is not installed on this machine; run "
                "`apt install openssh-client`"
            ) from None
        except subprocess.TimeoutExpired:
            raise InputError(
                f"`ssh -G {destination.alias}` did not end within {_READING_S:g} s; check `Match exec` in ssh_config"
            ) from None
        lines = stderr.splitlines()
        if status:
            why = next((line for line in lines if not line.startswith(_ASIDE)), "no reason")
            raise InputError(f"ssh cannot read ssh_config: {why.strip()}")
        return _FILLED_IN.sub("", stdout), _files(lines)

    def _run(self, words: list[str]) -> tuple[str, str, int]:
        with ExitStack() as slot:
            slot.enter_context(self._slots)
            with subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="surrogateescape",
                start_new_session=True,  # In this process's session, Ctrl-C would also end ssh.
            ) as process:
                try:
                    stdout, stderr = _outputs(process, slot.close)
                except BaseException:
                    process.kill()
                    raise
                return stdout, stderr, process.returncode


def _outputs(process: subprocess.Popen[str], waits: Callable[[], None]) -> tuple[str, str]:
    try:
        return process.communicate(timeout=min(_WORKING_S, _READING_S))
    except subprocess.TimeoutExpired:
        waits()
    return process.communicate(timeout=_READING_S)


def _files(lines: Iterable[str]) -> list[str]:
    """Return the files that ssh read, or nothing if its messages truncate or escape a file name."""
    found = [match[1] for line in lines if (match := _FILE.fullmatch(line))]
    return [] if any(len(name) >= _CUT or "\\" in name for name in found) else found
