"""Kernel messages about a module of the driver that the kernel rejects or that is too old."""

from __future__ import annotations

from hostwright.failures import FailureRule, ForPeople, Variant
from hostwright.standard.roles.driver.failures.kernel import BLACKLISTED_SIGN, FORBIDDEN_SIGN

#: patterns of messages that name the module, such as ``insert 'nvidia': Exec format error``
_MODULE = (
    r"(?P<module>[\w-]{1,60})(?:\.ko[.\w]{0,5})?['\"]?(?: \(\S+\))?:? (?:-1 )?(?:Exec format|Invalid module format"
    r"|Unknown symbol|version magic|disagrees about version|no symbol version|\.gnu\.linkonce)"
)
_SYMBOL = r"Unknown symbol (?P<symbol>\w{1,80}) \(err"

PEERMEM = (
    FailureRule(
        "peermem-unusable",
        r"(?:nvidia[_-]peermem|nv_peer_mem)[^\n]*(?:disagrees about version of symbol|Unknown symbol)"
        r"|(?:insert|modprobe|load)[^\n]*(?:nvidia[_-]peermem|nv_peer_mem)'?: (?:Unknown symbol|Invalid argument)"
        r"|detected invalid context, skipping",
        "the module with which network cards access GPU memory (nvidia-peermem, formerly nv_peer_mem) does not match "
        "the loaded InfiniBand modules, or was called for freed memory",
        "Install the network driver (MLNX_OFED or DOCA) first and the GPU driver after it, so that nvidia-peermem is "
        "built against its ib_core; then run modprobe nvidia-peermem. For an invalid context, update the driver",
        "nvidia-peermem.c, nv_get_p2p_free_callback; leptonai/gpud peermem",
    ),
)

#: rules that precede all others, because their messages have the reason of a failure
DISABLED = (
    FailureRule(
        "module-disabled",
        r"find module by name='off'|insert '?off'?: |Module off not found"
        r"|Module 'nvidia[\w-]{0,20}' is (?:black|deny-)listed"
        r"|running install command '[^'\n]{0,20}\b(?:false|true|:)\b[^'\n]*' for module nvidia"
        r"|(?i:error running (?:install|remove) command '[^'\n]*modprobe[^'\n]*' for module nvidia)",
        "a line in modprobe.d blocks the module, now or at the next boot: a blacklist, an alias to another name "
        "(off), or an install command that loads nothing (/bin/false) or only another driver's module (Debian's "
        "nvidia-current)",
        "Provision again: the driver role comments out lines about its modules in /etc/modprobe.d, and overrides "
        "files in /usr/lib, /lib or /run with a file of the same name there. Find out who wrote the line "
        "(prime-select, a package, a colleague): it may be written again. For another module, find the line with "
        "modprobe -c",
        "modprobe.d(5); kmod libkmod-module.c; canonical/nvidia-prime#20",
        # Debian's install line loads these modules, and so does not block nvidia.
        narrower=r"could not insert '?nvidia_(?:current|tesla|legacy)",
        sign=FORBIDDEN_SIGN,
    ),
    FailureRule(
        "module-blacklisted-at-boot",
        r"\bModule nvidia[\w-]{0,20} is blacklisted",
        "the kernel's command line blocks the module (module_blacklist=, modprobe.blacklist=)",
        "Remove the word from GRUB_CMDLINE_LINUX and GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub or a file of "
        "/etc/default/grub.d, run update-grub and reboot",
        "Linux kernel/module/main.c, blacklisted; modprobe(8), kernel command line",
        sign=BLACKLISTED_SIGN,
        treatment=ForPeople(),
    ),
)

