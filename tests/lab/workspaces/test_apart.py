"""Two users on one host: access to the other's files, processes, ports and tokens fails, and the owner's works.

The attempts run inside with real programs. Each has a control that shows that it could succeed.
"""

from __future__ import annotations

import pytest

from lab.machine import exec_in
from lab.records import find_machine
from tests.lab.workspaces.conftest import Made
from tests.lab.workspaces.desk import HOST, UIDS, Desk, by_uuid

#: Connects to all ADDRESS:PORT in parallel, because dropped packets take long, and prints those that accept.
CONNECT = """
import concurrent.futures, socket, sys
def answers(where):
    try:
        socket.create_connection(where.rsplit(":", 1), 3).close()
    except OSError:
        return False
    return True
with concurrent.futures.ThreadPoolExecutor(len(sys.argv)) as pool:
    print(*(where for where, answer in zip(sys.argv[1:], pool.map(answers, sys.argv[1:])) if answer))
"""
SECRET = "alice's own"


@pytest.fixture(scope="module")
def busy(made: Made) -> Desk:
    """alice has a file, a recognizable process, and a server on all addresses of her container."""
    desk = made.desk
    desk.well("alice-lab", f'echo "{SECRET}" >/workspace/secret; chmod 644 /workspace/secret')
    desk.on(
        "docker exec -d workspace-alice-lab sh -c 'exec sleep 918273'; "
        "docker exec -d workspace-alice-lab python3 -m http.server 5000 --directory /workspace"
    )
    desk.await_(f"curl -q -s -f --noproxy '*' {desk.address('alice-lab')}:5000/secret", "alice's server is not up")
    return desk


# --- files


def test_files_of_another_are_not_in_a_workspace(busy: Desk) -> None:
    assert busy.well("alice-lab", "cat /workspace/secret").strip() == SECRET
    search = "find / -xdev -name secret 2>/dev/null; ls /srv /var/lib/hostwright /workspace/.. 2>/dev/null"
    assert "secret" not in busy.inside("bob-lab", search).stdout
    assert busy.inside("bob-lab", "cat /srv/workspaces/alice/alice-lab/secret").returncode != 0
    assert "secret" in busy.well("alice-lab", "find / -xdev -name secret 2>/dev/null; ls /workspace")
    assert "secret" not in busy.well("alice-box", "ls -a /workspace")  # each workspace has separate files


def test_files_of_another_cannot_be_read_with_an_account_of_the_host(busy: Desk) -> None:
    path = "/srv/workspaces/alice/alice-lab/secret"
    assert busy.as_account("alice", f"cat {path}").stdout.strip() == SECRET
    for attempt in (f"cat {path}", "ls /srv/workspaces/alice/alice-lab", "ls /srv/workspaces/alice", f": >{path}"):
        ended = busy.as_account("bob", attempt)
        assert ended.returncode != 0, attempt
        assert "Permission denied" in ended.stderr, ended.stderr
    link = "ln -sfn /srv/workspaces/alice/alice-lab /workspace/link; cat /workspace/link/secret"
    assert busy.inside("bob-lab", link).returncode != 0


# --- processes


def test_processes_of_another_are_neither_seen_nor_reached(busy: Desk) -> None:
    seen = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"
    assert "918273" in busy.well("alice-lab", seen)
    for name in ("bob-lab", "alice-box"):
        assert "918273" not in busy.well(name, seen)
    pid = busy.on("pgrep -f -x 'sleep 918273'").strip()  # the process id on the host
    assert busy.as_account("alice", f"kill -0 {pid}").returncode == 0
    assert busy.as_account("bob", f"kill -0 {pid}").returncode != 0
    assert busy.inside("bob-lab", f"kill -0 {pid}").returncode != 0
    assert busy.as_account("bob", f"cat /proc/{pid}/environ || ls /proc/{pid}/root/").returncode != 0
    assert busy.as_account("alice", f"cat /proc/{pid}/environ").returncode == 0


def test_shared_memory_is_a_workspaces_own(busy: Desk) -> None:
    busy.well("alice-lab", "echo mine >/dev/shm/mine")
    assert busy.well("alice-lab", "cat /dev/shm/mine").strip() == "mine"
    for name in ("bob-lab", "alice-box"):
        assert "mine" not in busy.well(name, "ls /dev/shm")


# --- ports


def reached(desk: Desk, name: str, *where: str) -> list[str]:
    """Return the addresses that a program in a workspace can connect to."""
    return desk.well(name, f"python3 -c '{CONNECT}' {' '.join(where)}").split()


