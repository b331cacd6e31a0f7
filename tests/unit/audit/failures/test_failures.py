"""Tests that each known failure is recognised by the real message of its tool."""

from __future__ import annotations

import pytest

from tests.unit.support.checkout import here
from tests.unit.support.known import KNOWN, RULES

SAMPLES = {
    "kernel-timed-out": "RuntimeError: CUDA error: the launch timed out and was terminated",
    "toolkit-mixed": '#error "CUDA compiler and CUDA toolkit headers are incompatible, please check your paths"',
    "jit-build-failed": "ninja: build stopped: subcommand failed.",
    "rpm-build-needs": "error: Failed build dependencies:\n\tgcc-c++ is needed by"
    " nvidia-kmod-3:590.48.01-1.fc43.x86_64",
    "suspend-failed": "nvidia 0000:01:00.0: PM: failed to suspend async: error -5",
    "suspend-not-frozen": "Freezing user space processes failed after 20.005 seconds (1 tasks refusing to freeze):",
    "system-library-missing": "ImportError: libGL.so.1: cannot open shared object file: No such file or directory",
    "nccl-cuda-error": "RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
    "engine-failed": "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    "dnf-words-changed": 'Unknown argument "--add-repo" for command "config-manager". Add "--help" for more',
    "rpm-driver-sources-mixed": (
        " - package xorg-x11-drv-nvidia-3:550.78-1.fc40.x86_64 from rpmfusion is filtered out by modular filtering"
    ),
    "dnf-module-stream": "Error: Unable to find a match: nvidia-driver:latest-dkms",
    "rpm-key-missing": "Public key for nvidia-driver-550.54.15-1.el9.x86_64.rpm is not installed",
    "dnf-metadata": "Error: Failed to download metadata for repo 'cuda-rhel9-x86_64': Cannot download repomd.xml",
    "rpm-unsolvable": "package cuda-12-6 from cuda requires nvidia-open >= 560, but none of the providers can be"
    " installed",
    "apt-pin-keeps": (
        "nvidia-driver:\n  Installed: 555.42.06-1\n  Candidate: 555.42.06-1\n  Version table:\n     560.28.03-1 500\n"
        "        500 https://mirror.example.org/debian12  Packages\n *** 555.42.06-1 1001"
    ),
    "driver-branch-ended": "nvidia-dkms-570-server-open  570.211.01-0ubuntu1  Depends: nvidia-dkms-580-server-open",
    "fabric-bridge-missing": ('Kernel module "ib_umad" has not been loaded, fabric manager cannot be started'),
    "cuda-memory-not-shared": (
        "n1:774:854 [0] transport/shm.cc:590 NCCL WARN Cuda failure 217 'peer access is not supported'"
    ),
    "kernel-without-precompiled": (
        "NVIDIA driver: filtering kernel 4.18.0-553.el8_10, no precompiled modules available for version 3:550.54.15"
    ),
    "nccl-older-than-card": "NCCL INFO ncclMaxSharedMem 82240 exceeds device/fn maxSharedMem 79856",
    "xid-nvlink-nonfatal": "NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2)",
    "fabric-not-joined": "    Fabric\n        State                             : In Progress",
    "fabric-manager-failed": "nv-fabricmanager[4711]: failed to find any GPU device",
    "nvls-not-set-up": "gpu4:49:50 [1] transport/nvls.cc:223 NCCL WARN Cuda failure 999 'unknown error'",
    "imex-channel-missing": "GpuBuffer cuMemCreate failed: operation not permitted",
    "cdi-refresh-early": (
        'level=error msg="failed to generate CDI spec: failed to initialize NVML: Driver Not Loaded"\n'
        "nvidia-cdi-refresh.service: Main process exited, code=exited, status=1/FAILURE"
    ),
    "cdi-device-missing": 'level=warning msg="Could not locate /dev/nvidia-uvm: /dev/nvidia-uvm: not found"',
    "package-removal-failed": (
        "Failed to remove NVIDIA volumes, ignoring\n"
        "dpkg: error processing package nvidia-docker (--remove):\n"
        " installed nvidia-docker package pre-removal script subprocess returned error exit status 102"
    ),
    "package-conflict": (
        " containerd.io conflicts with containerd\n  containerd (version 1.5.9) is present and installed.\n"
        "dpkg: error processing archive containerd.io_1.6.8-1_amd64.deb (--install):\n"
        " conflicting packages - not installing containerd.io"
    ),
    "logins-closed": '"System is going down. Unprivileged users are not permitted to log in anymore."',
    "apt-default-release": (
        "E: The value 'buster' is invalid for APT::Default-Release as such a release is not available in the sources"
    ),
    "module-load-failed": "ERROR: Unable to load the kernel module 'nvidia.ko'.  This happens most frequently when"
    " this",
    "package-triggers-loop": "dpkg: error processing package dracut (--configure):\n triggers looping, abandoned",
    "toolkit-outdated": "nvidia-container-cli configure: unrecognized option '--display'",
    "dpkg-failed": "Errors were encountered while processing:\n shim-signed",
    "build-failed": "  ERROR: Failed building wheel for pycairo",
    "mig-without-instances": "[2026-11-20T10:00:00] error: MIG mode is enabled, but no MIG devices were found. Please",
    "program-replaced": "fork/exec /usr/bin/docker (deleted): no such file or directory",
    "apt-update-failed": 'fatal: [a]: FAILED! => {"changed": false, "msg": "Failed to update apt cache."}',
    "apt-pin-forbids": "docker.io:\n  Installed: (none)\n  Candidate: (none)\n  Version table:\n     20.10.5 -1",
    "unit-not-there": "Failed to start nvidia-fabricmanager.service: Unit nvidia-fabricmanager.service not found.",
    "unit-start-failed": "Job for nvidia-imex.service failed because the control process exited with error code.",
    "dkms-not-in-package": "ERROR: Unable to open 'kernel/dkms.conf' for copying (No such file or directory)",
    "module-index-missing": (
        "modprobe: ERROR: kmod_search_moddep() could not open moddep file '/lib/modules/5.10.0-1-amd64/modules.dep.bin'"
    ),
    "docker-credentials-helper": (
        'getting credentials - err: exec: "docker-credential-desktop": executable file not found in $PATH, out: ``'
    ),
    "docker-is-podman": "Emulate Docker CLI using podman. Create /etc/containers/nodocker to quiet msg.",
    "build-alone": (
        "error: subprocess-exited-with-error\n  × Getting requirements to build wheel did not run successfully.\n"
        "      ModuleNotFoundError: No module named 'torch'"
    ),
    "toolkit-file-gone": (
        "nvidia-container-cli: detection error: open failed: /etc/ld.so.cache: no such file or directory: unknown."
    ),
    "gpu-hot": "[[Health]] Detected a WARNING in health system Thermal: 'Detected clocks event due to'",
    "unit-ordering-cycle": (
        "systemd[1]: multi-user.target: Job docker-a.service/start deleted to break ordering cycle starting with"
        " a/start"
    ),
    "nvlinks-inactive": "NVRM: knvlinkUpdatePostRxDetectLinkMask_IMPL: Failed to update Rx Detect Link mask!",
    "imex-not-ready": "ErrorCode:DCGM_FR_IMEX_UNHEALTHY GPU:0 PCI:0000:9d:00.0 IMEX daemon status is -3 (not READY)",
    "slurm-fewer-gpus": "error: Setting node n1 state to INVAL with reason:gres/gpu count reported lower than"
    " configured",
    "unit-dependency": "docker.service: Job docker.service/start failed with result 'dependency'.",
    "sshd-config": "/etc/ssh/sshd_config: line 130: Bad configuration option: UsePAMM",
    "package-asks": " end of file on stdin at conffile prompt",
    "package-alternative": (
        "update-alternatives: error: alternative link /usr/lib/libvdpau_nvidia.so is already managed by _gl_conf"
    ),
    "package-script-program": (
        "/var/lib/dpkg/info/nvidia-361.postinst: 213: /var/lib/dpkg/info/nvidia-361.postinst: update-initramfs: not"
        " found"
    ),
    "tls-answered-plainly": "  Could not handshake: An unexpected TLS packet was received. [IP: 192.0.2.1 3128]",
    "docker-apparmor": "unable to apply apparmor profile: apparmor failed to apply profile: write /proc/self/attr",
    "iptables-missing": "failed to create NAT chain DOCKER: Iptables not found",
    "container-of-before": (
        "nvidia-container-cli: mount error: mount operation failed:"
        " /var/lib/docker/overlay2/3/merged/proc/driver/nvidia/"
        "params: no such file or directory: unknown"
    ),
    "toolkit-ldconfig": "nvidia-container-cli: ldcache error: process /usr/sbin/ldconfig failed with error code: 1",
    "cudnn-of-the-host-first": (
        "RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (8, 3, 2) but found runtime version"
    ),
    "unit-not-startable": (
        "docker.service: Failed at step EXEC spawning /usr/bin/dockerd-20: No such file or directory"
    ),
    "clock-behind": (
        "E: Release file for http://a.example/InRelease is not valid yet (invalid for another 230d 6h 25min 31s)."
    ),
    "framework-not-in-this-python": ("ModuleNotFoundError: No module named 'torch'"),
    "boot-needs-missing-disk": ("Timed out waiting for device /dev/disk/by-uuid/0b1c2d3e-1111-2222-3333-444455556666."),
    "host-sleeps": ("Nov 29 03:14:07 gpu7 systemd-logind[812]: The system will suspend now!"),
    "path-closed-to-users": ("-bash: /etc/profile.d/cuda.sh: Permission denied"),
    "directory-not-for-everybody": (
        "node08:27106:27302 [0] include/shm.h:27 NCCL WARN Call to shm_open failed : Permission denied"
    ),
    "ca-bundle-missing": (
        "OSError: Could not find a suitable TLS CA certificate bundle, invalid path: /etc/ssl/corp.pem"
    ),
    "diversion-clash": (
        "dpkg-divert: error: 'diversion of /usr/lib/libGL.so.1 to /usr/lib/nvidia/libGL.so.1 by nvidia-a' clashes with"
    ),
    "unit-masked": ("Failed to enable unit: Unit file /etc/systemd/system/nvidia-persistenced.service is masked."),
    "locked-memory-limit": (
        "misc/ibvwrap.cc:278 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory"
    ),
    "kdump-not-armed": ("kdumpctl[812]: No memory reserved for crash kernel."),
    "boot-module-missing": ("systemd-modules-load[298]: Failed to find module 'ipmi_si2'"),
    "access-control-denied": (
        "type=AVC msg=audit(1691186980.587:9501): avc:  denied  { module_load } for  pid=2431660"
    ),
    "ssh-too-many-logins": ("kex_exchange_identification: banner line 0: Exceeded MaxStartups"),
    "gpu-reset-in-use": ("Failed to destroy compute instances: In use by another client"),
    "dcgm-not-running": ("Error: Unable to connect to host engine. Host engine connection invalid/disconnected."),
    "dcgm-profiling": ("Result: The third-party Profiling module returned an unrecoverable error"),
    "fabric-manager-config": ("fabric manager config file item: FABRIC_NODE_CONFIG_FILE has an invalid value"),
    "nouveau-in-use": "ERROR: The Nouveau kernel driver is currently in use by your system.",
    "x-server": "ERROR: You appear to be running an X server; please exit X before installing.",
    "module-in-use": (
        "ERROR: An NVIDIA kernel module 'nvidia-drm' appears to already be loaded in your kernel.  This may be because"
    ),
    "module-held": "rmmod: ERROR: Module nvidia is in use by: nvidia_uvm nvidia_fs",
    "no-headers": (
        "ERROR: Unable to find the kernel source tree for the currently running kernel.  Please make sure you have"
    ),
    "no-compiler": "ERROR: Unable to find the development tool `cc` in your path; please make sure that you have",
    "compiler-too-old": "gcc: error: unrecognized command-line option '-ftrivial-auto-var-init=zero'",
    "compiler-mismatch": "ERROR: Failed CC version check. Bailing out!",
    "gpl-only-symbol": "ERROR: modpost: GPL-incompatible module nvidia.ko uses GPL-only symbol 'rcu_read_lock'",
    "module-loading-off": (
        "modprobe: ERROR: could not insert 'nvidia': Operation not permitted\n"
        "hostwright: no kernel module can be loaded on this host: root lacks CAP_SYS_MODULE, as in a container"
    ),
    "module-not-signed": "modprobe: ERROR: could not insert 'nvidia': Required key not available",
    "stale-dkms": "Error! DKMS tree already contains: nvidia-470.182.03",
    "other-installer": (
        "ERROR: The NVIDIA driver appears to have been installed previously using a different installer. To prevent"
    ),
    "flag-unknown": "ERROR: Invalid commandline, please run `nvidia-installer --help` for usage information.",
    "dkms-build": (
        "ERROR: Failed to install the kernel module through DKMS. No kernel module was installed; please try installing"
    ),
    "gpu-unsupported": (
        "NVRM: The NVIDIA GPU 0000:19:00.0 (PCI ID: 10de:2330)\n"
        "NVRM: installed in this system is not supported by the\nNVRM: NVIDIA 470.182.03 driver release."
    ),
    "no-device": "modprobe: ERROR: could not insert 'nvidia': No such device",
    "version-mismatch": "Failed to initialize NVML: Driver/library version mismatch",
    "module-missing": "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
    "gpu-lost": "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.",
    "fabric-manager-version": (
        "fabric manager NVIDIA GPU driver interface version 470.199.02 don't match with driver version 470.182.03."
    ),
    "peermem-unusable": "nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client",
    "module-disabled": (
        "modprobe: ERROR: could not find module by name='off'\n"
        "modprobe: ERROR: could not insert 'off': Unknown symbol in module, or unknown parameter (see dmesg)"
    ),
    "module-blacklisted-at-boot": (
        "Module nvidia is blacklisted\nmodprobe: ERROR: could not insert 'nvidia': Operation not permitted"
    ),
    "card-of-another-driver": "NVRM: GPU 0000:01:00.0 is already bound to vfio-pci.",
    "module-symbol-missing": (
        "nvidia_uvm: Unknown symbol nvUvmInterfaceDisableAccessCntr (err -2)\n"
        "insmod: ERROR: could not insert module nvidia-uvm.ko: Unknown symbol in module"
    ),
    "dkms-other-module": "Autoinstall on 6.19.0-1-amd64 failed for module(s) zfs(1).",
    "module-of-another-module": "nvidia_fs: disagrees about version of symbol nvidia_p2p_dma_unmap_pages",
    "programs-not-run-there": "/tmp/selfgz4711/nvidia-installer: Permission denied",  # noqa: S108
    "library-damaged": "dlerror: /usr/local/cuda-11.2/lib64/libcudnn.so.8: file too short; LD_LIBRARY_PATH: /usr/local",
    "library-of-another-machine": "OSError: /opt/lib32/libcudart.so.11.0: wrong ELF class: ELFCLASS32",
    "library-not-readable": ("ImportError: libcublas.so.11: cannot open shared object file: Permission denied"),
    "etckeeper-uncommitted": "** etckeeper detected uncommitted changes in /etc prior to apt run",
    "apt-hook-failed": "E: Problem executing scripts DPkg::Pre-Invoke '/usr/local/sbin/snapshot'",
    "preload-missing": (
        "ERROR: ld.so: object '/usr/local/vgpu/libvgpu.so' from /etc/ld.so.preload cannot be preloaded (cannot open "
        "shared object file): ignored."
    ),
    "tls-handshake": "W: Failed to fetch https://mirror.example.org/Packages  gnutls_handshake() failed: Error",
    "image-missing": "Error response from daemon: manifest for nvidia/cuda:latest not found: manifest unknown",
    "container-command-missing": (
        'unable to start container process: exec: "/entrypoint.sh": permission denied: unknown.'
    ),
    "docker-group-gone": "docker.socket: Failed to resolve group docker: No such process",
    "docker-snap": (
        'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].\n'
        "snap.docker.dockerd.service is active"
    ),
    "runtime-gone": 'exec: "nvidia-container-runtime": executable file not found in $PATH: unknown.',
    "other-runtime-gone": "fork/exec /usr/local/bin/runsc: no such file or directory: unknown.",
    "unit-account-missing": (
        "nvidia-persistenced.service: Failed to determine user credentials: No such process\n"
        "nvidia-persistenced.service: Failed at step USER spawning /usr/bin/nvidia-persistenced: No such process"
    ),
    "initramfs-modules-dep": (
        "mkinitramfs: failed to determine device for /\nmkinitramfs: workaround is MODULES=most, check:\n"
        "update-initramfs: failed for /boot/initrd.img-5.10.0-35-amd64 with 1."
    ),
    "grub-install-device": (
        "You must correct your GRUB install devices before proceeding:\n\n  DEBIAN_FRONTEND=dialog dpkg --configure"
        " grub-pc\ndpkg: error processing package grub-pc (--configure):\n installed grub-pc package"
        " post-installation script subprocess returned error exit status 1"
    ),
    "package-script-python": (
        "ModuleNotFoundError: No module named 'debpython'\ndpkg: error processing package tools (--configure):\n"
        " installed tools package post-installation script subprocess returned error exit status 1"
    ),
    "module-of-another-kernel": "modprobe: ERROR: could not insert 'nvidia': Exec format error",
    "driver-older-than-kernel": "Kernel memory exposure attempt detected from SLUB object 'nvidia_stack_cache'",
    "gpu-bar-invalid": "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:",
    "iommu-fault": "DMAR: [DMA Write] Request device [3b:00.0] fault addr ff000000 [fault reason 05]",
    "vgpu-driver": "NVRM: nvidia-vgpu-vfio: VGPU message 1 failed, result code: 0x6a",
    "sxid-fatal": "nvidia-nvswitch0: SXid (PCI:0000:00:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
    "sxid": "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)",
    "mlx5-fault": "kernel: mlx5_core 0000:5e:00.0 ib0: TX timeout detected",
    "infiniband-link": "mlx5_core 0000:5e:00.0: Port module event[error]: module 0, Cable error, Bus stuck",
    "gpu-init-failed": "NVRM: GPU 0000:09:00.0: RmInitAdapter failed! (0x22:0x56:894)",
    "inforom-corrupted": "WARNING: infoROM is corrupted at gpu 0000:B3:00.0",
    "power-cable": "NVRM: GPU 0000:01:00.0: GPU does not have the necessary power cables connected.",
    "gpu-interrupts": "NVML: NVIDIA Kernel detected an interrupt issue with a GPU",
    "gpu-needs-reset": "Unable to read memory: GPU requires reset",
    "row-remap-failed": "        Remapping Failure Occurred            : Yes",
    "xid-fatal": "NVRM: Xid (PCI:0000:01:00): 119, pid=3052, name=python, Timeout waiting for RPC from GSP!",
    "xid-memory-retired": "NVRM: Xid (PCI:0000:5a:00): 63, pid=0, Dynamic Page Retirement: New page retired, reboot to",
    "container-persistenced-socket": (
        "failed to fulfil mount request: open /run/nvidia-persistenced/socket: no such file or directory: unknown"
    ),
    "kernel-config-missing": (
        "grep: /boot/config-6.3.0-2-amd64: No such file or directory\n"
        "E: gzip compression (CONFIG_RD_GZIP) not supported by kernel"
    ),
    "xid-application": "NVRM: Xid (PCI:0000:08:00): 31, Ch 00000001, engmask 00000101, intr 10000000",
    "fabric-not-ready": "CUDA error: system not yet initialized",
    "fabric-nothing-to-do": (
        "request to query NVSwitch device information failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]"
    ),
    "boot-full": "Error 24 : Write error : cannot write compressed block\nE: mkinitramfs failure cpio 141 lz4 -9 -l 24",
    "no-space": "tar: usr/local/cuda-11.2/lib64/libcublas.so: Wrote only 512 bytes: No space left on device",
    "tls-certificate": "curl: (60) SSL certificate problem: unable to get local issuer certificate",
    "proxy-refuses": "OSError('Tunnel connection failed: 407 Proxy Authentication Required')",
    "keyring-unreadable": (
        "W: http://apt.example/dists/jammy/InRelease: The key(s) in the keyring /etc/apt/trusted.gpg.d/ubuntu-keyring-"
        "2018-archive.gpg are ignored as the file is not readable by user '_apt' executing apt-key."
    ),
    "repository-key-expired": "  The following signatures were invalid: EXPKEYSIG 248BF9082524EEFD snapper OBS Project",
    "repository-signature-invalid": "  The following signatures were invalid: BADSIG F60F4B3D7FA2AF80 cudatools",
    "repository-without-release": "E: The repository 'https://apt.example/x  Release' does not have a Release file.",
    "package-file-conflict": (
        " trying to overwrite '/usr/share/man/man3/log.3.gz', which is also in package manpages-dev 5.05-1"
    ),
    "out-of-memory": "Out of memory: Killed process 7899 (python) total-vm:26184840kB, anon-rss:15370088kB",
    "build-out-of-memory": "c++: fatal error: Killed signal terminated program cc1plus",
    "killed-by-signal-9": "subprocess.CalledProcessError: Command '['x']' died with <Signals.SIGKILL: 9>.",
    "processor-stuck": "watchdog: BUG: soft lockup - CPU#0 stuck for 23s! [frigate.output:1243199]",
    "hung-task": "INFO: task jbd2/vda2-8:472 blocked for more than 120 seconds.",
    "memory-errors": "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (channel:0 slot:0",
    "machine-check": "mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 4: be00000000800400",
    "disk-error": "blk_update_request: I/O error, dev sda, sector 106553248",
    "filesystem-error": "XFS (vda4): Unmount and run xfs_repair",
    "file-immutable": (
        "dpkg: error processing archive /var/cache/apt/archives/curl_7.74.0_amd64.deb (--unpack):\n"
        " unable to make backup link of './usr/bin/curl' before installing new version: Operation not permitted"
    ),
    "mounted-read-only": "touch: cannot touch '/var/x': Read-only file system",
    "pcie-error": "pcieport 0000:00:02.0: AER: Uncorrected (Fatal) error received: 0000:02:00.0",
    "clock-off": "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate is not yet valid",
    "apt-lock": (
        "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)\n"
        "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?"
    ),
    "dpkg-interrupted": (
        "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem."
    ),
    "driver-dragged-in": "hostwright: apt would also install: cuda-drivers nvidia-driver-535",
    "cuda-key-rotated": (
        "W: GPG error: https://mirror.example/ubuntu2004 InRelease: The following signatures couldn't be verified "
        "because the public key is not available: NO_PUBKEY A4B469963BF863CC"
    ),
    "no-public-key": "E: The repository 'file:/srv/repo ./ InRelease' is not signed.",
    "signed-by-conflict": (
        "E: Conflicting values set for option Signed-By regarding source https://mirror.example/ubuntu2004/x86_64/ /"
    ),
    "repository-changed": (
        "E: Repository 'http://mirror.example.org/debian buster InRelease' changed its 'Suite' value from 'stable' to "
        "'oldstable'"
    ),
    "repository-date": (
        "E: Release file for http://deb.example.org/dists/bullseye/InRelease is expired (invalid since 10d 17h)."
    ),
    "package-unknown": "E: Unable to locate package cuda-toolkit-11-2",
    "name-resolution": "  Temporary failure resolving 'mirror.example'",
    "download-interrupted": "W: Failed to fetch http://mirror.example/dists/bullseye/InRelease  Could not connect to "
    "mirror.example:80 (192.0.2.1). - connect (111: Connection refused)",
    "download-damaged": "E: Failed to fetch http://mirror.example/pool/make_4.3.deb  Hash Sum mismatch",
    "download-missing": "E: Failed to fetch http://mirror.example/pool/curl_7.74.deb  404  Not Found",
    "nvidia-smi-silent": "nvidia-smi does not answer within 30 s: it hangs",
    "packages-on-hold": "E: Held packages were changed and -y was used without --allow-change-held-packages.",
    "held-packages": "E: Unable to correct problems, you have held broken packages.",
    "dependency-unconfigured": "dpkg: dependency problems prevent configuration of libnvidia-decode-570:amd64:",
    "inotify-limit": "Failed to allocate directory watch: Too many open files",
    "nfs-denied": "mount.nfs4: access denied by server while mounting 192.0.2.1:/srv/data",
    "nvenc-needs-newer-driver": (
        "[h264_nvenc @ 0x55c2] Driver does not support the required nvenc API version. Required: 9.1 Found: 9.0"
    ),
    "cuda-differs-from-framework": (
        "The detected CUDA version (11.8) mismatches the version that was used to compile\nPyTorch (12.1)."
    ),
    "gpu-busy": "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",
    "illegal-memory-access": "RuntimeError: CUDA error: an illegal memory access was encountered",
    "docker-too-old-for-image": "Error response from daemon: missing signature key",
    "cudnn-mixed": (
        "Could not load library libcudnn_cnn_train.so.8. Error: /usr/lib/libcudnn_cnn_train.so.8: symbol, "
        "version libcudnn_ops_infer.so.8 not defined in file libcudnn_ops_infer.so.8 with link time reference"
    ),
    "cudnn-not-initialized": "Could not create cudnn handle: CUDNN_STATUS_NOT_INITIALIZED",
    "library-not-found": (
        "Could not load dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shared object file"
    ),
    "ptxas-not-found": "Couldn't get ptxas version string: INTERNAL: Couldn't invoke ptxas --version",
    "cudnn-other-version": "Loaded runtime CuDNN library: 8.0.4 but source was compiled with: 8.1.0.",
    "nvrtc-not-found": "Error: libnvrtc.so: cannot open shared object file: No such file or directory",
    "glibc-too-old": "ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found",
    "libstdcxx-too-old": "ImportError: libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by a.so)",
    "cuda-visible-devices": "Error 101: invalid device ordinal",
    "gpu-code-missing": "no kernel image is available for execution on the device",
    "forward-compatibility": "Error 804: forward compatibility was attempted on non supported HW",
    "cuda-newer-than-driver": "CUDA driver version is insufficient for CUDA runtime version",
    "cuinit-unknown": "failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error",
    "nccl-ranks-twice": "NCCL WARN Bootstrap Root : rank 1 of 8 ranks has already checked in",
    "nccl-network": "NCCL WARN NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129",
    "gpu-out-of-memory": "RuntimeError: CUDA out of memory. Tried to allocate 2.00 MiB (GPU 0; 7.94 GiB total",
    "externally-managed": "error: externally-managed-environment",
    "pip-permission": "ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: '/usr'",
    "protobuf-too-new": "TypeError: Descriptors cannot not be created directly.",
    "numpy-too-new": (
        "A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.0.2 as it may crash. To support both"
    ),
    "no-wheel": "ERROR: No matching distribution found for tensorflow==2.9.0",
    "venv-missing": "The virtual environment was not created successfully because ensurepip is not available.",
    "no-avx": "Illegal instruction (core dumped)",
    "no-gpu-in-docker": (
        'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].'
    ),
    "runtime-unknown": "docker: Error response from daemon: unknown or invalid runtime name: nvidia.",
    "driver-library-not-in-cache": "could not start driver service: load library failed: libcuda.so.1: cannot open",
    "container-without-driver": "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown.",
    "container-lost-gpu": "Failed to initialize NVML: Unknown Error",
    "daemon-json-twice": (
        "unable to configure the Docker daemon with file /etc/docker/daemon.json: the following directives are "
        "specified both as a flag and in the configuration file: hosts: (from flag: [fd://], from file: [tcp://…])"
    ),
    "daemon-json": (
        "unable to configure the Docker daemon with file /etc/docker/daemon.json: invalid character '}' looking for"
    ),
    "start-limit": "docker.service: Start request repeated too quickly.",
    "container-name-servers": (
        "image hostwright/workspace-ssh:1 could not be built, as this host's containers have no usable name server: /e"
    ),
    "docker-iptables": "iptables: No chain/target/match by that name.",
    "docker-storage-driver": "Error starting daemon: error initializing graphdriver: driver not supported",
    "docker-address-pool": "could not find an available, non-overlapping IPv4 address pool among the defaults",
    "docker-socket-permission": "dial unix /var/run/docker.sock: connect: permission denied",
    "docker-state-damaged": "Error starting daemon: layer does not exist",
    "image-needs-newer-driver": "requirement error: unsatisfied condition: cuda>=11.8, please update your driver",
    "toolkit-cgroup-v2": "nvidia-container-cli: container error: cgroup subsystem devices not found: unknown.",
    "cgroup-device-filter": "nvidia-container-cli: mount error: failed to add device rules: unable to find any",
    "container-mount": "nvidia-container-cli: mount error: file creation failed: /merged/run/socket",
    "container-driver-error": "nvidia-container-cli: initialization error: driver error: failed to process request",
    "docker-bridge": 'Error creating default "bridge" network: package not installed',
    "docker-stopped": "Cannot connect to the Docker daemon at unix:///var/run/docker.sock.",
    "shm-too-small": "NCCL WARN Error: failed to extend /dev/shm/nccl-KWfVyt to 5967876 bytes",
    "loader-mixed-cuda": "ImportError: libcusparse.so.12: undefined symbol: __nvJitLinkAddData_12_1",
    "numpy-too-old": "module compiled against API version 0xc but this version of numpy is 0xa",
    "driver-library-shadowed": "RuntimeError: CUDA driver error: CUDA_ERROR_STUB_LIBRARY",
    "driver-parts-mixed": "*ERROR* Version mismatch: nvidia-modeset.ko(470.182.03) nvidia-drm.ko(470.57.02)",
    "dkms-source-lost": "Error! Could not locate dkms.conf file.",
    "persistenced-no-device": "Failed to query NVIDIA devices. Please ensure that the NVIDIA device files exist",
    "nvswitch-missing": "detected number of NVSwitches don't match with any supported system topology, aborting",
    "nfs-server": "nfs: server fs1.example not responding, still trying",
    "kernel-panic": "Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b",
    "too-many-open-files": "VFS: file-max limit 1000000 reached",
    "no-root": "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you root?",
    "package-script-failed": " installed make package post-installation script subprocess returned error exit status 1",
    "apt-sources-unreadable": "E: Type 'debb' is not known on line 3 in source list /etc/apt/sources.list.d/cuda.list",
    "container-without-gpu": "The NVIDIA Driver was not detected.  GPU functionality will not be available.",
    "protobuf-too-old": "ImportError: cannot import name 'runtime_version' from 'google.protobuf'",
    "tensorflow-gpu-gone": "  Downloading tensorflow-gpu-2.12.0.tar.gz (2.6 kB)",
    "tensorflow-no-blackwell": "LLVM ERROR: PTX version 8.5 does not support target 'sm_120'",
    "jax-without-plugin": (
        "An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed. Falling back to cpu."
    ),
    "pip-conflict": "ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/en/latest/topics/",
    "python-without-ssl": "SSLError: Can't connect to HTTPS URL because the SSL module is not available.",
    "build-header-missing": "src/_portaudiomodule.c:29:10: fatal error: portaudio.h: No such file or directory",
    "ptxas-too-old": "You are using ptxas 8.x, but TF requires ptxas 9.x (and strongly prefers >= 9.2.88).",
    "nvcc-not-found": "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.",
    "nvcc-compiler-unsupported": "#error -- unsupported GNU version! gcc versions later than 10 are not supported!",
    "cuda-no-device": "failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
    "libcuda-not-found": "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory",
    "uvm-not-loaded": "modprobe: FATAL: Module nvidia-uvm not found.",
    "device-files-missing": "ls: cannot access '/dev/nvidiactl': No such file or directory",
    "ecc-uncorrected": "RuntimeError: CUDA error: uncorrectable ECC error encountered",
    "row-remap-pending": "        Remapping Pending                     : Yes",
    "page-retirement-pending": "        Pending Page Blacklist            : Yes",
    "registry-rate-limit": "toomanyrequests: You have reached your pull rate limit.",
    "cgroup-not-mounted": "docker: Error response from daemon: cgroups: cgroup mountpoint does not exist: unknown.",
    "driver-files-mounted": (
        " unable to make backup link of './usr/bin/nvidia-smi' before installing new version: Invalid cross-device link"
    ),
    "container-gpu-unknown": "nvidia-container-cli: device error: unknown device id: 1",
    "cdi-stale": "error stat'ing file /lib/x86_64-linux-gnu/libEGL_nvidia.so.535.161.07: No such file or directory: "
    "OCI runtime attempted to invoke a command that was not found",
    "cdi-unresolvable": "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all",
    "toolkit-fails": "nvidia-container-cli: initialization error: change root failed: no such file or directory",
    "filesystem-features": "EXT4-fs (sdb1): couldn't mount RDWR because of unsupported optional features (400)",
    "download-refused": "E: Failed to fetch https://mirror.example/jammy/InRelease  403  Forbidden [IP: 192.0.2.1",
    "docker-runs-twice": "Error starting daemon: error while opening volume store metadata database: timeout",
    "containerd-not-running": "failed to start containerd: timeout waiting for containerd to start",
    "gsp-firmware-missing": "NVRM: RmFetchGspRmImages: No firmware image found",
    "gpu-permission": "Failed to initialize NVML: Insufficient Permissions",
    "mps-not-reachable": "RuntimeError: MPS client failed to connect to the MPS control daemon or the MPS server",
    "dpkg-database-damaged": (
        "dpkg: unrecoverable fatal error, aborting: files list file for package 'x' is missing final newline"
    ),
    "chroot-without-mounts": "/usr/sbin/grub-probe: error: cannot find a device for / (is /dev mounted?).",
    "initramfs-build-failed": "update-initramfs: failed for /boot/initrd.img-5.4.0-77-generic with 1.",
    "inodes-exhausted": (
        "Filesystem     Inodes IUsed IFree IUse% Mounted on\n/dev/vda1        640K  640K     0  100% /"
    ),
    "containerd-config-invalid": (
        'level=warning msg="failed to load plugin io.containerd.grpc.v1.cri" error="invalid plugin config: no'
        ' corresponding runtime configured in `containerd.runtimes`"'
    ),
    "kubelet-cgroup-driver": (
        'misconfiguration: kubelet cgroup driver: "cgroupfs" is different from docker cgroup driver: "systemd"'
    ),
    "python-distutils-missing": "ModuleNotFoundError: No module named 'distutils'",
    "venv-interpreter-gone": (
        "zsh: /home/x/.local/bin/poetry: bad interpreter: /home/x/.local/pipx/venvs/poetry/bin/python: no such file or"
        " directory"
    ),
    "proxy-port-taken": "nginx: [emerg] bind() to 0.0.0.0:443 failed (98: Address already in use)",
    "proxy-without-ipv6": "nginx: [emerg] socket() [::]:80 failed (97: Address family not supported by protocol)",
    "proxy-certificate-unusable": (
        'nginx: [emerg] SSL_CTX_use_PrivateKey("/etc/ssl/private/site.key") failed (SSL: error:05800074:x509'
        " certificate routines::key values mismatch)"
    ),
    "proxy-without-workspace": (
        "2020/05/07 03:15:12 [error] 6#6: *1 connect() failed (111: Connection refused) while connecting to upstream"
    ),
    "jupyter-origin": "Blocking Cross Origin WebSocket Attempt.  Origin: https://gpu01:8443, Host: gpu01",
    "jupyter-websocket": '[D 22:31:20.358 NotebookApp] Can "Upgrade" only to "WebSocket".',
    "jupyter-cookie": "[W 01:44:05.261 LabApp] 403 POST /x (127.0.0.1): '_xsrf' argument missing from POST",
    "jupyter-kernel-died": "AsyncIOLoopKernelRestarter: restarting kernel (1/5), keep random ports",
    "workspace-port-taken": (
        "driver failed programming external connectivity on endpoint workspace-a (0412): Error starting userland proxy:"
        " listen tcp4 127.0.0.1:21001: bind: address already in use."
    ),
    "ssh-host-key-changed": "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @",
    "ssh-keys-refused": "Authentication refused: bad ownership or modes for file /root/.ssh/authorized_keys",
    "workspace-mount-denied": "PermissionError: [Errno 13] Permission denied: '/home/jovyan/.local'",
    "workspace-processes": (
        "OpenBLAS blas_thread_init: pthread_create failed for thread 31 of 32: Resource temporarily unavailable"
    ),
    "docker-older-than-glibc": (
        "OpenBLAS blas_thread_init: pthread_create failed for thread 3 of 48: Operation not permitted"
    ),
    "nccl-newer-than-driver": (
        "enqueue.cc:802 NCCL WARN Cuda failure 'API call is not supported in the installed CUDA driver'"
    ),
    "nccl-not-installed": "common.h:7:18: fatal error: nccl.h: No such file or directory",
    "tensorrt-nvrtc": (
        "Could not load dynamic library 'libnvinfer.so.7'; dlerror: libnvrtc.so.11.1: cannot open shared object file"
    ),
    "tensorrt-not-installed": "ImportError: libnvinfer.so.7: cannot open shared object file: No such file or directory",
    "tensorrt-version": "Loaded TensorRT 6.0.1 but linked TensorFlow against TensorRT 7.2.2. A few requirements must",
    "tensorflow-without-tensorrt": "RuntimeError: Tensorflow has not been built with TensorRT support.",
    "tensorrt-engine": (
        "ERROR: The engine plan file is not compatible with this version of TensorRT, expecting library version 7.2.3"
    ),
    "tensorrt-other-cuda": (
        "1: [graphContext.h::24] Error Code 1: Myelin (Compiled against cuBLAS 11.4.1.0 but running against cuBLAS 11.2"
    ),
    "framework-extension-apart": (
        "ImportError: /opt/x/flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so: undefined symbol: _ZN3c105ErrorC2ENS_1"
    ),
    "framework-other-release": "AttributeError: module 'jax.core' has no attribute 'Shape'",
    "executable-stack-refused": (
        "ImportError: libtorch_cpu.so: cannot enable executable stack as shared object requires: Invalid argument"
    ),
    "xla-flag-unknown": "F parse_flags_from_env.cc:234] Unknown flag in XLA_FLAGS: --xla_gpu_enable_softmax=true",
    "static-tls-full": "OSError: /opt/x/libgomp-804f19d4.so.1.0.0: cannot allocate memory in static TLS block",
    "pip-placeholder": "The package you are trying to install is only a placeholder project on PyPI.org repository.",
    "compile-cache-unwritable": "PermissionError: [Errno 13] Permission denied: '/.triton'",
    "kernel-too-large": "OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376.",
    "libcuda-link-missing": "/usr/bin/ld: cannot find -lcuda: No such file or directory",
    "build-without-gpu": "ValueError: Unknown CUDA arch (12.0) or GPU not supported",
    "triton-launcher-failed": (
        "CalledProcessError: Command '['/usr/bin/gcc', '/opt/x/main.c', '-lcuda']' returned non-zero exit status 1."
    ),
    "torch-without-cuda": "AssertionError: Torch not compiled with CUDA enabled",
    "torch-weights-only": "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so",
    "torch-compile-python": "RuntimeError: Dynamo is not supported on Python 3.13+",
    "torch-rendezvous-port": (
        "The server socket has failed to listen on any local network address. port: 29500, useIpv6: 0, EADDRINUSE"
    ),
    "torch-needs-newer-compiler": "#error You need C++17 to compile PyTorch",
    "cuda-after-fork": "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing",
    "torch-nvml-assert": "RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at CUDACachingAllocator.cpp:830",
    "mkl-too-new": "ImportError: /opt/x/torch/lib/libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent",
    "jax-parts-apart": (
        "JAX plugin jax_cuda12_plugin version 0.9.2 is installed, but it is not compatible with the installed jaxlib"
    ),
    "jax-libraries-outdated": (
        "Found cuDNN version 8600, but JAX was built against version 8904, which is newer. The copy of cuDNN that is"
    ),
    "keras-3": "ValueError: Unrecognized keyword arguments passed to LSTM: {'batch_input_shape': (1, 1, 7)}",
    "nccl-interface-missing": "connecting to address  with family 59936 is neither AF_INET(2) nor AF_INET6(10)",
    "nccl-imex": "NCCL WARN MNNVL Failed to get IMEX channel",
    "nccl-ranks-apart": "NCCL WARN Message truncated : received 1024 bytes instead of 256",
    "image-libcuda-first": (
        "docker run --gpus all image:1\nError 803: system has unsupported display driver / cuda driver combination"
    ),
    "device-assert": "RuntimeError: CUDA error: device-side assert triggered",
    "peer-access-refused": "NCCL WARN Cuda failure 217 'peer access is not supported between these two devices'",
    "acs-on": "./all_reduce_perf -g 2 does not return\n\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+",
    "apt-method-missing": "E: The method driver /usr/lib/apt/methods/https could not be found.",
}


