"""The life of workspaces over the command line: created, reached, limited, refused, restarted and removed."""

from __future__ import annotations

import json

import pytest
import yaml

from lab import faults
from lab.machine import wait_for_ssh, why_no_limits
from tests.lab.workspaces.conftest import Made, Runs
from tests.lab.workspaces.desk import DECLARED, HOST, IMAGE, SETTLED, Desk, by_uuid

#: Allocates more memory than the workspace has, in parts, and prints its progress.
EATER = "python3 -c 'parts = [bytearray(16 << 20) for _ in range(64)]; print(len(parts))'"


@pytest.fixture
def limited(desk: Desk) -> Desk:
    why = why_no_limits(desk.machine)
    if why:
        pytest.skip(f"limits of containers are {why}")
    return desk


# --- made


def test_the_plan_names_what_is_made_and_makes_nothing(made: Made) -> None:
    (role,) = made.plan["plans"][0]["roles"]
    names = [change["what"] for change in role["changes"]]
    assert [name for name in names if name.startswith("workspace ")] == [
        f"workspace {name}" for name in sorted(DECLARED)
    ]
    assert sum(name.startswith("image hostwright/workspace-ssh:") for name in names) == 1
    assert made.containers_after_plan == ""
    (host,) = made.provisioned["hosts"]
    assert (host["result"], host["changed"]) == ("changed", True)


def test_nothing_is_left_to_do_and_checks_and_audit_agree(desk: Desk) -> None:
    assert desk.planned() == []
    verified = desk.json("verify", "--hosts", HOST, "--roles", "workspaces")["hosts"][0]
    checks = {check["check"]: check["passed"] and check["checked"] for check in verified["checks"]}
    assert len(checks) >= 6
    assert all(checks.values()), verified
    audited = json.loads(desk("audit", "--hosts", HOST, "--json").stdout)["hosts"][
        0
    ]  # other tests check the other layers
    assert {layer["name"]: layer["status"] for layer in audited["layers"]}["workspaces"] == "desired"
    readings = {row["name"]: (row["have"], row["want"]) for row in audited["readings"] if row["layer"] == "workspaces"}
    assert {readings[name] for name in DECLARED} == {("running", "running")}


def test_each_is_listed_and_reached(desk: Desk) -> None:
    rows = {row["name"]: row for row in desk.json("workspace.list", "--hosts", HOST)["workspaces"]}
    assert {name: rows[name]["state"] for name in DECLARED} == dict.fromkeys(DECLARED, "running")
    assert (rows["alice-lab"]["user"], rows["alice-lab"]["gpus"]) == ("alice", "0")
    tunnel, url = desk.done("workspace.url", "--name", "alice-lab", "--token").split()[-2:]
    port, token = desk.port("alice-lab"), desk.token("alice-lab")
    assert tunnel == f"ops@{desk.machine.address}"
    assert url == f"http://127.0.0.1:{port}/alice/alice-lab/?token={token}"
    assert token not in desk.done("workspace.url", "--name", "alice-lab")
    assert "Jupyter Server" in desk.done("workspace.logs", "--name", "alice-lab")
    ended = desk("workspace.exec", "--name", "alice-box", "--command", "id -un; exit 7")
    assert (ended.returncode, ended.stdout.strip()) == (7, "alice")


# --- limits


def test_limits_are_read_back_from_the_control_group(limited: Desk) -> None:
    read = """cd /sys/fs/cgroup
    cat memory.max memory/memory.limit_in_bytes pids.max pids/pids.max 2>/dev/null
    cat cpu.max 2>/dev/null || cat cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us
    df -B1 --output=size /dev/shm | tail -1"""
    numbers = limited.well("alice-lab", read).split()
    assert numbers == [str(400 << 20), "200", "50000", "100000", str(48 << 20)]


def test_a_process_that_eats_memory_ends_alone(limited: Desk) -> None:
    before = {name: limited.inspect(name, "json .State") for name in DECLARED}
    eaten = limited.inside("alice-lab", EATER)
    assert (eaten.returncode, eaten.stdout) == (137, "")
    assert limited.inside("bob-lab", "python3 -c 'print(len(bytearray(64 << 20)))'").stdout.strip() == str(64 << 20)
    after = {name: limited.inspect(name, "json .State") for name in DECLARED}
    assert after["bob-lab"] == before["bob-lab"]
    for name in DECLARED:  # each first process runs, and none was restarted
        assert limited.inspect(name, "json .State.Pid") in before[name]
        assert limited.inspect(name, ".RestartCount") == "0"
    limited.answers("alice-lab", "bob-lab")
    told = "it took more memory than it may (memory: 400m)"
    logs = {name: limited.done("workspace.logs", "--name", name) for name in ("alice-lab", "bob-lab")}
    assert [told in logs[name] for name in ("alice-lab", "bob-lab")] == [True, False]


