"""From TensorFlow 2.9 to 2.15, 2.21 and PyTorch by docs/operators/migrate.md and back, on a Debian 12 with a person.

The host boots its own systemd and is reached over ssh. alice has a Jupyter with the card, and a training of her own in
the environment of TensorFlow 2.9, started from a login. The commands are those of the page, the stacks the published
ones, each with the wheels of its framework from PyPI, fetched once into the store of artifacts.

What stands in: card and driver (580.159.04 has one kind of module there, as the earlier ones), the container toolkit,
and of CUDA 11.2 the large libraries. PyTorch has all of its wheels. Of NVIDIA's, some 2 GB, TensorFlow gets the small
ones: it imports without the others, and its checks say what is missing. So it is not recorded as tried.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from lab import fleet, images, snapshots
from lab.config import HostOptions, Lab, Machine
from lab.records import find_machine, read_snapshots
from lab.stack import write_published
from lab.vendor.driver import TODAY, UPGRADE
from tests.lab import recording
from tests.lab.audit.bench import SETTLE
from tests.lab.conftest import FrontDoor, on
from tests.lab.ownlab import own_lab
from tests.lab.trees import LEFT_OUT, Tree
from tests.lab.ways import OLD, Way, typed
from tests.places import PROJECT
from tests.workspaces.tunnels import eventually

HOST, FORMER, SETTLED = "ways01", "lab-debian12", "ready"
OPTIONS = HostOptions(profile="small", distro="bookworm")
OF_FORMER = ["base", "driver", "cuda", "cudnn", "environment", "tensorflow", "container", "workspaces"]
SPACE, FILES = "alice-lab", "/srv/workspaces/alice/alice-lab"
VARIABLES = {
    "tensorflow_wheels_from": "mirror",
    "pytorch_wheels_from": "mirror",
    "workspaces_users": {"alice": None},
    "workspaces_containers": {SPACE: {"user": "alice", "kind": "jupyter", "gpus": [0], "image": images.DESK.tag}},
}
LARGE = tuple(f"nvidia-{name}" for name in ("cublas", "cudnn", "cufft", "cusolver", "cusparse", "nccl"))
#: of the checks, what needs a card that computes; without the large wheels TensorFlow 2.15 opens two of CUDA 11.2's
CARD, OF_CUDA_11 = "test_it_lists_every_card", "test_its_cuda_libraries_are_its_own"
WAYS = (  # the page has no commands of its own for 2.21
    (Way("To TensorFlow 2.15", "tensorflow-2.15", "lab-tensorflow-2.15", "tensorflow", "2.15.1"), {CARD, OF_CUDA_11}),
    (Way("To TensorFlow 2.15", "tensorflow-2.15", "lab-tensorflow-2.21", "tensorflow", "2.21.0"), {CARD}),
    (Way("To PyTorch", "pytorch-2.14", "lab-pytorch-2.14", "pytorch", "2.14.1"), {CARD}),
)
JOB = """\
import time
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
model.compile("sgd", "mse")
for step in range(10**6):
    loss = model.train_on_batch(tf.random.uniform((32, 4)), tf.zeros((32, 1)))
    print(tf.__version__, step, flush=True)
    time.sleep(1)
"""
AS_ALICE = "runuser -u alice -- env HOME=/home/alice CUDA_VISIBLE_DEVICES= TF_CPP_MIN_LOG_LEVEL=3"
START = f"cd /home/alice; setsid {AS_ALICE} /opt/tensorflow-2.9/bin/python train.py >train.log 2>/dev/null </dev/null &"
NOTEBOOK = '{"cells": [], "metadata": {"of": "alice"}, "nbformat": 4, "nbformat_minor": 5}'
ASK = f"""\
port=$(docker inspect -f '{{{{index .Config.Labels "hostwright.port"}}}}' workspace-{SPACE})
curl -q -s -m 20 --noproxy '*' -H "Authorization: token $(cat /var/lib/hostwright/workspaces/{SPACE}/token)" \
  "http://127.0.0.1:$port/alice/{SPACE}/api/contents/notes.ipynb" || true"""
STARTED = f"docker inspect -f '{{{{.Id}}}} {{{{.State.StartedAt}}}}' workspace-{SPACE}"
PACKAGES = "files of further packages"  #: which stay
#: what a comparison sorts paths by: the first that matches
AREAS = {
    "alice's log": r"/home/alice/train\.log",
    "alice's files": r"/(home/alice|srv/workspaces|var/lib/hostwright/workspaces)(/.*)?",
    "TensorFlow 2.9": r"/opt/(tensorflow-2\.9|hostwright/(venvs/tensorflow-2\.9|python3\.9))[^/]*(/.*)?",
    "CUDA and cuDNN": r"/usr/local/cuda.*|/etc/ld\.so\.conf\.d/.*|/var/cuda-repo.*",
    "the new environment": r"/opt/(hostwright/venvs/)?(tensorflow-2|pytorch-2)\.[^/]*(/.*)?",
    "delivered files": r"/var/cache/hostwright(/.*)?",
    "Hostwright's records": r"/var/lib/hostwright(/.*)?",
    "Docker's state": r"/var/lib/(docker|containerd)(/.*)?|/etc/docker/daemon\.json\.hostwright-backup",
    "driver": r"/(usr/(bin|src|lib/x86_64-linux-gnu|share/doc)|var/lib(/dkms)?)/(lib)?(nvidia|NVIDIA|cuda|nvcuvid).*|"
    r"/usr/lib/modules/.*",
}


def of_new(way: Way) -> tuple[str, ...]:
    """The roles that the host has with the new stack."""
    return "base", "driver", way.role, "container", "workspaces"


def roles_of(way: Way) -> tuple[str, str]:
    """The option of each command of a way: the new stack has no sections for some roles of the inventory."""
    return "--var", f"hostwright_roles={','.join(of_new(way))}"


def give(lab: Lab, stack: str = FORMER, roles: Sequence[str] = OF_FORMER) -> None:
    """Write the host's variables, with a stack and its roles."""
    folder = lab.inventory.parent / "host_vars"
    folder.mkdir(exist_ok=True)
    (folder / f"{HOST}.yml").write_text(yaml.safe_dump(VARIABLES | {"stack": stack, "hostwright_roles": [*roles]}))


