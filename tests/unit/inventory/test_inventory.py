"""Reading inventories: YAML, INI and programs, variable files, groups, precedence."""

import time
from pathlib import Path
from textwrap import dedent

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.common.errors import InputError, InputErrors
from hostwright.common.secret import Secret
from hostwright.inventory import Inventory, load
from hostwright.inventory.ranges import expand


def write(directory: Path, **files: str) -> Path:
    """Write files by name; ``__`` in a name is a slash, and ``_dot_`` a dot."""
    for name, text in files.items():
        path = directory / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return directory


def program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_ansibles_yaml_dialect(tmp_path: Path) -> None:
    write(tmp_path, hosts_dot_yml="""
        all:
          vars: {site: berlin}
          children:
            gpu:
              children:
                rack3:
                  vars: {rack: 3}
                  hosts:
                    gpu[01:03]: {serial: x}
                    gpu09:
                rack4: {hosts: {gpu04: }}
          hosts: {login1: {ansible_host: 192.0.2.9}}
        maintenance: {hosts: {gpu09: }}
    """)  # fmt: skip
    inventory = load(tmp_path)
    assert list(inventory.hosts) == ["gpu01", "gpu02", "gpu03", "gpu09", "gpu04", "login1"]
    assert inventory.groups["gpu"].hosts == ("gpu01", "gpu02", "gpu03", "gpu09", "gpu04")
    assert inventory.groups["ungrouped"].hosts == ("login1",)
    assert inventory.groups["rack3"].depth == 2
    assert inventory.hosts["gpu09"].groups == ("all", "gpu", "maintenance", "rack3")
    assert inventory.hosts["gpu02"].get("rack") == 3
    assert inventory.hosts["gpu02"].vars["rack"].origin.line == 8
    assert inventory.hosts["login1"].address == "192.0.2.9"
    assert inventory.hosts["gpu04"].get("rack", "none") == "none"


def test_every_file_of_a_directory_is_merged(tmp_path: Path) -> None:
    write(
        tmp_path,
        a_dot_yml="gpu: {hosts: {gpu01: {n: 1}}}",
        b_dot_yaml="gpu: {hosts: {gpu01: {n: 2}, gpu02: }}",
        hosts="[gpu]\ngpu03 ansible_host=192.0.2.3\n",
        notes_dot_txt="not an inventory",
        _dot_hidden_dot_yml="bad: [",
        stacks__x_dot_yml="name: not an inventory either",
    )
    inventory = load(tmp_path)
    assert inventory.groups["gpu"].hosts == ("gpu01", "gpu02", "gpu03")
    assert inventory.hosts["gpu01"].get("n") == 2
    assert [one.origin.file for one in inventory.hosts["gpu01"].explain_variable("n")] == [
        str(tmp_path / "a.yml"),
        str(tmp_path / "b.yaml"),
    ]


def test_a_file_without_ending_may_be_yaml(tmp_path: Path) -> None:
    assert list(load(write(tmp_path, hosts="# mine\nall:\n  hosts:\n    gpu01:\n") / "hosts").hosts) == ["gpu01"]