def test_ports_of_another_are_not_reached(busy: Desk) -> None:
    port, address, box = busy.port("alice-lab"), busy.address("alice-lab"), busy.address("alice-box")
    gateway = busy.inspect("bob-lab", "range .NetworkSettings.Networks}}{{.Gateway}}{{end")
    places = (address, "alice-lab", "workspace-alice-lab")
    hers = [f"{place}:{number}" for place in places for number in (8888, 5000)] + [f"{box}:2222"]
    published = [f"{place}:{port}" for place in ("127.0.0.1", gateway, busy.machine.address, "localhost")]
    # A port that is open to all shows that the network works.
    assert reached(busy, "bob-lab", *hers, *published, f"{gateway}:5000", f"{gateway}:22") == [f"{gateway}:22"]
    own = [f"{address}:8888", f"{address}:5000", "127.0.0.1:5000", "alice-lab:8888"]
    assert reached(busy, "alice-lab", *own) == own
    for place, number in (("127.0.0.1", port), (address, 8888), (address, 5000), (box, 2222)):
        busy.on(f"timeout 60 bash -c ': </dev/tcp/{place}/{number}'")


def test_two_workspaces_of_one_person_do_not_reach_each_other(busy: Desk) -> None:
    address = busy.address("alice-lab")
    assert reached(busy, "alice-box", f"{address}:5000", f"{address}:8888", "127.0.0.1:2222") == ["127.0.0.1:2222"]


def test_ports_are_not_reached_from_another_host(busy: Desk) -> None:
    """Neither at the host's address nor by a route to the container, which Docker before 28 forwards."""
    neighbour, host = find_machine(busy.lab, "gpu01"), busy.machine
    address, port = busy.address("alice-lab"), busy.port("alice-lab")
    ask = "curl -q -s -o /dev/null -m 3 --noproxy '*' -w '%{http_code}' http://"

    def answer(where: str) -> str:
        return exec_in(neighbour, ["sh", "-c", f"{ask}{where}"]).stdout

    route = f"{address}/32 via {host.address}"
    exec_in(neighbour, ["sh", "-c", f"ip route replace {route}"])
    try:
        assert answer(f"{host.address}:{port}/alice/alice-lab/api") == "000"
        assert answer(f"{address}:8888/alice/alice-lab/api") == "000"
        assert answer(f"{address}:5000/secret") == "000"
    finally:
        exec_in(neighbour, ["ip", "route", "del", *route.split()])
    assert busy.on(f"{ask.replace('-m 3', '-m 60')}127.0.0.1:{port}/alice/alice-lab/api") == "200"
    exec_in(neighbour, ["sh", "-c", f"timeout 60 bash -c ': </dev/tcp/{host.address}/22'"]).check_returncode()


# --- tokens and Docker


def test_a_token_is_its_owners_alone(busy: Desk) -> None:
    path = "/var/lib/hostwright/workspaces/alice-lab/token"
    token, other = busy.token("alice-lab"), busy.token("bob-lab")
    assert token != other
    assert busy.well("alice-lab", "cat /run/hostwright/token").strip() == token
    assert busy.well("bob-lab", "cat /run/hostwright/token").strip() == other
    assert busy.as_account("alice", f"cat {path}").stdout.strip() == token
    assert busy.as_account("bob", f"cat {path}").returncode != 0
    assert busy.inside("bob-lab", f"cat {path}").returncode != 0
    assert [busy.answer("alice-lab", each) for each in (token, other, "")] == ["200", "403", "403"]
    assert busy.answer("bob-lab", other) == "200"


def test_docker_is_nobodys(busy: Desk) -> None:
    for name in ("alice-lab", "bob-lab", "alice-box"):
        assert busy.inside(name, "ls /run/docker.sock /var/run/docker.sock").returncode != 0
    assert "workspace-alice-lab" in busy.on("docker ps")
    for user in UIDS:
        assert busy.as_account(user, "test -S /run/docker.sock").returncode == 0
        assert busy.as_account(user, "docker ps").returncode != 0


def test_processes_have_their_persons_ids_and_no_further_right(busy: Desk) -> None:
    more = "su -c id root </dev/null || mknod /tmp/card c 195 0 || chown 0 /workspace || echo none"
    for name, user in (("alice-lab", "alice"), ("bob-lab", "bob"), ("alice-box", "alice")):
        who, uid, home, *rights = busy.well(
            name, "whoami; id -u; echo $HOME; grep -E '^(CapEff|NoNew)' /proc/self/status"
        ).split()
        assert (who, uid, home) == (user, str(UIDS[user]), "/workspace")
        assert rights == ["CapEff:", "0" * 16, "NoNewPrivs:", "1"]
        assert (
            busy.well(name, f"mkdir -p /workspace/.vscode-server && touch /workspace/.vscode-server/there; {more}")
            == "none\n"
        )
    owner = busy.on("stat -c %u:%g:%a /srv/workspaces/bob/bob-lab/.vscode-server/there").strip()
    assert owner.startswith(f"{UIDS['bob']}:{UIDS['bob']}:")


