"""The values of a host with the standard roles, in order: reports, history and dashboards use their keys.

Removing or changing a key breaks its readers. Add new keys here.
"""

from __future__ import annotations

from dataclasses import replace

from hostwright.audit.readings.host import readings
from tests.unit.audit.test_audit_readings import GREEN, ROOT, T4, VALUES, audit_context, said

#: layer, and its values as in the stack tensorflow-2.9
KEYS: tuple[tuple[str, dict[str, str | None]], ...] = (
    ("base", {
        "kernel": None, "distribution": None, "secure boot": None, "product": None, "board": None,
        "bios version": None, "bios date": None, "cpu": None, "microcode": None, "memory": None, "dkms": None,
        "upgrades blacklist": "yes",
    }),
    ("driver", {
        "loaded": "470.182.03", "module": "470.182.03", "dkms": "470.182.03", "libcuda": "470.182.03",
        "libnvidia-ml": "470.182.03", "nouveau": "gone", "driver pins": "yes",
        "nvidia-smi": "yes", "persistence daemon": "active", "fabric manager": None,
    }),
    ("cuda", {
        "nvcc": "V11.2.152", "toolkit": "11.2.2-1", "toolkit hold": "held", "cuda-cudart-11-2": "11.2.152-1",
        "cuda-cudart-11-2 hold": "held", "cuda-nvcc-11-2": "11.2.152-1", "cuda-nvcc-11-2 hold": "held",
        "libcublas-11-2": "11.4.1.1043-1", "libcublas-11-2 hold": "held", "libcufft-11-2": "10.4.1.152-1",
        "libcufft-11-2 hold": "held", "libcurand-11-2": "10.2.3.152-1", "libcurand-11-2 hold": "held",
        "libcusolver-11-2": "11.1.0.152-1", "libcusolver-11-2 hold": "held", "libcusparse-11-2": "11.4.1.1152-1",
        "libcusparse-11-2 hold": "held", "link": "/usr/local/cuda-11.2", "toolkits": None, "sources": None,
    }),
    ("cudnn", {
        "libcudnn": "8.1.0", "libcudnn_adv_infer": "8.1.0", "libcudnn_adv_train": "8.1.0",
        "libcudnn_cnn_infer": "8.1.0", "libcudnn_cnn_train": "8.1.0", "libcudnn_ops_infer": "8.1.0",
        "libcudnn_ops_train": "8.1.0", "header": "8.1.0", "strays": "",
    }),
    ("environment", {
        "libcudart.so.11.0": "/usr/local/cuda-11.2/targets/x86_64-linux/lib/libcudart.so.11.0",
        "libcudnn.so.8": "/usr/local/cuda-11.2/targets/x86_64-linux/lib/libcudnn.so.8", "profile": "yes",
        "ptxas": None,
    }),
    ("tensorflow", {
        "python": None, "tensorflow": "2.9.0", "numpy": "1.26.4", "protobuf": "3.19.6", "keras": "2.9.0",
        "tensorboard": "2.9.1",
    }),
    ("container", {
        "docker": None, "docker service": "active", "nvidia-container-toolkit": "1.20.0-1",
        "nvidia-container-toolkit hold": "held", "nvidia-container-toolkit-base": "1.20.0-1",
        "nvidia-container-toolkit-base hold": "held", "libnvidia-container-tools": "1.20.0-1",
        "libnvidia-container-tools hold": "held", "libnvidia-container1": "1.20.0-1",
        "libnvidia-container1 hold": "held", "nvidia runtime": "yes", "default runtime": None, "cgroup driver": None,
    }),
    ("release", {
        "stack": "tensorflow-2.9", "at": None,
    }),
    ("driver", {
        "kernel fits": None,
    }),
    ("container", {
        "firewall rules": "there",
    }),
    ("gpu", {
        "models": None, "count": None, "vbios": None, "memory": None, "ecc": None, "mig": None, "power limit": None,
    }),
)  # fmt: skip


def test_the_values_of_a_host_are_these_in_this_order():
    read = readings(audit_context(said(GREEN), said(ROOT), gpus=(T4, replace(T4, index=1))), VALUES)
    expected = [(layer, name, want) for layer, names in KEYS for name, want in names.items()]
    assert [(reading.layer, reading.name, reading.want) for reading in read] == expected
    assert len([reading for reading in read if reading.layer != "gpu"]) == 78
