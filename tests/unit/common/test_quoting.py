"""Quoting: any value reaches the shell as one word of data."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.common.quoting import sh, sh_file, words
from hostwright.common.secret import Secret

TEXT = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=80)
NASTY = st.sampled_from(
    ["$(id)", "`id`", "a b", "'", '"', "\n", "\\", "-rf", "*", "~", "ü ñ 漢", "!!", "%s", "#", ";|&"]
)


def through_shell(command: str) -> str:
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=True)
    return done.stdout.decode()


@settings(max_examples=150, deadline=None)
@given(st.lists(TEXT | NASTY, min_size=1, max_size=4).map("".join))
def test_any_value_reaches_the_shell_as_data(value):
    assert through_shell(sh("printf '%%s.' %s", value)) == value + "."


@settings(max_examples=50, deadline=None)
@given(st.lists(TEXT | NASTY, min_size=1, max_size=5))
def test_words_stay_apart(values):
    assert through_shell(f"printf '%s\\037' {words(tuple(values))}") == "".join(f"{value}\x1f" for value in values)


def test_a_secret_never_becomes_part_of_a_command():
    with pytest.raises(ValueError, match="standard input"):
        sh("echo %s", Secret("hunter2"))


def test_nul_and_wrong_counts_are_refused():
    with pytest.raises(ValueError, match="NUL"):
        sh("echo %s", "a\0b")
    with pytest.raises(ValueError, match="does not have 1 placeholders"):
        sh("echo %s %s", "one")
    with pytest.raises(ValueError, match="does not have"):
        sh("echo", "one")


FILE = """\
# What is at a path, and the names that were asked for.
# A second line for whoever reads it.
: "${path:?}"
: "${mark?}"
: "${names?}"
eval "set -- $names"
printf '%s.' "$path" "$mark" "$@"
"""


@pytest.fixture
def beside(tmp_path: Path) -> str:
    """Return the ``__file__`` of a module in the folder of ``shown.sh``."""
    (tmp_path / "shown.sh").write_text(FILE)
    return str(tmp_path / "module.py")


@settings(max_examples=50, deadline=None)
@given(path=NASTY | TEXT.filter(bool), mark=TEXT | NASTY, names=st.lists(TEXT | NASTY, max_size=4))
def test_values_of_a_shell_file_reach_it_as_data(tmp_path_factory, path, mark, names):
    folder = tmp_path_factory.mktemp("shell")
    (folder / "shown.sh").write_text(FILE)
    text = sh_file(str(folder / "module.py"), "shown.sh", path=path, mark=mark, names=names)
    assert through_shell(text) == "".join(f"{value}." for value in (path, mark, *names))


def test_a_shown_step_is_assignments_and_the_commands_without_the_files_head(beside):
    text = sh_file(beside, "shown.sh", path="/etc/a b", mark="", names=("x",))
    assert text == "path='/etc/a b'\nmark=''\nnames=x\n" + FILE.partition('names?}"\n')[2]


def test_a_shell_file_gets_exactly_the_values_that_it_declares(beside):
    with pytest.raises(ValueError, match=r"shown.sh needs the values \['mark', 'names', 'path'\], but got \['path'\]"):
        sh_file(beside, "shown.sh", path="/x")
    with pytest.raises(ValueError, match="but got "):
        sh_file(beside, "shown.sh", path="/x", mark="", names=(), more=1)
    with pytest.raises(ValueError, match="path must not be empty"):
        sh_file(beside, "shown.sh", path="", mark="", names=())
    with pytest.raises(ValueError, match="standard input"):
        sh_file(beside, "shown.sh", path=Secret("hunter2"), mark="", names=())
