"""Delivers the files of one host's plan in parallel with the jobs of its roles. Each job waits for its own files.

The host lists its files once. Missing files are transferred one after the other, in the order in which the jobs need
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hostwright.apply.delivery.batch import Batch, WantedFile, served
from hostwright.apply.delivery.fetch import SMALL_BYTES
from hostwright.common.errors import ArtifactError
from hostwright.resources.packages.openpgp import dearmored, expired_on
from hostwright.stack.store.hostcache import host_path

if TYPE_CHECKING:
    from pathlib import Path

    from hostwright.apply.delivery.sources.settings import FileSettings
    from hostwright.apply.host.connection import HostConnection
    from hostwright.apply.run import Run
    from hostwright.plan.model import Plan
    from hostwright.stack.stack import Artifact, Stack

#: maximum size in bytes of a file to search for expired OpenPGP keys (our estimate). Debian's keyring has 60 kB.
_KEY_BYTES = 256 * 1024


def in_order(plan: Plan, stack: Stack, first: Sequence[str] = ()) -> tuple[WantedFile, ...]:
    """Return the files of ``plan`` in the order in which the plan's jobs need them. A file for several roles occurs
    once.

    ``first`` has the roles with steps, the most urgent role first. Files below ``SMALL_BYTES`` come before larger
    files.
    """
    place = {name: number for number, name in enumerate(first)}
    wanted: dict[str, WantedFile] = {}
    for role in sorted(plan.roles, key=lambda role: place.get(role.role, len(place))):
        for name in role.artifacts:
            wanted.setdefault(name, WantedFile(role.role, stack.artifacts[name]))
    return tuple(sorted(wanted.values(), key=lambda one: (one.artifact.size or SMALL_BYTES) >= SMALL_BYTES))


def _expired(path: Path) -> datetime | None:
    try:
        if path.stat().st_size > _KEY_BYTES:
            return None
        return expired_on(dearmored(path.read_bytes()), datetime.now(UTC))
    except (OSError, ValueError):  # If the file is unreadable, its transfer reports the reason.
        return None


class Delivery:
    """Delivers the files of a stack to one host during a run. Thread-safe."""

    def __init__(self, connection: HostConnection, run: Run, settings: FileSettings, stack: Stack):
        self._connection, self._run, self._settings = connection, run, settings
        self._batch: Batch | None = None
        self._over = False
        if run.handout:
            host, files = connection.host, stack.artifacts.values()
            shared = [one for one in files if one.sha256 and served(run, settings, host, one)]
            run.handout.enter(host, connection, [host_path(one, settings.cache) for one in shared], self.stop)

    def check(self, artifacts: Iterable[Artifact]) -> None:
        """Check the ``artifacts`` that the host does not fetch from a vendor.

        Raises ``ArtifactError`` if a file is missing on this machine, or contains only expired keys.
        """
        for artifact in artifacts:
            if not self._settings.fetches(artifact):
                path = self._run.locate(artifact)
                if ended := _expired(path):
                    raise ArtifactError(
                        f"{artifact.name}: the key in {artifact.file} expired on {ended:%Y-%m-%d}, and apt rejects "
                        "its signatures; download the repository's new key, and name it in the stack"
                    )

    def start(self, wanted: Sequence[WantedFile]) -> None:
        """Deliver the files ``wanted``, in this order, in the background. An earlier delivery is stopped."""
        self.halt()
        if self._run.handout:
            self._run.handout.resume(self._connection.host)
        batch = self._batch = Batch(self._connection, self._run, self._settings, wanted)
        if self._over:
            batch.end()
        batch.begin()

    def wait(self, artifacts: Sequence[Artifact]) -> None:
        """Wait until ``artifacts`` are on the host.

        Raises ``ArtifactError`` or ``HostError`` if a file cannot be delivered, and ``Stopped`` if the delivery was
        stopped.
        """
        if artifacts:
            if self._batch is None:
                raise ValueError("a job waits for files before their delivery was started")
            self._batch.wait(artifacts)

    def halt(self) -> None:
        """Stop the delivery until the next call of ``start``."""
        batch, self._batch = self._batch, None
        if batch:
            batch.end()

    def pause(self) -> None:
        """Stop the delivery before a reboot of the host. Other hosts can no longer fetch files from this host."""
        self.halt()
        if self._run.handout:
            self._run.handout.pause(self._connection.host)

    def stop(self) -> None:
        """Stop the delivery permanently, and wake all threads that wait for files. Returns at once."""
        self._over = True
        batch = self._batch
        if batch:
            batch.cut()

    def close(self) -> bool:
        """End the delivery after the run on the host. Return whether the host's connection must stay open.

        The connection must stay open while other hosts fetch files from this host. The run's ``Handout`` then closes
        the connection later.
        """
        self._over = True
        self.halt()
        handout = self._run.handout
        return handout is not None and handout.leave(self._connection.host, self._connection)