def test_ini(tmp_path: Path) -> None:
    write(tmp_path, hosts="""
        # a comment
        login1 ansible_host=192.0.2.9
        [rack3]
        gpu[01:03] ansible_user=root motd="two words" tags="['a', 'b']"  # a comment
        gpu04:2222 version=3.10 cards=8 secure=True
        [rack4:children]
        rack3
        [rack4:vars]
        proxy = http://x:3128  # stays
        empty =
    """)  # fmt: skip
    inventory = load(tmp_path / "hosts")
    gpu01, gpu04 = inventory.hosts["gpu01"], inventory.hosts["gpu04"]
    assert (gpu01.user, gpu01.get("motd"), gpu01.get("tags")) == ("root", "two words", ["a", "b"])
    assert (gpu04.port, gpu04.get("version"), gpu04.get("cards"), gpu04.get("secure")) == (2222, "3.10", 8, True)
    assert gpu01.get("proxy") == "http://x:3128  # stays"
    assert gpu01.get("empty") == ""
    assert inventory.groups["rack4"].hosts == ("gpu01", "gpu02", "gpu03", "gpu04")
    assert inventory.groups["ungrouped"].hosts == ("login1",)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("[gpu:chidren]", r"hosts:2: found '\[gpu:chidren\]', expected"),
        ("gpu01 n", "hosts:2: found 'n' after the host's name, expected name=value"),
        ("gpu01 n='x", "hosts:2: no closing quotation"),
        ("gpu[1:", "hosts:2: 'gpu.1:' cannot be a host's name"),
        ("[a:children]\nrakc", "hosts:3: unknown group 'rakc'; did you mean 'rack'"),
        ("[rakc:vars]\nn=1", "hosts:2: unknown group 'rakc'; did you mean 'rack'"),
        ("[gpu:vars]\nn", "expected name=value"),
    ],
)
def test_mistakes_in_ini_name_the_line(tmp_path: Path, line: str, sentence: str) -> None:
    (tmp_path / "hosts").write_text(f"[rack]\n{line}\n")
    with pytest.raises(InputErrors, match=sentence):
        load(tmp_path)


def test_program_with_ansibles_json(tmp_path: Path) -> None:
    program(
        tmp_path / "cloud",
        """#!/bin/sh
        [ "$1" = --list ] && echo '{"gpu": {"hosts": ["gpu01"], "vars": {"n": 1}, "children": ["rack3"]},
        "old": ["gpu03"], "rack3": {"hosts": ["gpu02"]},
        "_meta": {"hostvars": {"gpu02": {"ansible_host": "192.0.2.2"}}}}'
        """,
    )
    inventory = load(tmp_path)
    assert inventory.groups["gpu"].hosts == ("gpu01", "gpu02")
    assert inventory.hosts["gpu02"].address == "192.0.2.2"
    assert inventory.hosts["gpu02"].get("n") == 1
    assert inventory.hosts["gpu03"].groups == ("all", "old")


def test_program_without_meta_is_asked_for_each_host(tmp_path: Path) -> None:
    path = program(
        tmp_path / "old.py",
        '#!/bin/sh\n[ "$1" = --list ] && echo \'{"gpu": ["gpu01"]}\' || echo "{\\"ansible_host\\": \\"a-$2\\"}"\n',
    )
    assert load(path).hosts["gpu01"].address == "a-gpu01"


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("#!/bin/sh\necho oh no >&2; exit 3", "ended with status 3: 'oh no'"),
        ("#!/bin/sh\necho hello", "did not print JSON"),
        ("#!/bin/sh\necho '[]'", "printed a list, expected a JSON object"),
        ('#!/bin/sh\necho \'{"gpu": {"hosts": 3}}\'', "the hosts of gpu: found number 3, expected a list of names"),
        ("no interpreter", "cannot be run"),
    ],
)
def test_program_that_fails(tmp_path: Path, script: str, sentence: str) -> None:
    program(tmp_path / "cloud", script)
    with pytest.raises(InputErrors, match=sentence):
        load(tmp_path)


def test_variable_files_win_over_the_inventory_and_may_be_directories(tmp_path: Path) -> None:
    write(
        tmp_path,
        hosts_dot_yml="rack3: {vars: {a: 1, b: 1}, hosts: {gpu01: {c: 1, d: 1}}}",
        group_vars__rack3__a_dot_yml="a: 2\n",
        group_vars__rack3__b_dot_yml="a: 3\n",
        group_vars__all="b: from all\nz: 1\n",
        host_vars__gpu01_dot_yml="c: 2\n",
    )
    host = load(tmp_path).hosts["gpu01"]
    assert [host.get(name) for name in "abcdz"] == [3, "from all", 2, 1, 1]  # group_vars/all wins, as in Ansible
    assert [str(one.origin).rpartition("/")[2] for one in host.explain_variable("a")] == [
        "hosts.yml:1",
        "a.yml:1",
        "b.yml:1",
    ]


