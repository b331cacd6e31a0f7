"""OpenSSH's client, asked what it would do: ``ssh -G`` reads ``ssh_config`` with all that this file may hold.

Each run costs some milliseconds of a processor and 10 MB, which for a thousand hosts would be most of what a plan
costs. So hosts that no ``Host`` line tells apart are asked about only until the answer is known to differ by
nothing but the host's name: see ``OpenSsh.answer``.
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

_READING_S = 30.0  #: for one run; a ``Match exec`` may ask a directory service
_AT_ONCE = 4  #: runs; more would only wait for processors, with 10 MB each
_WORKING_S = 0.5  #: a run that takes longer waits for others (``Match exec``), and is not counted any more
_LEARNING_S = 5.0  #: our choice: who has waited so long for the first run, which tells the files, asks for itself
_FILE = re.compile(r"debug1: Reading configuration data (.+)")
_CUT = 200  #: characters, after which ssh cuts the name of a file that it tells
#: Not the reason of a failure: what ``-v`` adds, and a warning that there is no terminal.
_ASIDE = ("debug1:", "OpenSSH_", "Pseudo-terminal")
#: Settings in which ``-G`` fills in tokens, also a digest of the host's name; no connection of ours has them.
_FILLED_IN = re.compile(r"(?m)^(?:controlpath|remotecommand|identityagent|localforward|remoteforward|setenv) .*\n")
_NAME = "\0"  #: stands for the host's name in what hosts of one group share
#: Settings about host keys, and what becomes of them: see docs/trust.md
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
    """What the inventory (or a hop of a ProxyJump) specifies; unspecified values are empty."""

    alias: str
    user: str = ""
    port: int = 0

    @property
    def options(self) -> tuple[str, ...]:
        """Those of ``ssh`` for user and port."""
        user = ("-l", self.user) if self.user else ()
        return (*user, *(("-p", str(self.port)) if self.port else ()))


class SshSettings:
    """What ``ssh -G`` printed: keywords in lower case, each with its values."""

    def __init__(self, stdout: str):
        self._values: dict[str, list[str]] = {}
        for line in stdout.splitlines():
            keyword, _, value = line.partition(" ")
            self._values.setdefault(keyword.lower(), []).append(value.strip())

    def all(self, keyword: str) -> list[str]:
        """Every value of a keyword that may be given often."""
        return self._values.get(keyword, [])

    def text(self, keyword: str) -> str:
        """One value; empty where there is none."""
        value = self.all(keyword)[:1]
        return "" if not value or value[0].lower() == "none" else value[0]

    def flag(self, keyword: str) -> bool:
        """Whether it is on; ``ask`` counts as on."""
        return self.text(keyword).lower() not in ("", "no", "false", "off")

    def names(self, keyword: str) -> tuple[str, ...]:
        """Values that are separated by commas."""
        return tuple(name for name in self.text(keyword).split(",") if name)

    def unknown(self) -> list[str]:
        """Keywords about host keys that are not understood here: those of a later OpenSSH."""
        return [word for word in self._values if _TRUST.search(word) and word not in _UNDERSTOOD]


@dataclass(slots=True)
class _Group:
    """Hosts that nothing tells apart but their names."""

    final: bool  #: whether files are read again for the name that ``HostName`` gives
    lock: threading.Lock = field(default_factory=threading.Lock)
    first: str = ""  #: the host that was asked about first; what follows is of that host
    shared: str = ""  #: the answer, with ``_NAME`` for the host's name
    jumps: str = ""  #: its jump hosts
    sure: bool = False  #: a second host's answer was the same
    apart: bool = False  #: it was another, or more than the name may tell hosts apart

    def learn(self, name: str, stdout: str) -> None:
        """Take in an answer about a host of the group."""
        shared = re.sub(rf"(?m)(?!^)(?<![\w.-]){re.escape(name)}(?![\w-])", _NAME, stdout)
        if not self.first:
            settings = SshSettings(shared)
            resolved = settings.flag("canonicalizehostname") or settings.text("canonicalizepermittedcnames")
            self.first, self.shared, self.jumps = name, shared, settings.text("proxyjump")
            self.apart = bool(resolved) or (self.final and settings.text("hostname") != _NAME)
        elif name != self.first and not self.sure:
            self.sure, self.apart = shared == self.shared, shared != self.shared


class OpenSsh:
    """Asks ``ssh -G``. One for all hosts of a run, whose ``ssh_config`` is read once. Thread-safe."""

    def __init__(self) -> None:
        self._slots = threading.Semaphore(_AT_ONCE)
        self._lock = threading.Lock()
        self._stanzas: dict[Path | None, Stanzas | None] = {}
        self._groups: dict[object, _Group] = {}

    def answer(self, destination: Destination, ssh_config: Path | None) -> str:
        """What ``ssh -G`` prints for a server, without settings that no connection of ours has.

        A group are hosts with the same user and port for which the same ``Host`` lines apply. Its first two hosts are
        asked about. If their answers are equal once the name of each is taken out, every other host has this answer
        as well, with its own name filled in. All others are asked about: where a ``Match`` line, a canonical name, an
        address that is not written as it is printed or a token in ``Include`` may tell hosts apart.

        Raises ``InputError`` where ``ssh_config`` is invalid, or OpenSSH is missing or does not answer.
        """
        if ssh_config and not os.access(ssh_config, os.R_OK):
            raise InputError("there is no such file, or it cannot be read; it was named as ssh_config", str(ssh_config))
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
        """Those with which a host may share an answer."""
        stanzas = self._stanzas[ssh_config]
        applying = stanzas.applying(destination.alias) if stanzas else None
        if stanzas is None or applying is None:
            return None
        key = (ssh_config, destination.user, destination.port, applying)
        return self._groups.setdefault(key, _Group(stanzas.final))

    def _of_group(self, group: _Group, destination: Destination, ssh_config: Path | None) -> str:
        name = destination.alias
        if group.sure and not group.apart and name not in group.jumps:  # a loop is ssh's to find
            return group.shared.replace(_NAME, name)
        try:
            stdout, _ = self._ask(destination, ssh_config)
        except InputError:
            group.apart = True  # each host is told for itself
            raise
        group.learn(name, stdout)
        return stdout

    def _ask(self, destination: Destination, ssh_config: Path | None) -> tuple[str, list[str]]:
        """One run: what it printed, and the files that it read."""
        given = ["-F", str(ssh_config)] if ssh_config else []
        try:
            stdout, stderr, status = self._run(
                ["ssh", "-v", "-G", *given, *destination.options, "--", destination.alias]
            )
        except FileNotFoundError:
            raise InputError(
                "OpenSSH's client, which reads ssh_config, is not installed on this machine: install it "
                "(apt install openssh-client)"
            ) from None
        except subprocess.TimeoutExpired:
            raise InputError(f"ssh -G {destination.alias} did not end within {_READING_S:g} s (Match exec?)") from None
        lines = stderr.splitlines()
        if status:
            why = next((line for line in lines if not line.startswith(_ASIDE)), "no reason")
            raise InputError(f"ssh_config cannot be understood: {why.strip()}")
        return _FILLED_IN.sub("", stdout), _files(lines)

    def _run(self, words: list[str]) -> tuple[str, str, int]:
        """What a run printed, what it told, and its exit status."""
        with ExitStack() as slot:
            slot.enter_context(self._slots)
            with subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="surrogateescape",
                start_new_session=True,  # Ctrl-C is for us, and would end it as a mistake in ssh_config
            ) as process:
                try:
                    stdout, stderr = _outputs(process, slot.close)
                except BaseException:
                    process.kill()
                    raise
                return stdout, stderr, process.returncode


def _outputs(process: subprocess.Popen[str], waits: Callable[[], None]) -> tuple[str, str]:
    """What a run says on both outputs; ``waits`` is called once it seems to wait for others."""
    try:
        return process.communicate(timeout=min(_WORKING_S, _READING_S))
    except subprocess.TimeoutExpired:
        waits()
    return process.communicate(timeout=_READING_S)


def _files(lines: Iterable[str]) -> list[str]:
    """The files that ssh said it reads; empty if one of them cannot be told from what it said."""
    found = [match[1] for line in lines if (match := _FILE.fullmatch(line))]
    return [] if any(len(name) >= _CUT or "\\" in name for name in found) else found
