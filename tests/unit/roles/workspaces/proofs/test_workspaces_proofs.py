"""Proofs of TensorFlow in a container, in a real shell with a ``docker`` that runs programs on this machine."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from hostwright.plan.roles.role import RoleContext
from hostwright.prove.job import ProgramEnd
from hostwright.prove.model import Program, Proof
from hostwright.prove.reading import read
from hostwright.resources.python.environments import EnvironmentVariables
from hostwright.standard.roles.cuda import Cuda, cuda
from hostwright.standard.roles.tensorflow import tensorflow
from hostwright.standard.roles.workspaces import Workspaces, workspaces
from hostwright.standard.roles.workspaces.declared.entries import WorkspaceEntry, WorkspaceUser
from lab.waiting import await_that
from tests.unit.prove.test_prove_job import alive
from tests.unit.roles.tensorflow.proofs.measuring import WITHOUT, measured
from tests.unit.roles.tensorflow.proofs.test_installed import ON_CPU
from tests.unit.roles.workspaces.proofs.docker import calls, docker
from tests.unit.support.proofs import END, TICKS, proof, run
from tests.unit.support.shell import program
from tests.unit.support.stacks import load_stack

STACK = load_stack("tensorflow-2.9")
OFFICIAL = "tensorflow/tensorflow:2.9.0-gpu-jupyter"
SITES = "registry.example:5000/ml/tensorflow:2.9.0-gpu"


def of(v: Workspaces = Workspaces()) -> dict[str, Proof]:  # noqa: B008 - frozen
    part = workspaces.part("proofs")
    assert part is not None
    ctx = RoleContext(STACK, roles=((workspaces, v), (cuda, Cuda()), (tensorflow, EnvironmentVariables())))
    return {proof.name: proof for proof in part.proofs(v, ctx)}


def with_images(*images: str, kind: str = "jupyter") -> Workspaces:
    entries = {f"w{n}": WorkspaceEntry("alice", kind, image=image) for n, image in enumerate(images)}  # type: ignore[arg-type]
    return Workspaces(users={"alice": WorkspaceUser(2001)}, containers=entries)


def image_of(v: Workspaces) -> str:
    script = of(v)["devices_in_container"].program.interpreter[2]
    return next(line.removeprefix("image=") for line in script.splitlines() if line.startswith("image="))


def in_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, *, cards: str = "", image: bool = True, **more: float
) -> ProgramEnd:
    """Return how a program ends that runs like TensorFlow's in a container."""
    fake = docker(tmp_path / "fake", image=image)
    program(fake, "nvidia-smi", f"echo '{cards}'")
    interpreter = of()["devices_in_container"].program.interpreter
    environment = (("PATH", f"{fake}:{os.environ['PATH']}"),)
    asked = Program("a.py", source, interpreter, {"n": 1}, environment=environment)
    (end,) = run(tmp_path, monkeypatch, proof("", program=asked, **more))
    return end


def created(tmp_path: Path) -> str:
    (line,) = [line for line in calls(tmp_path / "fake") if line.startswith("create ")]
    return line


def test_they_are_those_of_the_environment_by_names_of_their_own() -> None:
    names = ("devices", "dense", "convolutional", "gains", "formats", "input", "mirrored")
    assert list(of()) == [f"{name}_in_container" for name in names]
    assert {proof.key.partition(".")[0] for proof in of().values()} == {"workspaces"}
    assert not any(proof.needs_gpu or proof.hosts > 1 for proof in of().values())


def test_the_image_is_the_one_in_which_people_work_or_the_one_that_the_inventory_names() -> None:
    assert image_of(Workspaces()) == OFFICIAL
    assert (
        image_of(with_images(OFFICIAL, SITES, SITES, "registry.example/torch:1", "registry.example/torch:1")) == SITES
    )
    assert image_of(with_images("registry.example/torch:1")) == OFFICIAL
    assert image_of(with_images(SITES, kind="ssh")) == OFFICIAL
    assert image_of(replace(with_images(SITES), proved_image="lab/tf:1")) == "lab/tf:1"


def test_they_are_quick_only_where_the_image_must_be_on_the_host() -> None:
    quick = ["devices_in_container", "dense_in_container"]
    assert [name for name, proof in of(with_images(SITES)).items() if proof.level == "quick"] == quick
    assert all(proof.level == "full" for proof in of().values())
    assert all(proof.level == "full" for proof in of(replace(with_images(SITES), proved_image="lab/tf:1")).values())


