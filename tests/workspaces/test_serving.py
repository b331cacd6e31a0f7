"""Models served on a real host with a real Docker, over the command line, with TensorFlow 2.9.0 behind the answers.

What answers HTTP is the lab's stand-in for TensorFlow Serving (`lab.serving`), as its image cannot be had here; what it
must answer is written in `tests/fixtures/serving/contract.json`, each with the file of TensorFlow Serving 2.9.0 that
says so. The tests come one after the other: each finds `half` with its versions 1 and 2, and 1 as the live one.
"""

from __future__ import annotations

import json
import random
import shutil
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lab import fleet, images
from lab.config import HostOptions
from lab.hardware import T4, V100, Hardware
from lab.records import find_machine
from tests.lab.conftest import FrontDoor, on
from tests.lab.ownlab import own_lab
from tests.places import PROJECT
from tests.workspaces.contract import differs
from tests.workspaces.served import CLIENTS, HOST, ROLES, Served, made

CONTRACT = json.loads((PROJECT / "tests/fixtures/serving/contract.json").read_text())
FIRST, SECOND = '200 {"predictions":[3.0]}', '200 {"predictions":[4.0]}'
TWO_CARDS = HostOptions(profile="small", hardware=Hardware(cards=(T4, V100)))


@pytest.fixture(scope="module")
def host() -> Iterator[Served]:
    """A host with Docker, two cards and the image, on which nothing is served."""
    with own_lab("models") as lab:
        fleet.supply(lab, TWO_CARDS)
        fleet.up(lab, [HOST], options=TWO_CARDS)
        door, machine = FrontDoor(lab), find_machine(lab, HOST)
        variables = lab.inventory.parent / "host_vars" / f"{HOST}.yml"
        variables.parent.mkdir(exist_ok=True)
        variables.write_text(json.dumps({"hostwright_roles": ROLES}))
        (lab.inventory.parent / "workspaces.yml").write_text(
            json.dumps({"all": {"vars": {"workspaces_users": {"alice": {"uid": 2001}}}, "hosts": {HOST: {}}}})
        )
        for words in (("mirror", "--stack", "lab"), ("provision", "--hosts", HOST)):
            done = door(*words)
            assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        images.load(machine, images.SERVING)
        on(machine, f"docker tag {images.SERVING.tag} {images.SERVING.tag}-gpu")
        yield Served(lab, door, *made(lab, machine))


@pytest.fixture(scope="module")
def first(host: Served) -> Served:
    """``half`` with its first version, brought by one command."""
    host.done("serve.up", "--model", str(host.models / "half" / "1"), "--host", HOST)
    return host


@pytest.fixture(scope="module")
def two(first: Served) -> Served:
    """``half`` with two versions, of which the first one is live."""
    status, text = first.up("half/2")
    assert status == 0, text[-3000:]
    return first


@pytest.fixture
def served(two: Served) -> Iterator[Served]:
    """The same, whatever the test before did; each test leaves it so."""
    yield two
    assert (two.live(), sorted(two.entries()["half"]["versions"])) == ("1", [1, 2])


# --- up


def singles(value: object) -> object:
    """Numbers as TensorFlow holds them, in 32 bits: JSON writes as many digits as tell them apart."""
    if isinstance(value, float):
        return struct.unpack("f", struct.pack("f", value))[0]
    if isinstance(value, list):
        return [singles(one) for one in value]
    return {key: singles(one) for key, one in value.items()} if isinstance(value, dict) else value


def test_one_command_serves_what_tensorflow_computes(first: Served) -> None:
    assert first.expected["tensorflow"] == "2.9.0"
    for signature, row in first.expected["versions"]["1"].items():
        request = {"signature_name": signature, "inputs": row["inputs"]}
        status, answer = first.ask("/v1/models/half/labels/live:predict", request)
        (outputs,) = [row["outputs"]] if len(row["outputs"]) > 1 else row["outputs"].values()
        if signature == "many":  # base64: the contract has it
            assert answer["outputs"].pop("text_bytes") != outputs.pop("text_bytes")
        assert (status, singles(answer["outputs"])) == (200, singles(outputs)), signature