def write(way: Way, stacks: Path) -> None:
    """Write a published stack with what the lab has for the vendor's files."""
    name = way.stack.removeprefix("lab-")
    pins = (PROJECT / f"inventory/stacks/constraints/{name}-py311.txt").read_text().splitlines(keepends=True)
    chosen = stacks / f"{way.stack}.txt"
    chosen.write_text("".join(pin for pin in pins if way.role == "pytorch" or not pin.startswith(LARGE)))
    write_published(stacks / "lab.yml", name, way.role, "3.11", chosen)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A host with TensorFlow 2.9 and alice's Jupyter, verified, and its snapshot."""
    with own_lab("realways") as opened:
        door = FrontDoor(opened)
        fleet.supply(opened, OPTIONS)
        fleet.up(opened, [HOST], options=OPTIONS)
        if SETTLED not in read_snapshots(opened):  # else of a run that was kept
            machine = find_machine(opened, HOST)
            give(opened)
            on(machine, "useradd --create-home alice")
            typed(door, ["mirror", "--stack", FORMER], status=0)
            typed(door, ["provision", "--hosts", HOST, "--roles", "base,driver,container"], status=0)
            images.load(machine, images.DESK)
            for verb in ("provision", "verify"):
                typed(door, [verb, "--hosts", HOST], status=0)
            on(machine, f"echo '{NOTEBOOK}' >{FILES}/notes.ipynb; chown alice: {FILES}/notes.ipynb")
            snapshots.freeze(machine, SETTLED)
        yield opened


@dataclass
class Journey:
    """One way on one host: what was measured and seen of it so far."""

    door: FrontDoor
    machine: Machine
    way: Way
    fails: set[str]  #: the checks that fail for want of a card or of wheels
    before: Tree
    container: str  #: alice's, and when it was started
    seconds: dict[str, float] = field(default_factory=dict)

    def type(self, verb: str, *more: str, step: str = "", status: int = 0) -> str:
        """Type the page's command of that verb, and count its seconds."""
        roles = roles_of(self.way) if verb not in ("stacks", "mirror") else ()
        began_s = time.monotonic()
        printed = typed(self.door, self.way.commands(HOST, FORMER)[verb], *roles, *more, status=status)
        self.seconds[step or verb] = time.monotonic() - began_s
        return printed

    def steps(self) -> int:
        """How many steps alice's training has made, with none left out."""
        lines = on(self.machine, "cat /home/alice/train.log").splitlines()
        assert lines == [f"2.9.0 {step}" for step in range(len(lines))], lines[-3:]
        return len(lines)

    def people_are_at_work(self) -> None:
        """The training goes on, and the notebook opens."""
        done = self.steps()
        eventually(lambda: self.steps() > done, 60, "a further step of alice's training")
        eventually(lambda: '"alice"' in on(self.machine, ASK), 60, "alice's notebook")

    def touched(self) -> set[str]:
        """The paths that were written, made or moved since the way began, also with the same bytes."""
        prune = " -o ".join(f"-path {path}" for path in LEFT_OUT)
        return set(on(self.machine, rf"find / \( {prune} \) -prune -o -cnewer /run/before -print").splitlines())

    def compared(self) -> dict[str, Counter[str]]:
        """How the host differs from what it was before the way, by areas; what belongs to none is its own area."""
        after, touched = Tree.of(self.machine), self.touched()
        owned = set(on(self.machine, "cat /var/lib/dpkg/info/*.list").splitlines())
        found: dict[str, Counter[str]] = {}
        for path in {*self.before.paths, *after.paths}:
            had, has = self.before.paths.get(path), after.paths.get(path)
            if had == has:
                kind = "made again" if path in touched and has and not has.startswith("d") else "kept"
            else:
                kind = "new" if had is None else "gone" if has is None else "changed"
            other = PACKAGES if kind == "new" and path in owned else path
            area = next((area for area, paths in AREAS.items() if re.fullmatch(paths, path)), other)
            if area in (*AREAS, PACKAGES) or kind in ("new", "gone", "changed"):
                found.setdefault(area, Counter())[kind] += 1
        found |= {f"come: {row}": Counter() for row in after.rows - self.before.rows}
        return found | {f"gone: {row}": Counter() for row in self.before.rows - after.rows}


