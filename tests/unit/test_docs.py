"""The documents name verbs, options, files and places that exist, and their samples are right."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from invoke import Program
from invoke.parser import Parser

from hostwright.apply.disturb.draining import read_hooks
from hostwright.audit.failures.catalogue import catalogue
from hostwright.audit.found.reading import finders_of
from hostwright.audit.judging.context import AuditContext
from hostwright.cli.tasks.begin import init
from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.fleet import Fleet
from hostwright.plan.model import Answer, Facts, Reboot
from hostwright.plan.planning import make_plan
from hostwright.plan.roles.found import Adopted
from hostwright.plan.roles.site import Site
from hostwright.plan.targets import Roster, TargetHost
from hostwright.resources.files.files import File
from hostwright.resources.packages.packages import DPKG
from tasks import namespace
from tests.places import PROJECT
from tests.unit.support.checkout import ABSENT, here
from tests.unit.support.documents import NAMES, Block, anchors, blocks, links, mentions_of_invoke, text_of
from tests.unit.support.stacks import check_stack, load_stack

PICTURES = sorted(PROJECT.glob("docs/images/*.svg"))
MENTIONS = sorted({(name, words) for name in NAMES for words in mentions_of_invoke(name)})


def samples(language: str, start: str = "") -> list[Block]:
    """The blocks of a language that name a file below ``start``."""
    found = [block for name in NAMES for block in blocks(name)]
    return [block for block in found if block.language == language and block.file and block.file.startswith(start)]


def test_the_documents_have_samples_and_commands():
    assert len(MENTIONS) > 30
    assert len(samples("yaml")) >= 5
    assert len(samples("python")) == 21
    assert PICTURES


PARSER = Parser(contexts=namespace.to_contexts(), initial=Program().initial_context)


def test_every_invoke_that_is_named_parses():
    """A verb or option that does not exist is an error of Invoke's own parser; nothing is run."""
    for document, words in MENTIONS:
        parsed = PARSER.parse_argv(shlex.split(words))
        assert len(parsed) > 1 or words.startswith("--"), f"{document}: {words}"


def test_a_verb_or_option_that_does_not_exist_is_seen():
    for words in (["replan"], ["plan", "--nosuch"], ["mirror", "--from-dir", "DIR"]):
        with pytest.raises(Exception, match="No idea what"):
            PARSER.parse_argv(words)


def test_every_verb_is_explained():
    """Those of the product on the page that is generated from them, those of the lab on the lab's."""
    lab, verbs = text_of("docs/lab.md"), text_of("docs/reference/verbs.md")
    for verb, others in namespace.task_names.items():
        if verb.startswith("lab."):
            assert f"invoke {verb}" in lab
        else:
            assert any(f"\n### `{name}`\n" in verbs for name in (verb, *others)), verb


def test_links_lead_somewhere():
    for document, target in [(name, link) for name in NAMES for link in links(name)]:
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        place = (PROJECT / document).parent / path if path else PROJECT / document
        if not here(place.name) or (ABSENT and place.parent.match("schemas/roles")):
            continue
        assert place.exists(), f"{document}: {target}"
        if anchor:
            assert anchor in anchors(str(place.resolve().relative_to(PROJECT))), f"{document}: {target}"


def test_no_document_names_a_place_of_this_machine():
    for path in (*(PROJECT / name for name in NAMES), *PICTURES):
        text = path.read_text("utf-8")
        for place in (PROJECT, Path.home(), Path(sys.prefix)):
            assert str(place) not in text, path


def test_pictures_fetch_nothing():
    for picture in PICTURES:
        addresses = {word for word in picture.read_text("utf-8").replace('"', " ").split() if "://" in word}
        assert addresses <= {"http://www.w3.org/2000/svg"}, picture


OF_SITES = {"docs/roles.md", "docs/own-stack.md"}  #: whose stacks are of roles of their own
STACKS = [block for block in samples("yaml", "inventory/stacks/") if block.document not in OF_SITES]


@pytest.mark.parametrize("block", STACKS, ids=lambda block: block.file)
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
        targets = Fleet.load(folder).targets("gpu01,@rack3")
        assert [target.name for target in targets] == ["gpu01", "gpu02"]
        assert all(target.variables["container"].default_runtime for target in targets)
        assert not targets[0].variables["cuda"].keep_repository


