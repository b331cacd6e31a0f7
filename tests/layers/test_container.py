"""Docker and the NVIDIA container toolkit, by what a user does with them: containers that ask for GPUs."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest

from hostwright.standard.roles.container.cdi import REFRESH
from hostwright.standard.roles.container.engine import DAEMON_JSON, FIREWALL, OLD_PACKAGES, without
from hostwright.standard.roles.container.failures.cdi import CDI
from hostwright.standard.roles.container.running import LOCAL_DOCKER
from hostwright.standard.roles.container.section import ContainerSection
from hostwright.standard.roles.driver.states.gpu_use import has_cards
from hostwright.verify.backend import KILLED_AS_TIMED_OUT, TIMED_OUT

#: An image of the libraries that the host's nvidia-smi and libnvidia-ml need, and of nothing of NVIDIA's: whatever a
#: container finds of the driver, the toolkit has brought. /etc/debian_version tells the toolkit where libraries go.
MAKE_IMAGE = r"""
set -eu
cd /
smi=$(command -v nvidia-smi)
nvml=$(ldconfig -p | sed -n 's/^[[:space:]]*libnvidia-ml\.so\.1 .*x86-64.* => //p' | head -n 1)
needed=$(ldd "$smi" "$nvml" | grep -oE '/[^ :)]+\.so[^ :)]*' | grep -v nvidia | sed 's|^/||' | sort -u)
export DOCKER_HOST=unix:///var/run/docker.sock
tar -chf - --no-recursion etc/debian_version usr/bin usr/lib/x86_64-linux-gnu $needed | docker import - 2>&1
"""


@pytest.fixture(scope="module")
def image(root_run, variables):
    if variables.smoke_image:
        yield variables.smoke_image
        return
    made = root_run(MAKE_IMAGE)
    assert made.rc == 0, f"no image could be made for the test: {made.stdout.strip() or made.stderr.strip()}"
    name = made.stdout.split()[-1]
    yield name
    root_run(f"{LOCAL_DOCKER} rmi --force %s", name)


@pytest.fixture(scope="module")
def card(root_once, no_gpu):
    """Ends a check where the PCI bus shows no card, which is no fault of this layer; one that does not work is one."""
    if not has_cards(root_once):
        no_gpu()


@pytest.fixture(scope="module")
def info(root_run):
    done = root_run(f"{LOCAL_DOCKER} info --format %s", "{{json .}}")
    assert done.rc == 0, f"docker info fails: {done.stderr.strip() or done.stdout.strip()}"
    answer = json.loads(done.stdout)
    assert not answer.get("ServerErrors"), f"the daemon does not answer: {'; '.join(answer['ServerErrors'])}"
    return answer


def test_docker_runs_as_it_is_configured(info, variables):
    """The running Docker knows the nvidia runtime, and has the default runtime and cgroup driver that are wanted."""
    path = info["Runtimes"].get("nvidia", {}).get("path", "absent")
    assert path == "nvidia-container-runtime", f"runtimes.nvidia.path is {path}"
    wanted = "nvidia" if variables.default_runtime else info["DefaultRuntime"]
    assert info["DefaultRuntime"] == wanted, f"the default runtime is {info['DefaultRuntime']}"
    assert info["CgroupDriver"] == (variables.cgroup_driver or info["CgroupDriver"]), info["CgroupDriver"]


def test_dockers_firewall_rules_are_there(root_run):
    """Docker's own rules are in the host's firewall, so that containers have their networks."""
    lost = without(root_run(FIREWALL.script).stdout)
    assert not lost, f"{'; '.join(lost)}. A restart of Docker sets them: invoke provision --roles container"


def test_daemon_json_is_valid(root_run):
    """daemon.json is valid JSON that names the nvidia runtime, so that the next restart of Docker works."""
    text = root_run("cat %s", DAEMON_JSON).stdout
    try:
        settings = json.loads(text)
    except ValueError as error:
        pytest.fail(f"{DAEMON_JSON} is not JSON: {error}")
    assert "nvidia" in settings.get("runtimes", {}), f"{DAEMON_JSON} does not name the nvidia runtime"


def test_the_toolkit_is_at_one_version(host, stack):
    """All packages of the container toolkit are at the stack's version and held; the former ones are gone."""
    packages = stack.section(ContainerSection).toolkit.packages
    rows = host.run("dpkg-query -W -f='${Package} ${Version} ${db:Status-Abbrev}\\n' %s" + " %s" * len(OLD_PACKAGES),
                    "*nvidia-container*", *OLD_PACKAGES).stdout.splitlines()  # fmt: skip
    installed = {
        row.split()[0]: tuple(row.split()[1:]) for row in rows if len(row.split()) == 3 and row.split()[2][1] == "i"
    }
    wanted = dict.fromkeys(packages, (stack.section(ContainerSection).toolkit.version, "hi"))
    assert installed == wanted, f"{installed} instead of {wanted}"


