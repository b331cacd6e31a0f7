"""Tests of sites: how they are found, and that their roles, templates and stacks come before the standard ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostwright.audit.failures.catalogue import catalogue, failures_of
from hostwright.common.errors import InputError
from hostwright.plan.roles.role import Role, RoleContext, discover, rules_of
from hostwright.plan.roles.site import STANDARD, Site
from hostwright.plan.stacks.files import stacks_of_hosts
from hostwright.plan.targets import Roster, TargetHost
from hostwright.resources.files.files import File
from hostwright.stack.stackfile import default_stack

CHRONY = """\
from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.plan.model import Resource
from hostwright.plan.roles.role import RoleContext, role
from hostwright.resources.files.files import File

from .words import PATH


@dataclass(frozen=True, slots=True)
class Chrony:
    server: str = "ntp.example.org"


@role(needs=["base"])
def chrony(v: Chrony, ctx: RoleContext) -> Iterator[Resource]:
    \"\"\"The time.\"\"\"
    yield File(PATH, ctx.render("chrony/chrony.conf.j2", server=v.server))
"""
EXTENDED = """\
from collections.abc import Iterator

from hostwright.plan.model import Resource
from hostwright.plan.roles.role import RoleContext, role
from hostwright.resources.files.files import File
from hostwright.standard.roles.container import Container
from hostwright.standard.roles.container import container as standard


@role(extends=standard)
def container(v: Container, ctx: RoleContext) -> Iterator[Resource]:
    \"\"\"Containers, by way of our registry's mirror.\"\"\"
    yield from standard.resources(v, ctx)
    yield File("/etc/docker/mirror", "registry.example.org\\n")
"""


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site with one host. It is found from the working directory, not by an option."""
    monkeypatch.delenv("HOSTWRIGHT_SITE", raising=False)
    root = tmp_path / "site"
    write(root / "tasks.py")
    write(root / "inventory/hosts.yml", "all: {hosts: {gpu01: {}}}\n")
    monkeypatch.chdir(root)
    return Site(root)


def target(site: Site) -> TargetHost:
    (found,) = Roster.load(site=site).targets("all")
    return found


def own(site: Site) -> dict[str, Role]:
    return {role.name: role for role in discover(*site.role_packages)}


