"""Directories: which files are read, in which order, and how mistakes in one file affect the others, as in Ansible."""

import os
from pathlib import Path

import pytest

from hostwright.common.errors import InputError, InputErrors
from hostwright.inventory import load, load_site, select
from hostwright.inventory.reading import dynamic
from tests.unit.support.sshsite import processes, until


def files(directory: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_names_with_dots_have_variable_files_without_an_ending(tmp_path: Path) -> None:
    files(
        tmp_path,
        {
            "hosts": "[lab.a]\nweb1.example.org\nweb2.example.org\n",
            "host_vars/web1.example.org": "n: 1\n",
            "host_vars/web2.example.org.yml": "n: 2\n",
            "group_vars/lab.a": "m: 3\n",
        },
    )
    inventory = load(tmp_path)
    assert [(host.get("n"), host.get("m")) for host in inventory.hosts.values()] == [(1, 3), (2, 3)]
    assert inventory.notes == ()


def test_a_variable_file_that_is_passed_over_is_said(tmp_path: Path) -> None:
    files(
        tmp_path,
        {
            "hosts": "[web]\nweb1\n",
            "group_vars/all/a.yml": "a: 1\n",
            "group_vars/all/b.conf": "a: 2\n",
            "group_vars/all/.hidden.yml": "a: 2\n",
            "group_vars/all.yml": "a: 3\n",
            "group_vars/web.yaml": "b: 2\n",
            "group_vars/web.yml": "b: 1\n",
            "host_vars/web1.vars": "c: 1\n",
        },
    )
    inventory = load(tmp_path)
    assert [inventory.hosts["web1"].get(name) for name in "abc"] == [1, 1, None]
    notes = "\n".join(inventory.notes)
    assert "all.yml: is not read, because all exists (as in Ansible)" in notes
    assert "web.yaml: is not read, because web.yml exists" in notes
    assert "b.conf: is not read, because its name does not end in" in notes
    assert "web1.vars: there is no host 'web1.vars', so it is not read; did you mean 'web1'?" in notes


def test_many_files_that_are_passed_over_are_one_note(tmp_path: Path) -> None:
    files(tmp_path, {"hosts": "web1\n", **{f"host_vars/db{n}.yml": "a: 1\n" for n in range(361)}})
    (note,) = load(tmp_path).notes
    assert "361 files are not read, because no host has their names: db0.yml, db1.yml" in note


def test_directories_are_nested_and_any_name_is_read_but_the_ignored_ones(tmp_path: Path) -> None:
    ignored = {f"x.{ending}": "bad=1 line\n" for ending in ("md", "txt", "rst", "cfg", "bak", "orig", "retry", "pyc")}
    files(
        tmp_path,
        {
            "10-a.lab": "[gpu]\ngpu01\n",
            "20/b.inventory": "[gpu]\ngpu02\n",
            "20/deep/hosts": "[gpu]\ngpu03\n",
            "20/group_vars/gpu.yml": "a: 1\n",
            "stacks/mine.yml": "name: no inventory\n",
            "backup~": "gpu09\n",
            ".hidden": "gpu09\n",
            **ignored,
        },
    )
    inventory = load(tmp_path)
    assert inventory.groups["gpu"].hosts == ("gpu01", "gpu02", "gpu03")
    assert inventory.hosts["gpu01"].get("a") is None  # only at the top, as in Ansible
    assert inventory.notes == ()


def test_a_bad_file_is_a_note_where_others_can_be_read(tmp_path: Path) -> None:
    files(tmp_path, {"a.yml": "gpu: {hosts: {gpu01: }}", "b.yml": "gpu: [\n", "c.ini": "[x:chidren]\n"})
    program(tmp_path / "d.sh", "echo no network >&2; exit 3")
    inventory = load(tmp_path)
    assert list(inventory.hosts) == ["gpu01"]
    notes = "\n".join(inventory.notes)
    assert "b.yml:2:1: is not valid YAML" in notes
    assert "c.ini:1: found '[x:chidren]'" in notes
    assert "ended with status 3: 'no network'; the file is left out" in notes


def test_a_mistake_in_a_variable_file_concerns_the_hosts_that_it_is_for(tmp_path: Path) -> None:
    files(
        tmp_path,
        {
            "hosts": "[web]\nweb1\n[db]\ndb1\ndb2\n",
            "group_vars/web.yml": "a: [\n",
            "host_vars/db1.yml": "a: 1\na: 2\n",
        },
    )
    inventory = load(tmp_path)
    assert [host.name for host in select(inventory, "db2")] == ["db2"]
    with pytest.raises(InputErrors, match=r"web.yml:2:1: is not valid YAML"):
        select(inventory, "web")
    with pytest.raises(InputErrors, match="'a' is given twice"):
        select(inventory, "db")


def test_a_name_that_cannot_be_a_hosts_concerns_who_chooses_it(tmp_path: Path) -> None:
    files(tmp_path, {"hosts": "[gpu]\ngpu01\n<address>\n../gpu\n"})
    inventory = load(tmp_path)
    assert [host.name for host in select(inventory, "gpu01")] == ["gpu01"]
    with pytest.raises(InputErrors, match=r"hosts:3: '<address>' cannot be a host's name"):
        select(inventory, "gpu")


def test_variables_rank_as_in_ansible(tmp_path: Path) -> None:
    """Groups in files, group_vars/all, other group_vars, hosts in files, host_vars."""
    layers = {
        "hosts": "[all:vars]\na=1\n[web:vars]\na=2\nb=2\n[web]\nweb1 d=4 e=4\n",
        "group_vars/all": "b: 3\nc: 3\n",
        "group_vars/web": "c: 3.5\nd: 3.5\n",
        "host_vars/web1": "e: 5\n",
    }
    host = load(files(tmp_path, layers)).hosts["web1"]
    assert [host.get(name) for name in "abcde"] == [2, 3, 3.5, 4, 5]


def test_groups_count_their_hosts_in_ansibles_order(tmp_path: Path) -> None:
    text = "lone\n[top:children]\nb\na\n[a]\na1\n[top]\nt1\n[b]\nb1\na1\n"
    inventory = load(files(tmp_path, {"hosts": text}))
    assert inventory.groups["top"].hosts == ("t1", "a1", "b1")
    assert inventory.groups["all"].hosts == ("lone", "t1", "a1", "b1")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    files(tmp_path, {"hosts": "gpu01\n"})
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "host_vars").mkdir()
    os.mkfifo(tmp_path / "host_vars" / "gpu01")
    inventory = load(tmp_path)
    assert list(inventory.hosts) == ["gpu01"]
    assert "gpu01: is not read, because it is neither a file nor a directory" in inventory.notes[0]
    with pytest.raises(InputError, match="neither a file nor a directory"):
        load(tmp_path / "pipe")


