"""Workspaces, by what people and their neighbours meet: whose processes, which limits and GPUs, who may come in."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from testinfra.backend.base import CommandResult

from hostwright.standard.roles.container.running import LOCAL_DOCKER
from hostwright.standard.roles.workspaces import Workspaces
from hostwright.standard.roles.workspaces.declared.forms import bytes_of
from hostwright.standard.roles.workspaces.declared.workspace import Workspace, workspaces_of
from hostwright.standard.roles.workspaces.states.access import KEPT
from hostwright.standard.roles.workspaces.states.arguments import INSIDE
from hostwright.standard.roles.workspaces.states.facts import PREFIX
from hostwright.verify.backend import KILLED_AS_TIMED_OUT, TIMED_OUT

Run = Callable[..., CommandResult]

#: In the container, of either version of control groups: the first that is there.
LIMITS = {
    "memory": "cat /sys/fs/cgroup/memory.max || cat /sys/fs/cgroup/memory/memory.limit_in_bytes",
    "pids": "cat /sys/fs/cgroup/pids.max || cat /sys/fs/cgroup/pids/pids.max",
    "cpus": "cat /sys/fs/cgroup/cpu.max || "
    "echo $(cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us) $(cat /sys/fs/cgroup/cpu/cpu.cfs_period_us)",
}


@pytest.fixture(scope="module")
def spaces(variables: Workspaces) -> tuple[Workspace, ...]:
    """Those that shall run all the time."""
    declared = workspaces_of(variables.containers, variables.users, variables.directory, variables.ports)
    return tuple(space for space in declared if space.entry.kind != "batch")


@pytest.fixture(scope="module")
def containers(root_run: Run, spaces: tuple[Workspace, ...]) -> dict[str, dict]:
    """What Docker says of each workspace's container."""
    said = {}
    for space in spaces:
        done = root_run(f"{LOCAL_DOCKER} container inspect %s", PREFIX + space.name)
        assert done.rc == 0, f"workspace {space.name} has no container: {done.stderr.strip()}"
        (said[space.name],) = json.loads(done.stdout)
    return said


def within(root_run: Run, space: Workspace, script: str) -> CommandResult:
    bounded = f"timeout -k 5 60 {LOCAL_DOCKER} exec %s /bin/sh -c %s {KILLED_AS_TIMED_OUT}"
    done = root_run(bounded, PREFIX + space.name, script)
    assert done.rc != TIMED_OUT, f"{space.name} does not answer within 60 s: a program in it hangs"
    return done


def gpus_in(listing: str) -> list[str]:
    """What a list of GPUs gives to work with: MIG devices, and the cards that are not divided into such."""
    lines = [line.strip() for line in listing.splitlines() if line.strip()]
    gpus: list[str] = []
    for line in lines:
        if line.startswith("MIG ") and gpus and gpus[-1].startswith("GPU-"):
            gpus.pop()  # the card that it is a part of
        gpus.append(line.rpartition("UUID: ")[2].rstrip(")"))
    return gpus


def test_each_workspace_runs(containers):
    """Each workspace runs, and comes back when Docker or the host starts again."""
    for name, container in containers.items():
        state, policy = container["State"]["Status"], container["HostConfig"]["RestartPolicy"]["Name"]
        assert (state, policy) == ("running", "unless-stopped"), f"{name} is {state}, restart policy {policy}"


def test_its_processes_are_its_users(root_run, spaces):
    """Its files are its user's alone, and its processes have that user's ids and no further rights."""
    for space in spaces:
        done = root_run("stat -c %s %s", "%u:%g %a", space.directory)
        owner, _, mode = done.stdout.strip().partition(" ")
        assert mode == "700", f"{space.directory} is {done.stdout.strip() or done.stderr.strip()}"
        if space.entry.kind == "ssh":  # sshd itself is root in the container, without rights on the host
            continue
        status = within(root_run, space, "cat /proc/1/status").stdout
        lines = {line.partition(":")[0]: line.partition(":")[2].split() for line in status.splitlines()}
        assert lines.get("Uid", [""])[0] == owner.partition(":")[0], f"{space.name} runs as {lines.get('Uid')}"
        rights = (lines.get("CapEff"), lines.get("CapBnd"), lines.get("NoNewPrivs"))
        assert rights == (["0" * 16], ["0" * 16], ["1"]), f"{space.name} has rights: {rights}"


