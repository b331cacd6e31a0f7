"""Valid declarations of workspaces, refusals with their line, and ports derived from names."""

from __future__ import annotations

import base64
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from hostwright.common.errors import InputError
from hostwright.inventory import bind, load
from hostwright.plan.model import Answer, Facts, Refusal
from hostwright.standard.roles.workspaces import Workspaces
from hostwright.standard.roles.workspaces.declared import zones
from hostwright.standard.roles.workspaces.declared.entries import MOST_WORD_BYTES, WorkspaceEntry
from hostwright.standard.roles.workspaces.declared.promises import PortRange, ports_of
from hostwright.standard.roles.workspaces.declared.workspace import workspaces_of
from hostwright.standard.roles.workspaces.states.owner import PeoplesFiles
from tests.unit.roles.workspaces.spaces import AMBIGUOUS, KEY

HOSTS = "all:\n  hosts:\n    gpu01:\n    gpu02:\n"
PEOPLE = f"""\
all:
  vars:
    workspaces_users:
      alice: {{uid: 2001, keys: [{KEY}]}}
      bob:
"""


def read(folder: Path, containers: str, more: str = "") -> Workspaces:
    """Return gpu01's variables, with these workspaces in a separate file."""
    inventory = folder / "inventory"
    inventory.mkdir(exist_ok=True)
    (inventory / "hosts.yml").write_text(HOSTS)
    lines = "".join(f"        {line}\n" for line in containers.splitlines())
    text = f"{PEOPLE}{more}  hosts:\n    gpu01:\n      workspaces_containers:\n{lines}"
    (inventory / "workspaces.yml").write_text(text)
    return bind(Workspaces, "workspaces", load(inventory).hosts["gpu01"])


def refused(folder: Path, containers: str, more: str = "") -> str:
    with pytest.raises(InputError) as caught:
        read(folder, containers, more)
    return str(caught.value).replace(f"{folder}/", "")