# --- refused


@pytest.mark.parametrize(
    ("words", "sentences"),
    [
        (
            ("--user", "bob", "--gpus", "0", "--image", IMAGE),
            ("--name second: GPU 0 is given twice: alice-lab has it too", "to share it, set share: true for both"),
        ),
        (
            ("--user", "bob", "--gpus", "0", "--share", "--image", IMAGE),
            ("--name second: GPU 0 is given twice: alice-lab has it too",),
        ),
        (("--user", "bob", "--image", "hostwright-lab/desk:latest"), ("--image: ", "name an exact tag")),
    ],
)
def test_what_cannot_be_promised_is_refused_before_anything_is_written(
    desk: Desk, words: tuple[str, ...], sentences: tuple[str, ...]
) -> None:
    before = (desk.inventory / "workspaces.yml").read_text()
    refused = desk("workspace.up", "--host", HOST, "--name", "second", *words)
    assert refused.returncode != 0
    said = " ".join(refused.stderr.split())
    for sentence in sentences:
        assert sentence in said
    assert "workspaces.yml" not in said  # the file was not written
    assert (desk.inventory / "workspaces.yml").read_text() == before
    assert "second" not in desk.on("docker ps -a --format '{{.Names}}'")


def test_a_card_is_shared_where_both_say_so(desk: Desk) -> None:
    seen = [by_uuid(desk.well(name, "nvidia-smi -L")) for name in ("alice-box", "bob-lab")]
    assert seen[0] == seen[1] == by_uuid(desk.on("nvidia-smi -L"))[1:2]


# --- a box to log in to


def test_the_box_takes_keys_alone_and_keeps_its_own(desk: Desk) -> None:
    key = ("-i", str(desk.lab.private_key))
    known = desk.inventory / "known_hosts"
    known.write_text("box " + desk.on("cat /var/lib/hostwright/workspaces/alice-box/host_key.pub"))
    ended = desk.ssh(*key, "alice@127.0.0.1", "id -un; echo there >kept; nvidia-smi -L")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("alice\n")
    assert by_uuid(ended.stdout) == by_uuid(desk.on("nvidia-smi -L"))[1:2]
    without = desk.ssh("-oPubkeyAuthentication=no", "alice@127.0.0.1", "true")
    assert without.returncode == 255
    assert "Permission denied (publickey)" in without.stderr  # no password prompt
    before = desk.inspect("alice-box", ".Config.Image"), desk.inspect("alice-box", ".Id")
    desk.declare(workspaces_refreshed="2026-11-23")
    desk.provision()
    assert desk.inspect("alice-box", ".Config.Image") != before[0]
    assert desk.inspect("alice-box", ".Id") != before[1]
    again = desk.ssh(*key, "alice@127.0.0.1", "cat kept")  # BatchMode: another host key would be refused
    assert (again.returncode, again.stdout.strip()) == (0, "there"), again.stderr


def test_the_box_is_told_with_its_key(desk: Desk) -> None:
    shown = desk.on("ssh-keygen -lf /var/lib/hostwright/workspaces/alice-box/host_key.pub").split()[1]
    told = desk.done("workspace.url", "--name", "alice-box")
    assert f"host key of alice-box: ssh-ed25519 {shown}; if ssh warns" in told
    assert f"ssh-keygen -R '[127.0.0.1]:{desk.port('alice-box')}'" in told


def test_people_commit_before_they_have_told_git_who_they_are(desk: Desk) -> None:
    log = "git -C r commit -q --allow-empty -m x && git -C r log -1 --format='%an <%ae>'"
    assert desk.well("alice-box", f"cd /workspace && git init -q r && {log}") == "alice <alice@alice-box>\n"
    own = "git -C r config user.name Alice && git -C r config user.email alice@example.org"
    assert desk.well("alice-box", f"cd /workspace && {own} && {log}") == "Alice <alice@example.org>\n"


# --- restarts


@pytest.mark.parametrize("what", ["docker", "the host"])
def test_it_is_there_again_after_a_restart(desk: Desk, runs: Runs, what: str) -> None:
    tokens = {name: desk.token(name) for name in ("alice-lab", "bob-lab")}
    cards = {name: by_uuid(desk.well(name, "nvidia-smi -L")) for name in DECLARED}
    desk.well("alice-lab", "echo kept >/workspace/notebook")
    if what == "docker":
        desk.on("systemctl restart docker")
    else:
        reboot(desk)
    desk.answers("alice-lab", "bob-lab")
    desk.await_(f"timeout 5 bash -c 'read -r line </dev/tcp/127.0.0.1/{desk.port('alice-box')}'", "the box is silent")
    for name, token in tokens.items():
        assert desk.answer(name, token) == "200"
        assert desk.answer(name, "") == "403"
    assert {name: by_uuid(desk.well(name, "nvidia-smi -L")) for name in DECLARED} == cards
    assert desk.well("alice-lab", "cat /workspace/notebook") == "kept\n"
    assert desk.on(f"cat {runs.folders['a-run']}/times") == "once\n"  # a run that ended does not run again
    assert desk.planned() == []


