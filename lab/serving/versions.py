"""Versions of models: which of them are wanted, loaded, labelled and let go, after TensorFlow Serving's own order.

A version that is no longer wanted goes only when one that is wanted can answer, and only when the last request that it
answers has ended (AvailabilityPreservingPolicy). A label moves only to a version that can answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from lab.serving.config import Model, checked
from lab.serving.status import Failed, invalid

TICK_S = 0.1  #: between two looks at what is to be done
RETRY_S = 60.0  #: between two tries to load a version
START, LOADING, AVAILABLE, UNLOADING, END = "START", "LOADING", "AVAILABLE", "UNLOADING", "END"

Load = Callable[[str], Any]  #: of a directory: what answers; raises ``Failed``


@dataclass
class Version:
    """One version of a model that was wanted once."""

    path: str
    wanted: bool = True
    state: str = START
    error: Failed | None = None
    servable: Any = None
    users: int = 0  #: requests that it answers now


@dataclass
class Versions:
    """All versions of all models of a server."""

    load: Load
    retries: int = 5
    poll_s: float = 1.0  #: of the file system
    early_labels: bool = False  #: whether a new label may name a version that is not there yet
    log: Callable[[str], None] = print
    models: tuple[Model, ...] = ()
    states: dict[str, dict[int, Version]] = field(default_factory=dict)
    labels: dict[str, dict[str, int]] = field(default_factory=dict)
    lock: threading.Condition = field(default_factory=threading.Condition)  #: told of what loads and of what ends
    stopped: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Begin to look at the file system and to load, until ``stop`` or the end of the process."""
        for step, every in ((self.poll, self.poll_s), (self.act, TICK_S)):
            threading.Thread(target=self._repeat, args=(step, every), daemon=True).start()

    def _repeat(self, step: Callable[[], None], every: float) -> None:
        step()
        while not self.stopped.wait(every):  # the file system tells of nothing: it is looked at, as the real one does
            step()

    def stop(self) -> None:
        """Look and load no more."""
        self.stopped.set()

    def reload(self, models: tuple[Model, ...]) -> None:
        """Take another configuration. Raises ``Failed``: then labels and wanted versions are as before."""
        checked(models)
        with self.lock:
            labels = {model.name: dict(self._labels(model)) for model in models}
            self.labels = labels
            self.models = models
            for name, versions in self.states.items():
                if name not in [model.name for model in models]:
                    for version in versions.values():
                        version.wanted = False
            for model in models:
                self.log(f" (Re-)adding model: {model.name}")

    def _labels(self, model: Model) -> Iterator[tuple[str, int]]:
        states = self.states.get(model.name, {})
        for label, number in model.labels.items():
            now = self.labels.get(model.name, {}).get(label)
            early = self.early_labels and now in (None, number)
            if not early and (number not in states or states[number].state != AVAILABLE):
                raise Failed(
                    "FAILED_PRECONDITION",
                    f"Request to assign label to version {number} of model {model.name}, which is not currently "
                    "available for inference",
                )
            yield label, number

    def poll(self) -> None:
        """See which of the wanted versions the file system has."""
        with self.lock:
            models = self.models
        for model in models:
            try:
                names = sorted(child.name for child in Path(model.base_path).iterdir())
            except OSError:
                self.log(
                    "FileSystemStoragePathSource encountered a filesystem access error: Could not find base path "
                    f"{model.base_path} for servable {model.name}"
                )
                return  # of this round nothing counts, as in the real one
            there = {int(name): name for name in names if name.isascii() and name.isdigit()}
            chosen = self._chosen(model, there)
            with self.lock:
                if model not in self.models:
                    return
                known = self.states.setdefault(model.name, {})
                for number in chosen:
                    if number not in known or (known[number].state == END and not known[number].wanted):
                        known[number] = Version(f"{model.base_path.rstrip('/')}/{there[number]}")
                for number, version in known.items():
                    version.wanted = number in chosen

    def _chosen(self, model: Model, there: dict[int, str]) -> list[int]:
        numbers = sorted(there)
        if model.policy == "specific":
            for number in model.versions:
                if number not in there:
                    self.log(
                        f"Version {number} of servable {model.name}, which was requested to be served as a 'specific' "
                        "version in the servable's version policy, was not found in the file system"
                    )
            chosen = [number for number in numbers if number in model.versions]
        else:
            chosen = numbers if model.policy == "all" else numbers[-model.number :]
        if not chosen:
            self.log(
                f"No versions of servable {model.name} found under base path {model.base_path}. Did you forget to name "
                "your leaf directory as a number (eg. '/1/')?"
            )
        return chosen

    def act(self) -> None:
        """Do the next thing of each model."""
        with self.lock:
            for name, versions in self.states.items():
                number = _unneeded(versions)
                if number is not None:
                    versions[number].state = UNLOADING
                    self._later(self._unload, name, number)
                    continue
                number = max((n for n, v in versions.items() if v.wanted and v.state == START), default=None)
                if number is not None:
                    versions[number].state = LOADING
                    self._later(self._load, name, number)

    def _later(self, step: Callable[[str, int, Version], None], name: str, number: int) -> None:
        threading.Thread(target=step, args=(name, number, self.states[name][number]), daemon=True).start()

    def _load(self, name: str, number: int, version: Version) -> None:
        for attempt in range(self.retries + 1):
            try:
                version.servable = self.load(version.path)
            except Failed as error:
                self.log(f"Loading servable: {{name: {name} version: {number}}} failed: {error}")
                if attempt == self.retries or not version.wanted:
                    version.error = error
                    self._reached(version, END)
                    return
                time.sleep(RETRY_S)  # as long as the real one does
            else:
                self._reached(version, AVAILABLE)
                self.log(f"Successfully loaded servable version {{name: {name} version: {number}}}")
                return

    def _reached(self, version: Version, state: str) -> None:
        with self.lock:
            version.state = state
            self.lock.notify_all()

    def _unload(self, name: str, number: int, version: Version) -> None:
        with self.lock:
            self.lock.wait_for(lambda: not version.users)
            version.servable = None
            self._reached(version, END)
        self.log(f"Unloaded servable version {{name: {name} version: {number}}}")

    @contextmanager
    def handle(self, model: str, number: int | None, label: str | None) -> Iterator[tuple[int, Any]]:
        """The version that answers a request, which stays until the request has ended. Raises ``Failed``."""
        with self.lock:
            asked = number if label is None else self.labels.get(model, {}).get(label)
            if label is not None and asked is None:
                raise invalid("Unrecognized servable version label: ", label)
            ready = {n: v for n, v in self.states.get(model, {}).items() if v.state == AVAILABLE}
            chosen = max(ready, default=None) if asked is None else asked
            if chosen not in ready or chosen is None:
                what = f"Latest({model})" if asked is None else f"Specific({model}, {asked})"
                raise Failed("NOT_FOUND", f"Servable not found for request: {what}")
            version = ready[chosen]
            version.users += 1
        try:
            yield chosen, version.servable
        finally:
            with self.lock:
                version.users -= 1
                self.lock.notify_all()

    def status(self, model: str, number: int | None) -> list[dict[str, Any]]:
        """What is known of a model's versions, the newest first. Raises ``Failed``."""
        with self.lock:
            versions = self.states.get(model, {})
            if number is not None and number not in versions:
                raise Failed("NOT_FOUND", f"Could not find version {number} of model {model}")
            if not versions:
                raise Failed("NOT_FOUND", f"Could not find any versions of model {model}")
            return [
                {
                    "version": str(n),
                    "state": version.state,
                    "status": {
                        "error_code": version.error.code if version.error else "OK",
                        "error_message": version.error.message if version.error else "",
                    },
                }
                for n, version in sorted(versions.items(), reverse=True)
                if number in (None, n)
            ]

    def await_first(self) -> None:
        """Wait until each model has a version that answers. Raises ``Failed`` where its newest one ended before."""
        for model in self.models:
            with self.lock:
                reached = self.lock.wait_for(partial(self._first, model.name))
            assert reached
            number, version = reached
            if version.state == END:
                why = f" due to error: {version.error}" if version.error else ""
                raise Failed(
                    "UNKNOWN",
                    f"1 servable(s) did not become available: {{{{name: {model.name} version: {number}}}{why}}}, }}",
                )

    def _first(self, model: str) -> tuple[int, Version] | None:
        """The newest version of a model that answers or has ended."""
        versions = sorted(self.states.get(model, {}).items(), reverse=True)
        return next(((number, version) for number, version in versions if version.state in (AVAILABLE, END)), None)


def _unneeded(versions: dict[int, Version]) -> int | None:
    """The version to let go next: the lowest of those that answer and that nobody wants, where another answers or none
    is wanted."""
    wanted = [version for version in versions.values() if version.wanted]
    idle = [number for number, version in versions.items() if not version.wanted and version.state == AVAILABLE]
    if not wanted or any(version.state == AVAILABLE for version in wanted) or len(idle) > 1:
        return min(idle, default=None)
    return None