def test_a_file_beside_the_hosts_gives_a_host_its_workspaces(tmp_path: Path) -> None:
    v = read(tmp_path, "alice-lab: {user: alice, kind: jupyter, gpus: [0], cpus: 8, memory: 64G}")
    (lab,) = workspaces_of(v.containers, v.users, v.directory, v.ports)
    assert (lab.name, lab.owner, lab.user.uid, lab.entry.gpus, lab.entry.memory) == (
        "alice-lab", "alice", 2001, ("0",), "64g",
    )  # fmt: skip
    assert (lab.path, lab.directory) == ("/alice/alice-lab/", "/srv/workspaces/alice/alice-lab")
    assert load(tmp_path / "inventory").hosts.keys() == {"gpu01", "gpu02"}


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("{user: alice, kind: jupyter, image: tensorflow/tensorflow}", "name an exact tag"),
        ("{user: alice, kind: jupyter, image: 'tensorflow/tensorflow:latest'}", "name an exact tag"),
        ("{user: alice, kind: jupyter, image: 'registry:5000/tf'}", "name an exact tag"),
        ("{user: alice, kind: jupyter, image: '-v /:/host x:1'}", "expected an image"),
        ("{user: alice, kind: jupyter, gpus: all}", "name each GPU"),
        ("{user: alice, kind: jupyter, gpus: [0, 0]}", "0: it is named twice"),
        ("{user: alice, kind: jupyter, gpus: [-1]}", "expected a GPU's index"),
        ("{user: alice, kind: jupyter, gpus: [true]}", "expected a GPU's index"),
        ("{user: alice, kind: jupyter, memory: 64}", "expected text"),
        ("{user: alice, kind: jupyter, memory: 64 GB}", "expected a size"),
        ("{user: alice, kind: jupyter, cpus: 0}", "greater than 0"),
        ("{user: alice, kind: jupyter, port: '0-0'}", "expected a port from 1024 on, or 'auto'"),
        ("{user: alice, kind: jupyter, port: 22}", "is reserved"),
        ("{user: alice, kind: jupyter, mounts: ['/:/host']}", "is a system path of the host"),
        ("{user: alice, kind: jupyter, mounts: ['/var/run/docker.sock:/d']}", "is a system path of the host"),
        ("{user: alice, kind: jupyter, mounts: ['/data/../etc:/data']}", "not a plain absolute path"),
        ("{user: alice, kind: jupyter, mounts: ['data:/data']}", "not a plain absolute path"),
        ("{user: alice, kind: jupyter, mounts: ['/data/a,b:/data']}", "only letters, digits and . _ + @ = -"),
        ("{user: alice, kind: jupyter, mounts: ['/data:/usr/lib']}", "is a system path of the workspace"),
        ("{user: alice, kind: jupyter, mounts: ['/data:/workspace']}", "has the workspace's own files"),
        ("{user: alice, kind: jupyter, mounts: ['/a:/d', '/b:/d']}", "the same container directory"),
        ("{user: alice, kind: jupyter, command: [python3]}", "command is only for the kind batch"),
        ("{user: alice, kind: batch}", "either a command or a script"),
        ("{user: alice, kind: batch, command: [a], script: b}", "either a command or a script"),
        ("{user: alice, kind: batch, command: [a], port: 8888}", "has no port"),
        ("{user: alice, kind: tensorboard, logs: /data/logs}", "mount the directory"),
        ("{user: alice, kind: tensorboard, logs: ../bob}", "not a plain absolute path"),
        ("{user: alice, kind: jupiter}", "expected 'jupyter', 'ssh', 'tensorboard', 'batch' or 'serving'"),
        ("{usr: alice, kind: jupyter}", "did you mean 'user'?"),
        ("{user: alice, kind: jupyter, environment: [TZ=UTC]}", "expected NAME: VALUE"),
        ("{user: alice, kind: jupyter, environment: {A-B: x}}", "expected a variable's name such as TZ"),
        ("{user: alice, kind: jupyter, environment: {HOME: /}}", "HOME is set by Hostwright"),
        ("{user: alice, kind: jupyter, environment: {NVIDIA_VISIBLE_DEVICES: all}}", "select GPUs with `gpus: [0]`"),
        ("{user: alice, kind: jupyter, environment: {CUDA_VISIBLE_DEVICES: 7}}", "select GPUs with `gpus: [0]`"),
        ("{user: alice, kind: jupyter, environment: {A: true}}", "A: expected text, found the YAML value true"),
        ("{user: alice, kind: jupyter, environment: {A: yes}}", "yes, no, on and off also need quotes"),
        ("{user: alice, kind: jupyter, environment: {A: null}}", "A: YAML reads the value as null; put it in quotes"),
        ("{user: alice, kind: jupyter, environment: {A: }}", 'such as "" for an empty text'),
        ("{user: alice, kind: jupyter, environment: {A: [1]}}", "A: found a list, expected text or a number"),
        ("{user: alice, kind: jupyter, port: 22:22}", "found '22:22', expected a port"),
        ("{user: alice, kind: jupyter, port: 020000}", "found '020000', expected a port"),
        ("{user: alice, kind: jupyter, pids: 0100}", "found '0100', expected a whole number in digits"),
        ("{user: alice, kind: jupyter, cpus: 010}", "found '010', expected a number such as 8 or 0.5"),
        ("{user: alice, kind: jupyter, gpus: [1:0]}", "numbers of MIG devices change"),
        ("{user: alice, kind: jupyter, gpus: [01]}", "found '01', expected a GPU's index"),
        ("{user: alice, kind: jupyter, memory: 1_000}", "found number 1_000, expected text; put it in quotes"),
        ("{user: on, kind: jupyter}", "found true, expected text"),
        ("{user: alice, kind: batch, command: [sleep, 0644]}", "found number 0644, expected text; put it in quotes"),
        ('{user: alice, kind: jupyter, environment: {A: "x\\ny"}}', "has a control character"),
        ("{user: alice, kind: jupyter, environment: {TZ: Europe/Berln}}", "did you mean 'Europe/Berlin'?"),
        ("{user: alice, kind: jupyter, environment: {TZ: berlin}}", "did you mean 'Europe/Berlin'?"),
        (
            "{user: alice, kind: jupyter, environment: {TZ: qqq}}",
            "expected one such as Europe/Berlin, or a rule such as",
        ),
        ("{user: alice, kind: jupyter, environment: {TZ: ../etc}}", "unknown time zone '../etc'"),
        ("{user: alicia, kind: jupyter}", "did you mean 'alice'?"),
        ("{user: bob, kind: ssh}", "has no public key"),
    ],
)
def test_a_mistake_is_said_with_its_line(tmp_path: Path, entry: str, sentence: str) -> None:
    said = refused(tmp_path, f"lab: {entry}")
    assert sentence in said
    assert said.startswith("inventory/workspaces.yml:9:")


