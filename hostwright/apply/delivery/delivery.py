"""Delivers the files of one host's plan beside the jobs of its roles; each job waits for its own files.

The host reports once what it has; missing files come one after the other, in the order of need.
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

_KEY_BYTES = 256 * 1024  #: our estimate: longer than any repository's keyring (Debian's has 60 KB)


def in_order(plan: Plan, stack: Stack, first: Sequence[str] = ()) -> tuple[WantedFile, ...]:
    """The files of a plan in the order of need, each once, for the first role that needs it.

    ``first`` are the roles with steps, the most urgent one first; the files of other roles come after theirs. Small
    files delay nothing, and come first of all.
    """
    place = {name: number for number, name in enumerate(first)}
    wanted: dict[str, WantedFile] = {}
    for role in sorted(plan.roles, key=lambda role: place.get(role.role, len(place))):
        for name in role.artifacts:
            wanted.setdefault(name, WantedFile(role.role, stack.artifacts[name]))
    return tuple(sorted(wanted.values(), key=lambda one: (one.artifact.size or SMALL_BYTES) >= SMALL_BYTES))


def _expired(path: Path) -> datetime | None:
    """When the keys in a file expired; ``None`` where one counts, and for a file of anything else."""
    try:
        if path.stat().st_size > _KEY_BYTES:
            return None
        return expired_on(dearmored(path.read_bytes()), datetime.now(UTC))
    except (OSError, ValueError):  # whoever sends the file reports that it cannot be read
        return None


class Delivery:
    """Brings files to one host while a run works on it. Callable from any thread."""

    def __init__(self, connection: HostConnection, run: Run, settings: FileSettings, stack: Stack):
        self._connection, self._run, self._settings = connection, run, settings
        self._batch: Batch | None = None
        self._over = False
        if run.handout:
            host, files = connection.host, stack.artifacts.values()
            shared = [one for one in files if one.sha256 and served(run, settings, host, one)]
            run.handout.enter(host, connection, [host_path(one, settings.cache) for one in shared], self.stop)

    def check(self, artifacts: Iterable[Artifact]) -> None:
        """Raise ``ArtifactError`` if a file that the host will need is not on this machine, or is a repository's key
        that expired."""
        for artifact in artifacts:
            if not self._settings.fetches(artifact):
                path = self._run.locate(artifact)
                if ended := _expired(path):
                    raise ArtifactError(
                        f"{artifact.name}: the key in {artifact.file} expired on {ended:%Y-%m-%d}, and apt trusts "
                        "nothing that it signs; fetch the repository's new key, and name it in the stack"
                    )

    def start(self, wanted: Sequence[WantedFile]) -> None:
        """Begin to bring these files, in this order, in place of those that were begun before."""
        self.halt()
        if self._run.handout:
            self._run.handout.resume(self._connection.host)
        batch = self._batch = Batch(self._connection, self._run, self._settings, wanted)
        if self._over:
            batch.end()
        batch.begin()

    def wait(self, artifacts: Sequence[Artifact]) -> None:
        """Wait until these files are on the host. Raises ``HostError``, ``ArtifactError``, and ``Stopped``."""
        if artifacts:
            if self._batch is None:
                raise ValueError("no files were begun")
            self._batch.wait(artifacts)

    def halt(self) -> None:
        """Stop bringing files until the next ``start``."""
        batch, self._batch = self._batch, None
        if batch:
            batch.end()

    def pause(self) -> None:
        """The host is about to go down: bring nothing to it, and send no other host to it."""
        self.halt()
        if self._run.handout:
            self._run.handout.pause(self._connection.host)

    def stop(self) -> None:
        """Bring nothing any more, and wake who waits."""
        self._over = True
        batch = self._batch
        if batch:
            batch.cut()

    def close(self) -> bool:
        """The run on the host is over. Whether the handout keeps its connection, and closes it later: the server from
        which others fetch ends with it."""
        self._over = True
        self.halt()
        handout = self._run.handout
        return handout is not None and handout.leave(self._connection.host, self._connection)
