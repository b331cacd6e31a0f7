"""The documents name verbs, options, files and places that exist, and their samples are right."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from invoke import Program
from invoke.parser import Parser

from hostwright.apply.host.variables import read_apply_variables
from hostwright.common.errors import InputError
from hostwright.fleet import PROJECT, Fleet
from hostwright.plan.roles.role import Wanted, discover
from tasks import namespace
from tests.unit.support.documents import NAMES, Block, anchors, blocks, links, mentions_of_invoke, text_of
from tests.unit.support.stacks import check_stack, load_stack

PICTURES = sorted(PROJECT.glob("docs/images/*.svg"))
MENTIONS = sorted({(name, words) for name in NAMES for words in mentions_of_invoke(name)})


def samples(language: str, start: str = "") -> list[Block]:
    """The blocks of a language that name a file below ``start``."""
    found = [block for name in NAMES for block in blocks(name)]
    return [block for block in found if block.language == language and block.file and block.file.startswith(start)]


def test_there_is_something_to_look_at():
    assert len(MENTIONS) > 30
    assert len(samples("yaml")) >= 5
    assert len(samples("python")) == 4
    assert PICTURES


@pytest.mark.parametrize("document, words", MENTIONS)
def test_every_invoke_that_is_named_parses(document: str, words: str):
    """A verb or option that does not exist is an error of Invoke's own parser; nothing is run."""
    initial = Program().initial_context
    parsed = Parser(contexts=namespace.to_contexts(), initial=initial).parse_argv(shlex.split(words))
    assert len(parsed) > 1 or words.startswith("--")


def test_a_verb_or_option_that_does_not_exist_is_seen():
    parser = Parser(contexts=namespace.to_contexts(), initial=Program().initial_context)
    for words in (["replan"], ["plan", "--nosuch"], ["mirror", "--from-dir", "DIR"]):
        with pytest.raises(Exception, match="No idea what"):
            parser.parse_argv(words)


@pytest.mark.parametrize("verb", sorted(namespace.task_names))
def test_every_verb_is_in_the_readme(verb: str):
    assert f"`invoke {verb}" in text_of("README.md")


@pytest.mark.parametrize("document", NAMES)
def test_links_lead_somewhere(document: str):
    for target in links(document):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        place = (PROJECT / document).parent / path if path else PROJECT / document
        assert place.exists(), f"{document}: {target}"
        if anchor:
            assert anchor in anchors(str(place.resolve().relative_to(PROJECT))), f"{document}: {target}"


@pytest.mark.parametrize("path", [*(PROJECT / name for name in NAMES), *PICTURES], ids=lambda path: path.name)
def test_no_document_names_a_place_of_this_machine(path: Path):
    text = path.read_text("utf-8")
    for place in (PROJECT, Path.home(), Path(sys.prefix)):
        assert str(place) not in text


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_pictures_fetch_nothing(picture: Path):
    addresses = {word for word in picture.read_text("utf-8").replace('"', " ").split() if "://" in word}
    assert addresses <= {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize("block", samples("yaml", "inventory/stacks/"), ids=lambda block: block.file)
def test_sample_stacks_are_whole_and_fit(block: Block, tmp_path: Path):
    name = Path(block.file).stem
    (tmp_path / f"{name}.yml").write_text(block.text)
    stack = load_stack(name, (tmp_path, PROJECT / "inventory/stacks"))
    assert check_stack(stack) == []
    assert stack.artifacts.keys() >= {artifact for _, artifact in stack.artifact_uses()}


def test_sample_inventories_name_hosts_that_can_be_bound(tmp_path: Path):
    """Each sample inventory with the sample of group variables beside it."""
    groups = samples("yaml", "inventory/group_vars/rack3")
    inventories = samples("yaml", "inventory/hosts.yml")
    assert len(groups) == 1 and len(inventories) == 2
    for number, block in enumerate(inventories):
        folder = tmp_path / str(number)
        (folder / "group_vars").mkdir(parents=True)
        (folder / "hosts.yml").write_text(block.text)
        (folder / "group_vars" / Path(groups[0].file).name).write_text(groups[0].text)
        members = Fleet.load(folder).members("gpu01,@rack3")
        assert [member.name for member in members] == ["gpu01", "gpu02"]
        assert all(member.variables["container"].default_runtime for member in members)
        assert not members[0].variables["cuda"].keep_repository


def test_sample_hooks_are_understood(tmp_path: Path):
    """The commands for Slurm and Kubernetes, each for a host of a group of that name."""
    found = [block for block in samples("yaml", "inventory/group_vars/") if "hostwright_drain" in block.text]
    assert [Path(block.file).stem for block in found] == ["slurm", "kubernetes"]
    for block in found:
        folder = tmp_path / Path(block.file).stem
        (folder / "group_vars").mkdir(parents=True)
        (folder / "hosts.yml").write_text(f"{folder.name}: {{hosts: {{gpu01: {{}}}}}}")
        (folder / "group_vars" / f"{folder.name}.yml").write_text(block.text)
        hooks = read_apply_variables(Fleet.load(folder).members("gpu01")[0].host).hooks
        assert hooks is not None
        assert "$HOSTWRIGHT_HOST" in hooks.drain
        assert "$HOSTWRIGHT_HOST" in hooks.undrain


def test_the_variable_that_is_misspelt_on_purpose_is_refused(tmp_path: Path):
    (tmp_path / "hosts.yml").write_text("all: {hosts: {gpu01: {cuda_keep_repositry: false}}}")
    with pytest.raises(InputError, match="keep_repository"):
        Fleet.load(tmp_path).members("gpu01")


@pytest.fixture
def sample_role(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package with the sample role of docs/roles.md beside the real one that it needs."""
    package = tmp_path / "sample_roles"
    package.mkdir()
    (package / "__init__.py").write_text("")
    shutil.copytree(PROJECT / "roles/base", package / "base")
    for block in samples("python", "roles/"):
        sample = package / Path(block.file).relative_to("roles")
        sample.parent.mkdir(exist_ok=True)
        sample.write_text(block.text)
    monkeypatch.syspath_prepend(tmp_path)
    yield package.name
    for name in [name for name in sys.modules if name.partition(".")[0] == package.name]:
        del sys.modules[name]


def test_the_sample_role_is_found_after_what_it_needs(sample_role: str):
    assert [role.name for role in discover(sample_role)] == ["base", "motd"]


def test_the_sample_role_gives_the_values_of_the_sample(sample_role: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "roles.motd", import_module(f"{sample_role}.motd"))
    motd = discover(sample_role)[-1]
    host = Wanted(load_stack("tensorflow-2.9"), roles=((motd, motd.variables(text="Mine\n")),))
    assert [(one.layer, one.name, one.want) for one in host.audit_values] == [
        ("motd", "text", "Mine"), ("motd", "package", None),
    ]  # fmt: skip


def test_the_sample_tests_of_the_sample_role_pass(sample_role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "roles.motd", import_module(f"{sample_role}.motd"))
    (block,) = samples("python", "tests/unit/")
    (tmp_path / sample_role / "its_tests.py").write_text(block.text)
    its_tests = vars(import_module(f"{sample_role}.its_tests"))
    tests = [value for name, value in its_tests.items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()
