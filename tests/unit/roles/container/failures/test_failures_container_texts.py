"""Messages of Docker and the container toolkit, in the wordings of public reports, are classified by cause."""

from __future__ import annotations

import pytest

from tests.unit.support.known import KNOWN

CLI = "error running hook: exit status 1, stdout: , stderr: nvidia-container-cli: "
NETWORK = "failed to start daemon: Error initializing network controller: "


@pytest.mark.parametrize(
    "name, text",
    [
        ("docker-iptables", f'{NETWORK}failed to register "bridge" driver: failed to create NAT chain DOCKER:'),
        (
            "docker-iptables",
            "graphdriver] using prior storage driver: overlay2\niptables: No chain/target/match by that name.",
        ),
        ("docker-iptables", "iptables v1.8.4 (legacy): can't initialize iptables table `nat': Table does not exist"),
        (
            "docker-iptables",
            f"{NETWORK}iptables failed: x\nsystemd[1]: docker.service: Start request repeated too quickly.",
        ),
        ("iptables-missing", f"{NETWORK}failed to create NAT chain DOCKER: Iptables not found"),
        ("docker-apparmor", "AppArmor enabled on system but the docker-default profile could not be loaded: running"),
        ("docker-apparmor", 'container init caused "apparmor failed to apply profile: no such file or directory"'),
        (
            "container-of-before",
            f"{CLI}mount error: mount operation failed: /o/merged/proc/driver/nvidia/x: no such file",
        ),
        ("toolkit-ldconfig", f"{CLI}ldcache error: process /sbin/ldconfig.real failed with error code: 1"),
        ("docker-storage-driver", "Error starting daemon: error initializing graphdriver: driver not supported"),
        (
            "docker-storage-driver",
            "rename /var/lib/docker/runtimes /var/lib/docker/runtimes-old: invalid cross-device link",
        ),
        ("docker-address-pool", "could not find an available, non-overlapping IPv6 address pool among the defaults"),
        ("docker-address-pool", "Error response from daemon: all predefined address pools have been fully subnetted"),
        (
            "docker-socket-permission",
            "Got permission denied while trying to connect to the Docker daemon socket at unix:",
        ),
        ("docker-socket-permission", "permission denied while trying to connect to the docker API at unix:///run/x"),
        ("docker-state-damaged", "FATA[0000] Error starting daemon: layer does not exist"),
        ("daemon-json", "the following directives don't match any configuration option: storage"),
        ("image-needs-newer-driver", f"{CLI}requirement error: unsatisfied condition: cuda>=11.0, please update"),
        ("toolkit-cgroup-v2", "nvidia-container-cli.real: container error: cgroup subsystem devices not found"),
        (
            "cgroup-device-filter",
            f"{CLI}mount error: failed to add device rules: bpf_prog_query(BPF_CGROUP_DEVICE) failed",
        ),
        ("container-mount", f"{CLI}mount error: file creation failed: /merged/run/nvidia-persistenced/socket: no such"),
        ("container-driver-error", f"{CLI}initialization error: driver error: failed to process request"),
        ("container-driver-error", f"{CLI}initialization error: driver rpc error: timed out"),
        (
            "container-without-gpu",
            "WARNING: The NVIDIA Driver was not detected.  GPU functionality will not be available.",
        ),
        ("runtime-unknown", "docker: Error response from daemon: Unknown runtime specified nvidia."),
        ("runtime-unknown", 'no runtime for "nvidia" is configured'),
        ("no-gpu-in-docker", "failed to discover GPU vendor from CDI: no known GPU vendor found"),
        ("no-gpu-in-docker", 'docker: Error response from daemon: could not select device driver "nvidia" with'),
        ("cdi-unresolvable", "Error: setting up CDI devices: unresolvable CDI devices runtime.nvidia.com/gpu=all"),
        ("no-gpu-in-docker", 'exec: "nvidia-container-runtime-hook": executable file not found in $PATH: unknown'),
        ("runtime-unknown", "If this is a GPU node, did you configure the NVIDIA Container Toolkit?"),
        ("runtime-unknown", "level=fatal msg=\"specified default runtime 'nvidia' does not exist\""),
        ("libcuda-not-found", "pynvml.NVMLError_LibraryNotFound: NVML Shared Library Not Found"),
        ("image-needs-newer-driver", f"{CLI}requirement error: unsatisfied condi\ntion: cuda >= 9.0"),
        ("toolkit-fails", f"{CLI}initialization error: change root failed: no such file or directory"),
        ("container-gpu-unknown", f"{CLI}device error: unknown device id: 1"),
        ("toolkit-outdated", f"{CLI}mount error: stat failed: /GeForce: no such file or directory"),
        ("toolkit-outdated", "nvidia-container-cli configure: unrecognized option '--display'\\nTry"),
        ("device-files-missing", f"{CLI}mount error: stat failed: /dev/nvidia-modeset: no such file or directory"),
        ("uvm-not-loaded", f"{CLI}mount error: stat failed: /dev/nvidia-uvm: no such file or directory"),
        ("driver-files-mounted", "rm: cannot remove '/usr/bin/nvidia-smi': Device or resource busy"),
        (
            "cgroup-not-mounted",
            'applying cgroup configuration for process caused \\"mountpoint for devices not found\\"',
        ),
        ("docker-runs-twice", "failed to start daemon: pid file found, ensure docker is not running or delete"),
        (
            "containerd-not-running",
            'Failed to start containerd: exec: "containerd": executable file not found in $PATH',
        ),
        ("registry-rate-limit", "toomanyrequests: You have reached your unauthenticated pull rate limit."),
        ("docker-state-damaged", "failed to prepare extraction snapshot: parent snapshot sha256:ab does not exist"),
        ("start-limit", "systemd[1]: docker.socket: Failed with result 'service-start-limit-hit'."),
    ],
)
def test_each_wording_leads_to_its_cause(name: str, text: str) -> None:
    failure = KNOWN.classify(f"begin\n{text}\nend\n")
    assert failure is not None
    assert failure.rule.name == name


@pytest.mark.parametrize(
    "text",
    [
        "WARNING: bridge-nf-call-iptables is disabled",
        " Cgroup Driver: cgroupfs\nWARNING: No swap limit support",
        "WARN[0002] mountpoint for pids not found",
    ],
)
def test_what_docker_says_without_harm_is_not_blamed(text: str) -> None:
    assert KNOWN.classify(text) is None


def test_an_old_toolkit_is_to_be_upgraded() -> None:
    """NVIDIA/nvidia-docker#957, NVIDIA/nvidia-container-runtime#26"""
    hook = "exec command: [/usr/bin/nvidia-container-cli configure --ldconfig=@/sbin/ldconfig.real --display]\\\\n"
    by_name = KNOWN.classify(f"{CLI}{hook}nvidia-container-cli: mount error: stat failed: /GeForce: no such file")
    by_option = KNOWN.classify(f"{CLI}{hook}nvidia-container-cli configure: unrecognized option '--display'\\\\nTry")
    assert by_name is not None and "a GPU's name, /GeForce, as a path" in by_name.cause
    assert by_option is not None and by_option.cause.endswith("it does not support the option --display")
    assert by_option.cure == by_name.cure and by_name.cure.startswith("Upgrade the toolkit's packages to one newer")
