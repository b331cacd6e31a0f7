"""Transfers in narrow terminals: a long file name hides no number."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from hostwright.cli.live.transfers import make_progress, summary
from hostwright.stack.store.mirroring import Mirrored

FILE = "a-local-repository-of-packages-ubuntu2004-470.182.03_1.0-1_amd64.deb"


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_while_a_file_comes_its_name_and_its_figures_are_whole(width: int) -> None:
    console = Console(file=io.StringIO(), width=width, height=24, force_terminal=True, color_system=None)
    with make_progress(console) as progress:
        progress.show(FILE, 1_200_000_000, 4_100_000_000)
        progress.show("small.tgz", 1, 2)
    drawn = console.file.getvalue()  # type: ignore[attr-defined]
    (*_, last) = [part for part in re.split(r"\x1b\[[0-9;?]*[A-Za-z]", drawn) if FILE[:10] in part]
    lines = last.splitlines()
    assert "1.2/4.1 GB" in lines[0]
    assert max(map(len, lines)) <= width
    assert "".join(line.split("━")[0].strip() for line in lines).startswith(FILE + "small.tgz")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_list_of_files_cuts_no_name(width: int) -> None:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(summary([Mirrored("storage", FILE, Path("/a"), "0" * 64, 4_100_000_000, "fetched", True, True)]))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= width
    begin = lines[0].index("file")
    assert "".join(line[begin:].split()[0] for line in lines[1:] if line[begin:].strip()[:1] == line[begin]) == FILE