SAMPLES = {name: text for name, text in SAMPLES.items() if here(name)}


def test_every_rule_has_a_sample_and_every_sample_a_rule() -> None:
    told = [rule.name for rule in RULES if rule.pattern]
    assert set(SAMPLES) == set(told)
    assert len(told) == len(SAMPLES)


def test_every_rule_is_recognised_somewhere_and_has_a_name_of_its_own() -> None:
    assert all(rule.pattern or rule.sign for rule in RULES)
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_each_message_is_recognised() -> None:
    for name, sample in SAMPLES.items():
        failure = KNOWN.classify(f"Reading package lists...\n{sample}\nand more\n")
        assert failure is not None, name
        assert failure.rule.name == name
        assert failure.evidence in sample, name


def test_cause_and_cure_are_sentences_without_their_full_stop() -> None:
    for rule in RULES:
        for text in (rule.cause, rule.cure, rule.source):
            assert text and not text.endswith("."), rule.name
        assert rule.cure[0].isupper(), rule.name


def test_an_unknown_failure_is_not_classified() -> None:
    assert KNOWN.classify("Segmentation fault") is None
    assert KNOWN.classify("") is None


def test_a_hook_of_apt_that_somebody_set_is_named_by_its_program() -> None:
    found = KNOWN.explained("E: Failure running script /usr/local/sbin/snapshot --pre\n")
    assert found is not None and found.rule == "apt-hook-failed" and "/usr/local/sbin/snapshot" in found.cause