def test_a_program_that_hangs_gives_a_sign_of_life_and_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dynamic, "TIMEOUT_S", 5.0)
    monkeypatch.setattr(dynamic, "SIGN_OF_LIFE_S", 0.2)
    signs: list[str] = []
    mark = f"600.{os.getpid()}"  # unique to this test
    with pytest.raises(InputErrors, match="did not answer within 5 s"):
        load(program(tmp_path / "slow", f"sleep {mark} & sleep {mark}"), tell=signs.append)
    assert until(lambda: not processes(mark))
    assert "`slow --list` has not answered yet" in signs[0]


def test_a_program_that_never_stops_printing_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamic, "MAX_ANSWER", 1024 * 1024)
    with pytest.raises(InputErrors, match="printed more than 1 MiB"):
        load(program(tmp_path / "endless", "yes"))


def test_a_text_with_the_mode_of_a_program_is_read(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("[gpu]\ngpu01\n")
    path.chmod(0o755)
    assert list(load(path).hosts) == ["gpu01"]


def test_hosts_of_a_list(tmp_path: Path) -> None:
    assert list(load(Path("gpu01,gpu[02:03],")).hosts) == ["gpu01", "gpu02", "gpu03"]
    files(tmp_path, {"a": "[x]\ngpu01\n", "b": "[x]\ngpu02\n", "group_vars/x": "n: 1\n"})
    inventory = load(tmp_path / "a", tmp_path / "b")
    assert inventory.groups["x"].hosts == ("gpu01", "gpu02")
    assert inventory.hosts["gpu02"].get("n") == 1


def test_several_inventories_are_read_as_one(tmp_path: Path) -> None:
    files(tmp_path, {"a": "[x]\ngpu01\n", "b": "[x]\ngpu02\n"})
    assert load(Path(f"{tmp_path}/a,{tmp_path}/b")).groups["x"].hosts == ("gpu01", "gpu02")


@pytest.mark.parametrize(
    ("settings", "variables", "hosts"),
    [
        ("", {}, {"a", "b", "c"}),
        ("[defaults]\ninventory_ignore_extensions = .old, '.ini'\n", {}, {"c", "t"}),
        (
            "[inventory]\nignore_extensions = .ini\n[defaults]\ninventory_ignore_extensions = .old\n",
            {},
            {"b", "c", "t"},
        ),
        ("[defaults]\ninventory_ignore_patterns = ^racks$, [.]o\n", {}, {"a"}),
        ("[inventory]\nignore_patterns = 9\n", {}, {"a", "b"}),
        ("[inventory]\nignore_patterns = 9\n", {"ANSIBLE_INVENTORY_IGNORE_REGEX": "^hosts"}, {"b", "c"}),
        ("", {"ANSIBLE_INVENTORY_IGNORE": ".old,.ini"}, {"c", "t"}),
    ],
)
def test_what_ansible_cfg_ignores_of_a_directory_is_not_read(
    settings: str, variables: dict[str, str], hosts: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Custom endings replace Ansible's own, so that a text file is read."""
    site = tmp_path / "site"
    (site / "racks").mkdir(parents=True)
    for name, host in {"hosts.ini": "a", "b.old": "b", "racks/9": "c", "notes.txt": "t"}.items():
        (site / name).write_text(f"{host}\n")
    (tmp_path / "ansible.cfg").write_text(settings)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert set(load(site).hosts) == hosts


def test_a_pattern_of_ansible_cfg_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "ansible.cfg").write_text("[inventory]\nignore_patterns = (?!x)\n")
    with pytest.raises(InputError, match=r"found '\(\?!x\)' in ignore_patterns"):
        load(tmp_path / "site")


def test_the_inventory_of_ansible_cfg_is_read_where_the_site_has_no_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANSIBLE_CONFIG", raising=False)
    site = files(tmp_path, {"inventory/hosts.yml": "# later\n", "lab/hosts": "gpu01\n", "more": "gpu02\n"})
    assert load_site(site / "inventory").hosts == {}
    (site / "ansible.cfg").write_text("[defaults]\ninventory = lab, ./more\nroles_path = %(nothing)s\n")
    inventory = load_site(site / "inventory")
    assert list(inventory.hosts) == ["gpu01", "gpu02"]
    assert "inventory has no hosts, so the inventory of" in inventory.notes[0]
    files(site, {"inventory/hosts.yml": "all: {hosts: {own: }}\n"})
    assert list(load_site(site / "inventory").hosts) == ["own"]


def test_what_only_ansible_can_read_is_asked_of_ansible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    answer = (
        '{"_meta": {"hostvars": {"gpu01": {"n": 9, "m": 2}, "cloud1": {"n": 3}}}, "all": {"children": ["x"]},'
        ' "x": {"hosts": ["gpu01", "cloud1"], "vars": {"o": 4}}}'
    )
    program(tools / "ansible-inventory", f"echo \"$@\" > {tmp_path}/asked\necho '{answer}'")
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    site = files(tmp_path / "inventory", {"hosts": "gpu01 n=1\n", "aws_ec2.yml": "plugin: amazon.aws.aws_ec2\n"})
    inventory = load(site)
    assert inventory.groups["x"].hosts == ("gpu01", "cloud1")
    assert [inventory.hosts["gpu01"].get(name) for name in "nmo"] == [1, 2, 4]
    assert inventory.hosts["gpu01"].vars["n"].origin.file.endswith("hosts")
    assert (tmp_path / "asked").read_text() == f"-i {site} --list --export\n"
    assert "aws_ec2.yml: read by" in inventory.notes[0]


def test_without_ansible_a_plugins_configuration_is_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    site = files(tmp_path / "inventory", {"hosts": "gpu01\n", "all.toml": "[gpu]\n"})
    assert "all.toml: is the configuration of an Ansible inventory plugin" in load(site).notes[0]
    with pytest.raises(InputErrors, match="ansible-inventory is not on this machine's PATH"):
        load(site / "all.toml")


STRAY = {
    "machines.csv": "mac,ip,name\n00:11,10.0.0.1,gpu09\n",
    "files/metrics.csv": "# Format,,\nDCGM_FI_DEV_SM_CLOCK,  gauge, SM clock frequency (in MHz).\n",
    "tool.py": "print(1)\n",
    "ca.pem": "-----BEGIN CERTIFICATE-----\nMIIB\n",
    "README": "Hosts of rack 3\n",
    "requirements.yml": "- src: x\n",
}


def test_a_file_that_is_no_inventory_is_left_out_with_a_note(tmp_path: Path) -> None:
    """NVIDIA/deepops has a table of metrics beside the inventory in config.example."""
    files(tmp_path, {"inventory": "[gpu]\ngpu01\ngpu02\n", **STRAY})
    inventory = load(tmp_path)
    assert [*inventory.hosts] == ["gpu01", "gpu02"]
    assert [host.name for host in select(inventory, "all")] == ["gpu01", "gpu02"], "none of them keeps others waiting"
    notes = "\n".join(inventory.notes)
    assert [name for name in STRAY if f"{name}:" not in notes] == []
    assert notes.count("the file is left out") >= len(STRAY)


def test_a_name_that_cannot_be_is_a_mistake_in_a_file_that_is_an_inventory(tmp_path: Path) -> None:
    for name in ("hosts", "hosts.ini"):
        folder = tmp_path / name.replace(".", "_")
        files(folder, {"inventory": "gpu01\n", name: "gpu,02\n"})
        with pytest.raises(InputErrors, match="cannot be a host's name"):
            select(load(folder), "all")


def test_an_inventory_of_another_ending_is_read_alone_and_beside_others(tmp_path: Path) -> None:
    files(tmp_path, {"inventory": "gpu01\n", "more.csv": "gpu02\n"})
    assert [*load(tmp_path).hosts] == ["gpu01", "gpu02"]
