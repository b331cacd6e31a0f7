"""Tests that texts of 2024 to 2026 lead to the sentences for their case, and that similar messages match no rule."""

from __future__ import annotations

import json

import pytest

from tests.places import PROJECT
from tests.unit.support.known import KNOWN

CORPUS = PROJECT / "tests" / "fixtures" / "failures"
KNOWN_TEXTS = CORPUS / "known.jsonl"
TEXTS: dict[str, str] = {
    entry["id"]: entry["text"] for entry in map(json.loads, KNOWN_TEXTS.read_text(encoding="utf-8").splitlines())
}

#: entry of the corpus → words in the cause, words in the fix
SENTENCES = {
    "frogging-family-nvidia-all-379": ("release 580.119.02, did not compile for the kernel 7.0.9", "dkms/nvidia/580"),
    "nvidia-open-gpu-kernel-modules-1143": ("550.163.01, did not compile for the kernel 6.17.13", "a newer branch"),
    "void-linux-void-packages-61087": ("580.142, did not compile for the kernel 7.1.0", "newer release of its branch"),
    "nvidia-cuda-repo-management-39": ("SHA1 counts as too weak since 2026-02-01", "debian13 is"),
    "nvidia-cuda-repo-management-44": ("wsl-ubuntu/x86_64, and rejects its signature", "apt-sequoia.config"),
    "claytono-infra-1334": ("the key EB693B3035CD5710E231E123A4B469963BF863CC", "with its own keyring"),
    "elfarto-nvidia-vaapi-driver-312": (
        "keep nvidia-driver at 555.42.06-1: a pin of priority 1001 outweighs 560.28.03-1",
        "If the installed version is intended, no action is needed",
    ),
    "xnvme-aisio-67": ("nvidia-driver-570-server-open is an empty package", "nvidia-driver-pinning-BRANCH"),
    "nvidia-open-gpu-kernel-modules-1080": ("(8, 109, 154) follow", "name another driver release"),
    "nvidia-open-gpu-kernel-modules-446-2": ("(GSP) stopped answering", "NVreg_EnableGpuFirmware=0"),
    "nvidia-open-gpu-kernel-modules-829-2": ("not a program", "nvidia-bug-report.sh"),
    "nvidia-open-gpu-kernel-modules-1230-2": ("the card 0000:a1:00.0: its system processor", "not the repeats"),
    "nvidia-open-gpu-kernel-modules-876": ("(GSP) does not start", "the previous or a newer one"),
    "nixos-nixos-hardware-1880": ("580.xx is the last branch that supports it", "branch 580.xx in the stack"),
    "linuxdeepin-developer-center-14043": ("newer than every driver", "a newer branch"),
    "nvidia-nvsentinel-889": ("usually because Fabric Manager", "start it if it failed"),
    "nvidia-nvidia-container-toolkit-1537": (
        "makes the specification of runtime.nvidia.com",
        "Do not write to /etc/cdi",
    ),
    "nvidia-nvidia-container-toolkit-1940": ("the specification lists the", "an engine that supports 0.7.0"),
    "nvidia-nvidia-container-toolkit-1611": ("before the driver was loaded", "systemctl restart nvidia-cdi-refresh"),
    "nvidia-nvidia-container-toolkit-1982": ("before /dev/nvidia-modeset existed", "ignore this"),
    "pytorch-test-infra-5852": ("1.17.0 or 1.17.1", "The host needs no IMEX"),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_each_text_leads_to_the_sentences_of_its_case(name: str) -> None:
    failure = KNOWN.classify(TEXTS[name])
    assert failure is not None
    cause, cure = SENTENCES[name]
    assert cause in failure.cause
    assert cure in failure.cure


#: the rule, words in its cause and in its fix, and texts in the wording of current programs
WORDINGS = [json.loads(line) for line in (CORPUS / "wordings.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("wording", "text"), [(each, text) for each in WORDINGS for text in each["texts"]])
def test_the_words_of_todays_programs_lead_to_their_rule_and_its_sentences(wording: dict[str, str], text: str) -> None:
    failure = KNOWN.classify(f"begin\n{text}\nend\n")
    assert failure is not None
    assert failure.rule.name == wording["rule"]
    assert wording["cause"] in failure.cause
    assert wording["cure"] in failure.cure


#: other messages of the same tools, from their sources, and the correct rule
BESIDE = {
    "make: *** [Makefile:115: modules] Error 2\nmake: Leaving directory '/var/lib/dkms/nvidia/550.144.03/build'": (
        "dkms-build"
    ),
    "make[1]: *** [Makefile:248: __sub-make] Error 2\nmake: Leaving directory '/var/lib/dkms/zfs/2.2.2/build'": (
        "dkms-other-module"
    ),
    "NVRM: GPU 0000:01:00.0 is already bound to nova_drm.\nNVRM: No NVIDIA devices probed.": "nouveau-in-use",
    "Error: Version '580.65.06-1' for 'nvidia-open' was not found": "package-unknown",
    "E: Für Paket »nvidia-driver« existiert kein Installationskandidat.": "package-unknown",
    " nvidia-driver-cuda : Conflicts: nvidia-driver-libs:i386 but 550.163.01-2 is to be installed": "held-packages",
    "NVRM: Open nvidia.ko is only ready for use on Data Center GPUs. To force use of Open nvidia.ko": (
        "gpu-unsupported"
    ),
    "Your card is only supported up to the 470 legacy drivers series.": "gpu-unsupported",
    "NVRM: _kgspIsHeartbeatTimedOut: Heartbeat timed out": "xid-fatal",
    "NVRM: nvGpuOpsReportFatalError: uvm encountered global fatal error 0x60, requiring os reboot": "xid-fatal",
    "NVRM: GPU0 kgspBootstrap_GH100: GSP-FMC reported an error while attempting to boot GSP": "gpu-init-failed",
    "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x61:0x56:1941)": "gsp-firmware-missing",
    "fabric.state, fabric.status\nIn Progress, N/A": "fabric-not-joined",
    "NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast memory of size 8 : CUDA error 401 'x'.": "nvls-not-set-up",
    "transport/nvls.cc:223 NCCL WARN Cuda failure 2 'out of memory'": "gpu-out-of-memory",
    "cuMemCreate(FABRIC) failed: CUDA_ERROR_NOT_PERMITTED": "imex-channel-missing",
    "/dev/nvidia-caps-imex-channels/channel0: no such file or directory": "imex-channel-missing",
    "==> WARNING: `dkms install --no-depmod nvidia/580.119.02 -k 7.0.9-1' exited 10": "dkms-build",
    "error: builder for '/nix/store/a-nvidia-x11-545.29.06-6.8.drv' failed with exit code 2": "dkms-build",
    "Verifying signature: Not live until 2027-01-01T00:00:00Z": "clock-behind",
    "nvidia-fabricmanager.service: Failed with result 'timeout'.": "fabric-manager-failed",
    "nvidia-imex.service: Main process exited, code=exited, status=1/FAILURE": "imex-not-ready",
    "Domain State: DEGRADED": "imex-not-ready",
    "nvidia-imex[812]: Failed to find the address of this node": "imex-not-ready",
    'conflicting device "nvidia.com/gpu=0" (specs "/etc/cdi/nvidia.yaml", "/etc/cdi/gpu.yaml")': "cdi-unresolvable",
    'error gathering device information while adding custom device "nvidia.com/gpu=all": no such file': (
        "cdi-unresolvable"
    ),
    "nvidia-container-cli: detection error: nvml error: insufficient permissions": "gpu-permission",
}


@pytest.mark.parametrize("text", BESIDE)
def test_messages_beside_them_lead_to_the_same_causes(text: str) -> None:
    failure = KNOWN.classify(f"begin\n{text}\nend\n")
    assert failure is not None
    assert failure.rule.name == BESIDE[text]


@pytest.mark.parametrize(
    "text",
    [
        "Deprecated feature: CLEAN (/var/lib/dkms/nvidia/580.95.05/source/dkms.conf)",
        "==> ERROR: Missing 7.0.9-arch1-1 kernel modules tree for module nvidia/580.119.02.",
        "Warning: https://mirror.example.org/InRelease: Policy will reject signature within a year, see --audit",
        "Notice: Missing Signed-By in the sources.list(5) entry for 'https://mirror.example.org/debian12'",
        "docker-ce:\n  Installed: 5:28.0\n  Candidate: 5:29.1\n  Version table:\n     5:29.1 500\n"
        "        500 https://mirror.example.org Packages\n *** 5:28.0 100\n        100 /var/lib/dpkg/status",
        "nvidia-driver:\n  Installiert: 560.28\n  Installationskandidat: 560.28\n  Versionstabelle:\n"
        " *** 560.28 500\n        500 https://mirror.example.org Packages\n     555.42 500",
        "    Fabric\n        State          : Completed\n        Status         : Success",
        "    Fabric\n        State          : N/A\n        Status         : N/A",
        "NCCL INFO Failed to bind NVLink SHARP (NVLS) Multicast memory of size 8 : CUDA error 1. Proceeding without",
        "VMM cuMemCreate with FABRIC handles failed: CUDA_ERROR_NOT_PERMITTED; will retry with simpler ones",
        "Your card is supported by all driver versions.\nIt is recommended to install the\n    nvidia-driver\npackage.",
        'level=warning msg="Could not locate libnvidia-nscq.so.580.65.06: pattern libnvidia-nscq.so not found"',
        "NCCL INFO cuMem host allocations do not appear to be working; falling back to a /dev/shm/ based one.",
        "NCCL INFO NVLS multicast support is not available on dev 5",
        "Found GPU0 NVIDIA GB10 which is of cuda capability 12.1. Minimum and Maximum cuda capability supported by this"
        " version of PyTorch is (8.0) - (12.0)",
        "Found GPU0 NVIDIA GB10 which is of cuda capability 12.1.\n    Minimum and Maximum cuda capability supported by"
        " this version of PyTorch is\n    (8.0) - (12.0)",
        "Found GPU0 NVIDIA GB10 which is of compute capability (CC) 12.1.\n"
        "Your installed torch==2.13.0+cu130 does not include kernels for this GPU.",
        "Found GPU0 NVIDIA RTX 6000 Ada Generation which is of cuda capability 8.9.\n    Minimum and Maximum cuda"
        " capability supported by this version of PyTorch is\n    (8.9) - (9.0)",
        "nvlsm:\n  Installed: (none)\n  Candidate: 2025.10\n  Version table:\n     2025.10 500",
        'level=warning msg="Could not locate /usr/bin/nvidia-imex: pattern nvidia-imex not found"',
        "nvidia-modeset: WARNING: GPU:0: Unable to read EDID for display device DP-0",
        'INFO:     192.0.2.1:41234 - "POST /v1/chat/completions HTTP/1.1" 404 Not Found',
        'INFO:     192.0.2.1:41234 - "GET /health HTTP/1.1" 503 Service Unavailable',
    ],
)
def test_what_is_harmless_beside_them_is_not_blamed(text: str) -> None:
    assert KNOWN.classify(f"begin\n{text}\nend\n") is None
