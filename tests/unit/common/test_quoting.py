"""The quoting helper: whatever a value holds, it reaches the shell as one word of data."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.common.quoting import sh, words
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
    with pytest.raises(ValueError, match="does not take"):
        sh("echo %s %s", "one")
    with pytest.raises(ValueError, match="does not take"):
        sh("echo", "one")
