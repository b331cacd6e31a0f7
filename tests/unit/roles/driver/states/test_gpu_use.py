"""Who uses a GPU: what two probes tell of it, and what a reload of systemd takes away."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hostwright.common.quoting import sh_file
from hostwright.plan.model import Answer, Facts
from hostwright.standard.roles.driver.states import gpu_use
from hostwright.standard.roles.driver.states.gpu_use import BUSY_PROBES, DISPLAY, ReloadTakesGpus, users
from tests.unit.support.facts import reply_to
from tests.unit.support.hostjobs import until
from tests.unit.support.shell import ask, program, run

HOLDERS, CONTAINERS = BUSY_PROBES


def used(holders: str = "", containers: str = "") -> tuple[str, ...]:
    return users(Facts({HOLDERS: Answer(0, holders), CONTAINERS: Answer(0, containers)}))


def test_gpu_users_are_named_once_without_our_services() -> None:
    assert used() == ()
    ours = "1 nvidia-persistenced.service nvidia-persiste\n2 nvidia-dcgm.service nv-hostengine\n"
    ours += "3 nvidia-fabricmanager.service nv-fabricmanage\n4 dcgm.service nv-hostengine\n"
    assert used(ours + "4711 - python3\n") == ("python3 (4711)",)
    assert used("5 - nv-hostengine\n6 cron.service dcgm.service\n") == ("nv-hostengine (5)", "cron.service (6)")
    assert used("268 dcgm-exporter.service dcgm-exporter\n270 dcgm-exporter.service sh\n") == (
        "dcgm-exporter.service (268, 270)",
    )
    inside = "812 3f2a1b2c3d4e 812,840 ollama python3\n860 3f2a1b2c3d4f 860 - sh\n900 - 900 - my job\n910 - 910 web x\n"
    assert used("4711 - python3\n812 - python3\n840 docker.service python3\n", inside) == (
        "python3 (4711)",
        "container 3f2a1b2c3d4e (pid 812) ollama",
        "container 3f2a1b2c3d4f (pid 860)",
        "container of my job (pid 900)",
        "container web (pid 910)",
    )


@pytest.mark.parametrize(
    "line", ["812", "x 3f2a1b2c3d4e 812 - a", "812 3F2A 812 - a", "812 - ; - a", "812 - 812 ; a", "\x1b[2J"]
)
def test_a_line_that_is_no_container_is_none(line: str) -> None:
    assert used(containers=line + "\n") == ()


def test_this_machines_own_processes_are_no_containers() -> None:
    status, text = ask(CONTAINERS.script)
    assert status == 0
    own = {str(os.getpid()), str(os.getppid())}
    assert not [line for line in text.splitlines() if own & set(line.split(" ")[2].split(","))]


CGROUPS = {  # what stands in /proc/PID/cgroup, and whether it is the service
    "v2": ("0::/system.slice/nvidia-dcgm.service\n", True),
    "v1": ("12:devices:/system.slice/x\n1:name=systemd:/system.slice/nvidia-dcgm.service\n", True),
    "both": ("1:name=systemd:/system.slice/nvidia-dcgm.service\n0::/system.slice/nvidia-dcgm.service\n", True),
    "a user's unit of the same name": (
        "0::/user.slice/user-1000.slice/user@1000.service/app.slice/nvidia-dcgm.service\n", False,
    ),
    "a user's unit in a slice of that name": ("0::/user.slice/user@1000.service/system.slice/dcgm.service\n", False),
    "a group of its own below": ("0::/system.slice/nvidia-dcgm.service/payload\n", True),
    "another hierarchy": ("4:memory:/system.slice/nvidia-dcgm.service\n", False),
    "a session": ("0::/user.slice/user-1000.slice/session-3.scope\n", False),
    "another service": ("0::/system.slice/cron.service\n", False),
    "a container": ("0::/system.slice/docker-3f2a.scope\n", False),
    "a container on a host with both": (
        "1:name=systemd:/docker/3f2a\n0::/system.slice/nvidia-dcgm.service\n", False,
    ),
    "a job of Slurm's": ("4:memory:/slurm/uid_1/job_7/step_0\n1:name=systemd:/system.slice/dcgm.service\n", False),
    "nothing": ("", False),
}  # fmt: skip


@pytest.mark.parametrize(("cgroup", "ours"), CGROUPS.values(), ids=CGROUPS)
def test_a_service_is_known_by_its_control_group_and_never_by_its_name(tmp_path: Path, cgroup: str, ours: bool) -> None:
    """Whoever starts a process chooses its name, its arguments and its program."""
    (tmp_path / "4711").mkdir()
    (tmp_path / "4711" / "comm").write_text("nv-hostengine\n")
    (tmp_path / "4711" / "cgroup").write_text(cgroup)
    program(tmp_path / "bin", "find", "echo /proc/4711/fd/3")
    program(tmp_path / "bin", "id", "echo ops")
    text = HOLDERS.script.replace('"/proc/$', f'"{tmp_path}/$')
    done = run(text, path=tmp_path / "bin")
    name = "cron.service" if "cron" in cgroup else "nv-hostengine"
    told = f"{name} (4711)"
    if "user-1000" in cgroup:  # whose control group it is, systemd says
        told = "nvidia-dcgm.service of ops (4711)" if "dcgm" in cgroup else f"{told} of ops"
    assert used(done.stdout.decode()) == (() if ours else (told,))


ID = "3f2a" * 16
IN_CONTAINERS = {  # what stands in /proc/PID/cgroup, and the container that is stopped
    "v1": (f"9:pids:/docker/{ID}\n1:name=systemd:/docker/{ID}\n", f"docker/{ID}"),
    "v1 beside v2": (f"9:pids:/docker/{ID}\n0::/system.slice/containerd.service\n", f"docker/{ID}"),
    "of systemd's": (f"0::/system.slice/docker-{ID}.scope\n", f"docker/{ID}"),
    "a group of its own below": (f"0::/system.slice/docker-{ID}.scope/docker/{'0' * 64}\n", f"docker/{ID}"),
    "a parent of its own": (f"0::/batch/docker-{ID}.scope/x\n", f"docker/{ID}"),
    "podman": (f"0::/machine.slice/libpod-{ID}.scope/container\n", f"podman/{ID}"),
    "podman on v1": (f"3:cpu:/libpod_parent/libpod-{ID}\n", f"podman/{ID}"),
    "a user's": (f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope\n", "-"),
    "named by a service": (f"0::/system.slice/x.service/docker-{ID}.scope\n", "-"),
    "a unit of that name": ("0::/system.slice/docker-registry.service\n", "-"),
    "an id that is none": ("0::/system.slice/docker-$(touch ran).scope\n", "-"),
    "Kubernetes": (f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{ID}.scope\n", "-"),
}  # fmt: skip


@pytest.mark.parametrize(("cgroup", "container"), IN_CONTAINERS.values(), ids=IN_CONTAINERS)
def test_a_container_that_its_engine_stops_is_known_by_its_control_group(
    tmp_path: Path, cgroup: str, container: str
) -> None:
    (tmp_path / "cgroup").write_text(cgroup)
    functions = sh_file(gpu_use.__file__, "sh/holders.sh").replace("/proc/$1/cgroup", str(tmp_path / "cgroup"))
    assert run(functions + 'service 1; echo "$container"').stdout.decode() == f"{container}\n"


def test_a_process_of_a_users_that_holds_a_device_is_named_by_the_real_shell(tmp_path: Path) -> None:
    """A real process with the name of the service; the device is a file that is found in its place."""
    rename = "import ctypes,time;f=open(%r);ctypes.CDLL(None).prctl(15,b'nv-hostengine',0,0,0);print(flush=True);"
    device = tmp_path / "nvidia0"
    device.touch()
    command = ["/tmp/nvidia-persistenced", "-c", rename % str(device) + "time.sleep(60)"]  # noqa: S108
    with subprocess.Popen(command, executable=sys.executable, stdout=subprocess.PIPE) as liar:
        try:
            assert liar.stdout is not None
            liar.stdout.readline()
            _, text = ask(HOLDERS.script.replace("/dev/nvidia", f"{tmp_path}/nvidia"))
        finally:
            liar.kill()
    assert used(text) == (f"nv-hostengine ({liar.pid})",)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("-u", "{}/train.py", "--token", "s3cret"), "train.py"),
        (("-c", "import time; time.sleep(60)"), ""),
        (("-m", "timeit", "-n", "1", "import time; time.sleep(60)"), "timeit"),
    ],
)
def test_an_interpreter_is_named_with_what_it_runs_and_no_other_argument(
    tmp_path: Path, arguments: tuple[str, ...], name: str
) -> None:
    (tmp_path / "train.py").write_text("import time; time.sleep(60)")
    command = [sys.executable, *(word.format(tmp_path) for word in arguments)]
    functions = sh_file(gpu_use.__file__, "sh/holders.sh")
    with subprocess.Popen(command) as process:
        try:
            until(lambda: b"python" in Path(f"/proc/{process.pid}/cmdline").read_bytes(), "the program runs")
            called = run(f'{functions}called {process.pid} python3\necho "$program"').stdout.decode()
        finally:
            process.kill()
    assert called == f"python3 {name}".strip() + "\n"


def displays(tmp_path: Path) -> str:
    return ask("systemctl() { return 3; }\n" + DISPLAY.script.replace("/tmp/", f"{tmp_path}/"))[1]  # noqa: S108


@pytest.mark.parametrize(
    "content", ["1", "self", "a[$(touch ran)]", "1; touch ran", "", "-1", "9" * 40, "1\n1", "\x1b[2J"]
)
def test_a_lock_in_tmp_that_names_no_x_server_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / ".X9-lock").write_text(content.replace("self", str(os.getpid())))
    assert displays(tmp_path) == ""
    assert not Path("ran").exists()


@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "link to a file", "directory", "a terabyte", "many"])
def test_nothing_that_users_put_into_tmp_stops_a_probe(tmp_path: Path, kind: str) -> None:
    lock, other = tmp_path / ".X9-lock", tmp_path / "other"
    if kind == "pipe":
        os.mkfifo(lock)
    elif kind == "directory":
        lock.mkdir()
    elif kind == "a terabyte":
        with lock.open("wb") as file:
            file.truncate(2**40)
    elif kind == "many":
        for number in range(5000):
            os.mkfifo(tmp_path / f".X{number}-lock")
    else:
        os.mkfifo(other) if kind == "link to a pipe" else other.write_text(f"{os.getpid()}\n")
        lock.symlink_to(other)
    assert displays(tmp_path) == ""


def test_a_running_x_server_is_named(tmp_path: Path) -> None:
    server = Path(shutil.copy("/bin/sleep", tmp_path / "Xorg"))
    with subprocess.Popen([server, "60"]) as process:
        (tmp_path / ".X0-lock").write_text(f"{process.pid:>10}\n")
        found = displays(tmp_path)
        process.kill()
    assert found == f"X server {process.pid}\n"


CONTAINER = "812 3f2a1b2c3d4e 812 - python3\n"


@pytest.mark.parametrize(
    ("containers", "links", "taken"),
    [
        (CONTAINER, "device nvidia0\n", True),
        ("", "device nvidia0\n", False),
        (CONTAINER, "device nvidia0\nlink ../nvidia0\n", False),
    ],
    ids=["a container without links", "no container", "a container with links"],
)
def test_systemd_reload_takes_unlinked_devices_from_containers(containers: str, links: str, taken: bool) -> None:
    condition = ReloadTakesGpus()
    answers = {"find -H /proc": containers, "/dev/char": links}
    facts = Facts({probe: reply_to(probe, answers) for probe in condition.probes()})
    assert condition.holds(facts) == taken