MODULES = (
    FailureRule(
        "module-of-another-module",
        r"\b\w{1,60}: disagrees about version of symbol (?:nvidia_p2p_|nvUvm|nvKms|ib_|rdma_|mlx[0-9]_|drm_|ttm_)",
        "the kernel module MODULE was built against another release of the module with the symbol SYMBOL than the "
        "loaded one; the kernel itself matches",
        "Build MODULE again, with the package that installed it, against the module that is loaded now: the NVIDIA "
        "driver for nvidia_p2p_*, the InfiniBand stack (OFED, DOCA, or the kernel's own) for ib_* and rdma_*, the "
        "drm modules (amdgpu-dkms has its own) for drm_*. If that module was upgraded since the boot, first load the "
        "one on disk",
        "Linux kernel/module/version.c, check_version",
        narrower=r"version of symbol module_layout|version magic '",
        names=(_MODULE, r"version of symbol (?P<symbol>\w{1,80})"),
    ),
    FailureRule(
        "module-of-another-kernel",
        r"version magic '[^'\n]+' should be|disagrees about version of symbol|no symbol version for module_layout"
        r"|(?:could not insert|[Ee]rror inserting|Failed to insert)[^\n]+: (?:-1 )?(?:Exec|Invalid module) format"
        r"|\.gnu\.linkonce\.this_module section size must match|Skipping invalid relocation target"
        r"|\b\w{1,60}: Unknown symbol \w{1,80} \(err -22\)"
        r"|(?:insert module|insmod|modprobe|inserting)[^\n]+: (?:-1 )?(?:Exec|Invalid module) format",
        "the kernel module MODULE was built for another kernel than the running one, or against headers of another "
        "configuration",
        "Compare modinfo -F vermagic MODULE with uname -r. If they differ, build MODULE again for the running "
        "kernel, with the package that installed it (dkms install -k $(uname -r) if DKMS manages it), or, if nobody "
        "needs it, remove its name from /etc/modules and /etc/modules-load.d. If they agree, another copy is loaded "
        "than modinfo -n MODULE finds (extra, updates, weak-updates, the initramfs): remove or rebuild that copy",
        "Linux kernel/module/main.c, check_modinfo and check_version",
        beside=r"version magic '[^'\n]+' should be|\bnvidia[\w-]{0,20}: (?:disagrees about version|Unknown symbol)",
        names=(r"\b(?P<module>nvidia[\w-]{0,20})(?:\.ko)?: (?:disagrees|Unknown symbol|version magic)", _MODULE),
        variants=(
            Variant(
                r"\bnvidia[\w-]{0,20}(?:\.ko)?: (?:disagrees|Unknown symbol|version magic)",
                "the driver's module (MODULE) was built for another kernel than the running one, or against headers "
                "of another configuration",
                "Compare modinfo -F vermagic MODULE with uname -r. If they differ, build MODULE again for the "
                "running kernel, against its own headers (linux-headers-$(uname -r)): provision again, or run dkms "
                "install -k $(uname -r). A driver container builds with the headers of its image's distribution, so "
                "use the image for the host's own release. If they agree, another copy is loaded than modinfo -n "
                "MODULE finds (extra, updates, weak-updates, the initramfs): remove or rebuild that copy",
            ),
        ),
    ),
    FailureRule(
        "module-symbol-missing",
        r"\b\w{1,60}: Unknown symbol \w{1,80} \(err"
        r"|(?:insert|insmod|modprobe|inserting)[^\n]*: (?:-1 )?Unknown symbol[^\n]*\n(?:[^\n]*\n){0,5}?"
        r"[^\n]*: Unknown symbol \w{1,80} \(err"
        r"|(?:insert|insmod|modprobe|inserting)[^\n]*: (?:-1 )?Unknown symbol",
        "the kernel module MODULE calls a function that no loaded module has: a module that it needs is not "
        "loaded, or not installed",
        "Load the module with the symbol (dmesg names it: Unknown symbol) and then MODULE. Use modprobe, which also "
        "loads the needed modules, not insmod: modprobe ipmi_devintf (over ipmi_msghandler) for ipmi_*, "
        "drm_kms_helper for drm_*, nvidia for the symbols of nvidia-uvm and nvidia-modeset; for any other, modprobe "
        "-R symbol:SYMBOL names it. If no module has it, install the kernel's additional ones "
        "(linux-modules-extra-$(uname -r)) and run depmod -a",
        "Linux kernel/module/main.c, simplify_symbols; modprobe(8), --resolve-alias",
        names=(_MODULE, _SYMBOL),
    ),
    FailureRule(
        "driver-older-than-kernel",
        r"Kernel memory exposure attempt detected from SLUB object 'nvidia"
        r"|for kernel [3-9]\.[^\n]+\n(?:[^\n]*\n){0,4}?[^\n]{0,20}If you are using a Linux 2\.4 kernel"
        r"|Missing ENDBR: \w{1,80}\+?\S* \[nvidia",
        "the driver loads on this kernel, but is too old for a check of the kernel, which stops it",
        "Name a newer driver release in the stack. Until then, ibt=off on the kernel's command line avoids a Missing "
        "ENDBR, and an older kernel that has this driver's module works too",
        "Linux mm/usercopy.c; arch/x86/kernel/cet.c; void-linux/void-packages#1231",
    ),
    FailureRule(
        "driver-parts-mixed",
        r"Version mismatch: nvidia(?:-modeset)?\.ko ?\(|kernel-modules?-only' option can only be used",
        "modules of the driver have different versions, or another one than the installed driver",
        "Install the whole driver of one version, build the modules again (dkms), update the initramfs and reboot",
        "nvidia-drm-drv.c; nvidia-installer install-from-cwd.c",
    ),
    FailureRule(
        "dkms-source-lost",
        r"Could not locate dkms\.conf file|Missing the module source directory|Could not find module source directory",
        "DKMS lists a module whose source was deleted, and fails on it for every kernel",
        "Run dkms remove -m NAME -v VERSION --all. If that fails too, delete that version's directory in /var/lib/dkms",
        "dkms, do_status and read_conf",
        names=(
            r"/var/lib/dkms/(?P<name>[\w.+-]{1,60})/(?P<version>[0-9][\w.+-]{0,40})/",
            r"Error! (?P<name>[\w.+-]{1,60})/(?P<version>[0-9][\w.+-]{0,40}): Missing",
        ),
        beside=r"/var/lib/dkms/\S+/source/dkms\.conf",
    ),
    FailureRule(
        "module-load-failed",
        r"Unable to load the\s{1,9}kernel module '?nvidia[\w-]{0,20}\.ko'?|Kernel module load error: [^\n]*"
        r"|insert(?:ing)? (?:module )?'?nvidia[\w-]{0,20}'?: (?:-1 )?(?:Invalid argument|Unknown error"
        r"|Input/output)[^\n]*",
        "the installer built the module, and the kernel did not load it. The installer's own message lists every "
        "possible reason{; the kernel's message is: SAID|}",
        "Check the entries 'Kernel module load error' and 'Kernel messages' at the end of "
        "/var/log/nvidia-installer.log, or dmesg. A rejected or required key means Secure Boot; a probe routine that "
        "was not called, nouveau or vfio-pci; a version magic, another kernel's headers; No such device, a card that "
        "this branch does not support",
        "nvidia-installer kernel.c, test_kernel_module",
        names=(r"Kernel module load error: (?P<said>[^\n]{3,200})",),
        variants=(
            Variant(
                r"insert(?:ing)? (?:module )?'?nvidia",
                "the kernel does not load the driver's module; modprobe does not print the reason, the kernel log does",
                "Run modprobe again and then dmesg | tail. A line 'disagrees about version of symbol' or 'version "
                "magic' means a module built with another kernel's headers (build it again); 'unknown parameter' or "
                "'invalid for parameter', a line in /etc/modprobe.d; NVRM lines, the card itself. If the module is "
                "the cause, provision builds and loads it again",
            ),
        ),
        weight="wrapper",
    ),
    FailureRule(
        "dkms-not-in-package",
        r"Unable to open '[\w-]{1,20}/dkms\.conf' for copying",
        "the installer had to register its module with DKMS, and its unpacked package has no dkms.conf: it built the "
        "module without DKMS, so the next kernel will have none. The message does not show whether the module loads",
        "If the installation continued and failed, its cause is in the lines after this one and in dmesg (usually "
        "nouveau). For DKMS, run the original NVIDIA-Linux-….run with --dkms; run an unpacked or precompiled one, as "
        "in a driver container, without that option",
        "nvidia-installer dkms.c; NVIDIA/gpu-operator#8",
        weight="wrapper",
    ),
    FailureRule(
        "module-index-missing",
        r"could not open (?:moddep|builtin) file '[^'\n]{1,200}'|Could(?: not|n't) (?:load"
        r"|open) /lib/modules/[^\n]{1,100}modules\.dep"
        r"|/lib/modules/[^\s:']{1,100}/modules\.(?:dep|alias)[.\w]{0,4}'?: No such file",
        "modprobe finds no index of modules for the kernel KERNEL: /lib/modules/KERNEL is missing or incomplete (the "
        "running kernel's package was removed or upgraded, or it is a container), or depmod never ran for it",
        "Check /lib/modules/KERNEL. If it has modules, run depmod -a KERNEL and modprobe again. If it is missing, "
        "install linux-image-KERNEL again (Ubuntu: and linux-modules-extra-KERNEL; its -headers for DKMS). In a "
        "container, load the module on the machine itself",
        "kmod libkmod/libkmod.c, kmod_search_moddep; depmod(8)",
        names=(r"/lib/modules/(?P<kernel>[^/\s']{1,80})/modules\.",),
        weight="consequence",
    ),
    FailureRule(
        "persistenced-no-device",
        r"Failed to query NVIDIA devices\. Please ensure",
        "nvidia-persistenced finds no device files: the driver's module is not loaded, or has no card",
        "Check dmesg and nvidia-smi for the reason why the module does not load or start, then start the daemon again",
        "nvidia-persistenced nvidia-persistenced.c",
        weight="consequence",
    ),
)