def reboot(desk: Desk) -> None:
    """Reboot the host like its administrator, and wait for SSH and Docker."""
    boot = "cat /proc/sys/kernel/random/boot_id"
    before = desk.on(boot)
    faults.reboot(desk.machine)
    wait_for_ssh(desk.machine)
    assert desk.on(boot) != before
    desk.on(SETTLED)


# --- taken away


def test_a_variable_is_the_text_that_was_given_and_limits_that_do_not_go_together_are_said(desk: Desk) -> None:
    given = {"MODE": "0644", "DEBUG": "yes", "N": "1e3", "V": "1.10", "AT": "12:30", "NONE": "null", "EMPTY": ""}
    variables = [word for name, value in given.items() for word in ("--env", f"{name}={value}")]
    limits = ("--shm", "4g", "--memory", "1g")
    made = desk(
        "workspace.up", "--host", HOST, "--user", "bob", "--name", "values", "--image", IMAGE, *limits, *variables
    )
    said = " ".join((made.stdout + made.stderr).split())
    assert made.returncode == 0, said
    assert "has 4g of shared memory (shm), which counts against its 1g of memory" in said
    shown = desk.done("workspace.exec", "--name", "values", "--command", "env; df -m /dev/shm").splitlines()
    assert {name: value for name, _, value in (line.partition("=") for line in shown) if name in given} == given
    assert shown[-1].split()[1] == "4096"
    path = desk.inventory / "workspaces.yml"
    before = path.read_text()
    path.write_text(before.replace('"0644"', "0644"))
    refused = desk("plan", "--hosts", HOST, "--roles", "workspaces")
    assert 'put them in quotes: MODE: "0644"' in " ".join(refused.stderr.split())
    path.write_text(before)
    desk.done("workspace.down", "--host", HOST, "--name", "values", "--force")
    desk.on("rm -rf /srv/workspaces/bob/values")


def test_down_takes_one_and_leaves_its_files(desk: Desk) -> None:
    others = {name: desk.inspect(name, ".Id") for name in ("alice-lab", "alice-box")}
    desk.well("bob-lab", "echo bobs >/workspace/notebook")
    desk.done("workspace.down", "--host", HOST, "--name", "bob-lab", "--force")
    assert "bob-lab" not in desk.entries()
    assert "bob-lab" not in desk.states()
    assert "workspace-bob-lab" not in desk.on("docker ps -a --format '{{.Names}}'")
    assert desk.on("cat /srv/workspaces/bob/bob-lab/notebook") == "bobs\n"
    assert {name: desk.inspect(name, ".Id") for name in others} == others


def test_removal_leaves_nothing_but_files(desk: Desk) -> None:
    rules = desk.on("iptables -S DOCKER-USER")
    assert "hww-" in rules
    desk.done("remove", "--hosts", HOST, "--roles", "workspaces", "--force")
    assert "hww-" not in desk.on("iptables -S DOCKER-USER")
    left = "docker ps -aq; docker network ls -q --filter label=hostwright.workspaces; docker images -q 'hostwright/*'"
    assert desk.on(left) == ""
    assert (
        desk.on("ls /var/lib/hostwright/workspaces /etc/systemd/system/hostwright-batch* 2>&1 || true").count("No such")
        == 2
    )
    assert (
        desk.on("cat /srv/workspaces/bob/bob-lab/notebook /srv/workspaces/alice/alice-lab/notebook") == "bobs\nkept\n"
    )
    assert desk.on("systemctl show -p NeedDaemonReload docker").strip() == "NeedDaemonReload=no"


def test_a_host_with_the_role_and_no_workspace_yet_is_in_order(desk: Desk) -> None:
    """As on every user's first host: no check is not a failure."""
    path = desk.inventory / "workspaces.yml"
    text = yaml.safe_load(path.read_text())
    text["all"]["hosts"][HOST]["workspaces_containers"] = {}
    path.write_text(yaml.safe_dump(text))
    desk.provision()
    (verified,) = desk.json("verify", "--hosts", HOST, "--roles", "workspaces")["hosts"]
    assert [check["check"] for check in verified["checks"] if not (check["passed"] and check["checked"])] == []