def test_variables_of_programs_are_text_or_numbers(tmp_path: Path) -> None:
    entry = "lab: {user: alice, kind: jupyter, environment: {TZ: Europe/Berlin, OMP_NUM_THREADS: 4, no_proxy: ''}}"
    expected = {"TZ": "Europe/Berlin", "OMP_NUM_THREADS": "4", "no_proxy": ""}
    assert read(tmp_path, entry).containers["lab"].environment == expected


@pytest.mark.parametrize(
    "value",
    ["Europe/Berlin", ":Europe/Berlin", "/usr/share/zoneinfo/Asia/Tokyo", "UTC", "Etc/GMT+5", "US/Eastern", "CET",
     "posix/Europe/Berlin", "CET-1CEST", "EST5EDT,M3.2.0,M11.1.0", "<+0330>-3:30", "/workspace/zone", ""],
)  # fmt: skip
def test_zones_and_rules_are_taken(tmp_path: Path, value: str) -> None:
    found = read(tmp_path, f"lab: {{user: alice, kind: jupyter, environment: {{TZ: '{value}'}}}}").containers["lab"]
    assert found.environment["TZ"] == value


def test_older_names_of_zones_are_known_without_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian 13 has their files in tzdata-legacy, and a controller may lack that package or the whole database."""
    monkeypatch.setattr(zones.zoneinfo, "available_timezones", lambda: {"Europe/Berlin"})
    monkeypatch.setattr(zones.zoneinfo, "TZPATH", (str(tmp_path), str(tmp_path / "none")))
    (tmp_path / "tzdata.zi").write_text("# version x\nR d 1916 o - Jun 14 23s 1 S\nL America/New_York US/Eastern\n")
    monkeypatch.setattr(zones, "_known", zones._known.__wrapped__)
    assert zones.checked_zone("US/Eastern") == "US/Eastern"
    with pytest.raises(ValueError, match=r"unknown time zone 'US/Estern', .* did you mean 'US/Eastern'"):
        zones.checked_zone("US/Estern")
    monkeypatch.setattr(zones, "_known", frozenset)
    assert zones.checked_zone("Europe/Berln") == "Europe/Berln", "it cannot be judged here; the host's run says it"
    with pytest.raises(ValueError, match="expected one such as Europe/Berlin"):
        zones.checked_zone("../../etc/shadow")


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_a_variable_of_which_yaml_makes_another_value_is_asked_for_in_quotes(tmp_path: Path, text: str) -> None:
    said = refused(tmp_path, f"lab: {{user: alice, kind: jupyter, environment: {{TZ: UTC, V: {text}, W: {text}}}}}")
    assert f'put them in quotes: V: "{text}", W: "{text}"' in said
    entry = f"lab: {{user: alice, kind: jupyter, environment: {{V: '{text}', W: \"{text}\"}}}}"
    assert read(tmp_path, entry).containers["lab"].environment == {"V": text, "W": text}


@pytest.mark.parametrize("uid", ["02001", "33:21", "2_001", "'02001'"])
def test_a_uid_is_the_number_that_stands_there(tmp_path: Path, uid: str) -> None:
    text = PEOPLE.replace("uid: 2001", f"uid: {uid}")
    (tmp_path / "hosts.yml").write_text(HOSTS)
    (tmp_path / "workspaces.yml").write_text(text)
    with pytest.raises(InputError, match=f"found {uid!r}".replace('"', "") + ", expected a whole number in digits"):
        bind(Workspaces, "workspaces", load(tmp_path).hosts["gpu01"])


def test_a_script_from_windows_runs_as_any_other(tmp_path: Path) -> None:
    entry = 'lab: {user: alice, kind: batch, script: "\\ufeff#!/bin/bash\\r\\necho out\\r\\n"}'
    assert read(tmp_path, entry).containers["lab"].script == "#!/bin/bash\necho out\n"


def test_images_of_registries_with_an_address_or_a_name_in_capitals(tmp_path: Path) -> None:
    """Examples of distribution/reference."""
    for image in ("[2001:db8::1]:5000/repo:1", "LOCALDOMAIN/library/debian:1.0", "192.168.1.1:5000/repo:5050"):
        entry = f"lab: {{user: alice, kind: jupyter, image: '{image}'}}"
        assert read(tmp_path, entry).containers["lab"].image == image


@pytest.mark.parametrize("name", ["Lab", "-lab", "a" * 32, "alice.lab", "lab/../x", "läb"])
def test_names_that_are_no_names_of_workspaces(tmp_path: Path, name: str) -> None:
    said = refused(tmp_path, f"{name!r}: {{user: alice, kind: jupyter}}")
    assert "at most 31 lowercase letters, digits and hyphens" in said
    assert "^" not in said, "nobody reads a regular expression"


@pytest.mark.parametrize("name", ["Alice", "al.ice", "1001", "alice@example.org", "jürgen", "a" * 32])
def test_names_that_are_no_names_of_people(tmp_path: Path, name: str) -> None:
    """Names in other installations: dockerspawner issues 39, 262 and 495, jupyterhub issue 4727, runc issue 695."""
    folder = tmp_path / "inventory"
    folder.mkdir()
    (folder / "hosts.yml").write_text(f"all:\n  hosts:\n    gpu01:\n      workspaces_users: {{{name!r}: }}\n")
    with pytest.raises(InputError, match="at most 31 lowercase letters, digits, hyphens and underscores"):
        bind(Workspaces, "workspaces", load(folder).hosts["gpu01"])


@pytest.mark.parametrize("user", ["{uid: 0}", "{uid: 999}", "{gid: 2001}", "{uid: 2001, keys: [secret]}"])
def test_users_that_are_none(tmp_path: Path, user: str) -> None:
    folder = tmp_path / "inventory"
    folder.mkdir()
    (folder / "hosts.yml").write_text(f"all:\n  hosts:\n    gpu01:\n      workspaces_users: {{eve: {user}}}\n")
    with pytest.raises(InputError, match=r"hosts\.yml:4:\d+: workspaces\.users\.eve"):
        bind(Workspaces, "workspaces", load(folder).hosts["gpu01"])


@pytest.mark.parametrize("left", ["", ", left: true"])
def test_a_uid_is_one_persons(tmp_path: Path, left: str) -> None:
    """systemd#15802: a user with a reused ID can read the previous user's files."""
    people = f"{{bob: {{uid: 2002{left}}}, carol: {{uid: 2002}}, dave: }}"
    folder = tmp_path / "inventory"
    folder.mkdir()
    (folder / "hosts.yml").write_text(f"all:\n  hosts:\n    gpu01:\n      workspaces_users: {people}\n")
    with pytest.raises(InputError) as caught:
        bind(Workspaces, "workspaces", load(folder).hosts["gpu01"])
    assert "workspaces.users.carol: uid 2002 is given to bob and to carol" in str(caught.value)
    assert ("the files of bob, who left, are kept" in str(caught.value)) is bool(left)
    people = "{bob: {uid: 2002, gid: 3000}, carol: {uid: 2003, gid: 3000}}"
    (folder / "hosts.yml").write_text(f"all:\n  hosts:\n    gpu01:\n      workspaces_users: {people}\n")
    assert len(bind(Workspaces, "workspaces", load(folder).hosts["gpu01"]).users) == 2, "a group may be of several"