def test_the_cause_in_make_log_wins_over_the_installers_own_words() -> None:
    output = f"{SAMPLES['dkms-build']}\n--- make.log ---\n{SAMPLES['compiler-too-old']}\n"
    failure = KNOWN.classify(output)
    assert failure is not None
    assert failure.rule.name == "compiler-too-old"


#: last lines that report a failure without the reason
CLOSING = (
    "Error! Bad return status for module build on kernel: 6.8.0-45-generic (x86_64)",
    "ERROR: Failed to install the kernel module through DKMS. No kernel module was installed;",
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest",
    "No devices were found",
    "NVRM: None of the NVIDIA devices were initialized.",
    "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x22:0x56:667)",
    "Failed to initialize NVML: Unknown Error",
    "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU",
    "E: Unable to correct problems, you have held broken packages.",
    "ERROR: Failed building wheel for flash-attn",
)


@pytest.mark.parametrize("closing", CLOSING)
@pytest.mark.parametrize(
    "cause",
    ["xid-fatal", "module-not-signed", "version-mismatch", "row-remap-failed", "pcie-error", "packages-on-hold"],
)
def test_a_line_that_gives_the_reason_wins_over_a_closing_line_of_any_layer(cause: str, closing: str) -> None:
    for text in (f"{SAMPLES[cause]}\n{closing}", f"{closing}\n{SAMPLES[cause]}"):
        failure = KNOWN.classify(text)
        assert failure is not None and failure.rule.name == cause
    alone = KNOWN.classify(closing)
    assert alone is not None