@pytest.fixture(scope="module", params=WAYS, ids=lambda one: one[0].stack.removeprefix("lab-"))
def journey(lab: Lab, request: pytest.FixtureRequest) -> Iterator[Journey]:
    """The host as it had settled, with alice's training."""
    way, fails = request.param
    machine = find_machine(lab, HOST)
    give(lab)
    write(way, lab.stack.parent)
    snapshots.thaw(machine, read_snapshots(lab)[SETTLED])
    on(machine, SETTLE)
    on(machine, f"cat >/home/alice/train.py <<'END'\n{JOB}END\n{START}")
    eventually(lambda: "2.9.0 3" in on(machine, "cat /home/alice/train.log"), 120, "alice's training")
    eventually(lambda: '"alice"' in on(machine, ASK), 120, "alice's notebook")
    on(machine, "touch /run/before")
    with pytest.MonkeyPatch.context() as patch:
        if way.role == "tensorflow":  # without NVIDIA's wheels it is not the stack of its versions
            patch.delenv(recording.VARIABLE, raising=False)
        made = Journey(FrontDoor(lab), machine, way, fails, Tree.of(machine), on(machine, STARTED))
        yield made
    print(f"\n{way.stack}: " + ", ".join(f"{step} {seconds:.0f} s" for step, seconds in made.seconds.items()))


def test_the_plan_names_what_changes_and_whose_work_ends(journey: Journey) -> None:
    assert journey.way.stack in journey.type("stacks")
    # mirror brings the wheels of roles that the inventory names
    give(journey.door.lab, journey.way.stack, of_new(journey.way))
    journey.type("mirror")
    give(journey.door.lab)
    text = journey.type("plan", status=3)
    for part in (TODAY, journey.way.environment, "/etc/profile.d/cuda.sh", "legacy → auto", f"{SPACE} of alice"):
        assert part in text, part
    assert SPACE in journey.type("provision", step="provision, refused", status=1)
    assert on(journey.machine, STARTED) == journey.container


def test_both_frameworks_work_and_peoples_work_goes_on(journey: Journey) -> None:
    way, machine = journey.way, journey.machine
    journey.type("provision", "--force", step="provision --force")
    journey.type("plan", step="plan, with nothing to do")
    document = journey.type("verify", "--json", status=1 if journey.fails else 0)
    [verified] = json.loads(document[: document.rindex("}") + 1])["hosts"]
    failed = {check["check"] for check in verified["checks"] if check["checked"] and not check["passed"]}
    assert failed == journey.fails
    assert on(machine, "cat /sys/module/nvidia/version").strip() == TODAY
    said = [on(machine, f"{AS_ALICE} {version}").strip().partition("+")[0] for version in (OLD, way.new)]
    assert said == ["2.9.0", way.version]
    journey.people_are_at_work()
    identity, started = journey.container.split()
    assert on(machine, STARTED).split()[0] == identity
    assert on(machine, STARTED).split()[1] != started


def test_the_way_back_brings_2_9_again(journey: Journey) -> None:
    machine = journey.machine
    journey.type("rollback", "--force", step="rollback --force")
    for verb in ("plan", "verify"):
        typed(journey.door, [verb, "--hosts", HOST], status=0)
    assert on(machine, "cat /sys/module/nvidia/version").strip() == UPGRADE
    assert on(machine, f"{AS_ALICE} {OLD}").strip() == "2.9.0"
    journey.people_are_at_work()
    found = journey.compared()
    print(f"\n{journey.way.stack} and back: {found}")
    for area in ("TensorFlow 2.9", "CUDA and cuDNN", "alice's files"):
        assert set(found[area]) == {"kept"}, area
    assert set(found["driver"]) <= {"kept", "made again"}
    assert set(found["the new environment"]) == {"new"}
    others = {what for what in found if what not in (*AREAS, PACKAGES) and not what.startswith("come: ")}
    libraries = {"/etc/ld.so.cache"} if PACKAGES in found else set()
    assert others == {"/etc/docker/daemon.json", *libraries}  # the switch for CDI stays, too