def public_key(kind: str, *parts: bytes, says: str = "") -> str:
    """Return a key line with these fields, whose first word may name another type."""
    blob = b"".join(len(part).to_bytes(4, "big") + part for part in (kind.encode(), *parts))
    return f"{says or kind} {base64.b64encode(blob).decode()}"


def user_with(folder: Path, key: str) -> Workspaces:
    (folder / "inventory").mkdir(exist_ok=True)
    document = {"all": {"hosts": {"gpu01": {"workspaces_users": {"eve": {"uid": 2001, "keys": [KEY, key]}}}}}}
    (folder / "inventory/hosts.yml").write_text(json.dumps(document))
    return bind(Workspaces, "workspaces", load(folder / "inventory").hosts["gpu01"])


ED25519 = public_key("ssh-ed25519", b"k" * 32)
CURVE = (b"nistp256", b"\4" + b"p" * 64)


@pytest.mark.parametrize(
    "key",
    [
        ED25519,
        f"{ED25519} Jürgen at his desk",
        public_key("ssh-rsa", b"\1\0\1", b"\0" + b"n" * 384),
        public_key("ecdsa-sha2-nistp256", *CURVE),
        public_key("ecdsa-sha2-nistp521", b"nistp521", b"\4" + b"p" * 132),
        public_key("sk-ssh-ed25519@openssh.com", b"k" * 32, b"ssh:"),
        public_key("sk-ecdsa-sha2-nistp256@openssh.com", *CURVE, b"ssh:"),
    ],
)
def test_every_kind_of_public_key_is_taken(tmp_path: Path, key: str) -> None:
    """debops#1801: hardware keys."""
    assert user_with(tmp_path, key).users["eve"].keys == (KEY, key)


