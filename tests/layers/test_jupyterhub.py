"""JupyterHub, by what people meet: a login page over TLS, servers that are theirs alone, secrets that stay root's."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from testinfra.backend.base import CommandResult

from hostwright.standard.roles.base.states.certificate import AUTHORITY
from hostwright.standard.roles.container.running import LOCAL_DOCKER
from hostwright.standard.roles.jupyterhub import HOME, PATH, STATE, UNIT, VERSION
from hostwright.standard.roles.proxy import STATE as PROXY
from hostwright.standard.roles.workspaces.declared.forms import bytes_of

Run = Callable[..., CommandResult]


@pytest.fixture(scope="module")
def ask(root_run: Run, target):
    """Ask nginx for a path, from the host itself: the status."""
    proxy = target.variables["proxy"]
    address, _, port = proxy.listen[0].rpartition(":")
    name = root_run("hostname").stdout.strip()
    trust = ["--cacert", f"{PROXY}/{AUTHORITY}"] if not proxy.certificate else ["--insecure"]

    def run(path: str) -> str:
        to = f"{name}:{port}:{address or '127.0.0.1'}"
        words = "curl -q -sS -o /dev/null -m 20 --noproxy '*' --resolve %s -w %s" + " %s" * (len(trust) + 1)
        done = root_run(words, to, "%{http_code}", *trust, f"https://{name}:{port}{path}")
        return done.stdout.strip() + done.stderr.strip()

    return run


@pytest.fixture(scope="module")
def servers(root_run: Run) -> dict[str, dict]:
    """What Docker says of each server that runs: none, as long as nobody has started one."""
    names = root_run(f"{LOCAL_DOCKER} ps --filter label=hostwright.hub --format %s", "{{.Names}}").stdout.split()
    return {name: json.loads(root_run(f"{LOCAL_DOCKER} container inspect %s", name).stdout)[0] for name in names}


def test_it_runs_in_its_version(root_run: Run):
    """The hub runs, starts at boot, and is the pinned version."""
    said = root_run("journalctl -q -o cat -n 3 _SYSTEMD_UNIT=%s", UNIT).stdout  # of the hub, not of its next start
    assert root_run("systemctl is-active %s", UNIT).stdout.strip() == "active", f"the last that the hub said: {said}"
    assert root_run("systemctl is-enabled %s", UNIT).stdout.strip() == "enabled"
    assert root_run("%s --version", f"{HOME}/bin/jupyterhub").stdout.strip() == VERSION


def test_its_page_answers_over_tls(ask):
    """People get the login page, with a certificate for the host's name."""
    assert ask(f"{PATH}/hub/login") == "200"


def test_nobody_comes_in_without_a_login(ask):
    """Its interface for programs tells nothing to those who have no token."""
    assert ask(f"{PATH}/hub/api/users") == "403"


def test_it_listens_to_nginx_and_containers_alone(root_run: Run, variables):
    """The hub has one address, on the network of people's containers."""
    lines = root_run("ss -Hltn sport = :%s", str(variables.port)).stdout.splitlines()
    assert [line.split()[3] for line in lines] == [f"{variables.address}:{variables.port}"]


def test_its_secrets_are_roots(root_run: Run):
    """Nobody but root reads the key of people's cookies, or the hub's database."""
    for path, mode in ((STATE, "700"), (f"{STATE}/cookie_secret", "600"), (f"{STATE}/jupyterhub.sqlite", "600")):
        assert root_run("stat -c %s %s", "%U %a", path).stdout.strip() == f"root {mode}", path


def test_servers_have_their_persons_rights_and_limits(root_run: Run, servers, variables):
    """Each server is on the loopback, has no rights, its person's own ids, and limits that the kernel keeps."""
    for name, server in servers.items():
        host, labels = server["HostConfig"], server["Config"]["Labels"]
        expected = [{"HostIp": "127.0.0.1", "HostPort": labels["hostwright.port"]}]
        assert host["PortBindings"]["8888/tcp"] == expected, name
        status = root_run("cat /proc/%s/status", str(server["State"]["Pid"])).stdout
        lines = {line.partition(":")[0]: line.partition(":")[2].split() for line in status.splitlines()}
        assert int(lines["Uid"][0]) >= 1000, f"{name} runs as {lines['Uid']}"
        assert (lines["CapBnd"], lines["NoNewPrivs"]) == (["0" * 16], ["1"]), name
        if variables.memory:
            read = "cat /sys/fs/cgroup/memory.max || cat /sys/fs/cgroup/memory/memory.limit_in_bytes"
            done = root_run(f"{LOCAL_DOCKER} exec %s /bin/sh -c %s", name, f"{{ {read}; }} 2>/dev/null")
            assert done.stdout.strip() == str(bytes_of(variables.memory)), f"{name}: memory is not limited"


def test_no_gpu_is_given_twice(root_run: Run, servers, variables):
    """No server has a GPU of another server, or of a workspace."""
    given = [uuid for server in servers.values() for uuid in server["Config"]["Labels"]["hostwright.gpus"].split(",")]
    given = [uuid for uuid in given if uuid]
    if not variables.shared:
        assert len(set(given)) == len(given), given
    label = '{{index .Config.Labels "hostwright.gpus"}}'
    ids = root_run(f"{LOCAL_DOCKER} ps -aq --filter label=hostwright.workspace").stdout.split()
    for ident in ids:
        theirs = root_run(f"{LOCAL_DOCKER} container inspect --format %s %s", label, ident).stdout.strip().split(",")
        assert not set(theirs) & set(given), f"{set(theirs) & set(given)} is a workspace's, too"