def test_a_full_disk_wins_over_everything_that_follows_from_it() -> None:
    failure = KNOWN.classify(f"{SAMPLES['dpkg-interrupted']}\n{SAMPLES['dkms-build']}\n{SAMPLES['no-space']}")
    assert failure is not None
    assert failure.rule.name == "no-space"


def test_missing_network_wins_over_pips_missing_package() -> None:
    failure = KNOWN.classify(f"{SAMPLES['download-interrupted']}\n{SAMPLES['no-wheel']}")
    assert failure is not None
    assert failure.rule.name == "download-interrupted"


NOISE = {
    "library-not-a-link": "/sbin/ldconfig.real: /usr/local/cuda-11.2/lib64/libcudnn.so.8 is not a symbolic link",
    "library-not-found": SAMPLES["library-not-found"],
}


def test_a_copied_library_is_no_failure_of_what_printed_it() -> None:
    assert KNOWN.classify(NOISE["library-not-a-link"]) is None


@pytest.mark.parametrize("noise", NOISE)
def test_what_good_installations_print_too_explains_only_what_nothing_else_does(noise: str) -> None:
    for name in {*SAMPLES} - {
        "library-not-found",
        "no-wheel",
        "preload-missing",
        "nccl-cuda-error",
        "engine-failed",
        "jit-build-failed",
    }:
        failure = KNOWN.classify(f"{NOISE[noise]}\n{SAMPLES[name]}")
        assert failure is not None, name
        assert failure.rule.name == name


