"""SQLite files that are created atomically, for their owner or a group. Errors are single sentences."""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hostwright.common.errors import HostwrightError, InputError
from hostwright.common.places import ANOTHER_STATE, file_mode, make_folder, refused

_FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
#: seconds to wait for another process that writes. Writing the first audit of 1,000 hosts takes a few seconds.
BUSY_S = 30.0


@dataclass(frozen=True, slots=True)
class SqliteFile:
    """A type of SQLite file, such as the one for audits.

    ``prepare`` sets up a connection, and creates the tables of a new file. ``prepare`` raises ``InputError`` for a file
    of another version or program. ``afresh`` completes the error "move the file away, and …".
    """

    prepare: Callable[[sqlite3.Connection], None]
    afresh: str

    @contextmanager
    def opened(self, path: Path, *, write: bool) -> Iterator[sqlite3.Connection]:
        """Open the file ``path`` for one transaction. Writes are atomic; a reader gets one consistent state.

        If the file does not exist, a reader gets an empty database and creates no file. Raises ``HostwrightError`` if
        the file cannot be used.
        """
        try:
            if write and not path.exists():
                self._create(path)
            with closing(self._connect(path if path.exists() else ":memory:")) as db:
                db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                yield db
                db.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._trouble(path, error) from error
        except OSError as error:
            raise HostwrightError(f"{path}: cannot be used: {refused(error, ANOTHER_STATE)}") from error
        except InputError as error:
            raise InputError(str(error), str(path)) from error
        # Rows that another program has written may have any content.
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise self._damaged(path, error) from error

    def _connect(self, path: Path | str) -> sqlite3.Connection:
        db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
        try:
            self.prepare(db)
        except BaseException:
            db.close()
            raise
        return db

    def _create(self, path: Path) -> None:
        """Create the file ``path`` under a temporary name, then link it, so that no other process finds half a file."""
        make_folder(path.parent)
        handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.fchmod(handle, file_mode(path.parent))
        os.close(handle)
        try:
            self._connect(beside).close()
            with suppress(FileExistsError):
                os.link(beside, path)
        finally:
            for suffix in ("", "-wal", "-shm", "-journal"):
                Path(beside + suffix).unlink(missing_ok=True)

    def _trouble(self, path: Path, error: sqlite3.Error) -> HostwrightError:
        match getattr(error, "sqlite_errorcode", 0) & 0xFF:
            case sqlite3.SQLITE_FULL:
                return HostwrightError(f"{path}: {refused(_FULL, ANOTHER_STATE)}")
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return HostwrightError(f"{path}: another process has been writing for {BUSY_S:.0f} s; try again")
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_IOERR:
                return HostwrightError(f"{path}: cannot be read or written ({error}); check its owner, mode and disk")
        return self._damaged(path, error)

    def _damaged(self, path: Path, error: Exception) -> InputError:
        reason = str(error).partition("\n")[0]
        return InputError(
            f"is damaged ({type(error).__name__}: {reason}); move the file away, and {self.afresh}", str(path)
        )
