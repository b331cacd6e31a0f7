"""The ``--notify`` command: runs at the first failure and at the end of a run, with JSON on its standard input.

No data of the run is inserted into the command line. Output of hosts appears only in the JSON, with secrets masked and
control characters removed. The command runs in parallel to the run for at most ``TIMEOUT_S``. A failure of the command
is only a warning.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from hostwright.apply.disturb.hooks import run_here
from hostwright.apply.events import Event, HostEnded
from hostwright.apply.journal.header import RunHeader
from hostwright.apply.journal.redaction import Redactor
from hostwright.apply.journal.results import results_of
from hostwright.common.secret import Secret
from hostwright.common.text import count, one_line, shown_limit

SCHEMA = 1
FIRST_FAILURE, END = "first failure", "end"
BAD = ("failed", "unreachable")
TIMEOUT_S = 30.0  #: time limit in seconds of the notify command, enough for an HTTP request with one retry (our choice)
SENTENCE_CHARACTERS = 500  #: maximum number of characters of the reason for a host's failure in a notification
NAMED = 10  #: maximum number of failed hosts that the field ``text`` of a notification lists
_THREAD = "notify"
_ADDRESS = re.compile(r"[a-z]+://[^\s'\"]{20,}")


def settle() -> None:
    """Wait until all notify commands of this process have ended. Ctrl-C ends the wait."""
    with suppress(KeyboardInterrupt):
        for thread in threading.enumerate():
            if thread.name == _THREAD:
                thread.join()


def secrets_of(command: str) -> set[Secret]:
    """Return the URLs in ``command``. A webhook's URL works as a password, so it must not be recorded."""
    return {Secret(address) for address in _ADDRESS.findall(command)}


class Notifier:
    """Runs ``command``, the ``--notify`` command, for one run. Call the object with each event, from any thread, and
    then call ``end``.

    The command runs in ``folder``. If the command fails, ``warn`` receives a message after the end of the run.
    """

    def __init__(
        self,
        command: str,
        header: RunHeader,
        redactor: Redactor,
        warn: Callable[[str], None],
        folder: Path | None = None,
    ):
        self._command = command
        self._folder = folder
        self._header = header
        self._redactor = redactor
        self._warn = warn
        self._lock = threading.Lock()  # This lock guards the fields below.
        self._ended: dict[str, HostEnded] = {}
        self._failed = False
        self._waiting: SimpleQueue[Mapping[str, Any] | None] = SimpleQueue()
        if command:
            threading.Thread(target=self._work, name=_THREAD, daemon=True).start()

    def __call__(self, event: Event) -> None:
        """Run the command when the first host fails. If no other host is left, ``end`` runs the command instead."""
        if not self._command or not isinstance(event, HostEnded):
            return
        with self._lock:
            self._ended[event.host] = event
            first = event.result in BAD and not self._failed
            self._failed = self._failed or first
            if first and len(self._ended) < len(self._header.hosts):
                self._waiting.put(self._document(FIRST_FAILURE, {}))

    def end(self, ending: Mapping[str, Any]) -> None:
        """Run the command at the end of the run. ``ending`` is the run's last record."""
        if not self._command:
            return
        with self._lock:
            self._waiting.put(self._document(END, ending))
        self._waiting.put(None)

    def _document(self, event: str, ending: Mapping[str, Any]) -> Mapping[str, Any]:
        header, over = self._header, event == END
        given = {host: ended.result for host, ended in self._ended.items()}
        results = results_of(header.hosts, given, given, running=not over)
        failed = [
            {"host": host, "result": ended.result, "sentence": self._cleaned(ended.sentence)}
            for host, ended in self._ended.items()
            if ended.result in BAD
        ]
        return {
            "schema": SCHEMA,
            "event": event,
            "text": self._text(Counter(results.values()), failed, ending),
            "run": header.run,
            "verb": header.verb,
            "operator": header.operator,
            "began": header.began,
            "inventory": header.inventory,
            "hosts": list(header.hosts),
            "results": results,
            "failed": failed,
            "status": ending.get("status"),
            "how": ending.get("how", "running"),
            "sentence": self._cleaned(str(ending.get("sentence", ""))),
        }

    def _text(self, counts: Mapping[str, int], failed: list[dict[str, str]], ending: Mapping[str, Any]) -> str:
        header = self._header
        counted = ", ".join(f"{number} {result}" for result, number in counts.items())
        how = f", {ending['how']} with status {ending['status']}" if ending else ", and goes on"
        whose = f"run {header.run} of {header.operator}"
        head = f"{header.verb} on {count(len(header.hosts), 'host')}: {counted}{how} ({whose})"
        lines = [f"{each['host']}: {each['sentence'] or each['result']}" for each in failed[:NAMED]]
        more = [f"… and {len(failed) - NAMED} more"] if len(failed) > NAMED else []
        return "\n".join(map(one_line, [head, *lines, *more]))

    def _cleaned(self, text: str) -> str:
        return one_line(self._redactor.text(text))[:SENTENCE_CHARACTERS]

    def _work(self) -> None:
        trouble = ""
        while document := self._waiting.get():
            trouble = self._told(document) or trouble
        if trouble:
            self._warn(trouble)

    def _told(self, document: Mapping[str, Any]) -> str:
        try:
            given = json.dumps(document).encode("ascii")
            ended = run_here(self._command, {}, TIMEOUT_S, stdin=given, folder=self._folder)
        except OSError as error:
            return f"--notify: the command was not started: {error.strerror or error}"
        if ended.status == 0:
            return ""
        how = f"status {ended.status}" if ended.status is not None else f"it took more than {shown_limit(TIMEOUT_S)}"
        last = f": {self._cleaned(ended.lines[-1])}" if ended.lines else ""
        return f"--notify: the command failed, {how}{last}; the run is not affected"