def test_a_layer_knows_its_failures_better_than_the_layers_below_it() -> None:
    places = {rule.name: number for number, rule in enumerate(RULES)}
    assert places["no-space"] == 0
    assert places["cuda-key-rotated"] < places["no-public-key"]
    assert places["no-headers"] < places["package-unknown"]
    assert places["container-without-driver"] < places["module-missing"]


@pytest.mark.parametrize(
    ("lines", "halves"),
    [
        (("dpkg: error processing archive /var/cache/apt/archives/openni-utils_1.5.4.0-14build1_amd64.deb (--unpack):",
          " trying to overwrite '/usr/bin/NiViewer', which is also in package nuitrack 0.30.0"),
         ("openni-utils", "nuitrack")),
        (("NVRM: API mismatch: the client has the version 535.54.03, but",
          "NVRM: this kernel module has the version 535.86.05.  Please"), ("535.54.03", "535.86.05")),
        (("NVRM: The NVIDIA GPU 0000:19:00.0 (PCI ID: 10de:2330)",
          "NVRM: installed in this system is not supported by the",
          "NVRM: NVIDIA 470.182.03 driver release."), ("0000:19:00.0", "470.182.03")),
        (("dpkg: dependency problems prevent configuration of a:", " a depends on b; however:",
          "  Package b is not configured yet."), ("of a:", "b is not configured")),
        (("ERROR: Cannot install a==1 and b==2 because these package versions have conflicting dependencies.",
          "The conflict is caused by:", "    a 1 depends on numpy<2", "    b 2 depends on numpy>=2"),
         ("numpy<2", "numpy>=2")),
        (("Loaded runtime CuDNN library: 8.1.0 but source was compiled with:", " 8.9.0.  CuDNN library needs to have"),
         ("8.1.0", "8.9.0")),
        (("dpkg: error processing archive /var/cache/apt/archives/cuda_1.deb (--unpack):",
          " cannot copy extracted data for './usr/lib/x': failed to write (No space left on device)"),
         ("cuda_1.deb", "No space")),
    ],
)  # fmt: skip
def test_the_evidence_has_both_halves_of_a_message(lines: tuple[str, ...], halves: tuple[str, ...]) -> None:
    failure = KNOWN.classify("\n".join(("before", *lines, "after")))
    assert failure is not None
    assert [half for half in halves if half not in failure.evidence] == []
    assert "before" not in failure.evidence.splitlines()
    assert "after" not in failure.evidence.splitlines()


