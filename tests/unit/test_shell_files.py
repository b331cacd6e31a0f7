"""Shell is a program: what is long, has functions or awk stands in a file that shellcheck reads, not in a string."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
MOST_LINES = 10
FUNCTION = re.compile(r"^\s*\w+\(\) *[({]", re.MULTILINE)
#: long texts that are no shell: two pages, the firewall's table, and C
OTHER_LANGUAGES = {
    "hostwright/audit/failures/document.py",
    "hostwright/cli/shell/reference/variables.py",
    "hostwright/cli/shell/reference/verbs.py",
    "hostwright/resources/document.py",
    "lab/firewall.py",
    "lab/vendor/cudnn.py",
    "lab/vendor/nccl.py",
}


def texts(source: str) -> Iterator[str]:
    """The string literals of a module but its docstrings; what an f-string computes reads ``{}``."""
    tree = ast.parse(source)
    passed_over = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            passed_over.add(id(node.body[0].value))  # type: ignore[attr-defined]
        if isinstance(node, ast.JoinedStr):
            passed_over |= {id(part) for part in node.values}
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed_over:
            yield node.value


def is_a_program(text: str) -> bool:
    return text.count("\n") > MOST_LINES or bool(FUNCTION.search(text)) or "awk " in text


@pytest.mark.parametrize("root", ["hostwright", "roles", "lab"])
def test_no_program_stands_in_a_string(root: str) -> None:
    modules = [path for path in (PROJECT / root).rglob("*.py") if "standard" not in path.parts]
    assert modules
    programs = {
        str(path.relative_to(PROJECT)): text[:60]
        for path in modules
        for text in texts(path.read_text("utf-8"))
        if is_a_program(text)
    }
    assert {module: text for module, text in programs.items() if module not in OTHER_LANGUAGES} == {}
    assert {module for module in OTHER_LANGUAGES if module.startswith(f"{root}/")} <= programs.keys()


@pytest.mark.parametrize(
    ("source", "program"),
    [
        ('LOOK = "test -e /etc/x"', False),
        (f"LOOK = {chr(10).join(['x'] * 12)!r}", True),
        (f"def f():\n    {chr(10).join(['x'] * 12)!r}", False),
        ("LOOK = 'there() { [ -e \"$1\" ]; }\\nthere /x'", True),
        ("LOOK = f'df -P {path} | awk {program}'", True),
    ],
)
def test_a_program_is_known_by_its_length_its_functions_or_awk(source: str, program: bool) -> None:
    assert any(is_a_program(text) for text in texts(source)) is program


DOCKER = re.compile(
    r"(?:^\s*|&& |\$\(|\bmust \"[^\"]*\" |timeout \d+ )docker"
    r" (?:container|exec|image|info|inspect|load|logs|network|ps|pull|rm|run|save|start|stop|wait)\b",
    re.MULTILINE,
)
SOCKET = "DOCKER_HOST=unix:///var/run/docker.sock"


def test_dockers_command_is_for_the_systems_socket() -> None:
    """Root's own context (docker context use, Docker Desktop) decides nowhere."""
    commands = {
        f"{path.relative_to(PROJECT)}: {text[:60]}": SOCKET in text
        for path in (PROJECT / "roles").rglob("*")
        if path.suffix in {".sh", ".py"} and "failures" not in path.parts[:-1]
        for text in (texts(path.read_text("utf-8")) if path.suffix == ".py" else [path.read_text("utf-8")])
        if DOCKER.search(text)
    }
    assert len(commands) > 5
    assert [command for command, named in commands.items() if not named] == []
