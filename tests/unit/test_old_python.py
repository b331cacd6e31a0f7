"""A checkout is run by whatever ``python3`` is; pip would have refused an old one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import hostwright


@pytest.mark.parametrize("version", [(3, 6, 9), (3, 8, 10), (3, 10, 12)])
def test_an_old_python_is_told_which_is_needed(
    version: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Path(hostwright.__file__).read_text("utf-8")
    monkeypatch.setattr(sys, "version_info", version)
    with pytest.raises(SystemExit) as end:
        exec(compile(source, "hostwright/__init__.py", "exec"), {})  # noqa: S102 - the package as it is imported
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(
        f"Hostwright needs Python 3.11 or newer, and {sys.executable} is {'.'.join(map(str, version))}: "
    )
    assert said.count("\n") == 1
