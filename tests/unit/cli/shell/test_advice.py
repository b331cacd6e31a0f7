"""Every recommended command works as printed, with the program, site, inventory and selection of the call.

The real program parses the commands of every text in the sources, and of everything that unit tests print.
"""

from __future__ import annotations

import ast
import io
import shlex
from collections.abc import Iterator, Mapping
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest
from rich.console import Group
from rich.text import Text

import hostwright.cli.tasks  # noqa: F401 - makes the verbs known
from hostwright.cli.console import Adviser
from hostwright.cli.shell import advice
from hostwright.cli.shell.advice import CALL, Call
from hostwright.cli.views.changing.plans import show_plan
from hostwright.common.command import Command
from hostwright.common.request import Request
from hostwright.plan.model import Change, Plan, RolePlan, Step
from hostwright.plan.planning import HostPlan
from tests.unit.support.commands import commands_in, contexts, options_of, parsed

PROJECT = Path(__file__).parents[4]
#: values that need quoting everywhere
ODD = {
    "hosts": "gpu[01-03],@rack 3",
    "roles": "base,driver",
    "var": ("cuda_keep_repository=false", "motd=two words"),
    "inventory": ("my site/hosts.yml", "more/"),
    "vault_password_file": "~/.vault pass",
    "ask_become_pass": True,
}


def whole(text: str, call: Mapping[str, Any] = ODD, *, program: str = "invoke", site: str = "") -> str:
    def told() -> str:
        CALL.set(Call(program, site, Request(**call)))
        return advice.completed(text)

    return copy_context().run(told)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("run `invoke audit` first", "run `invoke audit --hosts gpu7 --inventory 'rack 3'` first"),
        ("`invoke provision --resume`, or so", "`invoke provision --resume --inventory 'rack 3'`, or so"),
        ("run `invoke mirror` (with --from DIR)", "run `invoke mirror --inventory 'rack 3'` (with --from DIR)"),
        ("run `invoke runs.show --run x` now", "run `invoke runs.show --run x` now"),
        ("Run invoke plan, which is prose …", "Run invoke plan, which is prose …"),
        (
            "`invoke trust --hosts a --fingerprint …`.",
            "`invoke trust --hosts a --fingerprint … --inventory 'rack 3'`.",
        ),
        (
            "`invoke unlock --force` for the host",
            "`invoke unlock --force --hosts gpu7 --inventory 'rack 3'` for the host",
        ),
        ("if not: `invoke power cycle`", "if not: `invoke power cycle --hosts gpu7 --inventory 'rack 3'`"),
        ("its hosts `invoke curses`, and 'a", "its hosts `invoke curses`, and 'a"),
        ("quotes: `invoke plan '", "quotes: `invoke plan '"),
        ("`foo' is `invoke audit`", "`foo' is `invoke audit --hosts gpu7 --inventory 'rack 3'`"),
        (
            "`invoke run -- ls --hosts`",
            "`invoke run --hosts gpu7 --inventory 'rack 3' -- ls --hosts`",
        ),
    ],
)
def test_a_command_gets_what_it_lacks_of_the_call_and_prose_stays(text: str, want: str) -> None:
    assert whole(text, {"hosts": "gpu7", "inventory": ("rack 3",)}) == want


def test_the_program_and_the_site_are_those_of_the_call() -> None:
    told = whole("run `invoke audit`", {}, program="hostwright", site="my site")
    assert told == "run `hostwright --site 'my site' audit`"
    assert parsed(told.split("`")[1]) == ("audit.fleet", {}, "my site")


def test_a_sentence_about_one_host_advises_nothing_for_the_others() -> None:
    text = advice.of_host("gpu02: the image stays: `invoke power cycle --boot disk` removes it", "gpu02")
    assert whole(text, {"hosts": "all"}).endswith("invoke power cycle --boot disk --hosts gpu02` removes it")


def test_no_password_is_repeated() -> None:
    request = Request("gpu01", var=("a_token=hunter2", "a=1"), inventory=("",))
    assert advice._repeated(request) == {"hosts": "gpu01", "var": ("a=1",)}


