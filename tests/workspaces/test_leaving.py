"""bob leaves: one line in one file takes his workspaces off host, proxy and allocation, and cuts nobody else's line.

His own connections end at once, his work when nobody works any more, or by force.

The tests are one story on one host, in this order: alice keeps a websocket of hers open through all of it.
"""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread

import pytest
import websocket

from lab.machine import exec_in
from tests.workspaces.busy import BOX, HOST, IMAGE, LAB, PORT, Busy, as_settled
from tests.workspaces.tunnels import eventually

AUTHORITY = "/var/lib/hostwright/proxy/authority.crt"
HIS, HERS = "bob-lab", "carol-lab"
_ON_CARD = {"user": "bob", "gpus": [1], "share": True, "image": IMAGE}
BOBS = {
    "bob_lab": {**_ON_CARD, "kind": "jupyter"},
    "bob_run": {**_ON_CARD, "kind": "batch", "command": ["sleep", "36000"]},
}
GONE = (HIS, "bob-run", BOX)
LEFT = {"bob": {"uid": 2002, "left": True}}
FILES = "/srv/workspaces/bob"


@dataclass
class Line:
    """A terminal in a Jupyter, reached through the proxy by a websocket that trusts the host's own authority.

    A thread of its own has the connection: Jupyter ends one that answers none of its pings for a minute and a half.
    """

    opened: websocket.WebSocket
    typed: SimpleQueue[str] = field(default_factory=SimpleQueue)  #: an empty text closes it
    shown: SimpleQueue[str] = field(default_factory=SimpleQueue)  #: an empty text is its end

    def keep(self) -> None:
        """Send what is typed and take what is shown, until one of both sides ends it."""
        self.opened.settimeout(0.2)
        frame = " "
        while frame:
            while not self.typed.empty():
                if not (text := self.typed.get()):
                    return self.opened.close()
                self.opened.send(text)
            try:
                frame = self.opened.recv()
            except websocket.WebSocketTimeoutException:
                continue
            except (websocket.WebSocketConnectionClosedException, OSError):
                frame = ""
            self.shown.put(frame)
        return None

    def answers(self, word: str) -> bool:
        """Whether what is typed is answered on the same connection."""
        self.typed.put(json.dumps(["stdin", f"echo an''swer-{word}\n"]))
        shown = ""
        while f"answer-{word}" not in shown:
            frame = self.shown.get(timeout=120)
            assert frame, f"the connection ended before {word}"
            kind, *text = json.loads(frame)
            shown += "".join(map(str, text)) if kind == "stdout" else ""
        return True

    def ended(self) -> bool:
        """Whether the other side has ended the connection, or does so within a minute."""
        try:
            while self.shown.get(timeout=60):
                pass
        except Empty:
            return False
        return True


@contextmanager
def terminal(busy: Busy, name: str, authority: str) -> Iterator[Line]:
    """A new terminal in this Jupyter; ``authority`` is the file with the one that signed the proxy's certificate."""
    user = name.partition("-")[0]
    shell = json.loads(busy.api(name, "api/terminals", "-X", "POST").stdout)["name"]
    address = f"wss://{HOST}:{PORT}/{user}/{name}/terminals/websocket/{shell}"
    trust = ssl.create_default_context(cafile=authority)
    plain = socket.create_connection((str(busy.machine.address), PORT), timeout=120)
    with trust.wrap_socket(plain, server_hostname=HOST) as wrapped:
        header = [f"Authorization: token {busy.token(name)}"]
        opened = websocket.create_connection(address, timeout=120, header=header, socket=wrapped)
        line = Line(opened)
        keeper = Thread(target=line.keep)
        keeper.start()
        try:
            yield line
        finally:
            line.typed.put("")
            keeper.join()


@pytest.fixture(scope="module")
def busy(host: Busy) -> Busy:
    """The host, on which bob has a Jupyter with a card, a box and a batch run that waits for the card."""
    as_settled(host)
    host.declare(**BOBS)
    host.said("provision", "--hosts", HOST, status=0)
    host.on(f"echo mine >{FILES}/{HIS}/notes")
    return host


@pytest.fixture(scope="module")
def card(busy: Busy) -> str:
    """The UUID of the card that bob has."""
    return busy.on("nvidia-smi -L").splitlines()[1].partition("UUID: ")[2].rstrip(")")