def test_plan_verify_audit_and_list_know_it(first: Served) -> None:
    assert first.planned() == []
    done = first.invoke("verify", "--hosts", HOST, "--roles", "serving", "--json")
    rows = json.loads(done.stdout)["hosts"][0]["checks"]
    checks = {check["check"]: (check["passed"], check["checked"]) for check in rows}
    assert (done.returncode, len(checks)) == (0, 5), done.stdout
    assert set(checks.values()) == {(True, True)}
    audited = json.loads(first.invoke("audit", "--hosts", HOST, "--json").stdout)["hosts"][0]
    values = {row["name"]: row["have"] for row in audited["readings"] if row["layer"] == "serving"}
    assert (values["half versions"], values["half live"]) == ("1", "1")
    assert {layer["name"]: layer["status"] for layer in audited["layers"]}["serving"] == "desired"
    row = first.rows()["half"]
    assert (row["state"], row["live"], row["versions"]) == ("1 available", 1, "1")


def test_a_second_version_comes_beside_without_a_lost_request(first: Served) -> None:
    with first.under_load() as answers:
        status, text = first.up("half/2")
        assert status == 0, text[-3000:]
        assert "half: {user: nobody, kind: serving" in text  # the file's line is shown
    assert set(answers) == {FIRST}
    for version, expected in (("1", 3.0), ("2", 4.0)):
        asked = first.ask(f"/v1/models/half/versions/{version}:predict", {"instances": [2.0]})
        assert asked == (200, {"predictions": [expected]})
    assert first.planned() == []


# --- the contract


@pytest.mark.parametrize("half", ["known", "unseen"])
def test_rest_answers_are_those_of_tensorflow_serving(served: Served, half: str) -> None:
    cases = [case for case in CONTRACT if case["half"] == half]
    wrong = {}
    for case, (status, text) in zip(cases, served.asked(cases), strict=True):
        if problem := differs(case, status, text):
            wrong[case["name"]] = problem
    assert not wrong, f"{len(wrong)} of {len(cases)}: {json.dumps(wrong, indent=1)}"


# --- switch


def test_the_live_version_is_switched_without_a_lost_request(served: Served) -> None:
    with served.under_load() as answers:
        for version in (2, 1, 2, 1):
            status, text = served.switch(version)
            assert status == 0, text[-3000:]
            assert served.live() == str(version)
    assert set(answers) == {FIRST, SECOND}
    assert min(answers.values()) > CLIENTS
    assert served.planned() == []


def test_a_controller_that_is_killed_in_the_middle_of_a_switch_loses_no_request(served: Served) -> None:
    seed = int(time.time())
    print(f"seed {seed}")
    chance = random.Random(seed)  # noqa: S311 - printed, for a repetition
    with served.under_load() as answers:
        for version in (2, 1):
            run = served.begin("serve.switch", "--name", "half", "--version", str(version))
            served.await_(
                f"grep -q 'value: {version} ' /var/lib/hostwright/workspaces/half/models/models.config",
                "the switch has not begun",
            )
            time.sleep(chance.uniform(0, 2))  # any moment between the change and its end
            served.kill(run)
            status, text = served.provision()
            assert status == 0, text[-3000:]
            assert (served.live(), served.planned()) == (str(version), [])
    assert set(answers) == {FIRST, SECOND}


# --- what cannot be served


def test_a_model_without_its_graph_is_refused_before_a_host_is_asked(served: Served, tmp_path: Path) -> None:
    shutil.copytree(served.models / "half" / "1", tmp_path / "3")
    (tmp_path / "3" / "saved_model.pb").unlink()
    before = served.file.read_text(), served.has()
    status, text = served.up(str(tmp_path / "3"))
    assert status != 0
    assert "not a SavedModel: saved_model.pb is missing" in text
    assert (served.file.read_text(), served.has()) == before


def test_damaged_variables_never_replace_the_running_version(served: Served, tmp_path: Path) -> None:
    shutil.copytree(served.models / "half" / "1", tmp_path / "3")
    (data,) = (tmp_path / "3" / "variables").glob("variables.data-*")
    data.write_bytes(bytes(data.stat().st_size))
    with served.under_load() as answers:
        status, text = served.up(str(tmp_path / "3"))
        assert status == 1, text[-3000:]
        assert "model half: version 3 does not load: " in text
        assert "version 1 goes on serving" in text
        assert "invoke serve.down --name half --version 3" in text
        assert served.rows()["half"]["state"].startswith("1 available, 2 available")
        status, text = served.switch(3)
        assert status != 0, text
        assert served.live() == "1"
        served.done("serve.down", "--name", "half", "--version", "3")
    assert set(answers) == {FIRST}
    assert served.planned() == []