def test_the_stack_of_the_call_is_an_option_where_variables_are_none() -> None:
    call = {"hosts": "gpu01", "var": ("stack=lab",)}
    assert whole("run `invoke mirror` again", call) == "run `invoke mirror --stack lab` again"
    assert whole("run `invoke plan`", call) == "run `invoke plan --hosts gpu01 --var stack=lab`"


def test_colours_and_all_else_of_a_text_stay() -> None:
    def shown() -> Text:
        CALL.set(Call(request=Request(inventory=("x",))))
        return Adviser(stderr=False)._complete(Text.assemble(("a", "red"), " `invoke audit` ", ("b", "blue")))

    text = copy_context().run(shown)
    assert text.plain == "a `invoke audit --inventory x` b"
    assert [(text.plain[span.start : span.end], span.style) for span in text.spans] == [("a", "red"), ("b", "blue")]


def _documented(node: ast.AST) -> bool:
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return isinstance(node, kinds) and bool(node.body) and isinstance(node.body[0], ast.Expr)


#: texts about no call: the next steps in a new site, pages and help, the title of a report, the link of a rule
NO_ADVICE = (
    "sitefiles.py",
    "junit.py",
    "failures/rule.py",
    "helping.py",
    "reference/variables.py",
    "reference/verbs.py",
)


def _value(node: ast.expr, option: str, verb: str) -> object:
    if isinstance(node, ast.Constant):
        return node.value
    flag = next(each for each in contexts() if each.name == verb).args[option].kind is bool if option else False
    return True if flag else "1"


def _command(node: ast.Call) -> Iterator[str]:
    """Return a command in the sources, with 1 in place of values that are not constants or given."""
    verb, *words = node.args
    if isinstance(verb, ast.Constant):
        name = {"audit": "audit.fleet", "runs": "runs.list"}.get(verb.value, verb.value)
        options = {
            each.arg: _value(each.value, each.arg.strip("_").replace("_", "-"), name)
            for each in node.keywords
            if each.arg and each.arg != "behind"
        }
        yield str(Command(verb.value, *(_value(word, "", name) for word in words), **options))


def sentences() -> Iterator[tuple[str, str]]:
    """Yield every command in the sources, and every text with one except docstrings, with values as 1, after its
    place."""
    for folder in ("hostwright", "roles"):
        for path in sorted((PROJECT / folder).rglob("*.py")):
            if "/standard/" in str(path) or str(path).endswith(NO_ADVICE):
                continue
            tree = ast.parse(path.read_text())
            docs = {id(node.body[0].value) for node in ast.walk(tree) if _documented(node)}
            whole = docs | {
                id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
            }
            for node in ast.walk(tree):
                text = ""
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Command":
                    text = "".join(_command(node))
                elif isinstance(node, ast.JoinedStr):
                    parts = (part.value if isinstance(part, ast.Constant) else "1" for part in node.values)
                    text = "".join(map(str, parts))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in whole:
                    text = node.value
                if commands_in(text):
                    yield f"{path.relative_to(PROJECT)}:{node.lineno}", text
        for path in sorted((PROJECT / folder).rglob("*.sh")):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if "/standard/" not in str(path) and not line.lstrip().startswith("#") and commands_in(line):
                    yield f"{path.relative_to(PROJECT)}:{number}", line.replace("\\`", "`")


