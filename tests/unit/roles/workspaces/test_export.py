"""Export to Slurm and Kubernetes: a real shell runs the script, and the manifests are parsed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.standard.roles.workspaces.declared.entries import MOST_WORD_BYTES, WorkspaceEntry, WorkspaceUser
from hostwright.standard.roles.workspaces.declared.workspace import Workspace
from hostwright.standard.roles.workspaces.export.compose import compose, compose_runtime
from hostwright.standard.roles.workspaces.export.kubernetes import kubernetes
from hostwright.standard.roles.workspaces.export.slurm import slurm
from hostwright.standard.roles.workspaces.verbs.exporting import export
from tests.unit.roles.workspaces.spaces import AMBIGUOUS

#: srun runs its command once per task; apptainer records its arguments and its cluster variables
TOOLS = {
    "srun": """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
for ((task = 0; task < ${TASKS:-1}; task++)); do SLURM_PROCID=$task "$@"; done
""",
    "scontrol": "#!/bin/bash\nprintf '%s\\n' node1 node2 node3\n",
    "apptainer": """#!/bin/bash
printf '%s\\0' "$#" "$@" "${TF_CONFIG-}${APPTAINERENV_TZ-}" >> "$SEEN"
""",
}
LAB = WorkspaceEntry(
    user="alice",
    kind="jupyter",
    image="house/jupyter:1",
    gpus=("0", "1"),
    cpus=2.5,
    memory="64g",
    mounts=("/data:/data:ro",),
)
TRAIN = WorkspaceEntry(user="alice", kind="batch", command=("python", "train it.py", "--name='x'"))
BOX = WorkspaceEntry(user="alice", kind="ssh")


def workspace(entry: WorkspaceEntry, name: str = "alice-lab", user: WorkspaceUser | None = None) -> Workspace:
    return Workspace(name, entry, user or WorkspaceUser(uid=2001), 20001, f"/srv/workspaces/alice/{name}")


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with stand-ins for the cluster's commands."""
    folder = tmp_path_factory.mktemp("tools")
    for name, text in TOOLS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return folder


def run(script: str, tools: Path, tasks: int = 1) -> list[tuple[list[str], str]]:
    """Return apptainer's arguments in each task, from the script in a real bash as Slurm starts it."""
    seen = tools / "seen"
    seen.unlink(missing_ok=True)
    env = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(tools), "SEEN": str(seen), "TASKS": str(tasks)}
    env |= {"SLURM_JOB_NODELIST": "node[1-3]", "SLURM_JOB_ID": "123456"}
    subprocess.run(["/bin/bash"], input=script.encode(), env=env, check=True, capture_output=True, timeout=60)
    parts = iter(seen.read_bytes().decode().removesuffix("\0").split("\0"))
    return [([next(parts) for _ in range(int(count))], next(parts)) for count in parts]


def manifests(text: str) -> dict[str, dict[str, Any]]:
    return {manifest["kind"]: manifest for manifest in yaml.safe_load_all(text)}


def test_slurm_is_asked_for_what_the_workspace_has() -> None:
    asked = [line for line in slurm(workspace(LAB)).splitlines() if line.startswith("#SBATCH")]
    assert asked == [
        "#SBATCH --job-name=alice-lab",
        "#SBATCH --nodes=1",
        "#SBATCH --ntasks-per-node=1",
        "#SBATCH --gpus-per-node=2",
        "#SBATCH --cpus-per-task=3",
        "#SBATCH --mem=65536M",
        "#SBATCH --output=%x-%j.log",
    ]


def test_the_script_runs_the_workspaces_command_in_its_image_with_its_directories(tools: Path) -> None:
    [(words, tf_config)] = run(slurm(workspace(LAB)), tools)
    binds = f"{tools}/alice-lab:/workspace,/data:/data:ro"
    assert words[:6] == ["exec", "--nv", "--bind", binds, "--pwd", "/workspace"]
    assert words[6:8] == ["docker://house/jupyter:1", "jupyter"]
    assert (tools / "alice-lab").is_dir()
    assert tf_config == ""


def test_each_of_several_hosts_learns_who_the_others_are(tools: Path) -> None:
    seen = run(slurm(workspace(TRAIN, "alice-train"), hosts=3), tools, tasks=3)
    assert [words[-3:] for words, _ in seen] == [["python", "train it.py", "--name='x'"]] * 3
    workers = [f"node{number}:23456" for number in (1, 2, 3)]
    for index, (_, config) in enumerate(seen):
        assert json.loads(config) == {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), min_size=1, max_size=4))
