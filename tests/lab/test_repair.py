"""Each layer removed or damaged: verify fails in that layer, plan names only it, provision repairs only it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from lab.config import Machine
from tests.lab.conftest import FrontDoor, on


@dataclass(frozen=True)
class Damage:
    """A damage of a provisioned host, and the layer that must report it."""

    name: str
    layer: str
    script: str


CUDA = "/usr/local/cuda-11.2"
LIB = f"{CUDA}/targets/x86_64-linux/lib"
VENV = "/opt/tensorflow-2.9"

#: one damage per layer; `make long` runs the others, which take minutes
QUICK = {
    "package cut off while it was unpacked",
    "nvidia-smi deleted",
    "hold released",
    "library deleted",
    "loader path dropped",
    "numpy 2 installed",
    "toolkit package removed",
}
DAMAGES = (
    Damage("pin against other drivers deleted", "driver", "rm /etc/apt/preferences.d/hostwright-no-other-driver"),
    Damage(
        "package cut off while it was unpacked",
        "base",
        'cd /var/lib/dpkg; awk \'/^Package:/{p=$2} p=="gcc-10" && /^Status:/{$0="Status: install reinstreq '
        "half-installed\"} {print}' status >status.cut; mv status.cut status; dpkg-query -W -f '${Status}' gcc-10",
    ),
    Damage("build tools removed", "base", "dpkg --purge --force-depends build-essential"),
    Damage(
        "libcuda link turned",
        "driver",
        "ln -sfn libcuda.so.460.32.03 /usr/lib/x86_64-linux-gnu/libcuda.so.1",
    ),
    Damage("nvidia-smi deleted", "driver", "rm /usr/bin/nvidia-smi"),
    Damage(
        "another module version is loaded",
        "driver",
        "echo 460.32.03 >/sys/module/nvidia/version; sed -i s/470.182.03/460.32.03/ /proc/driver/nvidia/version",
    ),
    Damage("nvcc deleted", "cuda", f"rm {CUDA}/bin/nvcc"),
    Damage("toolkit link turned", "cuda", "ln -sfn /usr/local/cuda-11.4 /usr/local/cuda"),
    Damage("hold released", "cuda", "apt-mark unhold cuda-toolkit-11-2"),
    Damage("link copied to a file", "cudnn", f"cd {LIB}; cp -L libcudnn.so.8 x; mv -f x libcudnn.so.8"),
    Damage("library deleted", "cudnn", f"rm {LIB}/libcudnn_ops_infer.so.8.1.0"),
    Damage("loader path dropped", "environment", "rm /etc/ld.so.conf.d/cuda-11-2.conf; ldconfig"),
    Damage(
        "profile edited", "environment", "echo 'export LD_LIBRARY_PATH=/usr/local/cuda/lib' >>/etc/profile.d/cuda.sh"
    ),
    Damage("numpy 2 installed", "tensorflow", f"{VENV}/bin/pip install -q numpy==2.0.2"),
    Damage("interpreter link deleted", "tensorflow", f"rm {VENV}/bin/python"),
    Damage("daemon.json broken", "container", "echo '{\"runtimes\": ' >/etc/docker/daemon.json"),
    Damage("toolkit package removed", "container", "dpkg --purge --force-depends nvidia-container-toolkit"),
)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(one, id=f"{one.layer}: {one.name}", marks=() if one.name in QUICK else pytest.mark.long)
        for one in DAMAGES
    ],
)
def test_damage_is_found_and_mended_in_its_layer_alone(provisioned: FrontDoor, gpu01: Machine, damage: Damage):
    on(gpu01, damage.script)

    seen = provisioned.json("verify", "--hosts", "gpu01", "--roles", damage.layer, status=1)["hosts"][0]
    failed = [check for check in seen["checks"] if not check["passed"]]
    assert failed, f"no check of {damage.layer} failed: only the plan saw it"
    assert all(check["why"] for check in failed)

    plan = provisioned.json("plan", "--hosts", "gpu01", status=3)["plans"][0]
    assert {role["role"] for role in plan["roles"]} == {damage.layer}

    mended = provisioned.json("provision", "--hosts", "gpu01", status=0)["hosts"][0]
    assert {role["role"] for role in mended["roles"]} <= {damage.layer}
    assert mended["changed"]

    again = provisioned.json("verify", "--hosts", "gpu01", "--roles", damage.layer, status=0)["hosts"][0]
    assert again["passed"]


KEYRINGS = "/usr/share/keyrings"
REPOSITORIES = {"cuda": "cuda-repo-ubuntu2004-11-2-local", "container": "nvidia-container-toolkit"}


def test_another_key_in_a_repositorys_keyring_is_planned_and_replaced(provisioned: FrontDoor, gpu01: Machine) -> None:
    """Also without the stack's key file on the host; the toolkit's key file is then delivered again."""
    for name in REPOSITORIES.values():
        on(gpu01, f"cp {KEYRINGS}/debian-archive-bullseye-stable.gpg {KEYRINGS}/{name}-keyring.gpg")
    on(gpu01, "rm -f /var/cache/hostwright/artifacts/*/nvidia-container-toolkit.asc")

    plan = provisioned.json("plan", "--hosts", "gpu01", status=3)["plans"][0]
    changes = {role["role"]: role["changes"] for role in plan["roles"]}
    assert {role: [one["what"] for one in some] for role, some in changes.items()} == {
        role: [f"key {KEYRINGS}/{name}-keyring.gpg"] for role, name in REPOSITORIES.items()
    }
    for (one,) in changes.values():
        assert one["have"] == "A4285295FC7B1A81600062A9605C66F00D6C9793", "the key of Debian 11's stable release"
        assert len(one["want"]) == len(one["have"])

    provisioned.json("provision", "--hosts", "gpu01", status=0)
    provisioned.json("plan", "--hosts", "gpu01", status=0)
    on(gpu01, "case $(apt-get -q update 2>&1) in *NO_PUBKEY* | *'not signed'*) exit 1 ;; esac")
