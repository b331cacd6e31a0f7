"""What happens to the driver."""

from __future__ import annotations

from tests.lab.audit.planting import MULTIARCH, plant

DRIVER = (
    plant("libcuda link turned", "driver", f"ln -sfn libcuda.so.460.32.03 {MULTIARCH}/libcuda.so.1"),
    plant("nvidia-smi deleted", "driver", "rm /usr/bin/nvidia-smi"),
    plant(
        "another module version is loaded", "driver",
        "echo 460.32.03 >/sys/module/nvidia/version; sed -i s/470.182.03/460.32.03/ /proc/driver/nvidia/version",
    ),
    plant("persistence daemon disabled", "driver", "systemctl disable --now nvidia-persistenced"),
    plant("tree of an older driver in DKMS", "driver", "mkdir -p /var/lib/dkms/nvidia/460.32.03/source"),
    plant(
        "module deleted for the running kernel", "driver",
        'rm -r "/var/lib/dkms/nvidia/470.182.03/$(uname -r)"; find "/lib/modules/$(uname -r)" -name "nvidia*.ko*" -delete; '
        'depmod "$(uname -r)"',
    ),
    plant("nvidia-uvm not loaded", "driver", "rmdir /sys/module/nvidia_uvm || rm -r /sys/module/nvidia_uvm"),
)  # fmt: skip