def test_no_word_of_a_command_is_read_by_the_shell(tools: Path, words: list[str]) -> None:
    entry = WorkspaceEntry(user="alice", kind="batch", command=tuple(words))
    [(seen, _)] = run(slurm(workspace(entry)), tools)
    assert seen[-len(words) :] == words


def test_kubernetes_gets_limits_ids_and_directories() -> None:
    found = manifests(kubernetes(workspace(LAB)))
    assert set(found) == {"PersistentVolumeClaim", "Deployment", "Service"}
    pod = found["Deployment"]["spec"]["template"]["spec"]
    assert pod["enableServiceLinks"] is False
    container = pod["containers"][0]
    assert container["resources"]["limits"] == {"cpu": "2.5", "memory": "65536Mi", "nvidia.com/gpu": "2"}
    assert pod["securityContext"] == {"runAsUser": 2001, "runAsGroup": 2001, "fsGroup": 2001}
    mounted = {mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
    assert mounted == {"/workspace": False, "/data": True, "/dev/shm": False}  # noqa: S108  # the pod's own
    assert {volume["name"] for volume in pod["volumes"]} == {mount["name"] for mount in container["volumeMounts"]}
    assert found["Service"]["spec"]["ports"] == [{"name": "http", "port": 8888, "targetPort": 8888}]


def test_a_batch_run_is_a_job_that_is_not_repeated() -> None:
    job = manifests(kubernetes(workspace(TRAIN)))["Job"]["spec"]
    assert job["backoffLimit"] == 0
    assert job["template"]["spec"]["restartPolicy"] == "Never"
    assert job["template"]["spec"]["containers"][0]["command"] == ["python", "train it.py", "--name='x'"]


@pytest.mark.parametrize("storage", ["50Gi", "50G", "500Mi", "2T"])
def test_a_claim_has_the_size_that_was_asked_for(storage: str) -> None:
    claim = manifests(kubernetes(workspace(LAB), storage=storage))["PersistentVolumeClaim"]["spec"]
    assert claim["resources"]["requests"] == {"storage": storage}


@pytest.mark.parametrize("storage", ["50g", "50GB", "50", "50m", "0Gi", "-1Gi", "50Gi\n", "garbage x", ""])
def test_a_claim_of_a_size_that_kubernetes_reads_otherwise_is_refused(storage: str) -> None:
    with pytest.raises(InputError, match=r"^--storage: found .*, expected a whole number with Mi, .* such as 50Gi"):
        kubernetes(workspace(LAB), storage=storage)


def test_several_hosts_are_a_tf_job_whose_files_all_of_them_write() -> None:
    found = manifests(kubernetes(workspace(TRAIN), hosts=4, storage="2Ti"))
    spec = found["TFJob"]["spec"]
    assert spec["tfReplicaSpecs"]["Worker"]["replicas"] == 4
    assert spec["runPolicy"] == {"cleanPodPolicy": "None"}, "the operator's model requires it"
    claim = found["PersistentVolumeClaim"]["spec"]
    assert claim == {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "2Ti"}}}


@pytest.mark.parametrize(("name", "begins"), [("2022-lab", "w-2022-lab-"), ("lab--", "lab-"), ("0-", "w-0-")])
def test_a_name_becomes_one_of_dns_and_nobody_elses(name: str, begins: str) -> None:
    found = manifests(kubernetes(workspace(LAB, name)))
    becomes = found["Service"]["metadata"]["name"]
    assert re.fullmatch(f"{begins}[0-9a-f]{{6}}", becomes)
    assert {each["metadata"]["labels"]["app.kubernetes.io/name"] for each in found.values()} == {becomes}
    assert found["Service"]["spec"]["selector"] == found["Deployment"]["spec"]["selector"]["matchLabels"]
    assert becomes != manifests(kubernetes(workspace(LAB, begins.strip("-"))))["Service"]["metadata"]["name"]


def test_a_name_of_dns_stays() -> None:
    assert manifests(kubernetes(workspace(LAB)))["Service"]["metadata"]["name"] == "alice-lab"


