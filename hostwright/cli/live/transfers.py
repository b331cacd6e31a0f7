"""Displays file transfers: a bar with rate and remaining time in a terminal, lines of text elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as Bars
from rich.table import Column, Table

from hostwright.cli.console import redraws
from hostwright.common.text import shown_bytes

if TYPE_CHECKING:
    from hostwright.stack.store.mirroring import Mirrored, TransferProgress


class BarProgress:
    """A progress bar for each file that is being transferred."""

    def __init__(self, bars: Bars):
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def show(self, file: str, done: int, total: int | None) -> None:
        """Set the progress of a file to ``done`` of ``total`` bytes."""
        if file not in self._tasks:
            self._tasks[file] = self._bars.add_task(file, total=total)
        self._bars.update(self._tasks[file], completed=done, total=total)

    def end(self, file: str, note: str) -> None:
        """Remove the bar of a complete or failed ``file``, and print ``note`` about it."""
        task = self._tasks.pop(file, None)
        if task is not None:
            self._bars.remove_task(task)
        self._bars.console.print(f"{file}: {note}", markup=False)


class LineProgress:
    """Prints a line when the transfer of a file begins, after each tenth of the file, and at the end."""

    def __init__(self, console: Console):
        self._console = console
        self._tenths: dict[str, int] = {}

    def show(self, file: str, done: int, total: int | None) -> None:
        """Print a line if ``done`` of ``total`` bytes reach the next tenth of ``file``."""
        tenth = done * 10 // total if total else 0
        if tenth == self._tenths.get(file):
            return
        self._tenths[file] = tenth
        of = f" of {shown_bytes(total)}" if total else ""
        self._console.print(f"{file}: {shown_bytes(done)}{of}", markup=False)

    def end(self, file: str, note: str) -> None:
        """Print ``note`` about a complete or failed ``file``."""
        self._console.print(f"{file}: {note}", markup=False)


@contextmanager
def make_progress(console: Console) -> Iterator[TransferProgress]:
    """Yield a display of file transfers: bars in a terminal, else lines."""
    if not redraws(console):
        yield LineProgress(console)
        return
    columns = (
        TextColumn("{task.description}", markup=False, table_column=Column(overflow="fold")),
        BarColumn(bar_width=20),  # the bar and the file name are the only columns that shrink in a narrow terminal
        DownloadColumn(table_column=Column(no_wrap=True)),
        TransferSpeedColumn(table_column=Column(no_wrap=True)),
        TimeRemainingColumn(table_column=Column(no_wrap=True)),
    )
    with Bars(*columns, console=console) as bars:
        yield BarProgress(bars)


def summary(done: Iterable[Mirrored]) -> Table:
    """Return a table of mirrored files: name, size, checksum and origin, and whether the file replaces a vendor's
    file.
    """
    table = Table(box=None, pad_edge=False)
    for title in ("artifact", "file", "size", "sha256", ""):
        whole = title not in {"file", ""}
        table.add_column(title, justify="right" if title == "size" else "left", no_wrap=whole, overflow="fold")
    for file in done:
        notes = [file.came, *(["pinned now"] if file.pinned else []), *(["STAND-IN"] if file.stand_in else [])]
        table.add_row(file.name, file.file, shown_bytes(file.size), file.sha256[:12], ", ".join(notes))
    return table
