"""docs/api.md: its examples run, and it names every method, every parameter and every field as they are."""

from __future__ import annotations

import doctest
import inspect
import json
import re
import socket
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace, TracebackType

import pytest

from hostwright.apply.host.connection import Patience
from hostwright.common import errors
from hostwright.fleet import Fleet
from hostwright.plan import probing
from hostwright.plan.host.hostfacts import AVX, MEMORY, OS_RELEASE, PCI, PYTHONS, UNAME
from hostwright.plan.model import Answer, Facts, Probe
from hostwright.plan.targets import TargetHost
from hostwright.transport.exchange import Output
from tests.unit.support.documents import blocks, text_of

PAGE = "docs/api.md"
#: inherited from ``Roster``, for the modules that carry a run out
NOT_FOR_CALLERS = {
    "advisories", "also", "binder", "default_stack", "fitting", "kinds", "knowledge", "own_stacks", "request_of",
    "stack", "stack_dirs", "stack_name", "store", "templates", "with_stack",
}  # fmt: skip
#: Ubuntu 20.04 with one GPU; every other question is answered as by a host that has nothing of it
BARE = {
    OS_RELEASE: Answer(0, 'ID=ubuntu\nVERSION_ID="20.04"\nVERSION_CODENAME=focal\n'),
    UNAME: Answer(0, "5.15.0-91-generic x86_64\n"),
    PCI: Answer(0, "0x10de 0x030200 0x1eb8\n"),
    AVX: Answer(0, ""),
    PYTHONS: Answer(0, "/usr/bin/python3.8 3.8\n"),
    MEMORY: Answer(0, "64000000\n"),
}


class BareShell:
    """In the place of a root shell on a host; what it answers is read by ``bare_facts``."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.session = SimpleNamespace(noise=b"", noise_note="")  # its start files print nothing

    def __enter__(self) -> BareShell:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is open."""

    def attempt(self, script: str, **_: object) -> Output:
        """Every program ends well and prints nothing."""
        return Output(0, b"", b"", False, 0.0)

    collect = attempt


def bare_facts(probes: Sequence[Probe], *_: object, **__: object) -> Facts:
    return Facts({probe: BARE.get(probe, Answer(1, "")) for probe in probes})


@pytest.fixture
def rack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An inventory below the current directory: gpu03 has nothing installed, gpu05 refuses the connection."""
    connect = TargetHost.connect
    monkeypatch.setattr(
        TargetHost, "connect", lambda self, *more: BareShell("gpu03") if self.name == "gpu03" else connect(self, *more)
    )
    monkeypatch.setattr(probing, "parse", bare_facts)
    monkeypatch.setattr(Patience.__init__, "__defaults__", (0.0, 0.0))  # no example waits for a connection
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        where = {"ansible_host": "127.0.0.1", "ansible_port": closed.getsockname()[1]}
        (tmp_path / "inventory").mkdir()
        hosts: dict[str, dict[str, str]] = {"gpu03": {}, "gpu05": {}}
        (tmp_path / "inventory/hosts.yml").write_text(json.dumps({"rack3": {"hosts": hosts, "vars": where}}))
        yield


@pytest.mark.usefixtures("rack")
def test_the_examples_print_what_the_page_says() -> None:
    examples = "\n".join(block.text for block in blocks(PAGE) if block.language == "pycon")
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    ran = runner.run(doctest.DocTestParser().get_doctest(examples, {}, PAGE, PAGE, 0))
    assert (ran.failed, ran.attempted > 25) == (0, True)


def calls() -> dict[str, list[str]]:
    """Every method of the page's tables, with its parameters."""
    rows = re.findall(r"^\| `(\w+)\(([^)`]*)\)` \|", text_of(PAGE), re.MULTILINE)
    return {name: parameters.split(", ") if parameters else [] for name, parameters in rows}


def parameters_of(name: str) -> list[str]:
    """The parameters of a method as the page writes them: ``*`` stands before those that take a keyword."""
    found: list[str] = []
    for parameter in inspect.signature(getattr(Fleet, name)).parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in found:
            found.append("*")
        found.append(parameter.name)
    return found[1:] if found[0] == "self" else found


def test_every_method_is_on_the_page_with_its_parameters() -> None:
    methods = {name for name, _ in inspect.getmembers(Fleet) if not name.startswith("_")} - NOT_FOR_CALLERS
    assert calls() == {name: parameters_of(name) for name in methods}


VALUES = re.findall(r"^\| `(\w+)` \| `(hostwright[\w.]+)` \| (.+) \|$", text_of(PAGE), re.MULTILINE)


@pytest.mark.parametrize(("name", "module", "fields"), VALUES, ids=lambda text: text if text.isalpha() else "")
def test_every_field_of_a_value_exists(name: str, module: str, fields: str) -> None:
    cls = getattr(import_module(module), name)
    named = re.findall(r"`(\w+)(?:\(\))?`", re.sub(r"\([^)`]*\)", "", fields))
    assert named
    assert set(named) <= {*dir(cls), *cls.__annotations__}


def test_every_value_that_a_method_returns_is_explained() -> None:
    returned = {inspect.signature(getattr(Fleet, name)).return_annotation for name in calls()}
    named = {word for annotation in returned for word in re.findall(r"[A-Z]\w+", annotation)} - {"Self"}
    assert {name for name in named if f"`{name}`" not in text_of(PAGE)} == set()


def test_every_error_exists_and_is_of_the_kind_that_the_page_says() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (raised|in `errors`|a `HostError`)", text_of(PAGE), re.MULTILINE)
    assert len(rows) == 8
    for name, kind in rows:
        assert issubclass(getattr(errors, name), errors.HostError) is (kind != "raised")
