"""No secret is ever in the record of a run."""

from __future__ import annotations

import base64
import gzip
import json
import shlex
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hostwright.apply import events
from hostwright.apply.events import Event
from hostwright.apply.journal.factfiles import load_facts
from hostwright.apply.journal.reading import Runs
from hostwright.apply.journal.records import IDENTIFIERS
from hostwright.apply.journal.redaction import Redactor, secrets_in
from hostwright.apply.journal.writing import Journal
from hostwright.common.input.passwordcommand import PrintedSecret
from hostwright.common.input.yamlfile import Origin
from hostwright.common.places import place_of
from hostwright.common.secret import Secret
from hostwright.inventory import Host, Value
from hostwright.inventory.model import VariableLayer
from hostwright.plan.model import (
    Answer,
    Change,
    Deferred,
    Facts,
    Plan,
    Probe,
    Reboot,
    Refusal,
    RolePlan,
    RoleResult,
    Step,
    StepResult,
)
from tests.unit.apply.journal.test_journal import HEADER

FORMS: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: quote(text, safe=""),
    quote_plus,
    lambda text: quote(text, safe="").lower() if text.isascii() and text.lower() == text else text,
    lambda text: base64.b64encode(text.encode()).decode(),
    lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    shlex.quote,
    lambda text: json.dumps({text: text}),
    lambda text: json.dumps(text, ensure_ascii=False),
    repr,
    lambda text: f"https://ann:{text}@mirror.example/x",
    lambda text: f"--password={text}",
)


def everything(text: Callable[[], str]) -> list[Event]:
    """An event of each kind, with a text wherever a host or a user can put one."""
    host = "gpu01"
    steps = (Step(text()), Step(text(), lock=text()))
    planned = (
        Change(text(), text(), text(), steps, text(), (text(),), disturbs=text()),
        Reboot(text(), text(), text(), text()),
        Deferred(text(), text(), text(), text(), (text(),)),
        Refusal(text(), text(), text(), text(), text()),
    )
    plan = Plan(host, text(), (RolePlan(text(), (text(),), planned),))
    facts = Facts({Probe(text()): Answer(0, text()), Probe("x" + text(), root=True): Answer(1, text(), True)})
    return [
        events.Observed(host, plan, facts),
        events.Observed(host, plan, facts),
        events.RoleStarted(host, text(), 1, text()),
        events.Attached(host, text(), 1, text(), text(), text()),
        events.Delivering(host, text(), text(), 5, 5),
        events.Retrying(host, text(), 1, 1.0, text()),
        events.Rebooted(host, text(), 1.0),
        events.Silent(host, text(), 1.0),
        events.Note(host, text()),
        events.RoleFinished(host, text(), RoleResult(text(), 1, 1.0, (StepResult(0, text(), 1, 1.0, text(), 1),))),
        events.HostEnded(host, "failed", text()),
    ]


def written(root: Path, known: list[str], text: Callable[[], str]) -> bytes:
    """A run with these texts everywhere; what is on the disk of it, facts unpacked."""
    header = replace(
        HEADER,
        argv=("invoke", text(), text()),
        options={"hosts": text(), "var": [f"a={text()}", text()], "nested": {text(): {"run": text()}}},
        inventory="/srv/" + text().replace("\0", ""),
        operator=text(),
        commit=text(),
    )
    journal = Journal.begin(root, header, secrets=map(Secret, known), on_trouble=pytest.fail)
    for event in everything(text):
        journal(event)
    journal.end(1, "crashed", text())
    files = [gzip.decompress(path.read_bytes()) for path in sorted(journal.path.parent.glob("facts/*.gz"))]
    assert len(files) == 2
    return b"\n".join([journal.path.read_bytes(), *files])


