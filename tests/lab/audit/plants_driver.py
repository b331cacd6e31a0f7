"""Faults of the driver."""

from __future__ import annotations

from tests.lab.audit.planting import MULTIARCH, plant

DKMS = "/var/lib/dkms/nvidia"
PACKAGE = "NVIDIA driver"  #: name of the installer's part in a plan
MODULE = "NVIDIA kernel module"

#: Registers an older driver's sources with DKMS, as its installer does.
OLDER_TREE = """
cp -a /usr/src/nvidia-470.182.03 /usr/src/nvidia-460.32.03
sed -i 's/470\\.182\\.03/460.32.03/' /usr/src/nvidia-460.32.03/dkms.conf
dkms add -m nvidia -v 460.32.03
"""

#: As for a new kernel: DKMS has the driver's sources without a built module.
NO_MODULE = f"""
rm -r "{DKMS}/470.182.03/$(uname -r)"
find "/lib/modules/$(uname -r)" -name 'nvidia*.ko*' -delete
depmod "$(uname -r)"
"""

#: An X server's lock and a live process, which nvidia-installer also checks.
X_SERVER = """
systemd-run --unit=planted-x sleep 3600
systemctl show -p MainPID --value planted-x >/tmp/.X0-lock
rm /usr/bin/nvidia-smi
"""