def test_a_site_is_found_upwards(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = site.root / "docs/more"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert Site.find() == site
    assert Roster.load().path == site.inventory


def test_the_nearest_site_counts(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = site.root / "other"
    write(inner / "tasks.py")
    (inner / "inventory").mkdir()
    monkeypatch.chdir(inner)
    assert Site.find() == Site(inner)


def test_a_site_that_is_named_wins_over_the_working_directory(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    write(other / "tasks.py")
    (other / "inventory").mkdir()
    monkeypatch.setenv("HOSTWRIGHT_SITE", "../other")
    assert Site.find().root.resolve() == other
    monkeypatch.setenv("HOSTWRIGHT_SITE", str(tmp_path))
    with pytest.raises(InputError, match=r"--site, HOSTWRIGHT_SITE: .* is not a site"):
        Site.find()


def test_outside_of_a_site_it_is_said_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOSTWRIGHT_SITE", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="no site found") as error:
        Roster.load()
    assert "hostwright init DIR" in str(error.value)
    assert "--site DIR" in str(error.value)


def test_an_inventory_that_is_named_needs_no_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOSTWRIGHT_SITE", raising=False)
    monkeypatch.chdir(tmp_path)
    hosts = write(tmp_path / "lists/hosts.yml", "all: {hosts: {gpu01: {}}}\n")
    roster = Roster.load(hosts)
    assert roster.site == Site(tmp_path / "lists")
    assert [one.name for one in roster.targets("all")] == ["gpu01"]


def test_an_inventory_that_is_named_belongs_to_the_site_it_lies_in(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Roster.load(site.inventory / "hosts.yml").site == site


def test_this_repository_is_a_site(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOSTWRIGHT_SITE", raising=False)
    monkeypatch.chdir(Path(__file__).parents[3] / "docs")
    site = Site.find()
    assert site.root == Path(__file__).parents[3]
    assert len(site.role_packages) == 1  # its roles are the standard roles, imported once


def test_a_sites_role_is_found_with_its_parts_and_its_templates(site: Site) -> None:
    write(site.inventory / "hosts.yml", "all: {hosts: {gpu01: {hostwright_roles: [base, chrony]}}}\n")
    write(site.root / "roles/chrony/__init__.py", CHRONY)
    write(site.root / "roles/chrony/words.py", 'PATH = "/etc/chrony.conf"\n')
    write(site.root / "roles/chrony/further.py", "from . import Chrony\n\nRULES = (Chrony,)\n")
    write(site.root / "templates/chrony/chrony.conf.j2", "server {{ server }}\n")
    found = target(site)
    role = next(one for one in found.roles if one.name == "chrony")
    assert File("/etc/chrony.conf", "server ntp.example.org\n") in role.resources(role.variables(), found.context)
    rules = role.part("further")
    assert rules is not None
    assert (role.variables,) == rules.RULES
    assert role.part("section") is None
    assert not role.standard


def test_roles_of_two_sites_do_not_meet(site: Site, tmp_path: Path) -> None:
    other = Site(tmp_path / "other")
    for root, path in ((site.root, "/a"), (other.root, "/b")):
        write(root / "roles/chrony/__init__.py", CHRONY)
        write(root / "roles/chrony/words.py", f'PATH = "{path}"\n')
        write(root / "templates/chrony/chrony.conf.j2", "")
    paths = [
        next(iter(role.resources(role.variables(), RoleContext(None, templates=one.templates)))).path  # type: ignore[arg-type,attr-defined]
        for one in (site, other)
        for role in [own(one)["chrony"]]
    ]
    assert paths == ["/a", "/b"]


def test_sites_role_wins_and_may_extend_the_standard_one(site: Site) -> None:
    write(site.root / "roles/container/__init__.py", EXTENDED)
    standard = own(Site(site.root / "none"))["container"]
    extended = own(site)["container"]
    assert extended.extends == standard
    assert (extended.needs, extended.after, extended.variables) == (standard.needs, standard.after, standard.variables)
    assert extended.summary.startswith("Containers, by way of")
    assert extended.part("audit") is standard.part("audit") is not None
    assert extended.standard
    added = next(one for one in target(site).desired.roles if one.name == "container").resources[-1]
    assert added == File("/etc/docker/mirror", "registry.example.org\n")


def test_what_a_role_brings_is_added_to_what_it_extends(site: Site) -> None:
    write(site.root / "roles/container/__init__.py", EXTENDED)
    standard = own(Site(site.root / "none"))["container"]
    first, *_ = known = failures_of(standard)
    rule = "FailureRule({!r}, '', 'ours', 'Ask us', 'us')"
    rules = f"FAILURES = ({rule.format('registry-down')}, {rule.format(first.name)})\n"
    write(site.root / "roles/container/failures.py", f"from hostwright.failures import FailureRule\n\n{rules}")
    write(site.root / "roles/container/rules.py", "def ours(driver: str) -> None:\n    pass\n\n\nRULES = (ours,)\n")
    value = 'AuditValue("mirror", FileThere("/etc/docker/mirror"), "yes")'
    values = f"def audit_values(v, ctx):\n    yield {value}\n"
    write(site.root / "roles/container/audit.py", f"from hostwright.roles import AuditValue, FileThere\n\n\n{values}")
    found = target(site)
    extended = own(site)["container"]
    names = [rule.name for rule in failures_of(extended)]
    assert names[:2] == ["registry-down", first.name]
    assert sorted(names) == sorted(["registry-down", *(rule.name for rule in known)])
    assert next(rule.cause for rule in failures_of(extended) if rule.name == first.name) == "ours"
    assert catalogue(tuple(found.of_host)).rules
    (rules_before,), (rules_now,) = rules_of([standard]), rules_of([extended])
    assert [one.__name__ for one in rules_now.rules] == ["ours", *(one.__name__ for one in rules_before.rules)]
    before = [one.name for one in standard.audit_values(standard.variables(), found.context)]
    assert [one.name for one in found.audit_values if one.layer == "container"] == [*before, "mirror"]


def test_own_part_wins_over_the_extended_roles(site: Site) -> None:
    write(site.root / "roles/container/__init__.py", EXTENDED)
    write(site.root / "roles/container/audit.py", "def audit_values(v, host):\n    return iter(())\n")
    part = own(site)["container"].part("audit")
    assert part is not None
    assert part.__file__ == str(site.root / "roles/container/audit.py")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("import nothing_like_it\n", r"broken/__init__.py:1: ModuleNotFoundError: .*nothing_like_it"),
        ("\n\ndef broken(:\n", r"broken/__init__.py:3: SyntaxError"),
        ("\nfrom .words import A\n", r"broken/__init__.py:2: ModuleNotFoundError"),
        (
            "from hostwright.plan.roles.role import role\n\n\n@role()\ndef broken(v: int): ...\n",
            r"py:4: TypeError: role broken",
        ),
    ],
)
def test_a_role_that_cannot_be_imported_is_a_mistake_with_its_line(site: Site, text: str, sentence: str) -> None:
    write(site.root / "roles/broken/__init__.py", text)
    with pytest.raises(InputError, match=sentence):
        Roster.load()


def test_folders_without_python_are_none_of_our_roles(site: Site) -> None:
    write(site.root / "roles/ansible_one/tasks/main.yml")
    assert own(site) == own(Site(site.root / "none"))


def test_templates_and_stacks_of_the_site_go_before_the_standard_ones(site: Site) -> None:
    write(site.root / "templates/environment/ld.conf.j2", "ours\n")
    write(site.inventory / "stacks/tensorflow-2.9.yml", "ours\n")
    assert RoleContext(None, templates=site.templates).render("environment/ld.conf.j2") == "ours\n"  # type: ignore[arg-type]
    roster = Roster.load()
    assert next(folder for folder in roster.stack_dirs if (folder / "tensorflow-2.9.yml").exists()) == site.stacks[0]
    assert (
        next(folder for folder in roster.stack_dirs if (folder / "tensorflow-2.10.yml").exists()) == STANDARD / "stacks"
    )


def test_default_stack_is_the_sites_then_the_standard_one(site: Site) -> None:
    write(site.inventory / "hosts.yml", "all: {hosts: {gpu01: {}, gpu02: {stack: tensorflow-2.9}}}")
    standard = (STANDARD / "stacks/default.txt").read_text().strip()
    assert [target.stack.name for target in Roster.load().targets("all")] == [standard, "tensorflow-2.9"]
    write(site.inventory / "stacks/default.txt", "tensorflow-2.10\n")
    assert [target.stack.name for target in Roster.load().targets("all")] == ["tensorflow-2.10", "tensorflow-2.9"]


def test_missing_default_stack_says_where_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"no default stack exists; set `stack` .* default.txt in one of {tmp_path}"):
        default_stack([tmp_path])


def test_without_a_name_the_stacks_of_all_hosts_are_mirrored(site: Site) -> None:
    write(site.inventory / "hosts.yml", "all: {hosts: {gpu01: {stack: tensorflow-2.10}, gpu02: {}, gpu03: {}}}")
    write(site.inventory / "stacks/default.txt", "tensorflow-2.11")
    assert stacks_of_hosts(Roster.load()) == ("tensorflow-2.10", "tensorflow-2.11")
    write(site.inventory / "hosts.yml", "all: {hosts: {}}")
    assert stacks_of_hosts(Roster.load()) == ("tensorflow-2.11",)


def test_the_pins_of_a_standard_stack_are_kept_in_the_site(site: Site) -> None:
    assert Roster.load().store.lock_file("tensorflow-2.9") == site.inventory / "stacks/tensorflow-2.9.lock.yml"


def test_the_stand_ins_of_a_host_are_those_of_its_roles(site: Site) -> None:
    """A host without a toolkit is not reported as having a toolkit's stand-in."""
    stand_ins = "artifacts: {driver: {stand_in: true}, cudnn: {stand_in: true}}\n"
    write(site.inventory / "stacks/made-up.yml", f"extends: tensorflow-2.9\n{stand_ins}")
    files = {}
    for roles in ("base", "base, driver", "base, driver, cuda, cudnn"):
        host = f"{{stack: made-up, hostwright_roles: [{roles}]}}"
        write(site.inventory / "hosts.yml", f"all: {{hosts: {{gpu01: {host}}}}}\n")
        files[roles] = [name.partition("-")[0] for name in target(site).stand_ins]
    assert files == {"base": [], "base, driver": ["NVIDIA"], "base, driver, cuda, cudnn": ["NVIDIA", "cudnn"]}