@pytest.mark.parametrize(
    ("key", "why"),
    [
        (ED25519[:-4], "incomplete"),
        (ED25519[:-5], "incomplete"),
        (ED25519 + "AAAA", "incomplete or changed"),
        (public_key("ssh-rsa", b"\1\0\1"), "incomplete"),
        (public_key("sk-ssh-ed25519@openssh.com", b"k" * 32), "incomplete"),
        (public_key("ssh-ed25519", b"k" * 32, b"x"), "changed"),
        (public_key("ssh-ed25519", b"k" * 32, says="ssh-rsa"), "but the data of the key has the type"),
        (public_key("ecdsa-sha2-nistp256", *CURVE, says="ecdsa-sha2-nistp384"), "the type 'ecdsa-sha2-nistp256'"),
        (f"{ED25519}\n{ED25519}", "expected a public key"),
        (f'from="10.0.0.0/8" {ED25519}', "expected a public key"),
    ],
)
def test_a_key_that_no_ssh_reads_is_refused(tmp_path: Path, key: str, why: str) -> None:
    """kamal#1131: sshd ignores such a line, and its owner cannot log in."""
    with pytest.raises(InputError) as caught:
        user_with(tmp_path, key)
    assert "workspaces.users.eve.keys" in str(caught.value)
    assert why in str(caught.value)


def test_a_gpu_is_promised_once(tmp_path: Path) -> None:
    both = "a: {{user: alice, kind: {}, gpus: [0, 1]{}}}\nb: {{user: bob, kind: {}, gpus: [1]{}}}"
    batch = "batch, command: [x]"
    assert "10:9: workspaces.containers.b: GPU 1 is given twice: a has it too" in refused(
        tmp_path, both.format("jupyter", "", "jupyter", "")
    )
    assert "given twice" in refused(tmp_path, both.format("jupyter", ", share: true", "jupyter", ""))
    assert "given twice" in refused(tmp_path, both.format("jupyter", "", batch, ""))
    assert read(tmp_path, both.format("jupyter", ", share: true", "jupyter", ", share: true")).containers
    assert read(tmp_path, both.format(batch, "", batch, "")).containers  # they wait for each other