def test_a_persons_programs_start_their_box_as_the_person(busy: Desk) -> None:
    """Its PATH begins in /workspace.

    Programs there with the names of the box's start programs once ran as root, with rights to give files to root.
    """
    folder = "/srv/workspaces/alice/alice-box"
    program = (
        "#!/bin/sh\\nPATH=/usr/bin:/bin\\nid -u >>/workspace/who\\ncp /bin/true /workspace/taken; "
        'chown 0 /workspace/taken && chmod 4755 /workspace/taken\\nexec /usr/bin/%s "$@"\\n'
    )
    names = "tr sed grep cat"
    busy.well(
        "alice-box",
        f"mkdir -p /workspace/bin; chmod 777 /workspace; for name in {names}; do "
        f"printf '{program}' $name >/workspace/bin/$name; chmod 755 /workspace/bin/$name; done",
    )
    busy.on("docker restart workspace-alice-box")
    busy.await_(f"timeout 5 bash -c 'read -r line </dev/tcp/127.0.0.1/{busy.port('alice-box')}'", "the box is not up")
    assert set(busy.on(f"cat {folder}/who").split()) == {str(UIDS["alice"])}
    assert busy.on(f"find {folder} -uid 0 -o -perm /6000").strip() == ""
    for name in ("alice-lab", "bob-lab", "alice-box"):
        assert "0" not in busy.on(f"docker top workspace-{name} -eo uid,pid | awk 'NR > 1 {{ print $1 }}'").split()
    busy.well("alice-box", "rm -rf /workspace/bin /workspace/who /workspace/taken; chmod 700 /workspace")
    busy.on("docker restart workspace-alice-box")


# --- GPUs


def test_a_container_sees_its_cards_and_no_other(busy: Desk) -> None:
    cards = by_uuid(busy.on("nvidia-smi -L"))
    assert len(cards) == 3
    listed = "NVIDIA_VISIBLE_DEVICES=all nvidia-smi -L; ls /dev"  # a variable set inside changes nothing
    for name, card in (("alice-lab", 0), ("alice-box", 1), ("bob-lab", 1)):
        seen = busy.well(name, listed)
        assert by_uuid(seen) == [cards[card]], name
        assert [file for file in seen.split() if file[:6] == "nvidia" and file[6:].isdigit()] == [f"nvidia{card}"]
        assert f"NVIDIA_VISIBLE_DEVICES={cards[card]}" in busy.inspect(name, "json .Config.Env")


# --- a flushed firewall


def test_a_firewall_that_was_flushed_is_told_and_closed_again_while_work_goes_on(busy: Desk) -> None:
    """moby#12294: rules that need a restart of Docker are refused, and rules that keep others out are set."""
    neighbour, host = find_machine(busy.lab, "gpu01"), busy.machine
    address, started = busy.address("alice-lab"), busy.inspect("alice-lab", ".State.StartedAt")
    route = f"{address}/32 via {host.address}"
    ask = f"curl -q -s -o /dev/null -m 3 --noproxy '*' -w '%{{http_code}}' http://{address}:5000/secret"
    exec_in(neighbour, ["sh", "-c", f"ip route replace {route}"])
    try:
        busy.on(
            "for table in filter nat; do iptables -t $table -F; iptables -t $table -X; done; iptables -P FORWARD ACCEPT"
        )
        control = ask.replace("-m 3", "-m 60")  # no rule blocks it now
        assert exec_in(neighbour, ["sh", "-c", control]).stdout == "200"
        verified = busy("verify", "--hosts", HOST, "--roles", "container,workspaces")
        assert verified.returncode != 0
        said = " ".join(verified.stdout.split())
        assert "DOCKER-USER has no rule for hww-+" in said
        assert "containers cannot reach other hosts" in said
        audited = busy("audit", "--hosts", HOST)
        assert "other hosts" in audited.stdout
        done = busy("provision", "--hosts", HOST, "--roles", "container,workspaces")
        assert done.returncode == 1
        assert "Only a restart of Docker restores them, and the restart would end" in " ".join(
            (done.stdout + done.stderr).split()
        )
        assert exec_in(neighbour, ["sh", "-c", ask]).stdout == "000"
        assert busy.inspect("alice-lab", ".State.StartedAt") == started
        assert "918273" in busy.well("alice-lab", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    finally:
        exec_in(neighbour, ["ip", "route", "del", *route.split()])
        busy.on("iptables -P FORWARD DROP; systemctl restart docker")
    up = f"http://127.0.0.1:{busy.port('alice-lab')}/alice/alice-lab/api"
    busy.await_(f"curl -q -s -f --noproxy '*' {up}", "alice's Jupyter is not up again")
    assert busy.on("iptables -S DOCKER-USER").count("-o hww-+") == 1


# --- a missing resolver


def test_a_host_whose_list_of_name_servers_is_gone_is_told(busy: Desk) -> None:
    busy.on("mv /etc/resolv.conf /run/resolv.conf.was; ln -s /run/nowhere/resolv.conf /etc/resolv.conf")
    try:
        said = " ".join(busy("doctor", "--hosts", HOST).stdout.split())
    finally:
        busy.on("rm /etc/resolv.conf; mv /run/resolv.conf.was /etc/resolv.conf")
    assert "/etc/resolv.conf is a link to /run/nowhere/resolv.conf, which is not there" in said
    assert "/run/nowhere" not in busy("doctor", "--hosts", HOST).stdout
