"""Defaults of options: the environment, the site's file, and the messages for mistakes in them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hostwright.cli.program import program
from hostwright.cli.tasks.begin import init
from hostwright.common.request import Request

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a site with two hosts, as the working directory."""
    assert init(Request(), str(tmp_path / "site")) == 0
    monkeypatch.chdir(tmp_path / "site")
    monkeypatch.delenv("HOSTWRIGHT_SITE", raising=False)
    (tmp_path / "site/inventory/hosts.yml").write_text("all: {hosts: {gpu01: {}, gpu02: {}}}\n")
    return tmp_path / "site"


@pytest.fixture
def call(site: Path, capfd: pytest.CaptureFixture[str]) -> Call:
    """Call ``hostwright`` with these words; return exit status, standard output and standard error."""
    capfd.readouterr()

    def typed(*words: str) -> tuple[int, str, str]:
        status = 0
        try:
            program.run(["hostwright", *words])
        except SystemExit as end:
            status = int(end.code or 0)
        return status, *capfd.readouterr()

    return typed


def write(site: Path, text: str) -> None:
    (site / "hostwright.toml").write_text(text)


def named(ended: tuple[int, str, str]) -> list[str]:
    """Return the hosts in the output of ``hosts --json``."""
    return list(dict.fromkeys(re.findall(r'"(of-file|of-env|typed[12]|gpu0[12])"', ended[1])))


def as_json(out: str) -> bool:
    return out.startswith("[") or out.startswith("{")


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(
    site: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site / "other.yml").write_text("all: {hosts: {of-file: {}}}\n")
    write(site, '[options]\ninventory = ["other.yml"]\njson = true\n')
    assert named(call("hosts")) == ["of-file"]
    monkeypatch.setenv("HOSTWRIGHT_INVENTORY", "of-env,")
    assert named(call("hosts")) == ["of-env"]
    typed = call("hosts", "--inventory", "typed1,", "--inventory", "typed2,")
    assert named(typed) == ["typed1", "typed2"]
    monkeypatch.setenv("HOSTWRIGHT_JSON", "0")
    assert not as_json(call("hosts")[1])
    assert as_json(call("hosts", "--json")[1])


def test_paths_in_the_file_are_the_sites_wherever_the_call_is_made(
    site: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site / "other.yml").write_text("all: {hosts: {of-file: {}}}\n")
    write(site, '[options]\ninventory = ["other.yml", "gpu01,"]\njson = true\n')
    monkeypatch.chdir(site / "roles")
    assert named(call("hosts")) == ["of-file", "gpu01"]


def test_what_the_file_turns_on_is_turned_off_by_a_word(site: Path, call: Call) -> None:
    write(site, "[options]\njson = true\n")
    assert as_json(call("runs")[1])
    assert not as_json(call("runs", "--no-json")[1])


@pytest.mark.parametrize(
    ("text", "is_on"), [("1", True), ("yes", True), ("TRUE", True), ("0", False), ("false", False)]
)
def test_words_for_yes_and_no_in_the_environment(
    call: Call, monkeypatch: pytest.MonkeyPatch, text: str, is_on: bool
) -> None:
    monkeypatch.setenv("HOSTWRIGHT_JSON", text)
    assert as_json(call("runs")[1]) is is_on


def test_an_empty_variable_is_none(site: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    write(site, "[options]\njson = true\n")
    monkeypatch.setenv("HOSTWRIGHT_JSON", "")
    monkeypatch.setenv("HOSTWRIGHT_INVENTORY", "")
    status, out, err = call("hosts")
    assert (status, err) == (0, "")
    assert as_json(out)


@pytest.mark.parametrize(
    ("variable", "text", "sentence"),
    [
        ("HOSTWRIGHT_JSON", "maybe", "HOSTWRIGHT_JSON: found 'maybe', expected 1 or 0"),
        ("HOSTWRIGHT_LIMIT", "ten", "HOSTWRIGHT_LIMIT: found 'ten', expected a whole number"),
    ],
)
def test_a_mistake_in_the_environment_names_the_variable(
    call: Call, monkeypatch: pytest.MonkeyPatch, variable: str, text: str, sentence: str
) -> None:
    monkeypatch.setenv(variable, text)
    assert call("runs") == (2, "", sentence + "\n")


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("[options]\nmax-fial = 1\n", 2, "max-fial: is not an option that can be set; did you mean 'max-fail'?"),
        ("[options]\nmax_fail = 1\n", 2, "max_fail: is not an option that can be set; did you mean 'max-fail'?"),
        ("[option]\ncanary = 1\n", 1, "the table [option] is unknown; write options below [options]"),
        ("canary = 1\n", 1, "the table [canary] is unknown; write options below [options]"),
        (
            "# all\n\n[options]\nvar = [\n  'a=b',\n]\n\ndrain = 'yes'\n",
            8,
            "drain: found 'yes', expected true or false",
        ),
        ("[options]\nlimit = true\n", 2, "limit: found true, expected a whole number"),
        ("[options]\ninventory = [1]\n", 2, "inventory: found [1], expected a list of texts"),
        ("[options]\nx = {y" + ".y" * 20_000 + " = 1}\n", 2, "has a key with more than 64 names joined by dots"),
        ("[options" + ".y" * 20_000 + "]\n", 1, "has a key with more than 64 names joined by dots"),
        ("[options]\nbatch = 10%\n", 2, "is not valid TOML: expected newline or end of document after a statement"),
        ("[options]\ncanary = 1\ncanary = 2\n", 3, "is not valid TOML: cannot overwrite a value"),
        ("[options]\nbatch = ten\n", 2, "is not valid TOML: invalid value; put texts in quotes"),
        ("[options]\nhosts = 'all'\n", 2, "hosts: cannot be set in this file; pass --hosts in each call"),
        ("[options]\nyes = true\n", 2, "yes: cannot be set in this file; pass --yes in each call"),
    ],
)
def test_a_mistake_in_the_file_has_its_line(site: Path, call: Call, text: str, line: int, sentence: str) -> None:
    write(site, text)
    status, out, err = call("hosts")
    assert (status, out) == (2, "")
    assert f"hostwright.toml:{line}: {sentence}" in " ".join(err.split())


