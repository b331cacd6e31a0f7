"""GPUs of workspaces: whole GPUs and MIG devices, from nvidia-smi's output on real hosts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from hostwright.common.errors import InputError
from hostwright.plan.model import Answer, Change, Deferred, Planned, Refusal
from hostwright.standard.roles.workspaces.declared.entries import WorkspaceEntry
from hostwright.standard.roles.workspaces.declared.images import SERVING
from hostwright.standard.roles.workspaces.export.compose import compose
from hostwright.standard.roles.workspaces.export.kubernetes import kubernetes
from hostwright.standard.roles.workspaces.export.slurm import slurm
from hostwright.standard.roles.workspaces.states.arguments import Placed, docker_arguments
from hostwright.standard.roles.workspaces.states.cards import parts_of
from tests.layers.test_workspaces import gpus_in
from tests.unit.roles.workspaces.spaces import DECLARED, IMAGE, RECORDED, answers, planned, space
from tests.unit.roles.workspaces.test_declared import read, refused

#: NVIDIA/go-dcgm issue 30, influxdata/telegraf issue 5812 (four GPUs, the first with MIG devices) and R460's names
A100 = "GPU-41255406-c9af-f94b-4ebf-9d57ad1853da"
PART = "MIG-a65afc88-50b5-5ccf-b0a8-f93b3247ae9e"
ONE = f"GPU 0: NVIDIA A100 80GB PCIe (UUID: {A100})\n  MIG 2g.20gb     Device  0: (UUID: {PART})\n"
CARDS = (
    "GPU-513536b6-7d19-9063-b049-1e69664bb298",
    "GPU-d8594bd4-0fc3-8595-e355-7c98138f3b95",
    "GPU-5e375e7e-b41f-155b-dcdc-534524c356fc",
    "GPU-69ec2344-ebac-b028-f88f-452abb3d7f11",
)
PARTS = (
    "MIG-ce861fb0-a248-58ce-a9a8-f9adbc22a66a",
    "MIG-a45882f0-9215-5733-a0c1-49286ab31cb5",
    "MIG-f00d722c-f4e1-52c9-aa31-750441ae1bfe",
    "MIG-930574a9-d43a-5d2b-95da-3e68384c8d6b",
)
FOUR = "".join(
    f"GPU {number}: NVIDIA A100-SXM4-80GB (UUID: {card})\n"
    + "".join(f"  MIG 1g.20gb     Device  {n}: (UUID: {part})\n" for n, part in enumerate(PARTS) if not number)
    for number, card in enumerate(CARDS)
)
OLD = f"MIG-{A100}/2/0"
R460 = f"GPU 0: A100-PCIE-40GB (UUID: {A100})\n  MIG 4g.20gb Device 0: (UUID: {OLD})\n"


def jupyter(*gpus: str, share: bool = False) -> WorkspaceEntry:
    return WorkspaceEntry("bob", "jupyter", gpus=gpus, share=share, image=IMAGE)


def plans(cards: tuple[str, ...], listing: Any, **entries: WorkspaceEntry) -> dict[str, Planned]:
    """Return the plans for only these workspaces on a host with these GPUs."""
    v = replace(DECLARED, containers=entries)
    rows = "\n".join(line for line in RECORDED.splitlines() if line.startswith("image ")) + "\nend\n"
    known = planned(v, {**answers(rows, cards), "nvidia-smi -L": listing})
    return {name: known[f"workspace {name}"] for name in entries}


def test_a_mig_device_is_given_by_its_uuid_and_its_neighbours_too() -> None:
    four = {f"part-{n}": jupyter(part) for n, part in enumerate(PARTS)}
    three = {f"whole-{n}": jupyter(str(n)) for n in (1, 2, 3)}
    known = plans(CARDS, FOUR, **four, **three)
    visible = {name: plan.steps[0].script for name, plan in known.items() if isinstance(plan, Change)}
    assert visible.keys() == {*four, *three}
    for name, gpu in [*zip(four, PARTS, strict=True), *zip(three, CARDS[1:], strict=True)]:
        assert f"NVIDIA_VISIBLE_DEVICES={gpu} " in visible[name].replace("'", " ")


@pytest.mark.parametrize("whole", ["0", CARDS[0]])
def test_a_card_is_promised_with_each_of_its_parts(whole: str) -> None:
    """kubernetes-sigs/dra-driver-nvidia-gpu issue 719 assigns both."""
    for first, second in ((whole, PARTS[2]), (PARTS[2], whole)):
        known = plans(CARDS, FOUR, a=jupyter(first), b=jupyter(second))
        assert isinstance(known["a"], Change)
        plan = known["b"]
        assert isinstance(plan, Refusal)
        kin = f"{PARTS[2]}, a MIG device on {CARDS[0]}," if second == whole else f"{CARDS[0]}, the GPU of {PARTS[2]},"
        assert plan.sentence.startswith(f"workspace b wants GPU {second}, but {kin} belongs to a; ")
    shared = plans(CARDS, FOUR, a=jupyter(whole, share=True), b=jupyter(PARTS[2], share=True))
    assert all(isinstance(plan, Change) for plan in shared.values())


def test_batch_runs_wait_for_the_same_gpu_alone() -> None:
    """The locks of a GPU and of a MIG device on it are independent."""
    whole = WorkspaceEntry("bob", "batch", gpus=("0",), image=IMAGE, command=("true",))
    part = replace(whole, gpus=(PARTS[0],))
    known = plans(CARDS, FOUR, a=part, b=part, c=whole)
    assert [type(plan) for plan in known.values()] == [Change, Change, Refusal]


def test_a_card_and_its_part_in_one_workspace_are_one_too_many() -> None:
    plan = plans(CARDS, FOUR, a=jupyter("0", PARTS[0]))["a"]
    assert isinstance(plan, Refusal)
    assert "one is a MIG device of the other; name each once" in plan.sentence


def test_a_mig_device_that_is_gone_is_refused_with_those_that_are_there() -> None:
    """NVIDIA/nvidia-container-toolkit issue 203: an older driver's name; gpu-operator issue 403: a reboot."""
    plan = plans((A100,), ONE, a=jupyter(OLD))["a"]
    assert isinstance(plan, Refusal)
    assert f"it has 0 ({A100}), with the MIG devices {PART} (a reset or reboot removes MIG devices" in (plan.sentence)
    plan = plans((A100,), f"GPU 0: NVIDIA A100 80GB PCIe (UUID: {A100})\n", a=jupyter(PART))["a"]
    assert isinstance(plan, Refusal)
    assert "and no MIG device" in plan.sentence
    assert isinstance(plans((A100,), R460, a=jupyter(OLD))["a"], Change)
    assert isinstance(plans((A100,), "", a=jupyter("0"))["a"], Change)  # the list is not needed


