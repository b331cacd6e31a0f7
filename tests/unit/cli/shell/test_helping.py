"""``hostwright --help``: verbs by purpose, and a valid example for each."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from invoke import Collection, Program
from invoke.parser import Parser, ParserContext

from hostwright.cli.program import STANDARD, program
from hostwright.cli.shell.helping import overview, split
from hostwright.cli.shell.words import WordsParser
from hostwright.common.errors import NOBODY_READS
from tests.places import PROJECT
from tests.unit.support.documents import NAMES, text_of

VERBS = Collection(*STANDARD)
TASKS = {name: VERBS[name] for name in VERBS.task_names}
PARSER = WordsParser(contexts=VERBS.to_contexts(), initial=Program().initial_context)


def test_every_verb_has_an_example_that_the_parser_takes() -> None:
    for name, task in TASKS.items():
        text, examples = split(task)
        assert text, name
        assert examples, f"{name}: no line of its docstring begins with `hostwright`"
        for example in examples:
            parsed = PARSER.parse_argv(shlex.split(example)[1:])
            assert [each.name for each in parsed[1:]] == [name]


def test_verbs_are_shown_by_what_somebody_wants_to_do() -> None:
    text = overview(VERBS)
    titles = re.findall(r"^(\S.*):$", text, re.MULTILINE)
    assert titles[:5] == ["Begin", "Inspect (changes nothing)", "Change", "Restore", "Keep"]
    assert titles[-1] == "Options"
    looking = text[text.index("Inspect") : text.index("Change:")]
    assert [name for name in ("plan", "verify", "audit", "doctor", "hosts") if f"\n  {name} " not in looking] == []
    shown = set(re.findall(r"^  ([a-z.]+) {2,}", text, re.MULTILINE))
    missing = {name for name, aliases in VERBS.task_names.items() if shown.isdisjoint({name, *aliases})}
    assert missing == set()


def test_invokes_own_options_are_not_shown_and_work(capsys: pytest.CaptureFixture[str]) -> None:
    text = overview(VERBS)
    for option in ("--hide", "--prompt-for-sudo-password", "--pty", "--dry", "--complete", "--write-pyc"):
        assert option not in text
    with pytest.raises(SystemExit) as end:
        program.run(["hostwright", "--hide=both", "--list"])
    assert end.value.code == 0
    assert "provision" in capsys.readouterr().out


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_help_keeps_to_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = overview(VERBS).splitlines()
    assert [line for line in lines if len(line) > columns] == []
    assert "\n`hostwright --help VERB`" in "\n".join(lines) and lines[-1].endswith("shell.")


def test_the_help_of_a_verb_shows_what_is_typed(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help", "power"], ["power", "--help"], ["power", "-h"]):
        with pytest.raises(SystemExit) as end:
            program.run(["hostwright", *words])
        out = capsys.readouterr().out
        assert end.value.code == 0
        assert out.startswith("Usage: hostwright power ORDER [HOST …] [--options]\n")
        assert "Example:\n  hostwright power status gpu01 gpu02\n" in out
        assert "--boot=STRING" in out


def test_help_for_a_verb_that_is_none_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        program.run(["hostwright", "--help", "provsion"])
    assert end.value.code == 2
    assert capsys.readouterr().err == "unknown verb 'provsion'; did you mean 'provision'?\n"


@pytest.mark.parametrize("place", [PROJECT, Path("/")])
def test_without_a_verb_help_is_shown_in_a_site_and_elsewhere(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    with pytest.raises(SystemExit) as end:
        program.run(["hostwright"])
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("Usage: hostwright VERB [HOST …] [--options]\n")


@pytest.mark.parametrize("words", [["--help"], ["--list"], ["--help", "plan"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_help_that_nobody_reads_is_no_crash(words: list[str], unbuffered: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command, env = [sys.executable, "-m", "hostwright", *words], {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(command, cwd=PROJECT, env=env, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (NOBODY_READS, b"")


def test_a_task_of_a_site_stands_apart(tmp_path: Path) -> None:
    source = "from invoke import task, Collection\n\n@task\ndef racks(c):\n    'Show the racks: all of them.'\n"
    names: dict[str, object] = {"__name__": "tasks"}
    exec(compile(source, str(tmp_path / "tasks.py"), "exec"), names)  # noqa: S102 - as a site's file is read
    text = overview(Collection(*STANDARD, names["racks"]))
    assert "Of this site:\n  racks " in text
    assert text.index("Of this site") > text.index("Of the role")
    assert "Show the racks\n" in text


def test_an_option_without_its_value_is_explained() -> None:
    """Runs in its own process, because Invoke removes a task's help texts when it creates options."""
    command = [sys.executable, "-m", "hostwright", "plan", "--hosts"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.stderr == (
        "--hosts needs a value: hosts: gpu01,gpu[03-09],@group,!gpu05,~regex or all; "
        "^FILE reads them from a file, ^- from standard input\n"
    )
    assert (done.returncode, done.stdout) == (2, "")


def calls(document: str) -> list[str]:
    """Return the calls of ``hostwright`` in code within the sentences of a document, if they are more than a verb's
    name."""
    return [" ".join(words.split()) for words in re.findall(r"`hostwright ([^`]+ [^`]+)`", text_of(document))]


CALLS = sorted({(document, words) for document in NAMES for words in calls(document)})


def test_the_documents_name_calls() -> None:
    assert len(CALLS) > 5


def test_every_call_that_a_document_names_parses() -> None:
    core = ParserContext(args=program.core_args())
    parser = WordsParser(contexts=VERBS.to_contexts(), initial=core)
    for document, words in CALLS:
        before = Parser(initial=core, ignore_unknown=True).parse_argv(shlex.split(words))
        assert len(parser.parse_argv(before.unparsed)) > 1 or words.startswith("--help "), f"{document}: {words}"
