"""Messages of the kernel about a module that it does not load, or that is too old for it."""

from __future__ import annotations

from hostwright.audit.failures import FailureRule

PEERMEM = (
    FailureRule(
        "peermem-unusable",
        r"(?:nvidia[_-]peermem|nv_peer_mem)[^\n]*(?:disagrees about version of symbol|Unknown symbol)"
        r"|(?:insert|modprobe|load)[^\n]*(?:nvidia[_-]peermem|nv_peer_mem)'?: (?:Unknown symbol|Invalid argument)"
        r"|detected invalid context, skipping",
        "the module with which network cards reach GPU memory (nvidia-peermem, before it nv_peer_mem) does not fit the"
        " InfiniBand modules that are loaded, or was called for memory that is gone",
        "Install the network driver (MLNX_OFED or DOCA) first and the GPU driver after it, so that nvidia-peermem is"
        " built against its ib_core; then load it with modprobe nvidia-peermem. With an invalid context: bring the"
        " driver up to date",
        "nvidia-peermem.c, nv_get_p2p_free_callback; leptonai/gpud peermem",
    ),
)

MODULES = (
    FailureRule(
        "module-of-another-kernel",
        r"version magic '[^'\n]+' should be|disagrees about version of symbol|no symbol version for module_layout"
        r"|(?:could not insert|[Ee]rror inserting|Failed to insert)[^\n]+: (?:-1 )?(?:Exec|Invalid module) format"
        r"|\.gnu\.linkonce\.this_module section size must match|Skipping invalid relocation target"
        r"|insert (?:module )?\S*nvidia[\w-]{0,20}\S{0,4}: Unknown symbol"
        r"|\bnvidia\w{0,20}: Unknown symbol \w{1,80} \(err"
        r"|(?:insert module|insmod|modprobe|inserting)[^\n]+: (?:-1 )?(?:Exec|Invalid module) format"
        r"|(?:could not insert|insmod|modprobe)[^\n]+: (?:-1 )?Unknown symbol in module",
        "the module was built for another kernel, or against headers of another configuration, than the one that runs",
        "Compare uname -r with modinfo -F vermagic MODULE; reboot where a newer kernel is installed, else build the"
        " module again for the running one (dkms build and dkms install with -k $(uname -r))",
        "Linux kernel/module/main.c, check_modinfo and check_version",
    ),
    FailureRule(
        "driver-older-than-kernel",
        r"Kernel memory exposure attempt detected from SLUB object 'nvidia"
        r"|for kernel [3-9]\.[^\n]+\n(?:[^\n]*\n){0,4}?[^\n]{0,20}If you are using a Linux 2\.4 kernel"
        r"|Missing ENDBR: \w{1,80}\+?\S* \[nvidia",
        "the driver loads on this kernel, but is older than a check that the kernel makes, which stops it",
        "Name a newer driver release in the stack, or boot an older kernel; until then ibt=off on the kernel's command"
        " line passes by a Missing ENDBR",
        "Linux mm/usercopy.c; arch/x86/kernel/cet.c; void-linux/void-packages#1231",
    ),
    FailureRule(
        "driver-parts-mixed",
        r"Version mismatch: nvidia-modeset\.ko\(|kernel-modules?-only' option can only be used",
        "modules of the driver are of different versions, or of another one than the driver that is installed",
        "Install the whole driver of one version, build the modules again (dkms), update the initramfs and reboot",
        "nvidia-drm-drv.c; nvidia-installer install-from-cwd.c",
    ),
    FailureRule(
        "dkms-source-lost",
        r"Could not locate dkms\.conf file|Missing the module source directory|Could not find module source directory",
        "DKMS lists a module whose source somebody deleted, and fails on it for every kernel",
        "Run dkms remove -m NAME -v VERSION --all; where that fails too, delete that version's directory in"
        " /var/lib/dkms",
        "dkms, do_status and read_conf",
    ),
    FailureRule(
        "persistenced-no-device",
        r"Failed to query NVIDIA devices\. Please ensure",
        "nvidia-persistenced finds no device files: the driver's module is not loaded, or drives no card",
        "Read dmesg for why the module does not load or start (nvidia-smi says more), then start the daemon again",
        "nvidia-persistenced nvidia-persistenced.c",
        weight="consequence",
    ),
)