def test_every_command_in_the_sources_works_as_printed() -> None:
    programs = (("invoke", ""), ("hostwright", "my site"))
    for place, text, program, site in ((*each, *program) for each in sentences() for program in programs):
        told = whole(text.replace("%s", "1").replace("--version N", "--version 1"), program=program, site=site)
        assert commands_in(told), place
        outside = commands_in("".join(told.split("`")[::2]))
        assert not outside, f"{place}: what is not between backticks is not made complete"
        for command in commands_in(told):
            verb, given, where = parsed(command)
            assert where == site, place
            options = options_of(verb)
            wanted = {name: value for name, value in advice._repeated(Request(**ODD)).items() if name in options}
            if "inventory" not in wanted:  # it shows records of this machine
                wanted = {}
            for name, value in wanted.items():
                own = f"--{name} " in text or (name == "hosts" and "--resume" in text)
                got = given.get(name)
                assert own or got == (list(value) if isinstance(value, tuple) else value), f"{place}: {command}"


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_command_is_broken_over_lines(width: int) -> None:
    """A pasted command with a line break would run its first half, so only the terminal wraps commands."""

    def told() -> str:
        CALL.set(Call(request=Request(**ODD)))
        console = Adviser(stderr=False)
        console.width = width
        console.file = io.StringIO()
        console.print(
            Text("  a long sentence about a host, and what is to be done: `invoke doctor --hosts x` says why")
        )
        console.print(
            Group(Text("next: `invoke plan`"), Text("gpu01: no: run `invoke mirror` again, then go on with it"))
        )
        text: str = console.file.getvalue()
        return text

    def wanted() -> list[str]:
        CALL.set(Call(request=Request(**ODD)))
        return [*map(advice.shown, (Command("doctor", hosts="x"), Command("plan"), Command("mirror")))]

    lines = copy_context().run(told).splitlines()
    commands = copy_context().run(wanted)
    assert [parsed(command)[0] for command in commands] == ["doctor", "plan", "mirror"]
    assert [sum(command in line for line in lines) for command in commands] == [1, 1, 1]
    assert all(
        shlex.split(command)[-2] == "--vault-password-file" or "--ask-become-pass" in command for command in commands
    )
    told_before = [" ".join(text.split()) for text in " ".join(lines).replace("`", "").split("invoke ")]
    assert told_before[0].endswith("what is to be done:") and told_before[1].endswith("next:")
    assert told_before[2].endswith("gpu01: no: run") and told_before[3].endswith("again, then go on with it")
    assert [line for line in lines if len(line) > width and "invoke" not in line] == []
    alone = [command for command in commands if len(command) + 4 > width]
    assert [line.strip() for line in lines if line.strip() in alone and line.startswith("    ")] == alone


def test_a_command_that_fits_a_line_stays_in_its_sentence_and_whole() -> None:
    def told() -> str:
        console = Adviser(stderr=False)
        console.width = 60
        console.file = io.StringIO()
        console.print(Text("gpu01: locked by ada@desk until 18:00: `invoke unlock --hosts gpu01` takes the lock away"))
        console.print(Text("gpu01: no facts of this host are stored; run `invoke audit` once without --offline"))
        text: str = console.file.getvalue()
        return text

    assert copy_context().run(told).splitlines() == [
        "gpu01: locked by ada@desk until 18:00:",
        "    `invoke unlock --hosts gpu01` takes the lock away",
        "gpu01: no facts of this host are stored; run",
        "    `invoke audit` once without --offline",
    ]


def test_files_and_output_are_shown_as_they_are() -> None:
    change = Change("file /etc/motd", "other text", "ours", (Step("true"),), diff="+# run `invoke mirror` first\n")
    plan = HostPlan(Plan("gpu01", "tf", (RolePlan("base", (), (change,)),)))

    def told() -> str:
        CALL.set(Call(request=Request(**ODD)))
        console = Adviser(stderr=False)
        console.width = 120
        console.file = io.StringIO()
        console.print(show_plan(plan), Text("    │ see `invoke audit`"))
        text: str = console.file.getvalue()
        return text

    lines = copy_context().run(told).splitlines()
    assert lines[-2:] == ["        +# run `invoke mirror` first", "    │ see `invoke audit`"]


def test_what_a_host_says_is_no_command_that_may_be_wrapped_by_the_terminal() -> None:
    assert advice.whole_commands("run `invoke audit --hosts 'x  gpu02 as desired'`") == ()
    assert advice.whole_commands(f"run `invoke audit --hosts {'x' * 200}`") == ()


def test_a_console_completes_what_it_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    def told() -> None:
        CALL.set(Call(request=Request(inventory=("x",))))
        console = Adviser(stderr=False)
        console.width = 120
        console.file = io.StringIO()
        console.print("see `invoke audit`")
        assert console.file.getvalue() == "see `invoke audit --inventory x`\n"

    copy_context().run(told)