def test_sample_hooks_are_understood(tmp_path: Path):
    """The commands for Slurm and Kubernetes, each for a host of a group of that name."""
    found = [block for block in samples("yaml", "inventory/group_vars/") if "hostwright_drain" in block.text]
    assert [Path(block.file).stem for block in found] == ["slurm", "kubernetes"]
    for block in found:
        folder = tmp_path / Path(block.file).stem
        (folder / "group_vars").mkdir(parents=True)
        (folder / "hosts.yml").write_text(f"{folder.name}: {{hosts: {{gpu01: {{}}}}}}")
        (folder / "group_vars" / f"{folder.name}.yml").write_text(block.text)
        hooks = read_hooks(Fleet.load(folder).targets("gpu01")[0].host)
        assert hooks is not None
        assert "$HOSTWRIGHT_HOST" in hooks.drain
        assert "$HOSTWRIGHT_HOST" in hooks.undrain


def test_the_variable_that_is_misspelt_on_purpose_is_refused(tmp_path: Path):
    (tmp_path / "hosts.yml").write_text("all: {hosts: {gpu01: {}}}")
    with pytest.raises(InputError, match="keep_repository"):
        Fleet.load(tmp_path, Request(var=("cuda_keep_repositry=false",))).targets("gpu01")


def test_a_variable_that_is_misspelt_in_an_inventory_is_noted_and_refused_where_that_is_asked_for(tmp_path: Path):
    (tmp_path / "hosts.yml").write_text("all: {hosts: {gpu01: {cuda_keep_repositry: false}}}")
    fleet = Fleet.load(tmp_path)
    (note,) = fleet.targets("gpu01").notes
    assert "did you mean 'cuda_keep_repository'?" in note
    with pytest.raises(InputError, match="keep_repository"):
        Fleet.load(tmp_path, Request(strict=True)).targets("gpu01")