def test_two_directories_never_become_one_claim() -> None:
    mounts = ("/data/a:/a", "/data-a:/b", "/data/A:/c", "/@:/d", "/+:/e")
    entry = WorkspaceEntry(user="alice", kind="jupyter", mounts=mounts)
    pod = manifests(kubernetes(workspace(entry)))["Deployment"]["spec"]["template"]["spec"]
    names = [volume["name"] for volume in pod["volumes"]]
    assert len(set(names)) == len(names) == len(mounts) + 2
    alone = [claims(WorkspaceEntry(user="bob", kind="jupyter", mounts=(mount,)))[1] for mount in mounts]
    assert alone == names[1:-1], "a directory has one claim, whoever mounts it"
    assert all(re.fullmatch("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name) for name in names), names


def claims(entry: WorkspaceEntry, name: str = "alice-lab") -> list[str]:
    """Return the names of a pod's volumes."""
    pod = manifests(kubernetes(workspace(entry, name)))["Deployment"]["spec"]["template"]["spec"]
    return [volume["name"] for volume in pod["volumes"]]


def test_a_directory_takes_no_name_of_the_pods_own() -> None:
    entry = WorkspaceEntry(
        user="alice", kind="jupyter", mounts=("/shm:/a", "/lab/files:/b", "/data/set:/c", "/data/set:/d")
    )
    names = claims(entry, "lab")
    assert len(set(names)) == len(names) == 5
    assert "data-set" in names
    pod = manifests(kubernetes(workspace(entry, "lab")))["Deployment"]["spec"]["template"]["spec"]
    twice = [mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"] if mount["name"] == "data-set"]
    assert twice == ["/c", "/d"]


@pytest.mark.parametrize("form", [compose, compose_runtime])
def test_compose_has_the_same_files_limits_and_port(form: Any) -> None:
    service = yaml.safe_load(form(workspace(LAB)))["services"]["alice-lab"]
    assert service["volumes"] == ["/srv/workspaces/alice/alice-lab:/workspace", "/data:/data:ro"]
    assert (service["cpus"], service["mem_limit"], service["memswap_limit"]) == (2.5, "64g", "64g")
    assert (service["pids_limit"], service["shm_size"], service["user"]) == (4096, "1g", "2001:2001")
    assert service["ports"] == ["127.0.0.1:20001:8888"]
    assert (service["cap_drop"], service["restart"], service["init"]) == (["ALL"], "unless-stopped", True)


def test_shared_memory_goes_along_or_is_told() -> None:
    entry = replace(LAB, shm="2g")
    for form in (compose, compose_runtime):
        assert yaml.safe_load(form(workspace(entry)))["services"]["alice-lab"]["shm_size"] == "2g"
    pod = manifests(kubernetes(workspace(entry)))["Deployment"]["spec"]["template"]["spec"]
    assert pod["volumes"][-1] == {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "2048Mi"}}
    assert {"name": "shm", "mountPath": "/dev/shm"} in pod["containers"][0]["volumeMounts"]  # noqa: S108
    assert "# Shared memory is the node's own /dev/shm, whatever the workspace had (shm 2g)" in slurm(workspace(entry))


def test_each_form_of_compose_gives_the_cards_in_its_own_way_and_no_others() -> None:
    reserved = yaml.safe_load(compose(workspace(LAB)))["services"]["alice-lab"]
    (device,) = reserved["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "device_ids": ["0", "1"], "capabilities": ["gpu"]}
    assert reserved["environment"]["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID", "cards are counted as nvidia-smi does"
    older = yaml.safe_load(compose_runtime(workspace(LAB)))
    assert older["version"] == "2.4"
    assert older["services"]["alice-lab"]["runtime"] == "nvidia"
    assert older["services"]["alice-lab"]["environment"]["NVIDIA_VISIBLE_DEVICES"] == "0,1"
    none = yaml.safe_load(compose(workspace(TRAIN)))["services"]["alice-lab"]
    assert none["environment"]["NVIDIA_VISIBLE_DEVICES"] == "void", "an image may ask for all cards"
    assert "deploy" not in none


def test_variables_go_along(tools: Path) -> None:
    entry = replace(TRAIN, environment={"TZ": "Asia/Ho_Chi_Minh, or $(so)"})
    for form in (compose, compose_runtime):
        service = yaml.safe_load(form(workspace(entry)))["services"]["alice-lab"]
        assert service["environment"]["TZ"] == "Asia/Ho_Chi_Minh, or $$(so)"
    pod = manifests(kubernetes(workspace(entry)))["Job"]["spec"]["template"]["spec"]
    zone, output = pod["containers"][0]["env"]
    assert zone == {"name": "TZ", "value": "Asia/Ho_Chi_Minh, or $$(so)"}
    assert output == {"name": "PYTHONUNBUFFERED", "value": "1"}
    ((_, seen),) = run(slurm(workspace(entry)), tools)
    assert seen == "Asia/Ho_Chi_Minh, or $(so)"


@pytest.mark.parametrize("text", [*AMBIGUOUS, "yes", "null", "~", "", "12345", "x" * 200 + " y", "- a", "ä: #b"])
@pytest.mark.parametrize("reader", [yaml.safe_load_all, YAML(typ="safe", pure=True).load_all], ids=["1.1", "1.2"])
def test_a_value_is_the_same_text_for_every_reader(tools: Path, text: str, reader: Any) -> None:
    """kubectl and Compose parse YAML 1.2: unquoted 1e3 is a number there, and kubectl refuses it."""
    entry = replace(TRAIN, command=("echo", text), environment={"TZ": text})
    for form in (compose, compose_runtime):
        (document,) = reader(form(workspace(entry)))
        service = document["services"]["alice-lab"]
        assert (service["environment"]["TZ"], service["entrypoint"]) == (text, ["echo", text])
    *_, job = reader(kubernetes(workspace(entry)))
    (container,) = job["spec"]["template"]["spec"]["containers"]
    zone, output = container["env"]
    assert (zone, container["command"]) == ({"name": "TZ", "value": text}, ["echo", text])
    assert output == {"name": "PYTHONUNBUFFERED", "value": "1"}
    ((_, seen),) = run(slurm(workspace(entry)), tools)
    assert seen == text


def test_compose_reads_no_variable_in_a_command() -> None:
    entry = WorkspaceEntry(user="alice", kind="batch", script="echo $HOME $$\n")
    words = yaml.safe_load(compose(workspace(entry)))["services"]["alice-lab"]["entrypoint"]
    assert words == ["/bin/sh", "-c", "echo $$HOME $$$$\n", "script"]


def expanded(text: str, variables: dict[str, str]) -> str:
    """Expand a word like Kubernetes (third_party/forked/golang/expansion), where $$ is one dollar sign."""
    return re.sub(
        r"\$(\$|\(([^)]*)\))",
        lambda found: "$" if found[1] == "$" else variables.get(found[2], found[0]),
        text,
    )


@pytest.mark.parametrize("text", ["$$", "$(TZ) `id` $(id)", "$$(TZ)", "a$", "$1 ${X:-y} 100%", 'it\'s "q" * x,y=z'])
def test_kubernetes_reads_no_variable_in_a_value_or_command(text: str) -> None:
    entry = replace(TRAIN, command=("echo", text), environment={"TZ": "UTC", "V": text})
    (container,) = manifests(kubernetes(workspace(entry)))["Job"]["spec"]["template"]["spec"]["containers"]
    assert [expanded(word, {"TZ": "UTC"}) for word in container["command"]] == ["echo", text]
    assert expanded(container["env"][1]["value"], {"TZ": "UTC"}) == text


@pytest.mark.parametrize(
    ("script", "prints"),
    [
        ("echo \"[$1]\" `echo x`\nfalse\ncat <<'EOF'\n#SBATCH $HOME\nEOF\n", "[] x\n#SBATCH $HOME\n"),
        ("#!/bin/bash -u\necho ${BASH_VERSION:+bash} $-\n", "bash huB\n"),
        (f"#!{sys.executable} -I\nimport sys\nprint(sys.flags.isolated, len(sys.argv))\n", "1 1\n"),
    ],
    ids=["sh", "bash", "python"],
)
def test_a_script_runs_as_on_its_host(tools: Path, script: str, prints: str) -> None:
    """On the host, /bin/sh runs it without options, or the interpreter of its first line does."""
    entry = WorkspaceEntry(user="alice", kind="batch", script=script)
    [(seen, _)] = run(slurm(workspace(entry)), tools)
    image = next(number for number, word in enumerate(seen) if word.startswith("docker://"))
    ran = subprocess.run(seen[image + 1 :], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.stdout, ran.stderr) == (prints, "")


@pytest.mark.parametrize("form", [compose, compose_runtime, slurm, kubernetes])
def test_a_script_is_handed_over_whole_or_refused(form: Any, tools: Path) -> None:
    """argo-workflows#7586: Linux accepts no argument of 128 KiB, and an unrelated program failed."""
    longest = "echo ran\n".ljust(MOST_WORD_BYTES, "#")
    whole = workspace(WorkspaceEntry(user="alice", kind="batch", script=longest))
    text = form(whole)
    if form is slurm:
        [(seen, _)] = run(text, tools)
        assert subprocess.run(seen[-4:], capture_output=True, text=True, check=True).stdout == "ran\n"
    for script in (f"{longest}#", f"#!/bin/sh\n{'é' * 65536}", "x" * 900_000):
        with pytest.raises(InputError, match=r"script of [0-9,]+ bytes\. .* which Linux limits to 131,071 bytes"):
            form(workspace(WorkspaceEntry(user="alice", kind="batch", script=script)))


@pytest.mark.parametrize("form", [slurm, kubernetes])
def test_who_works_together_is_said_by_the_cluster_alone(form: Any) -> None:
    """trainer#1563: the operator adds its TF_CONFIG to an existing one, and Apptainer prefers the workspace's."""
    own = replace(TRAIN, environment={"TF_CONFIG": "{}"})
    assert "TF_CONFIG" in form(workspace(own))
    with pytest.raises(InputError, match="sets TF_CONFIG, which an export for several hosts sets"):
        form(workspace(own), hosts=2)


@pytest.mark.parametrize("hosts", [2, 4])
def test_a_tf_job_is_what_the_operator_takes(hosts: int) -> None:
    """trainer#1563: its validation has checks beyond the schema; a failure shows only in the operator's log."""
    name = "a" * 31
    job = manifests(kubernetes(workspace(replace(TRAIN, gpus=("0", "1")), name), hosts=hosts))["TFJob"]
    replicas = job["spec"]["tfReplicaSpecs"]
    assert set(replicas) <= {"Chief", "Master", "Worker", "PS", "Evaluator"}
    assert sum(replica["replicas"] for replica in replicas.values()) == hosts
    for kind, replica in replicas.items():
        assert replica["restartPolicy"] == "Never"
        (container,) = replica["template"]["spec"]["containers"]
        assert container["name"] == "tensorflow"
        assert container["image"] == TRAIN.image
        assert not container.get("ports"), "it adds its own, tfjob-port"
        assert container["resources"]["limits"] == {"nvidia.com/gpu": "2"}
        assert "TF_CONFIG" not in [variable["name"] for variable in container.get("env", [])]
        assert len(f"{job['metadata']['name']}-{kind.lower()}-{hosts - 1}") <= 63


@pytest.mark.parametrize("form", [compose, compose_runtime])
def test_compose_takes_no_ssh_box(form: Any) -> None:
    with pytest.raises(InputError, match="is an SSH box"):
        form(workspace(BOX))


@pytest.mark.parametrize("form", [slurm, kubernetes])
def test_what_makes_no_sense_there_is_said(form: Any) -> None:
    with pytest.raises(InputError, match="is an SSH box"):
        form(workspace(BOX))
    with pytest.raises(InputError, match="only batch workspaces run on several hosts"):
        form(workspace(LAB), hosts=2)
    with pytest.raises(InputError, match="at least one host"):
        form(workspace(TRAIN), hosts=0)


def test_the_verb_prints_what_the_inventory_declares_and_asks_no_host(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roles = "[base, driver, container, workspaces]"
    lab = "alice-lab: {user: alice, kind: jupyter, gpus: [0]}"
    (tmp_path / "hosts.yml").write_text(
        f"all:\n  hosts:\n    gpu01:\n      hostwright_roles: {roles}\n"
        "      workspaces_users: {alice: {uid: 2001}}\n"
        f"      workspaces_containers:\n        {lab}\n"
    )
    selection = Request("", inventory=(str(tmp_path),))
    assert export(selection, "alice-lab", "slurm") == 0
    assert "#SBATCH --gpus-per-node=1\n" in capsys.readouterr().out
    with pytest.raises(InputError, match="did you mean 'slurm'"):
        export(selection, "alice-lab", "slrum")
    with pytest.raises(InputError, match="did you mean 'alice-lab'"):
        export(selection, "alice-lub", "slurm")
    with pytest.raises(InputError, match="for one host"):
        export(selection, "alice-lab", "compose", nodes=2)
    hosts = tmp_path / "hosts.yml"
    hosts.write_text(hosts.read_text().replace("gpus: [0]", "gpus: [0], shm: 4g, memory: 1g"))
    assert export(selection, "alice-lab", "compose") == 0
    assert "4g of shared memory (shm), which counts against its 1g of memory" in capsys.readouterr().err
    hosts.write_text(hosts.read_text().replace("alice-lab:", "9lives:").replace("shm: 4g, ", ""))
    capsys.readouterr()
    assert export(selection, "9lives", "kubernetes") == 0
    printed = capsys.readouterr()
    assert printed.err.startswith("9lives is named w-9lives-")
    assert "is named" not in printed.out
