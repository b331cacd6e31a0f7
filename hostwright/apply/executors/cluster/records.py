"""What a worker keeps of its own of each attempt at a host: all that it told, for when nobody heard it.

The operator's machine has the journal of the run. Where it died meanwhile, or a worker died before all that it told was
sent, what is missing there is taken from these files. They hold what a journal may hold: secrets are masked before.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from hostwright.apply.executors.cluster.errand import Message
from hostwright.apply.executors.cluster.sites import remove_unused
from hostwright.common.places import PRIVATE_FILE, make_folder, plain_name, state_root

FOLDER = "attempts"  #: below the state directory: a folder for each run, a file in it for each attempt
LONGEST = 64 << 20  #: bytes of one message; facts of a host take some hundred kilobytes
_LENGTH = struct.Struct(">I")
_RUN = re.compile(r"[a-z0-9][a-z0-9_.-]{0,120}")


def folder_of(run: str, root: Path | None = None) -> Path:
    """The directory with the attempts of a run. Raises ``ValueError`` for what is no run's id."""
    if not _RUN.fullmatch(run):
        raise ValueError(f"not a run id: {run!r}")
    return (root or state_root()) / FOLDER / run


class AttemptRecord:
    """The file of one attempt, which grows. It fails quietly: a full disk here stops no work."""

    def __init__(self, path: Path):
        self._path = path
        self._fd: int | None = None

    @classmethod
    def begin(cls, run: str, host: str, attempt: str, root: Path | None = None) -> Self:
        """Begin the file of an attempt; ``root`` is ``state_root()``."""
        folder = folder_of(run, root)
        record = cls(folder / f"{plain_name(host)}.{attempt}")
        with suppress(OSError):
            make_folder(folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            record._fd = os.open(record._path, flags, PRIVATE_FILE)
        return record

    def add(self, message: Message, *, sync: bool = False) -> None:
        """Keep a message; ``sync`` waits until it is on the disk."""
        if self._fd is None:
            return
        body = pickle.dumps(message)
        try:
            whole = _LENGTH.pack(len(body)) + body
            if os.write(self._fd, whole) < len(whole):
                self.close()  # what came after half a message could not be read
            elif sync:
                os.fsync(self._fd)
        except OSError:
            self.close()

    def close(self) -> None:
        """Close the file; further messages are not kept."""
        fd, self._fd = self._fd, None
        if fd is not None:
            with suppress(OSError):
                os.close(fd)


def kept(run: str, known: Mapping[str, int], root: Path | None = None) -> list[Message]:
    """The messages of a run that are kept here, beyond the number that is known of each attempt; those of one attempt
    in their order. An end that was cut off is left out."""
    messages: list[Message] = []
    with suppress(OSError):
        for path in sorted(folder_of(run, root).iterdir()):
            messages += [each for each in _read(path) if each.number > known.get(each.attempt, 0)]
    return messages


def _read(path: Path) -> Iterator[Message]:
    with suppress(Exception), path.open("rb") as file:  # what is damaged, or another version's, raises anything
        while len(head := file.read(_LENGTH.size)) == _LENGTH.size:
            (length,) = _LENGTH.unpack(head)
            if length > LONGEST or len(body := file.read(length)) < length:
                return
            message = pickle.loads(body)  # noqa: S301 - our own file, which nobody else can write
            if isinstance(message, Message):
                yield message


def forget(run: str, root: Path | None = None) -> None:
    """Remove what is kept of a run: its journal has all of it. And what nobody has asked for in a month."""
    folder = folder_of(run, root)
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        remove_unused(folder.parent)