@pytest.mark.parametrize("folder", ["inventory", "hostwright/cli/skeleton/inventory"])
def test_commented_variables_of_group_all_can_be_set(folder: str, tmp_path: Path):
    text = (PROJECT / folder / "group_vars/all.yml").read_text("utf-8")
    mapping = "\n".join(line[2:] for line in text.splitlines() if line.startswith(("# container:", "#   ")))
    (flat,) = re.findall(r"\((\w+: \w+)\)", text)
    for number, variables in enumerate((mapping, flat)):
        inventory = tmp_path / str(number)
        (inventory / "group_vars").mkdir(parents=True)
        (inventory / "hosts.yml").write_text("all: {hosts: {gpu01: {}}}")
        (inventory / "group_vars/all.yml").write_text(f"stack: tensorflow-2.9\n{variables}\n")
        assert Fleet.load(inventory).targets("gpu01")[0].variables["container"].default_runtime


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A new site with every file of docs/roles.md, as somebody copies them out of the page."""
    root = tmp_path / "site"
    assert init(Request(), str(root)) == 0
    (root / "inventory/hosts.yml").write_text(
        "all: {hosts: {gpu01: {stack: with-cutensor, hostwright_roles: "
        "[base, driver, cuda, container, cutensor, chrony, iommu, motd]}}}\n"
    )
    for block in (block for block in blocks("docs/roles.md") if block.file):
        (root / block.file).parent.mkdir(parents=True, exist_ok=True)
        (root / block.file).write_text(block.text)
    (root / "templates/container").mkdir()
    (root / "templates/container/registry-ca.crt.j2").write_text("-----BEGIN CERTIFICATE-----\n")
    monkeypatch.chdir(root)
    monkeypatch.syspath_prepend(root)
    monkeypatch.delenv("HOSTWRIGHT_SITE", raising=False)
    shadowed = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "roles"}
    yield root
    for name in [name for name in sys.modules if name.partition(".")[0] == "roles"]:
        del sys.modules[name]
    sys.modules.update(shadowed)


def target_of(site: Path) -> TargetHost:
    (target,) = Roster.load(site=Site(site)).targets("gpu01")
    return target


def test_the_sample_roles_are_planned_in_their_order(site: Path):
    target = target_of(site)
    desired = {role.name: [type(one).__name__ for one in role.resources] for role in target.desired.roles}
    assert list(desired)[-4:] == ["cutensor", "chrony", "iommu", "motd"]
    assert desired["chrony"] == ["Debs", "File", "Service", "RestartedAfter"]
    assert desired["container"][-1] == "File"
    plan = make_plan(target.desired, Facts(dict.fromkeys(target.desired.probes(), Answer(1, ""))))
    whats = {change.what for role in plan.roles for change in role.changes}
    assert {"file /etc/motd", "packages libcutensor1", "kernel parameters", "file /etc/chrony/chrony.conf"} <= whats


def test_the_sample_template_names_the_servers(site: Path):
    (chrony,) = (role for role in target_of(site).desired.roles if role.name == "chrony")
    (conf,) = (one for one in chrony.resources if isinstance(one, File))
    assert conf.content.splitlines()[1:3] == ["pool pool.ntp.org iburst", "driftfile /var/lib/chrony/chrony.drift"]


def test_sample_rule_refuses_another_version(site: Path):
    assert target_of(site).stack.versions()["cutensor"] == "1.2.2"
    stack = site / "inventory/stacks/with-cutensor.yml"
    stack.write_text(stack.read_text().replace("version: 1.2.2\n", "version: 2.3.0\n"))
    with pytest.raises(
        InputError, match=r"cuTENSOR 2.3.0 is for CUDA 12 and 13, not 11.2.2 .*works: cuTENSOR 1.2.2 instead of 2.3.0 "
    ):
        target_of(site)


def test_the_sample_failures_are_known_and_the_sign_is_seen(site: Path):
    target = target_of(site)
    known = catalogue(target.all_roles)
    failure = known.classify("einsum: CUTENSOR_STATUS_INSUFFICIENT_DRIVER")
    assert failure is not None and failure.rule.name == "cutensor-driver"
    (sign,) = (rule.sign for rule in known.rules if rule.name == "cutensor-not-held" and rule.sign)
    for state, evidence in (("ii ", ["libcutensor1 is not held"]), ("hi ", [])):
        facts = Facts({DPKG: Answer(0, f"libcutensor1\t1.2.2.5-1\t{state}\n")})
        ctx = AuditContext(target.desired, target.variables, facts, {}, datetime(2026, 1, 1, tzinfo=UTC))
        assert list(sign.seen(ctx)) == evidence


def test_the_sample_values_are_compared(site: Path):
    values = [(one.layer, one.name, one.want) for one in target_of(site).audit_values]
    assert [value for value in values if value[0] in {"cutensor", "motd"}] == [
        ("cutensor", "package", "1.2.2.5-1"),
        ("cutensor", "hold", "held"),
        ("motd", "text", "This host is kept by Hostwright."),
        ("motd", "package", None),
    ]


def test_the_sample_finder_shows_and_adopts_what_a_host_has(site: Path):
    target = target_of(site)
    finders = finders_of(target.all_roles)
    section = target.stack.sections["cutensor"]
    wheel = "/opt/a/lib/python3.9/site-packages/cutensor_cu11-1.7.0.dist-info"
    rows = f"cutensor\tlibrary\t/opt/cutensor/lib\t1.3.0\n{wheel}\n"

    def found(version: str) -> Facts:
        text = f"libcutensor1\t{version}\tii \tamd64\tlibcutensor1\n" if version else ""
        return Facts({finders.probe: Answer(0, rows), DPKG: Answer(0, text)})

    assert [(one.layer, one.name, one.have) for one in finders.readings(found(""))] == [
        ("cutensor", "/opt/cutensor/lib", "1.3.0"),
        ("cutensor", "/opt/a", "1.7.0 (cutensor-cu11)"),
    ]
    adopt = finders.by_layer["cutensor"].adopted
    assert adopt is not None
    assert "no package libcutensor1" in adopt(finders.on_host(found(""))["cutensor"], section).left_out
    assert adopt(finders.on_host(found("1.2.2.5-1"))["cutensor"], section) == Adopted()
    newer = adopt(finders.on_host(found("1.3.0.3-1"))["cutensor"], section)
    assert newer.section == {"version": "1.3.0", "package_version": "1.3.0.3-1"}


def test_sample_state_needs_a_reboot_until_the_parameter_is_set(site: Path):
    (iommu,) = (role for role in target_of(site).desired.roles if role.name == "iommu")
    booted = iommu.resources[-1]
    (probe,) = booted.probes()
    assert isinstance(booted.plan(Facts({probe: Answer(0, "ro quiet\n")})), Reboot)
    assert booted.plan(Facts({probe: Answer(0, "ro quiet iommu=pt\n")})) is None


def test_the_sample_role_that_extends_keeps_what_the_standard_one_brings(site: Path):
    (container,) = (role for role in target_of(site).roles if role.name == "container")
    assert container.needs == ("base", "driver")
    assert container.section is not None
    assert target_of(site).variables["container"].registry == "registry.example.org"
    assert not target_of(site).variables["container"].default_runtime


def test_the_sample_tests_of_the_sample_role_pass(site: Path):
    its_tests = vars(import_path(site / "tests/unit/test_role_motd.py"))
    tests = [value for name, value in its_tests.items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()


@pytest.mark.parametrize(
    "tool", [["ruff", "check", "."], ["mypy", "--follow-imports=silent"]], ids=["ruff", "mypy"]
)  # not the engine, whose own settings are others
def test_the_samples_pass_lint_and_types_as_a_new_site_sets_them(tool: list[str], site: Path):
    env = {**os.environ, "MYPYPATH": str(PROJECT)}
    done = subprocess.run([sys.executable, "-m", *tool], cwd=site, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def import_path(path: Path) -> ModuleType:
    """A module by its path."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