def test_its_limits_are_in_force(root_run, spaces):
    """Memory, CPUs and processes are limited by the kernel as the inventory says, not only asked for."""
    for space in spaces:
        entry = space.entry
        wanted = {"pids": str(entry.pids)}
        if entry.memory:
            wanted["memory"] = str(bytes_of(entry.memory))
        for what, number in wanted.items():
            done = within(root_run, space, f"{{ {LIMITS[what]}; }} 2>/dev/null")
            assert done.stdout.strip() == number, f"{space.name}: {what} is {done.stdout.strip() or 'not limited'}"
        if entry.cpus:
            quota, _, period = within(root_run, space, f"{{ {LIMITS['cpus']}; }} 2>/dev/null").stdout.partition(" ")
            assert quota.strip().isdigit(), f"{space.name}: CPUs are not limited ({quota.strip() or 'no answer'})"
            assert abs(int(quota) / int(period) - entry.cpus) < 0.01, f"{space.name}: {quota}/{period} CPUs"


def test_it_has_its_gpus_and_no_other(root_run, bounded_run, spaces, containers):
    """A workspace sees the GPUs that it was given, by UUID, and none of others."""
    bounded_run("nvidia-smi -L")  # where it hangs on the host, it hangs in each workspace
    for space in spaces:
        given = containers[space.name]["Config"]["Labels"]["hostwright.gpus"]
        done = within(root_run, space, "nvidia-smi -L || ls /dev/nvidia[0-9]*")
        seen = sorted(gpus_in(done.stdout))
        assert seen == sorted(filter(None, given.split(","))), f"{space.name} sees {seen}, was given {given or 'none'}"
        assert len(seen) == len(space.entry.gpus), f"{space.name} sees {seen}"


def test_its_port_is_on_the_loopback_alone(root_run, spaces, containers):
    """Its port is on 127.0.0.1, where only the host's own people and its proxy reach it."""
    for space in spaces:
        ports = containers[space.name]["HostConfig"]["PortBindings"]
        wanted = {f"{INSIDE[space.entry.kind]}/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(space.port)}]}
        assert ports == wanted, f"{space.name} publishes {ports}"
        listening = root_run("ss -Hltn sport = :%s", str(space.port)).stdout.split()
        assert f"127.0.0.1:{space.port}" in listening, f"{space.name} does not listen on {space.port}"


def test_other_hosts_do_not_reach_it(root_run, spaces, containers):
    """Nobody reaches its container from another host by a route to its address, as Docker before 28 allows."""
    lost = root_run(KEPT.script).stdout.splitlines()
    assert not lost, f"{'; '.join(lost)}: invoke provision --roles workspaces sets it again, and ends nobody's work"
    for space in spaces:
        network = containers[space.name]["HostConfig"]["NetworkMode"]
        bridge = root_run(f"{LOCAL_DOCKER} network inspect --format %s %s", "{{json .Options}}", network).stdout
        name = json.loads(bridge or "{}").get("com.docker.network.bridge.name", "")
        assert name.startswith("hww-"), f"{space.name} is in {network} on the bridge {name or 'that Docker named'}"


def test_jupyter_asks_for_its_token(root_run, spaces):
    """Jupyter answers with its token, and with nothing else; only its user may read the token."""
    for space in spaces:
        if space.entry.kind != "jupyter":
            continue
        mode = root_run("stat -c %s %s", "%a", f"{space.state}/token").stdout.strip()
        assert mode == "600", f"the token of {space.name} has the mode {mode}"
        token = root_run("cat %s", f"{space.state}/token").stdout.strip()
        address = f"http://127.0.0.1:{space.port}{space.path}api/contents"
        ask = "curl -q -s -o /dev/null -m 20 --noproxy '*' -w %s -H %s %s"
        with_token = root_run(ask, "%{http_code}", f"Authorization: token {token}", address).stdout
        without = root_run(ask, "%{http_code}", "Accept: */*", address).stdout
        assert (with_token, without) == ("200", "403"), f"{space.name} answers {with_token} with, {without} without it"
        inspected = root_run(f"{LOCAL_DOCKER} container inspect %s", PREFIX + space.name).stdout
        assert token not in inspected, f"the token of {space.name} stands in its container's settings"
