"""Stored facts (answers to probes) of each host's last audit, for ``hostwright audit --offline``."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from hostwright.apply.journal.factfiles import Parsed, load_facts, write_facts
from hostwright.apply.journal.redaction import Redactor
from hostwright.common.errors import HostwrightError
from hostwright.common.places import ANOTHER_STATE, facts_file, make_folder, place_of, refused
from hostwright.plan.model import Facts

FOLDER, LAST = "audits", "last"


class FactStore:
    """A store in the directory ``audits`` with one file for each host of each inventory.

    Only the owner can read the files. The store can be used from any thread.
    """

    def __init__(self, root: Path):
        self._root = root / FOLDER
        self._parsed = Parsed()
        self._places: dict[str | Path, Path] = {}

    def keep(self, inventory: str | Path, host: str, at: datetime, facts: Facts, redactor: Redactor) -> None:
        """Replace the stored facts of ``host`` by ``facts``, which were read at the time ``at``.

        ``redactor`` masks secrets in these facts. Raises ``HostwrightError`` if the file cannot be written.
        """
        path = self._path(inventory, host)
        try:
            if not path.parent.is_dir():
                make_folder(path.parent)
            write_facts(path, host, at.isoformat(timespec="seconds"), facts, redactor)
        except OSError as error:
            raise HostwrightError(f"{path}: cannot be written: {refused(error, ANOTHER_STATE)}") from error

    def load(self, inventory: str | Path, host: str) -> tuple[Facts, datetime] | None:
        """Return the stored facts of ``host``, and the time when the facts were read (UTC); ``None`` if no facts are
        stored.

        Hosts with equal facts share one object. Raises ``InputError`` if the file is damaged.
        """
        path = self._path(inventory, host)
        return load_facts(path, self._parsed) if path.exists() else None

    def _path(self, inventory: str | Path, host: str) -> Path:
        if inventory not in self._places:
            self._places[inventory] = self._root / place_of(inventory)
        return self._places[inventory] / facts_file(host, LAST)