DRIVER = (
    plant(
        "DKMS told to leave the module alone", "driver",
        "sed -i 's/^AUTOINSTALL=.*/AUTOINSTALL=\"no\"/' /usr/src/nvidia-*/dkms.conf",
        rules="dkms-not-for-next-kernel", states=(MODULE,), quick=True,
    ),
    plant(
        "a card kept from the driver", "driver",
        "echo 'options nvidia NVreg_ExcludedGpus=0000:3b:00.0' >/etc/modprobe.d/planted.conf",
        rules="cards-excluded", cure="rm /etc/modprobe.d/planted.conf", quick=True,
    ),
    plant(
        "libcuda link turned", "driver", f"ln -sfn libcuda.so.460.32.03 {MULTIARCH}/libcuda.so.1",
        rules="driver-versions-mixed", states=(PACKAGE,),  # not quick: the ldconfig of another plant turns it back
    ),
    plant(
        "newer libraries of nobody's beside the driver's, to which ldconfig links", "driver",
        f"cd {MULTIARCH}; for name in libcuda libnvidia-ml; do cp $name.so.470.182.03 $name.so.580.159.04; "
        "ln -sfn $name.so.580.159.04 $name.so.1; done",
        rules="driver-versions-mixed", states=(PACKAGE,), quick=True,
    ),
    plant(
        "a copy of libcuda in another directory of the loader's", "driver",
        f"cp {MULTIARCH}/libcuda.so.470.182.03 /usr/local/lib/libcuda.so.1; ldconfig",
        rules="driver-versions-mixed", states=(PACKAGE,), quick=True,
    ),
    plant(
        "an older module of nobody's that modprobe would take", "driver",
        "cd /lib/modules/$(uname -r)/updates; sed s/470.182.03/470.161.03/g dkms/nvidia.ko >nvidia.ko; depmod -a",
        rules="driver-versions-mixed", states=(MODULE,), quick=True,
    ),
    plant(
        "nvidia-smi deleted", "driver", "rm /usr/bin/nvidia-smi",
        rules="driver-files-lost", states=(PACKAGE,),
    ),
    plant(
        "driver's installer cut off", "driver", "touch /var/lib/hostwright/driver.installing",
        rules="driver-install-cut", states=(PACKAGE,),
    ),
    plant(
        "another module version is loaded", "driver",
        "echo 460.32.03 >/sys/module/nvidia/version; sed -i s/470.182.03/460.32.03/ /proc/driver/nvidia/version",
        rules="version-mismatch", states=(PACKAGE,),
    ),
    plant(
        "persistence daemon disabled", "driver", "systemctl disable --now nvidia-persistenced",
        rules="persistenced-stopped", states=("service nvidia-persistenced.service",), quick=True,
    ),
    plant(
        "tree of an older driver in DKMS", "driver", OLDER_TREE,
        rules="dkms-other-driver", cure="dkms remove -m nvidia -v 460.32.03 --all", quick=True,
    ),
    plant(
        "tree of a module in DKMS whose source is gone", "driver",
        "mkdir -p /var/lib/dkms/zz/1.0; ln -s /usr/src/zz-1.0 /var/lib/dkms/zz/1.0/source",
        rules="dkms-tree-broken", cure="rm -r /var/lib/dkms/zz",
    ),
    plant(
        "module that DKMS does not know", "driver", f"rm -r {DKMS}",
        rules="dkms-not-registered", states=(MODULE,), quick=True,
    ),
    plant(
        "module deleted for the running kernel", "driver", NO_MODULE,
        rules="module-missing", states=(MODULE,),
    ),
    plant(
        "modules switched off as prime-select does", "driver",
        "printf '%s\\n' 'blacklist nvidia' 'alias nvidia off' 'alias nvidia-drm off' >/lib/modprobe.d/nvidia-off.conf",
        rules="module-disabled", states=("modules at boot",), quick=True,
    ),
    plant(
        "a file that lets nobody load the module for unified memory", "driver",
        "echo 'install nvidia-uvm /bin/false' >/etc/modprobe.d/hardening.conf",
        rules="module-disabled", states=("modules at boot",),
    ),
    plant(
        "Debian's file for a driver that is gone", "driver",
        "echo 'install nvidia modprobe -i nvidia-current $CMDLINE_OPTS' >/etc/modprobe.d/nvidia.conf",
        rules="module-disabled", states=("modules at boot",), quick=True,
    ),
    plant(
        "a file that switches modules off, and one in /etc in its place", "driver",
        "echo 'blacklist nvidia' >/lib/modprobe.d/planted.conf; ln -s /dev/null /etc/modprobe.d/planted.conf",
        cure="rm /lib/modprobe.d/planted.conf /etc/modprobe.d/planted.conf", quick=True,
    ),
    plant(
        "a card for virtual machines at the next boot", "driver",
        "printf '%s\\n' 'options vfio-pci ids=10de:1eb8' 'softdep nvidia pre: vfio-pci' >/etc/modprobe.d/vfio.conf",
        rules="card-for-vfio", cure="rm /etc/modprobe.d/vfio.conf", quick=True,
    ),
    plant(
        "a udev rule that takes the cards off the bus at the next boot", "driver",
        "mkdir -p /etc/udev/rules.d; "
        """printf '%s\\n' 'ACTION=="add", ATTR{vendor}=="0x10de", ATTR{class}=="0x03[0-9]*", ATTR{remove}="1"' """
        ">/etc/udev/rules.d/50-remove-nvidia.rules",
        rules="card-removed-by-udev", cure="rm /etc/udev/rules.d/50-remove-nvidia.rules", quick=True,
    ),
    plant(
        "driverctl's record gives the card to vfio-pci", "driver",
        "mkdir -p /etc/driverctl.d /lib/udev/rules.d; touch /lib/udev/rules.d/89-vfio-uio-driverctl.rules; "
        "for card in /sys/bus/pci/devices/*; do if grep -q 0x10de $card/vendor && grep -q ^0x03 $card/class; then "
        "echo vfio-pci >/etc/driverctl.d/pci-${card##*/}; fi; done",
        rules="card-for-another-driver", cure="rm -r /etc/driverctl.d /lib/udev/rules.d/89-vfio-uio-driverctl.rules",
        quick=True,
    ),
    plant(
        "an nvidia-smi of somebody's in /usr/local", "driver",
        "cp /usr/bin/nvidia-smi /usr/local/bin/nvidia-smi",
        rules="program-hidden", cure="rm /usr/local/bin/nvidia-smi", quick=True,
    ),
    plant(
        "device files for a group alone", "driver",
        "echo 'options nvidia NVreg_DeviceFileMode=432 NVreg_DeviceFileGID=44' >/etc/modprobe.d/planted.conf",
        rules="device-files-private", cure="rm /etc/modprobe.d/planted.conf",
    ),
    plant(
        "nvidia-uvm not loaded", "driver", "rmdir /sys/module/nvidia_uvm || rm -r /sys/module/nvidia_uvm",
        rules="uvm-not-loaded", states=(MODULE,), quick=True,
    ),
    plant(
        "X server while the driver is due", "driver", X_SERVER,
        rules="x-server driver-files-lost", states=(PACKAGE,),
        cure="systemctl stop planted-x; rm -f /tmp/.X0-lock",
    ),
)  # fmt: skip