def test_a_version_that_takes_long_to_load_is_awaited_beside_the_live_one(served: Served) -> None:
    with served.under_load() as answers:
        words = ("--host", HOST, "--name", "half", "--version", "4", "--model", str(served.models / "slow" / "1"))
        run = served.begin("serve.up", *words)
        address = f"http://127.0.0.1:{served.port()}/v1/models/half/versions/4"
        served.await_(f"curl -q -s -m 5 --noproxy '*' {address} | grep -q LOADING", "it does not begin to load")
        assert served.live() == "1"
        output, _ = run.communicate(timeout=900)
        assert run.returncode == 0, output[-3000:]
        assert served.ask("/v1/models/half/versions/4:predict", {"instances": [2.0]}) == (200, {"predictions": [10.0]})
        served.done("serve.down", "--name", "half", "--version", "4")
    assert set(answers) == {FIRST}


def test_a_model_that_fails_stops_no_other(served: Served) -> None:
    before = served.file.read_text()
    entry = served.entries()["half"]
    missing = {**entry, "versions": {1: "sha256:" + "0" * 64}, "live": 1}
    document = yaml.safe_load(before)
    spaces = document["all"]["hosts"][HOST]["workspaces_containers"]
    spaces["absent"] = missing
    spaces["half"]["live"] = 2
    served.file.write_text(yaml.safe_dump(document))
    try:
        status, text = served.provision()
        assert status == 1, text[-3000:]
        assert "version 1 of absent is not on this host; install it with" in " ".join(text.split())
        assert "invoke serve.up --model DIR --name absent --version 1 " in text
        assert served.live() == "2"
    finally:
        served.file.write_text(before)
    status, text = served.provision()
    assert status == 0, text[-3000:]


# --- restarts


@pytest.mark.parametrize("what", ["docker", "the host"])
def test_it_is_served_again_after_a_restart(served: Served, what: str) -> None:
    if what == "docker":
        served.on("systemctl restart docker")
    else:
        served.reboot()
    served.answers()
    served.answers(2)
    assert served.ask("/v1/models/half/labels/live:predict", {"instances": [2.0]}) == (200, {"predictions": [3.0]})
    assert served.planned() == []


def test_a_crash_in_the_middle_of_a_change_leaves_what_was_served(served: Served) -> None:
    """As when the host goes down while a version that does not load is being loaded: its server does not start."""
    models = "/var/lib/hostwright/workspaces/half/models"
    served.on(f"""cd {models}
    mkdir half/7 && cp half/1/saved_model.pb half/7/ && cp models.config models.config.former
    sed -i 's/versions: 2 /versions: 2 versions: 7 /' models.config""")
    served.reboot()
    served.await_("docker ps -a --filter name=workspace-half --format '{{.Status}}' | grep -q Restarting", "it starts")
    status, text = served.provision()
    assert status == 0, text[-3000:]
    served.on(f"rm -r {models}/half/7")
    assert served.planned() == []


# --- GPUs


def test_a_server_gets_the_card_asked_for_and_no_other(served: Served) -> None:
    cards = [line.split("UUID: ")[1].rstrip(")") for line in served.on("nvidia-smi -L").splitlines()]
    assert len(cards) == 2
    with_card = ("workspace.up", "--host", HOST, "--user", "alice", "--name", "desk", "--gpus", "0", "--no-provision")
    served.done(*with_card, "--image", "hostwright-lab/desk:1")
    before = served.file.read_text()
    status, text = served.up("half/1", "--name", "carded", "--gpus", "0")
    assert status != 0
    assert "desk: GPU 0 is given twice: carded has it too" in text
    assert served.file.read_text() == before
    served.done("workspace.down", "--host", HOST, "--name", "desk", "--no-provision")
    status, text = served.up("half/1", "--name", "carded", "--gpus", "1")
    assert status == 0, text[-3000:]
    seen = served.on("docker exec workspace-carded nvidia-smi -L").splitlines()
    assert [cards[1] in line for line in seen] == [True]
    assert served.entries()["carded"]["image"] == f"{images.SERVING.tag}-gpu"
    assert "No devices" in served.on("docker exec workspace-half nvidia-smi -L 2>&1 || echo No devices")
    served.done("serve.down", "--name", "carded")


# --- down


def test_down_leaves_nothing(two: Served) -> None:
    port = two.port()
    two.done("serve.down", "--name", "half")
    assert two.has() == []
    assert f":{port} " not in two.on("ss -Hltn")
    assert two.entries() == {}
    assert two.planned() == []