def test_variable_files_of_nobody_and_vaults_are_noted(tmp_path: Path) -> None:
    write(
        tmp_path,
        hosts_dot_yml="rack3: {hosts: {gpu01: }}",
        group_vars__rakc3_dot_yml="a: 1",
        host_vars__gpu01_dot_yml="$ANSIBLE_VAULT;1.1;AES256\n6162",
    )
    notes = "\n".join(load(tmp_path).notes)
    assert "rakc3.yml: there is no group 'rakc3', so it is not read; did you mean 'rack3'?" in notes
    assert "gpu01.yml: is encrypted with Ansible Vault" in notes


def precedence(tmp_path: Path, **extra: str) -> Inventory:
    write(
        tmp_path,
        hosts_dot_yml="""
            all: {vars: {n: all}}
            parent: {vars: {n: parent}, children: {child: }}
            child: {vars: {n: child}, hosts: {gpu01: , gpu02: {n: host}}}
            other: {vars: {n: other}, hosts: {gpu01: }}
        """,
    )
    return load(tmp_path, extra=extra)


def test_precedence_all_parent_child_host_command_line(tmp_path: Path) -> None:
    inventory = precedence(tmp_path)
    assert [one.value for one in inventory.hosts["gpu02"].explain_variable("n")] == ["all", "parent", "child", "host"]
    assert inventory.hosts["gpu02"].get("n") == "host"
    assert inventory.hosts["gpu01"].get("n") == "child"
    last = precedence(tmp_path, n="mine").hosts["gpu02"].explain_variable("n")[-1]
    assert (last.value, last.level, last.wins) == ("mine", "command line", True)


def test_ties_are_alphabetical_and_group_priority_is_honoured(tmp_path: Path) -> None:
    write(tmp_path, a_dot_yml="a: {vars: {n: a}, hosts: {x: }}\nb: {vars: {n: b}, hosts: {x: }}\n")
    assert load(tmp_path).hosts["x"].get("n") == "b"
    write(tmp_path, group_vars__a_dot_yml="ansible_group_priority: 10")
    assert load(tmp_path).hosts["x"].get("n") == "a"


