"""What breaks when a workspace is made: a clear error each, nothing half-started, and the same command mends it."""

from __future__ import annotations

import pytest

from tests.workspaces.failing.bench import HOST, PEOPLE, Bench

GOOD = "user: {}, image: lab/jupyter:1"


def test_a_file_that_is_no_yaml_is_named_with_its_line_and_left_alone(bench: Bench) -> None:
    bench.file.write_text(PEOPLE + "  hosts: {ws01: [\n")
    before = bench.file.read_text(), bench.has()
    for status, text in (bench.up(), bench.provision()):
        assert status == 2, text
        assert f"{bench.file}" in text
        assert "line " in text or ":7" in text
    assert (bench.file.read_text(), bench.has()) == before
    bench.file.write_text(PEOPLE)
    assert bench.up()[0] == 0
    assert bench.containers() == {"alice-jupyter": "running"}


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ("user: alice, image: lab/jupyter:1, memry: 64g", ("memry", "memory")),
        ("user: carol, image: lab/jupyter:1", ("carol", "workspaces_users")),
        ("user: alice, image: 'lab/jupyter:latest'", ("latest", "exact tag")),
    ],
)
def test_a_wrong_definition_is_refused_before_the_host_is_asked(
    bench: Bench, entry: str, names: tuple[str, ...]
) -> None:
    bench.declare(alice_lab=entry, bob_lab=GOOD.format("bob"))
    before = bench.has()
    status, text = bench.provision()
    assert status == 2, text
    assert "alice-lab" in text or "alice_lab" in text
    assert all(name in text for name in names), text
    assert bench.has() == before == []


def test_an_image_that_is_not_there(bench: Bench) -> None:
    status, text = bench.up("alice", "lab/other:1")
    assert status == 1, text
    assert f"{HOST}: workspace alice-jupyter wants the image lab/other:1: it is not on this host" in text
    assert "images.push" in text
    assert "still declares alice-jupyter" in text and "workspace.down --host ws01 --name alice-jupyter" in text
    assert bench.has() == []
    bench.on("docker tag lab/jupyter:1 lab/other:1")
    assert bench.up("alice", "lab/other:1")[0] == 0
    assert bench.containers() == {"alice-jupyter": "running"}


def test_a_gpu_that_is_not_there(bench: Bench) -> None:
    status, text = bench.up("alice", "lab/jupyter:1", "--gpus", "7")
    assert status == 1, text
    assert "workspace alice-jupyter wants GPU 7, which the host does not have; it has 0 (GPU-" in text
    assert bench.has() == []
    assert bench.up("alice", "lab/jupyter:1", "--gpus", "0")[0] == 0


def test_a_port_that_another_program_has(bench: Bench) -> None:
    listener = "python3 -m http.server --bind 127.0.0.1 25999 >/dev/null 2>&1 & echo $! >/run/listener; sleep 1"
    with bench.broken(listener, "kill $(cat /run/listener)"):
        status, text = bench.up("alice", "lab/jupyter:1", "--port", "25999")
        assert status == 1, text
        assert "another program on the host listens on port 25999 of workspace alice-jupyter" in text
        assert "ss -ltnp" in text
        assert bench.has() == []
    assert bench.up("alice", "lab/jupyter:1", "--port", "25999")[0] == 0