def test_a_port_is_promised_once(tmp_path: Path) -> None:
    assert "10:9: workspaces.containers.b: port 8888 is given twice; a has it too" in refused(
        tmp_path, "a: {user: alice, kind: jupyter, port: 8888}\nb: {user: bob, kind: jupyter, port: 8888}"
    )


def test_limits_of_people_and_hosts(tmp_path: Path) -> None:
    two = "a: {user: alice, kind: jupyter, gpus: [0], cpus: 8, memory: 64g}\n"
    two += "b: {user: alice, kind: jupyter, gpus: [1], cpus: 8, memory: 64g}"
    for limits, sentence in {
        "workspaces_per_user: {gpus: 1}": "the workspaces of alice have 2 GPUs, more than workspaces_per_user",
        "workspaces_per_user: {memory: 100g}": "the workspaces of alice have 128 GiB of memory",
        "workspaces_per_host: {cpus: 12}": "the workspaces of this host have 16 CPUs",
        "workspaces_per_host: {workspaces: 1}": "the workspaces of this host have 2 workspaces",
    }.items():
        assert sentence in refused(tmp_path, two, f"    {limits}\n")
    assert read(tmp_path, two, "    workspaces_per_user: {gpus: 2, cpus: 16, memory: 128g}\n").containers
    unlimited = "a: {user: alice, kind: jupyter}"
    assert "memory is missing" in refused(tmp_path, unlimited, "    workspaces_per_host: {memory: 100g}\n")


def test_who_left_has_no_workspace_any_more(tmp_path: Path) -> None:
    v = read(tmp_path, "a: {user: alice, kind: jupyter}\nb: {user: bob, kind: jupyter}")
    left = {**v.users, "bob": replace(v.users["bob"], left=True)}
    assert [space.name for space in workspaces_of(v.containers, left, v.directory, v.ports)] == ["a"]


JUPYTER = WorkspaceEntry("alice", "jupyter")
NAMES = st.sets(st.from_regex(r"[a-z0-9][a-z0-9-]{0,30}", fullmatch=True), max_size=30)


@given(NAMES)
def test_each_name_gets_a_port_of_its_own_in_the_range(names: set[str]) -> None:
    ports = ports_of(dict.fromkeys(names, JUPYTER), PortRange(20000, 20039))
    assert len(set(ports.values())) == len(ports) == len(names)
    assert all(20000 <= port <= 20039 for port in ports.values())


@given(NAMES)
def test_ports_stay_when_others_come_unless_two_names_want_the_same(names: set[str]) -> None:
    whole = PortRange(20000, 29999)
    ports = ports_of(dict.fromkeys(names, JUPYTER), whole)
    homes = [whole.home(name) for name in names]
    for name in names:
        if homes.count(whole.home(name)) == 1 and not any(0 < whole.home(name) - home < len(names) for home in homes):
            assert ports[name] == whole.home(name) == ports_of({name: JUPYTER}, whole)[name]


def test_a_range_that_is_too_small_is_said(tmp_path: Path) -> None:
    three = "".join(f"w{number}: {{user: alice, kind: jupyter}}\n" for number in range(3))
    assert "are too few for 3 workspaces" in refused(tmp_path, three, "    workspaces_ports: 20000-20001\n")
    assert "expected a range of ports" in refused(tmp_path, three, "    workspaces_ports: 80-90\n")


def test_a_port_that_is_given_is_not_given_again(tmp_path: Path) -> None:
    home = PortRange(20000, 29999).home("alice-lab")
    v = read(tmp_path, f"alice-lab: {{user: alice, kind: jupyter}}\nb: {{user: bob, kind: jupyter, port: {home}}}")
    ports = {space.name: space.port for space in workspaces_of(v.containers, v.users, v.directory, v.ports)}
    assert ports["b"] == home != ports["alice-lab"]