def test_the_version_is_that_of_the_tag_and_cuda_the_stacks_where_tensorflow_is() -> None:
    def judged(image: str, tensorflow: str, cuda: str) -> list[tuple[str, str]]:
        rows = {**ON_CPU, ("ptxas", "cpu"): "", ("tensorflow", "cpu"): tensorflow, ("built for cuda", "cpu"): cuda}
        found = of(Workspaces(proved_image=image))["devices_in_container"].judge(measured(rows), WITHOUT)
        return [(one.measured, one.expected) for one in found]

    assert judged(OFFICIAL, "2.9.0", "11.2") == []
    assert judged(OFFICIAL, "2.9.1", "11.4") == [("2.9.1", "2.9.0"), ("11.4", "11.2")]
    assert judged("tensorflow/tensorflow:2.11.0-gpu", "2.11.0", "11.8") == []
    assert judged("lab/tf:7", "2.4.1", "11.0") == []


def test_the_program_runs_with_limits_and_without_a_gpu_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "import json, sys\nassert json.load(open(sys.argv[1])) == {'n': 1}\n" + TICKS + END
    end = in_container(tmp_path, monkeypatch, source)
    assert (end.status, end.stderr, read(end.text).ended) == (0, (), True)
    assert [one.name for one in read(end.text).measurements] == ["ticks"]
    asked = created(tmp_path)
    for words in ("--rm", "--network none", "--cap-drop ALL", "--pids-limit 4096", "--label hostwright.proof"):
        assert f" {words} " in asked
    assert " --memory " in asked and "--gpus" not in asked and "NVIDIA_VISIBLE_DEVICES=void" in asked
    assert not any(line.startswith(("pull", "run")) for line in calls(tmp_path / "fake"))
    assert not (tmp_path / "fake/c1").exists()


def test_it_has_all_cards_of_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_container(tmp_path, monkeypatch, END, cards="GPU 0: Tesla T4 (UUID: GPU-1)")
    assert " --gpus all " in created(tmp_path)


def test_an_image_that_the_host_does_not_have_is_no_pass_and_is_not_pulled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = in_container(tmp_path, monkeypatch, TICKS + END, image=False)
    printed = read(end.text)
    assert printed.not_run == f"this host has no image {OFFICIAL}, and a proof pulls none: bring it with images.push"
    assert len(printed.measurements) == 0
    assert {line.split()[0] for line in calls(tmp_path / "fake")} == {"ps", "image"}


def test_a_program_that_fails_in_the_container_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    end = in_container(tmp_path, monkeypatch, "raise SystemExit('no luck')\n")
    assert (end.status, end.stderr[-1]) == (1, "no luck")


def test_a_container_whose_proof_takes_too_long_is_removed_with_all_that_runs_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaf = (
        "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print(os.getpid(), flush=True)\ntime.sleep(600)\n"
    )
    end = in_container(tmp_path, monkeypatch, deaf, time_limit_s=10)  # enough time to start on a busy machine
    assert end.status in (124, 137)
    assert not alive(int(end.text.split()[0]))
    # by its shell, or by Docker if the program ended before
    await_that(lambda: not (tmp_path / "fake/c1").exists(), 30, lambda: "the container is still there")


def test_its_programs_end_also_where_the_shell_that_started_it_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills = (
        "import os, time\nprint(os.getpid(), flush=True)\n"
        "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
        "    try:\n        words = open(f'/proc/{pid}/cmdline').read().split(chr(0))\n"
        "    except OSError:\n        continue\n"
        f"    if words[3:4] == ['container'] and {str(tmp_path)!r} in words[4]:\n"
        "        os.kill(int(pid), 9)\ntime.sleep(600)\n"
    )
    end = in_container(tmp_path, monkeypatch, kills, time_limit_s=60)
    assert end.status == 137 and end.took_s < 50
    assert not alive(int(end.text.split()[-1]))


def test_what_an_earlier_proof_left_is_removed_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fake/c1").mkdir(parents=True)
    end = in_container(tmp_path, monkeypatch, TICKS + END)
    asked = [line.split()[0] for line in calls(tmp_path / "fake")]
    assert (end.status, asked[:3]) == (0, ["ps", "rm", "image"])