@pytest.fixture(scope="module")
def authority(busy: Busy, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file with the host's own authority."""
    path = tmp_path_factory.mktemp("trusted") / "authority.crt"
    path.write_text(busy.on(f"cat {AUTHORITY}"))
    return str(path)


@pytest.fixture(scope="module")
def line(busy: Busy, authority: str) -> Iterator[Line]:
    """alice's terminal."""
    busy.answers()
    with terminal(busy, LAB, authority) as opened:
        yield opened


def status(busy: Busy, path: str) -> str:
    """The HTTP status with which the proxy answers a path, asked on the host."""
    words = ("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--cacert", AUTHORITY, "-m", "20")
    done = exec_in(busy.machine, [*words, "--resolve", f"{HOST}:{PORT}:127.0.0.1", f"https://{HOST}:{PORT}{path}"])
    return done.stdout.strip()


def names(busy: Busy) -> list[str]:
    """All containers of workspaces, running or not."""
    return busy.on("docker ps -a --filter label=hostwright.workspace --format '{{.Names}}' | sort").split()


def ports(busy: Busy) -> list[str]:
    """The ports on which the host listens."""
    return [row.rpartition(":")[2] for row in busy.on("ss -Hltn | awk '{ print $4 }'").split()]


@pytest.fixture(scope="module")
def there(busy: Busy, line: Line) -> dict[str, int]:
    """The ports that bob's had, when all of his answered."""
    assert line.answers("before")
    eventually(lambda: status(busy, f"/bob/{HIS}/api") == "200", 240, "bob's Jupyter behind the proxy")
    had = {name: busy.port(name) for name in (HIS, BOX)}
    assert {str(port) for port in had.values()} <= set(ports(busy))
    assert names(busy) == sorted(f"workspace-{name}" for name in (*GONE, LAB))
    return had


def networks(busy: Busy, name: str) -> str:
    """The names of the networks that a workspace's container is in."""
    names = "{{range $name, $end := .NetworkSettings.Networks}}{{$name}} {{end}}"
    return busy.on(f"docker inspect --format '{names}' workspace-{name}").strip()


def lives(busy: Busy) -> set[str]:
    """All containers with their starts, and their processes, but for those of bob's box: sshd ends a lost session."""
    return {row for row in busy.lives() if not row.startswith(f"workspace-{BOX} ")}


def test_who_works_is_named_and_not_ended(busy: Busy, there: dict[str, int], line: Line, authority: str) -> None:
    """One change in the file, while bob is at work: refused with his name, until that is forced. But he is cut off."""
    with terminal(busy, HIS, authority) as his, busy.session() as session:
        assert his.answers("mine")
        inside = f"docker top workspace-{BOX} -eo pid,args"
        eventually(lambda: "sleep 35999" in busy.on(inside), 60, "bob's session in his box")
        busy.declare(people=LEFT, **BOBS)
        before = lives(busy)
        planned = busy.said("plan", "--hosts", HOST, status=3)
        assert "refused: workspace bob-" in planned
        for name in (HIS, BOX):
            assert f"workspace {name} of bob (" in planned
        for name in GONE:
            assert f"workspace {name} of bob" in planned
        assert f"access of bob: workspaces {BOX}, {HIS}, bob-run on the network" in planned
        assert f"- location /bob/{HIS}/" in planned  # of the proxy
        said = busy.said("provision", "--hosts", HOST, status=1)
        assert "workspace bob-lab of bob (" in said
        assert before - lives(busy) == set()
        assert line.answers("beside")
        assert his.ended()
        eventually(lambda: session.poll() is not None, 120, "the end of bob's session")
    assert [networks(busy, name) for name in GONE] == ["", "", ""]
    assert {str(port) for port in there.values()}.isdisjoint(ports(busy))
    assert status(busy, f"/bob/{HIS}/api") == "404"


def test_he_stays_cut_off(busy: Busy, there: dict[str, int], line: Line) -> None:
    """Nothing is cut off again, and a container that is started again is in no network either."""
    before = lives(busy)
    assert "access of bob" not in busy.said("plan", "--hosts", HOST, status=3)
    busy.said("provision", "--hosts", HOST, status=1)
    busy.on(f"docker restart --time 5 workspace-{BOX}")
    assert networks(busy, BOX) == ""
    assert str(there[BOX]) not in ports(busy)
    assert {row for row in before if BOX not in row} - lives(busy) == set()
    assert "cut off" in busy.said("workspace.list", "--hosts", HOST, status=0)
    assert line.answers("still")


def test_who_stays_after_all_goes_on_where_he_was(
    busy: Busy, there: dict[str, int], line: Line, authority: str
) -> None:
    """The line is taken back: the same processes are reachable at the same ports."""
    before = lives(busy)
    busy.declare(**BOBS)
    planned = busy.said("plan", "--hosts", HOST, status=3)
    assert f"on it again with port {there[HIS]}" in planned
    busy.said("provision", "--hosts", HOST, status=0)
    assert before - lives(busy) == set()
    assert {str(port) for port in there.values()} <= set(ports(busy))
    eventually(lambda: status(busy, f"/bob/{HIS}/api") == "200", 240, "bob's Jupyter behind the proxy")
    with terminal(busy, HIS, authority) as his:
        assert his.answers("back")
    assert line.answers("all the same")
    busy.plan(status=0)


@pytest.fixture(scope="module")
def left(busy: Busy, line: Line, there: dict[str, int]) -> str:
    """The one change, brought to the host: what the plan said. nginx goes on with its own first process."""
    main = "systemctl show -P MainPID nginx.service"
    before = busy.on(main)
    busy.declare(people=LEFT, **BOBS)
    planned = busy.said("provision", "--hosts", HOST, "--check", "--force", status=3)
    busy.said("provision", "--hosts", HOST, "--force", status=0)
    assert busy.on(main) == before
    return planned


def test_nothing_of_his_is_left_on_host_proxy_and_allocation(busy: Busy, left: str, there: dict[str, int]) -> None:
    assert names(busy) == [f"workspace-{LAB}"]
    assert busy.on("docker network ls --format '{{.Name}}' | grep bob || true") == ""
    assert status(busy, f"/bob/{HIS}/") == "404"
    served = "/etc/nginx/conf.d/hostwright-workspaces.conf /var/lib/hostwright/proxy/*.conf"
    assert "bob" not in busy.on(f"cat {served} || true")
    assert {str(port) for port in there.values()}.isdisjoint(ports(busy))
    for name in GONE:  # token, host key, definition
        assert exec_in(busy.machine, ["test", "-e", f"/var/lib/hostwright/workspaces/{name}"]).returncode == 1
    assert "bob" not in busy.on("systemctl list-units --all --plain --no-legend 'hostwright-batch@*'")
    listed = busy.said("workspace.list", "--hosts", HOST, "--json", status=0)
    assert "bob" not in listed
    busy.plan(status=0)
    busy.said("verify", "--hosts", HOST, "--roles", "workspaces", status=0)  # a check of the proxy needs a TensorBoard


def test_his_files_are_kept_and_named(busy: Busy, left: str) -> None:
    assert f"{FILES}/{HIS}" in left
    assert busy.on(f"cat {FILES}/{HIS}/notes; stat -c %u {FILES}/{HIS}/notes").split() == ["mine", "0"]
    assert busy.on(f"stat -c '%u %a' {FILES}/{HIS}").split() == ["2002", "700"]  # nobody else reads them
    assert busy.on(f"cat {FILES}/{BOX}/notes").strip() == "kept by bob"


def test_the_neighbours_connection_was_not_cut(line: Line, left: str) -> None:
    assert line.answers("after")


def test_the_next_one_gets_his_card(busy: Busy, left: str, card: str) -> None:
    hers = {"user": "carol", "kind": "jupyter", "gpus": [1], "share": True, "image": IMAGE}
    busy.declare(people=LEFT, **BOBS, carol_lab=hers)
    busy.said("provision", "--hosts", HOST, status=0)
    assert card in busy.on(f"docker exec workspace-{HERS} nvidia-smi -L")
    eventually(lambda: status(busy, f"/carol/{HERS}/api") == "200", 240, "carol's Jupyter behind the proxy")


def test_who_comes_back_has_the_old_files(busy: Busy, left: str, there: dict[str, int], line: Line) -> None:
    busy.declare(bob_lab={**BOBS["bob_lab"], "gpus": []})
    busy.said("provision", "--hosts", HOST, status=0)
    assert busy.on(f"cat {FILES}/{HIS}/notes") == "mine\n"
    assert busy.port(HIS) == there[HIS]
    assert line.answers("again")


def test_a_restart_of_docker_brings_no_access_back(busy: Busy, there: dict[str, int], line: Line) -> None:
    """The last of the story: Docker ends everybody's connections with it."""
    assert busy.api(HIS, "api/terminals", "-X", "POST").returncode == 0
    busy.declare(people=LEFT, bob_lab={**BOBS["bob_lab"], "gpus": []})
    busy.said("provision", "--hosts", HOST, status=1)
    assert networks(busy, HIS) == ""
    busy.on("systemctl restart docker")
    ran = ["docker", "inspect", "--format", "{{.State.Running}}", f"workspace-{HIS}"]
    eventually(lambda: exec_in(busy.machine, ran).stdout.strip() == "true", 120, "bob's container to be started again")
    assert networks(busy, HIS) == ""
    assert str(there[HIS]) not in ports(busy)
    eventually(lambda: busy.api(LAB, "api/contents").returncode == 0, 240, "alice's Jupyter, which is reached again")