PLACES = {
    # what breaks the host, what mends it, and what the reader finds in the error
    "people's files read-only": (
        "mount --bind /srv/workspaces /srv/workspaces && mount -o remount,ro,bind /srv/workspaces",
        "umount /srv/workspaces",
        ("/srv/workspaces/alice could not be made", "Read-only file system", "remount"),
    ),
    "no inode for people's files": (
        "mount -t tmpfs -o size=1m,nr_inodes=2 none /srv/workspaces && touch /srv/workspaces/last",
        "umount /srv/workspaces",
        ("/srv/workspaces/alice could not be made", "No space left on device", "df -i"),
    ),
    "no room for root's files": (
        "mount -t tmpfs -o size=4k none /var/lib/hostwright/workspaces && "
        "! head -c 1m /dev/zero >/var/lib/hostwright/workspaces/.full 2>/dev/null",
        "umount /var/lib/hostwright/workspaces",
        ("could not be written", "No space left on device", "df -h"),
    ),
    "no room for Docker": (
        "mount -t tmpfs -o size=4k none /var/lib/docker/containers && "
        "! head -c 1m /dev/zero >/var/lib/docker/containers/full 2>/dev/null",
        "umount /var/lib/docker/containers",
        ("Docker does not make its container", "no space left on device", "df -h"),
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_disk_that_is_full_or_read_only(bench: Bench, place: str) -> None:
    script, mend, says = PLACES[place]
    with bench.broken(script, mend):
        status, text = bench.up()
        assert status == 1, text
        assert f"{HOST}: workspaces, workspace alice-jupyter: " in text
        assert all(words in text for words in says), text
        assert bench.containers() == {}
        assert not [line for line in bench.has() if line.startswith("network") or "alice" in line]
    assert bench.has() == []
    status, text = bench.up()
    assert status == 0, text
    assert bench.containers() == {"alice-jupyter": "running"}


def test_a_program_that_ends_says_what_it_printed_without_its_escape_codes(bench: Bench) -> None:
    status, text = bench.up("alice", "lab/ends:1")
    assert status == 1, text
    assert "workspace alice-jupyter: it ended soon after its start" in text
    assert "PermissionError" in text and "no rights for /workspace/.jupyter" in text
    assert "\x1b" not in text
    assert "nothing of it was left running" in text
    assert bench.containers() == {}
    assert not [line for line in bench.has() if line.startswith("network")]
    assert bench.up()[0] == 0


def test_a_program_that_dies_in_a_loop_is_told_and_started_again_once_mended(bench: Bench) -> None:
    assert bench.up()[0] == 0
    bench.on("touch /srv/workspaces/alice/alice-jupyter/die; docker restart workspace-alice-jupyter")
    bench.on("until [ $(docker inspect -f '{{.RestartCount}}' workspace-alice-jupyter) -ge 2 ]; do sleep 0.2; done")
    status, text = bench.provision()
    assert status == 1, text
    assert "workspace alice-jupyter: it ended soon after its start" in text
    assert "no rights for /workspace/.jupyter" in text
    assert list(bench.containers()) == ["alice-jupyter"]
    bench.on("rm /srv/workspaces/alice/alice-jupyter/die")
    assert bench.provision()[0] == 0
    assert bench.containers() == {"alice-jupyter": "running"}


def test_a_change_that_fails_leaves_what_was_there(bench: Bench) -> None:
    assert bench.up()[0] == 0
    before = bench.has()
    token = bench.on("cat /var/lib/hostwright/workspaces/alice-jupyter/token")
    status, text = bench.up("alice", "lab/ends:1")
    assert status == 1, text
    assert "it ended soon after its start" in text and "it is as it was before" in text
    assert bench.has() == before
    assert bench.on("cat /var/lib/hostwright/workspaces/alice-jupyter/token") == token
    status, text = bench.up("alice", "lab/jupyter:1", "--cpus", "4096")
    assert status == 1, text
    assert "CPUs" in text and "(cpus: …)" in text and "it goes on as it was" in text
    assert bench.has() == before


def test_one_that_fails_stops_none_of_its_neighbours(bench: Bench) -> None:
    bench.declare(
        aa_ends="user: alice, image: lab/ends:1",
        bb_lab=GOOD.format("bob"),
        cc_image="user: alice, image: lab/nowhere:1",
        dd_lab=GOOD.format("alice"),
        ee_gpu="user: bob, image: lab/jupyter:1, gpus: [9]",
    )
    status, text = bench.provision()
    assert status == 1, text
    assert bench.containers() == {"bb-lab": "running", "dd-lab": "running"}
    assert "workspace aa-ends: it ended soon after its start" in text
    assert bench.on("ls /var/lib/hostwright/workspaces").split() == ["bb-lab", "dd-lab"]
    before = [line for line in bench.has() if line.startswith("/workspace-")]
    bench.declare(
        bb_lab=GOOD.format("bob"), cc_image="user: alice, image: lab/nowhere:1", dd_lab=GOOD.format("alice"),
        ee_gpu="user: bob, image: lab/jupyter:1, gpus: [9]",
    )  # fmt: skip
    status, text = bench.provision()
    assert status == 1, text
    assert "workspace cc-image wants the image lab/nowhere:1" in text and "workspace ee-gpu wants GPU 9" in text
    bench.declare(bb_lab=GOOD.format("bob"), cc_image=GOOD.format("alice"), dd_lab=GOOD.format("alice"))
    assert bench.provision()[0] == 0
    assert bench.containers() == dict.fromkeys(("bb-lab", "cc-image", "dd-lab"), "running")
    assert set(before) <= set(bench.has())  # the neighbours were not made anew


STOPPED = "systemctl stop docker.socket docker.service", "systemctl start docker.socket docker.service"
HANGS = "kill -STOP $(cat /run/docker.pid)", "kill -CONT $(cat /run/docker.pid)"


@pytest.mark.parametrize(("script", "mend"), [STOPPED, HANGS], ids=["stopped", "hangs"])
def test_docker_that_does_not_answer(bench: Bench, script: str, mend: str) -> None:
    assert bench.up("bob")[0] == 0
    before = bench.has()
    with bench.broken(script, mend):
        status, text = bench.up()
        assert status == 1, text
        assert "workspace alice-jupyter" in text
        assert "Docker does not answer: check systemctl status docker and journalctl -u docker on the host" in text
        listed = bench.say("workspace.list", "--hosts", HOST)[1]
        assert "Docker does not answer" in listed
    bench.on("until docker ps >/dev/null 2>&1; do sleep 0.2; done")
    bench.on(
        "until [ \"$(docker inspect -f '{{.State.Status}}' workspace-bob-jupyter)\" = running ]; do sleep 0.2; done"
    )
    assert bench.has() == before
    assert bench.up()[0] == 0
    assert bench.containers() == {"alice-jupyter": "running", "bob-jupyter": "running"}


def test_docker_that_is_stopped_in_the_middle(bench: Bench) -> None:
    runs = "docker inspect -f '{{.State.Running}}' workspace-alice-jupyter 2>/dev/null | grep -q true"
    stop = f"until {runs}; do sleep 0.1; done"
    with bench.broken(f"( {stop}; {STOPPED[0]} ) >/dev/null 2>&1 &", STOPPED[1]):
        status, text = bench.up("alice", "lab/slow:1")
        assert status == 1, text
        assert "workspace alice-jupyter: " in text
        assert "Docker stopped answering" in text or "annot connect to the Docker daemon" in text, text
        assert "systemctl status docker" in text
    status, text = bench.up("alice", "lab/slow:1")
    assert status == 0, text
    assert bench.containers() == {"alice-jupyter": "running"}
    assert [line for line in bench.has() if line.startswith("network")] == ["network hostwright-alice"]