def test_docker_is_no_snap(host):
    """Docker is not the snap, from which containers cannot reach the GPUs."""
    assert host.run("test -e /snap/docker/current").rc != 0, "the docker snap is installed"


@pytest.mark.usefixtures("card")
def test_each_device_has_a_link_in_dev_char(host):
    """Each NVIDIA device has its link in /dev/char, so that systemctl daemon-reload takes no GPU from a container."""
    devices = host.run("for d in /dev/nvidia*; do [ ! -c $d ] || echo ${d##*/}; done").stdout.split()
    targets = host.run("find /dev/char -type l -exec readlink {} +").stdout.split()
    linked = {target.rpartition("/")[2] for target in targets}
    missing = [device for device in devices if device not in linked]
    assert devices, "the driver has made no device file"
    assert not missing, f"no link to {', '.join(missing)}"


def test_cdi_specifications_are_of_this_host(root_run):
    """CDI specifications of NVIDIA's name files that are there, and the device numbers that the kernel has: else no
    container of theirs starts, or CUDA ends in it with cuInit 999 (NVIDIA/nvidia-container-toolkit#1934)."""
    lines = root_run(CDI.script).stdout.splitlines()
    wrong = [line.split(" ") for line in lines if line.startswith(("missing ", "number "))]
    again = f"systemctl restart {REFRESH} makes it anew"
    for kind, spec, name, *numbers in wrong:
        if kind == "missing":
            pytest.fail(f"{spec} names {name}, which is not there: made for another driver; {again}")
        pytest.fail(f"{spec} has {numbers[0]} as the major number of {name}, and the kernel {numbers[1]}; {again}")


def listed(root_run, image, options=""):
    """What nvidia-smi lists in a container. A container in which it hangs is removed."""
    name = f"hostwright-check-{uuid4().hex[:12]}"
    docker = f"timeout -k 5 60 {LOCAL_DOCKER}"
    done = root_run(f"{docker} run --rm --name {name} {options} %s nvidia-smi -L {KILLED_AS_TIMED_OUT}", image)
    if done.rc == TIMED_OUT:
        root_run(f"{docker} rm --force {name}")
    assert done.rc != TIMED_OUT, "nvidia-smi does not answer within 60 s in a container: it hangs there"
    return done


def ways(info):
    """The options by which a container asks for all GPUs: the third where this Docker reads CDI specifications."""
    cdi = ["--device nvidia.com/gpu=all"] if info.get("CDISpecDirs") else []
    return ["--gpus all", "--runtime nvidia --env NVIDIA_VISIBLE_DEVICES=all", *cdi]


@pytest.mark.usefixtures("card")
def test_a_container_has_the_gpus_of_the_host(bounded_run, root_run, image, info, stack):
    """A container that asks for all GPUs, in each way that works here, lists exactly those of the host."""
    own = bounded_run("nvidia-smi -L")
    assert own.rc == 0 and "GPU" in own.stdout, f"the host itself lists no GPU: {own.stdout.strip()}"
    given = stack.section(ContainerSection).toolkit.gives_cdi
    for options in ways(info) if given else ["--gpus all"]:
        inside = listed(root_run, image, options)
        assert inside.rc == 0, f"with {options}: {inside.stderr.strip() or inside.stdout.strip()}"
        assert inside.stdout == own.stdout, (
            f"in the container, with {options}: {inside.stdout.strip()!r}; on the host: {own.stdout.strip()!r}"
        )


def test_a_container_has_no_gpu_by_default(root_run, image, variables):
    """A container that does not ask for a GPU has none, unless the nvidia runtime is the default."""
    if not variables.default_runtime:
        inside = listed(root_run, image)
        assert inside.rc != 0, f"nvidia-smi works in it: {inside.stdout.strip()}"