def test_two_packages_that_bring_one_file_are_both_named_and_neither_is_told_to_go() -> None:
    text = (
        "dpkg: error processing archive /tmp/openni-utils_1.5.4.0-14build1_amd64.deb (--unpack):\n"
        " trying to overwrite '/usr/bin/NiViewer', which is also in package nuitrack 0.30.0"
    )
    failure = KNOWN.classify(text)
    assert failure is not None
    assert "openni-utils, which was to be installed, and nuitrack, which is installed" in failure.cause
    assert "other packages may depend on either" in failure.cure


def test_the_evidence_is_the_one_line_that_says_so() -> None:
    failure = KNOWN.classify("one\n  E: dpkg was interrupted, you must\nthree")
    assert failure is not None
    assert failure.evidence == "E: dpkg was interrupted, you must"


def test_ordinary_output_of_a_good_installation_is_no_failure() -> None:
    assert (
        KNOWN.classify(
            "Verifying archive integrity... OK\nUncompressing NVIDIA Accelerated Graphics Driver for Linux-x86_64\n"
            "Setting up nvidia-fabricmanager-470 (470.182.03-1) ...\nSuccessfully installed numpy-1.22.4"
        )
        is None
    )


def test_a_card_without_power_is_told_before_what_follows_from_it() -> None:
    failure = KNOWN.classify(
        "NVRM: GPU 0000:01:00.0: GPU does not have the necessary power cables connected.\n"
        "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x24:0x1c:1603)\nNo devices were found"
    )
    assert failure is not None and failure.rule.name == "power-cable"


@pytest.mark.parametrize(
    "output",
    [
        "gzip: stdout: No space left on device\nE: mkinitramfs failure cpio 141 gzip 1\n"
        "update-initramfs: failed for /boot/initrd.img-5.10.0-23-amd64 with 1.",
        "cp: error writing '/boot/vmlinuz-5.10.0-23-amd64': No space left on device",
    ],
)
def test_a_full_boot_is_not_told_as_any_full_filesystem(output: str) -> None:
    failure = KNOWN.classify(output)
    assert failure is not None and failure.rule.name == "boot-full"