def test_a_command_that_linux_does_not_take_is_refused() -> None:
    """argo-workflows#7586: `argument list too long` of an unrelated program. Accepted commands run on Linux."""
    longest = "x" * MOST_WORD_BYTES
    WorkspaceEntry("bob", "batch", command=("echo", longest))
    subprocess.run(("true", longest), check=True)
    with pytest.raises(
        ValueError,
        match=r"an argument in command has 131,072 bytes, but Linux allows 131,071; put the text into a file",
    ):
        WorkspaceEntry("bob", "batch", command=("echo", f"{longest}x"))
    with pytest.raises(OSError, match="Argument list too long"):
        subprocess.run(("true", f"{longest}x"), check=True)
    with pytest.raises(ValueError, match="the limit is 1,048,576"):
        WorkspaceEntry("bob", "batch", command=("x" * 11,) * 60_000)


KEY_WITH = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID0Fl7l3eLK+d4Ez/PEEPGzn7MBQubH104CYzFf9H3gs alice{}desk"


@pytest.mark.parametrize("character", ["\0", "\x1b", "\x7f", "\u202e", "\u2028"])
def test_a_key_with_a_character_that_is_not_printed_is_refused(character: str) -> None:
    with pytest.raises(ValidationError, match="has a non-printable character"):
        TypeAdapter(Workspaces).validate_python({"users": {"alice": {"keys": [KEY_WITH.format(character)]}}})


@pytest.mark.parametrize("comment", ["@", "\t", " é "])
def test_a_key_with_any_other_comment_is_one(comment: str) -> None:
    TypeAdapter(Workspaces).validate_python({"users": {"alice": {"keys": [KEY_WITH.format(comment)]}}})


@pytest.mark.parametrize("entry", [{"script": "echo a\0b"}, {"command": ["echo", "a\0b"]}])
def test_what_a_batch_run_runs_has_no_nul(entry: dict[str, object]) -> None:
    """A step of a plan cannot contain one: it passed ``check``, but failed in ``plan``."""
    run = {"user": "alice", "kind": "batch", **entry}
    with pytest.raises(ValidationError, match="contains a NUL character"):
        TypeAdapter(Workspaces).validate_python({"users": {"alice": {"uid": 2001}}, "containers": {"a-run": run}})


OTHERS = (
    "/ /etc /etc/workspaces /usr/local/x /root/x /tmp /var/tmp/x /home /opt /var /var/lib /var/lib/docker/volumes "
    "/var/lib/hostwright/workspaces /proc/self/root /dev/shm/x"
)


@pytest.mark.parametrize("directory", OTHERS.split())
def test_a_directory_that_holds_what_belongs_to_others_is_not_for_peoples_files(directory: str) -> None:
    """Users' directories in it become root's; in ``/home``, these would be home directories."""
    with pytest.raises(ValidationError, match=f"{directory} has system files or"):
        TypeAdapter(Workspaces).validate_python({"directory": directory})


@pytest.mark.parametrize(
    "directory", ["/srv", "/srv/workspaces", "/data", "/mnt/disk", "/home/workspaces", "/var/lib/ws"]
)
def test_another_directory_may_be(directory: str) -> None:
    assert TypeAdapter(Workspaces).validate_python({"directory": directory}).directory == directory


@pytest.mark.parametrize(
    "made, held",
    [
        ("true", ""),
        ("rmdir .", ""),
        ("mkdir -m 700 lost+found", ""),
        ("mkdir -m 755 alice", "alice"),
        ("touch file", "file"),
        ("mkdir -m 711 alice && chown 2001 alice", "alice"),
        ("mkdir -m 711 alice && touch README", ""),
    ],
)
def test_a_directory_with_other_things_is_refused(tmp_path: Path, made: str, held: str) -> None:
    folder = tmp_path / "people"
    folder.mkdir()
    subprocess.run(("sh", "-euc", made if made != "rmdir ." else f"rmdir {folder}"), cwd=folder, check=True)
    state = PeoplesFiles(str(folder))
    said = subprocess.run(("sh", "-euc", state.probes()[0].script), capture_output=True, text=True, check=True).stdout
    planned = state.plan(Facts({state.probes()[0]: Answer(0, said)}))
    assert said.strip() == held
    assert (planned is None) == (held == "")
    if isinstance(planned, Refusal):
        assert planned.sentence.startswith(f"workspaces_directory: {folder} has {held!r} but no workspaces; choose a")