def texts(value: Any, names: frozenset[str] = IDENTIFIERS) -> Iterator[str]:
    """Every text of a record that a user or a host could have put there, and every key that could be theirs."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        own = names | {"run"} if value.get("kind") == "run began" else names
        for key, inner in value.items():
            if key == "options":
                yield from inner.get("nested", {})
                yield from texts(inner, frozenset())
            elif key not in own:
                yield from texts(inner, names)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner, names)


@st.composite
def secrets_and_texts(draw: st.DrawFn, around: st.SearchStrategy[str]) -> tuple[list[str], list[str]]:
    """Some secrets, and texts in which they stand, in every form in which programs write them."""
    known = draw(st.lists(st.text(min_size=4, max_size=30), min_size=1, max_size=3))
    pieces = st.tuples(around, st.sampled_from(FORMS), st.sampled_from(known), around)
    drawn = draw(st.lists(pieces, min_size=1, max_size=7))
    return known, [before + form(secret) + after for before, form, secret, after in drawn]


def in_turn(texts_: list[str]) -> Callable[[], str]:
    """One after another, for ever."""
    return cycle(texts_).__next__


@settings(deadline=None, max_examples=100)
@given(secrets_and_texts(st.text(max_size=8)))
def test_no_text_of_the_record_holds_a_secret(drawn: tuple[list[str], list[str]]):
    known, said = drawn
    with tempfile.TemporaryDirectory() as place:
        found = written(Path(place), known, in_turn(said))
    records = [json.loads(line) for line in found.split(b"\n") if line]
    assert len(records) == 1 + len(everything(str)) + 1 + 2
    assert not [(secret, one) for record in records for one in texts(record) for secret in known if secret in one]


@settings(deadline=None, max_examples=100)
@given(secrets_and_texts(st.text(alphabet="abc xyz/-", max_size=12)))
def test_the_bytes_on_the_disk_hold_no_secret(drawn: tuple[list[str], list[str]]):
    """Neither as UTF-8 nor escaped as JSON. A secret that stands in a record without any text, such as ``"status":``,
    is a part of our own words, and one of digits may be a number's: those are no secret's trace."""
    known, said = drawn
    with tempfile.TemporaryDirectory() as place:
        skeleton = written(Path(place), [], str)
    forms = {form for secret in known for form in (secret, json.dumps(secret)[1:-1])}
    assume(not any(form.encode() in skeleton or form.isdigit() for form in forms))
    with tempfile.TemporaryDirectory() as place:
        found = written(Path(place), known, in_turn(said))
    assert not [form for form in forms if form.encode() in found]


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.text(alphabet="*a:/@b(", min_size=1, max_size=5), min_size=1, max_size=4),
    st.text(alphabet="*a:/@b(c ", max_size=30),
)
def test_no_mask_makes_up_a_secret(known: list[str], text: str):
    shown = Redactor(map(Secret, known)).text(text)
    assert not [secret for secret in known if secret in shown]


@settings(deadline=None, max_examples=100)
@given(st.lists(st.text(min_size=1), max_size=4), st.text())
def test_a_text_without_a_secret_stays_as_it_is(known: list[str], text: str):
    assume("@" not in text)
    shown = Redactor(map(Secret, known)).text(text)
    assert shown == text or "***" in shown or any(secret.strip() in text for secret in known)
    assert Redactor([]).text(text) == text


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=9), st.binary(min_size=8, max_size=30), st.binary(max_size=9))
def test_in_base64_a_secret_is_hidden_whatever_stands_beside_it(before: bytes, secret: bytes, after: bytes):
    text = secret.hex()
    encoded = base64.b64encode(before + text.encode() + after).decode()
    shown = Redactor([Secret(text)]).text(encoded)
    longest = max(map(len, shown.split("***")))
    assert longest <= len(base64.b64encode(before + after)) + 8, "no more is left than what stood beside it"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://ann:s3cret@host/x", "https://***@host/x"),
        ("https://ann:p@ss@host/x", "https://***@host/x"),
        ("http://token@host", "http://***@host"),
        ("git+https://token@host", "git+https://***@host"),
        ("ssh://git@github.com/x", "ssh://git@github.com/x"),
        ("ftp://ann:x@host ftp://bob:y@host", "ftp://***@host ftp://***@host"),
        ("https://host/a@b", "https://host/a@b"),
        ("https://host:8080/x?mail=a@b", "https://host:8080/x?mail=a@b"),
        ("see https://host and a@b", "see https://host and a@b"),
    ],
)
def test_credentials_in_urls_are_hidden_even_if_nobody_knows_them(text: str, shown: str):
    assert Redactor([]).text(text) == shown


SECRET = "it's a \"p/ä+%$` \\ \t!"


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        "it%27s%20a%20%22p%2f%c3%a4%2b%25%24%60%20%5c%20%09%21",
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
        shlex.quote(SECRET)[1:-1],
        SECRET.replace("'", "'\\''"),
        "it's a \\\"p/ä+%\\$\\` \\\\ \t!",
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        repr(SECRET)[1:-1],
    ],
)
def test_a_secret_is_hidden_in_every_form_in_which_programs_write_it(form: str):
    assert Redactor([Secret(SECRET)]).text(f"<{form}>") == "<***>"


def test_secrets_that_overlap_are_hidden_whole():
    redactor = Redactor([Secret("hunter2"), Secret("2faster"), Secret("hunter2hunter")])
    assert redactor.text("a hunter2faster b hunter2hunterhunter2 c") == "a *** b *** c"


@pytest.mark.parametrize(
    ("secret", "text", "shown"),
    [
        ("a", "the step failed\nno error\n", "***\nno error\n"),
        ("root", "login as root refused\nover", "***\nover"),
        ("x1", "ok\nox1o: aHgxaA== x1\n", "ok\n***\n"),
    ],
)
def test_a_mask_in_a_known_word_would_show_a_short_secret_so_the_line_is_hidden(secret: str, text: str, shown: str):
    assert Redactor([Secret(secret)]).text(text) == shown


def test_each_line_of_a_key_is_hidden():
    key = "-----BEGIN KEY-----\nAAAAB3NzaC1yc2E\nab\n-----END KEY-----\n"
    assert Redactor([Secret(key)]).text("> AAAAB3NzaC1yc2E\n> ab") == "> ***\n> ab"


def test_one_letter_password_is_hidden_and_the_run_is_readable(tmp_path: Path):
    journal = Journal.begin(tmp_path, HEADER, secrets=[Secret("a"), Secret(""), Secret("1")], on_trouble=pytest.fail)
    for event in everything(lambda: "banana 11"):
        journal(event)
    journal.end(1)
    records = [json.loads(line) for line in journal.path.read_text().splitlines()]
    assert not [one for record in records for one in texts(record) if "a" in one or "1" in one]
    run = Runs(tmp_path).load("run1")
    assert {one.host: one.result for one in run.hosts} == {"gpu01": "failed", "gpu02": "untouched"}
    assert run.damaged == 0
    assert len(run.hosts[0].roles[-1].steps) == 1


def test_our_own_words_and_names_stay_though_a_password_says_the_same(tmp_path: Path):
    """Nobody can tell from them that they are one; and hosts and runs would not be found again."""
    known = ["gpu01", "failed", "status", "provision", "kind", "host ended"]
    journal = Journal.begin(tmp_path, HEADER, secrets=map(Secret, known), on_trouble=pytest.fail)
    journal(events.HostEnded("gpu01", "failed", "gpu01 failed"))
    journal.end(1)
    run = Runs(tmp_path).load("run1")
    first = run.hosts[0]
    assert (first.host, first.result, first.sentence) == ("gpu01", "failed", "***")
    assert run.header.hosts == HEADER.hosts
    assert Runs(tmp_path).find("run1").status == 1


def test_values_of_password_like_variables_are_not_kept(tmp_path: Path):
    given_ = [
        "ansible_become_password=opensesame",
        "cuda_version=11.2",
        "pip_url=https://a:b@c/",
        "greeting=hi hunter2",
    ]
    header = replace(
        HEADER,
        argv=("invoke", "provision", "--var", given_[0], f"--var={given_[0]}", "--api-key=opensesame"),
        options={"var": given_, "hosts": "all", "more": {"token": "opensesame", "x": 1}, "ask_become_pass": True},
    )
    journal = Journal.begin(tmp_path, header, secrets=[Secret("hunter2")], on_trouble=pytest.fail)
    journal.end(0)
    kept = Runs(tmp_path).find("run1").header
    assert kept.options == {
        "var": ["ansible_become_password=***", "cuda_version=11.2", "pip_url=https://***@c/", "greeting=hi ***"],
        "hosts": "all",
        "more": {"token": "***", "x": 1},
        "ask_become_pass": True,
    }
    assert kept.masked == ("var", "more"), "what cannot be taken from the record when the run is resumed"
    assert kept.argv[3:] == ("ansible_become_password=***", "--var=ansible_become_password=***", "--api-key=***")
    assert b"opensesame" not in journal.path.read_bytes()


def test_options_become_text_and_secrets_masks(tmp_path: Path):
    options = {"path": Path("/x"), "password": Secret("hunter2"), "set": ("a", 1), 5: None}
    Journal.begin(tmp_path, replace(HEADER, options=options), secrets=[], on_trouble=pytest.fail).end(0)
    shown = Runs(tmp_path).find("run1").header.options
    assert shown == {"path": "/x", "password": "***", "set": ["a", 1], "5": None}


def test_path_with_a_secret_is_hidden_and_its_runs_are_found(tmp_path: Path):
    header = replace(HEADER, inventory="/srv/hunter2/inventory")
    Journal.begin(tmp_path, header, secrets=[Secret("hunter2")], on_trouble=pytest.fail).end(0)
    kept = Runs(tmp_path).find("run1").header
    assert kept.inventory == "/srv/***/inventory"
    assert kept.place == place_of("/srv/hunter2/../hunter2/inventory/")


def test_facts_with_a_secret_can_be_loaded(tmp_path: Path):
    journal = Journal.begin(tmp_path, HEADER, secrets=[Secret("hunter2")], on_trouble=pytest.fail)
    facts = Facts({Probe("cat /etc/x"): Answer(0, "password=hunter2\n"), Probe("echo hunter2"): Answer(0, "y")})
    journal(events.Observed("gpu01", Plan("gpu01", "tf"), facts))
    journal.end(0)
    kept = load_facts(journal.path.parent / "facts" / "gpu01.before.json.gz")[0]
    assert dict(kept) == {Probe("cat /etc/x"): Answer(0, "password=***\n"), Probe("echo ***"): Answer(0, "y")}


def test_every_secret_of_the_inventory_is_found():
    def value(content: Any) -> Value:
        return Value(content, Origin("hosts.yml"), "host")

    shared = value({"users": [{"password": Secret("deep")}], "x": 1})
    hosts = [
        Host("a", password=Secret("login"), become_password=Secret("sudo"), vars={"shared": shared, "pin": value(5)}),
        Host(
            "b", layers=(VariableLayer("group x", {"shared": shared, "weaker": value(Secret("hidden by a stronger"))}),)
        ),
        Host("c", become_password=Secret("")),
    ]
    found = {secret.reveal() for secret in secrets_in(hosts)}
    assert found == {"deep", "login", "sudo", "hidden by a stronger"}


def test_what_a_command_prints_is_a_secret_once_it_was_needed(tmp_path: Path) -> None:
    file = tmp_path / "ran"
    printed = PrintedSecret(f"touch '{file}'; echo opensesame", "a", "hostwright_become_password_command")
    assert secrets_in([Host("a", become_password=printed)]) == set()
    assert not file.exists(), "no command is run for hosts that nobody works on"
    printed.reveal()
    redactor = Redactor(secrets_in([Host("a", become_password=printed)]))
    assert redactor.text("it is opensesame") == "it is ***"


def test_a_thousand_passwords_are_all_hidden():
    known = [f"pässword-{number:04}-{number * 7919 % 1000}" for number in range(1000)]
    redactor = Redactor(map(Secret, known))
    text = "\n".join(f"sudo: {quote(one)} {one}!" for one in known)
    assert redactor.text(text) == "\n".join(["sudo: *** ***!"] * 1000)