def test_without_the_list_a_mig_device_waits() -> None:
    plan = plans((A100,), Answer(124, ""), a=jupyter(PART))["a"]
    assert isinstance(plan, Deferred)
    assert plan.have == "nvidia-smi does not answer"


def test_the_lists_of_old_and_new_drivers_are_read() -> None:
    assert parts_of(ONE) == {PART: A100}
    assert parts_of(R460) == {OLD: A100}
    assert parts_of(FOUR) == dict.fromkeys(PARTS, CARDS[0])
    orphan = f"GPU 0: Unable to determine the device handle\n  MIG 1g.5gb Device 0: (UUID: {PART})\n"
    assert parts_of(orphan) == {}


def test_what_a_workspace_sees_is_its_mig_device_and_not_the_card() -> None:
    assert gpus_in(ONE) == [PART]
    assert gpus_in(FOUR) == [*PARTS, *CARDS[1:]]


@pytest.mark.parametrize(
    ("gpus", "sentence"),
    [
        ("['0:1']", "numbers of MIG devices change"),
        ("[MIG-1]", "or MIG-… of a MIG device"),
        (f"[{OLD}, {A100}]", "one is a MIG device of the other"),
        (f"[{PART}, {PART}]", "it is named twice"),
    ],
)
def test_names_of_mig_devices_that_are_refused_with_their_line(tmp_path: Path, gpus: str, sentence: str) -> None:
    said = refused(tmp_path, f"lab: {{user: alice, kind: jupyter, gpus: {gpus}}}")
    assert sentence in said
    assert said.startswith("inventory/workspaces.yml:9:")


def test_the_file_alone_shows_what_older_names_clash(tmp_path: Path) -> None:
    both = f"a: {{user: alice, kind: jupyter, gpus: [{A100}]}}\nb: {{user: bob, kind: jupyter, gpus: [%s]}}"
    sentence = f"b: GPU {OLD} is given twice: a has {A100}, and one is a MIG device of the other"
    assert sentence in refused(tmp_path, both % OLD)
    assert read(tmp_path, both % PART).containers  # only the host can map this part to its GPU


def test_a_cluster_is_not_asked_for_a_uuid() -> None:
    part = space(jupyter(PART))
    assert PART in compose(part)
    for form in (slurm, kubernetes):
        with pytest.raises(InputError, match=r"by profile"):
            form(part)


def test_who_shares_a_card_does_not_take_all_of_it_unless_told_so() -> None:
    """tensorflow/serving#249: TensorFlow allocates all GPU memory at its start, so that the next program finds none."""

    def told(entry: WorkspaceEntry) -> list[str]:
        arguments = docker_arguments(space(entry), Placed(2001, 2001, tuple(CARDS[: len(entry.gpus)]), "i", "r", "d"))
        words = [word for word in arguments if word.startswith(("TF_FORCE", "CUDA_DEVICE_ORDER"))]
        service = yaml.safe_load(compose(space(entry)))["services"]["x"] if entry.kind != "serving" else None
        if service is not None:
            exported = service["environment"].items()
            assert {f"{name}={value}" for name, value in exported if name.startswith(("TF_", "CUDA"))} == set(words)
        return words

    order, grows = "CUDA_DEVICE_ORDER=PCI_BUS_ID", "TF_FORCE_GPU_ALLOW_GROWTH=true"
    server = WorkspaceEntry("bob", "serving", gpus=("0",), image=SERVING, versions={1: "sha256:1"}, live=1)
    run = WorkspaceEntry("bob", "batch", gpus=("0",), image=IMAGE, command=("true",))
    for entry in (server, jupyter("0")):
        assert told(entry) == [order]
        assert told(replace(entry, share=True)) == [order, grows]
        assert told(replace(entry, share=True, gpus=())) == []
        own = {"TF_FORCE_GPU_ALLOW_GROWTH": "false", "CUDA_DEVICE_ORDER": "FASTEST_FIRST"}
        assert told(replace(entry, share=True, environment=own)) == [f"{name}={own[name]}" for name in own]
    assert told(replace(run, when_idle=True)) == [order, grows]
