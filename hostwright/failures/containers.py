"""Failures of Docker and the NVIDIA container toolkit."""

from __future__ import annotations

from hostwright.failures.rule import FailureRule

CONTAINERS = (
    FailureRule(
        "no-gpu-in-docker",
        r"could not select device driver .* with capabilities: \[\[gpu\]\]",
        "Docker does not know the NVIDIA container toolkit, or is the snap, which cannot use it",
        "Provision again; when Docker is the snap, remove it first (snap remove docker)",
        "NVIDIA/nvidia-docker#1034, #1243",
    ),
    FailureRule(
        "runtime-unknown",
        r"unknown or invalid runtime name: nvidia",
        "Docker's daemon.json does not name the nvidia runtime, or Docker was not restarted since",
        "Provision again: the container role merges the runtime into daemon.json and restarts Docker",
        "GoogleCloudPlatform/gcsfuse#1364",
    ),
    FailureRule(
        "container-without-driver",
        r"nvml error: driver not loaded|load library failed: libnvidia-ml\.so",
        "the host's driver is not there or not loaded, so no container can have it",
        "Mend the driver layer first (invoke plan names it)",
        "NVIDIA/nvidia-docker#1393",
    ),
    FailureRule(
        "container-lost-gpu",
        r"Failed to initialize NVML: Unknown Error",
        "systemctl daemon-reload took the GPUs from a running container",
        "Start the container anew; /dev/char links (the container role makes them) keep it from happening again",
        "NVIDIA/nvidia-docker#1730, NVIDIA/nvidia-container-toolkit#48",
    ),
    FailureRule(
        "daemon-json",
        r"unable to configure the Docker daemon with file",
        "/etc/docker/daemon.json is not valid, or says what a command line option says as well",
        "Provision again: the container role validates it first and keeps the old one as .hostwright-backup",
        "moby/moby#44905",
    ),
    FailureRule(
        "start-limit",
        r"[Ss]tart request repeated too quickly",
        "a unit failed so often that systemd no longer starts it",
        "Read its journal (journalctl -u UNIT), mend the cause, then systemctl reset-failed UNIT",
        "systemd.unit(5)",
    ),
)