def test_all_mistakes_are_said_at_once_and_help_goes_on(
    site: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(site, "[options]\ndrain = 3\njsn = true\n")
    monkeypatch.setenv("HOSTWRIGHT_STRICT", "si")
    err = call("hosts")[2]
    assert [part in err for part in ("drain:", "jsn:", "HOSTWRIGHT_STRICT:")] == [True, True, True]
    assert call("--list")[0] == call("--help", "provision")[0] == 0


def test_a_value_that_its_verb_refuses_is_said_with_its_place(site: Path, call: Call) -> None:
    write(site, "\n[options]\ncanary = 'none'\n")
    status, _, err = call("provision", "--hosts", "gpu01")
    assert status == 2
    assert "hostwright.toml:3: --canary: " in " ".join(err.split())
    assert "hostwright.toml" not in call("provision", "--hosts", "gpu01", "--canary", "no")[2]


def test_the_help_of_a_verb_says_what_is_set_and_where(site: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    write(site, "# ours\n[options]\ninventory = 'rack3.yml' # a comment\n")
    monkeypatch.setenv("HOSTWRIGHT_JSON", "1")
    helped = " ".join(call("--help", "hosts")[1].split())
    assert "repeatable, the last one wins (set in hostwright.toml:3)" in helped
    assert "nothing else (set in HOSTWRIGHT_JSON)" in helped
    assert helped.count("(set in") == 2


def test_a_variable_that_means_something_else_is_no_mistake(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VERSION", "USER", "PORT", "NAME", "OUT", "PLAN", "LAB_CACHE", "HOME", "DEBUG"):
        monkeypatch.setenv(f"HOSTWRIGHT_{name}", "abc")
    assert call("hosts")[::2] == (0, "")


def test_a_variable_that_is_almost_an_options_is_named(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTWRIGHT_MAXFAIL", "1")
    monkeypatch.setenv("HOSTWRIGHT_HOSTS", "gpu01")
    status, out, err = call("hosts")
    assert status == 0
    assert "gpu02" in out
    assert "HOSTWRIGHT_MAXFAIL is not read; did you mean HOSTWRIGHT_MAX_FAIL?" in err
    assert "HOSTWRIGHT_HOSTS is not read" in err


def test_what_commands_of_a_run_find_in_their_environment_is_no_option(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOST", "RUN", "REASON", "ADDRESS", "STATE", "SITE"):
        monkeypatch.setenv(f"HOSTWRIGHT_{name}", {"SITE": ""}.get(name, str(Path.cwd())))
    assert call("hosts")[2] == ""


def test_check_finds_the_mistakes_of_the_file_with_all_others(site: Path, call: Call) -> None:
    """It still reads the inventory that the file names."""
    (site / "inventory/hosts.yml").rename(site / "rack.yml")
    write(site, "[options]\nmax-fial = 1\ninventory = 'rack.yml'\ndrain = 'yes'\n")
    (site / "inventory/stacks/ours.yml").write_text("extends: nosuch\n")
    status, out, err = call("check", "--json")
    found = json.loads(out)
    mistakes = {(each["file"], each["line"]): each["sentence"] for each in found["mistakes"]}
    assert (status, err, found["hosts"]) == (2, "", 2)
    assert mistakes["hostwright.toml", 2] == "max-fial: is not an option that can be set; did you mean 'max-fail'?"
    assert mistakes["hostwright.toml", 4] == "drain: found 'yes', expected true or false"
    assert len(mistakes) > 2
    shown = call("check")[1]
    assert "hostwright.toml:2: max-fial: is not an option" in shown


def test_check_says_of_a_file_that_is_no_toml_where(site: Path, call: Call) -> None:
    write(site, "[options]\nbatch = 10%\n")
    status, out, _ = call("check")
    assert status == 2
    assert out.splitlines()[0].startswith("hostwright.toml:2: is not valid TOML: ")
