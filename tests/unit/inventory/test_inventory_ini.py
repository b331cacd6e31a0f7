"""Lines of an INI inventory are parsed like by a shell and by Python, also on the fast path without them."""

from __future__ import annotations

import ast
import shlex
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hostwright.inventory import load
from hostwright.inventory.reading import ini

TEXT = st.text(st.sampled_from("aTrueFalsNone01289_./:@-,+[](){}'\"\\#= \tjJxe"), max_size=12)


def literal(text: str) -> Any:
    """Return a value as Python's own parser reads it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, (bool, int, str, list, dict)) or value is None else text


@given(TEXT)
@example("True")
@example("None.x")
@example("10.0.0.1")
@example("007")
@example("1_000")
@example("-1")
@example("/dev/sda")
@example("9" * 30)
def test_a_value_is_python_s_literal_or_text(text: str) -> None:
    read, wanted = ini._literal(text), literal(text) if text else text
    assert (type(read), read) == (type(wanted), wanted)


@given(TEXT)
def test_a_plain_line_is_a_shell_s_words(line: str) -> None:
    line = line.strip()
    if ini._PLAIN_LINE.fullmatch(line):
        assert line.split() == shlex.split(line, comments=True)


def test_a_shell_is_asked_only_where_a_line_needs_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    own = shlex.split
    monkeypatch.setattr(ini.shlex, "split", lambda line, **how: asked.append(line) or own(line, **how))
    plain = "".join(f"gpu{number:04} ansible_host=10.0.0.{number % 256} rack={number}\n" for number in range(1000))
    (tmp_path / "hosts.ini").write_text(f"{plain}odd01 note='two words' # a remark\n")
    hosts = load(tmp_path / "hosts.ini").hosts
    assert len(hosts) == 1001
    assert asked == ["odd01 note='two words' # a remark"]
    assert hosts["odd01"].get("note") == "two words"
    assert hosts["gpu0007"].get("rack") == 7