def test_lists_and_mappings_on_the_command_line(tmp_path: Path) -> None:
    host = precedence(tmp_path, a="[1, x]", b="{c: d}", c="11.2").hosts["gpu01"]
    assert (host.get("a"), host.get("b"), host.get("c")) == ([1, "x"], {"c": "d"}, "11.2")


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("gpu[01:03]", ["gpu01", "gpu02", "gpu03"]),
        ("gpu[8:11]", ["gpu8", "gpu9", "gpu10", "gpu11"]),
        ("r[a:c]", ["ra", "rb", "rc"]),
        ("gpu[01:07:3]", ["gpu01", "gpu04", "gpu07"]),
        ("r[1:2]n[a:b].x", ["r1na.x", "r1nb.x", "r2na.x", "r2nb.x"]),
    ],
)
def test_ranges(pattern: str, names: list[str]) -> None:
    assert expand(pattern) == (names, None)


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("gpu[03:01]", "is empty"),
        ("gpu[01:100]", "same number of digits"),
        ("gpu[1:9:0]", "has the step 0"),
        ("gpu[1:x]", "has a number and a letter"),
        ("gpu[1:999999999]", "the limit is"),
        ("gpu[1:999]x[1:999]", "the limit is"),
        ("gpu[01-03]", "write ranges as gpu"),
        ("2001:db8::g", "ansible_host"),
        ("-oProxyCommand=x", "cannot be a host's name"),
        ("gpu 01", "cannot be a host's name"),
        ("gpu$(id)", "cannot be a host's name"),
        ("../gpu", "cannot be a host's name"),
        ("gpu\n01", "cannot be a host's name"),
        ("", "cannot be a host's name"),
    ],
)
def test_ranges_and_names_that_are_mistakes(pattern: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        expand(pattern)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("gpu: {host: {a: }}", "hosts.yml:1:7: 'host' is unknown in a group.*did you mean 'hosts'"),
        ("gpu:\n  hosts: [gpu01]", "hosts.yml:2:10: found a list, expected hosts as a mapping"),
        ("gpu:\n  hosts: {gpu01: 3}", "hosts.yml:2:18: found '3', expected variables as a mapping"),
        ("- gpu01", "hosts.yml:1:1: found a list, expected an inventory of groups"),
        ("gpu: {hosts: {gpu01: , gpu01: }}", "'gpu01' is given twice"),
        ("a: {children: {b: {children: {a: }}}}", "groups contain each other in a cycle: "),
        ("plugin: amazon.aws.aws_ec2", "plugin, and ansible-inventory is not on"),
        ("gpu: {vars: {ansible_group_priority: high}, hosts: {a: }}", "expected a whole number"),
        ("g p u: {hosts: {gpu01: }}", "'g p u' cannot be a group's name"),
    ],
)
def test_mistakes_in_yaml_name_the_place(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        load(write(tmp_path, hosts_dot_yml=text))


def test_all_mistakes_of_all_files_at_once(tmp_path: Path) -> None:
    write(
        tmp_path,
        a_dot_yml="gpu: {hosts: {'gpu 1': , 'gpu 2': }}",
        b_dot_yml="gpu: [",
        c="[x:children]\nnone\n",
        host_vars__gpu_dot_yml="",
        group_vars__gpu_dot_yml="a: 1\na: 2",
    )
    with pytest.raises(InputErrors) as error:
        load(tmp_path)
    assert len(error.value.errors) == 5
    assert error.value.exit_status == 2


def test_no_inventory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such inventory"):
        load(tmp_path / "none.yml")
    with pytest.raises(InputError, match=r"create a hosts\.yml there"):
        load(tmp_path)


def test_an_empty_file_has_no_hosts(tmp_path: Path) -> None:
    assert load(write(tmp_path, hosts_dot_yml="# later\n")).hosts == {}


@settings(deadline=None, max_examples=40)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_values_are_data_whatever_is_in_them(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("inventory") / "hosts.yml"
    path.write_text(yaml.safe_dump({"gpu": {"hosts": {"gpu01": {"motd": text, "nested": {"motd": [text]}}}}}))
    host = load(path).hosts["gpu01"]
    assert host.get("motd") == text
    assert host.get("nested") == {"motd": [text]}


def test_variables_named_as_secrets_are_secrets(tmp_path: Path) -> None:
    write(tmp_path, hosts_dot_yml="all: {hosts: {a: {api_token: x, registry: {user: u, password: [y]}, pin_pass: 12}}}")
    host = load(tmp_path).hosts["a"]
    assert host.get("api_token") == Secret("x")
    assert host.get("registry") == {"user": "u", "password": [Secret("y")]}
    assert host.get("pin_pass") == Secret("12")
    assert "'x'" not in repr(host.explain_variable("api_token"))


def test_ten_thousand_hosts_are_read_quickly(tmp_path: Path) -> None:
    host = "        n{r:02}-{h:02}: {{ansible_host: 10.0.{r}.{h}}}\n"
    racks = "".join(
        f"    rack{r}:\n      hosts:\n" + "".join(host.format(r=r, h=h) for h in range(100)) for r in range(100)
    )
    write(tmp_path, hosts_dot_yml=f"all:\n  vars: {{a: 1, b: 2}}\n  children:\n{racks}")
    started = time.process_time()
    inventory = load(tmp_path)
    assert len(inventory.hosts) == 10_000
    assert time.process_time() - started < 1.5  # processor time, independent of other load


def test_example_inventory_is_valid_with_and_without_comments(tmp_path: Path) -> None:
    text = (Path(__file__).parents[3] / "inventory" / "hosts.yml").read_text()
    assert load(write(tmp_path, hosts_dot_yml=text)).hosts == {}
    example = text[text.index("# all:") :].replace("# ", "", 1).replace("\n# ", "\n")
    inventory = load(write(tmp_path, hosts_dot_yml=example))
    assert len(inventory.groups["rack4"].hosts) == 16
    assert inventory.hosts["gpu02"].port == 2222
    assert inventory.hosts["gpu01"].proxy_jump == "bastion.example.org"
