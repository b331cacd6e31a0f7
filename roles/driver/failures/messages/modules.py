"""Messages of the kernel about a module that it does not load, or that is too old for it."""

from __future__ import annotations

from hostwright.failures import FailureRule, ForPeople, Variant
from hostwright.standard.roles.driver.failures.kernel import BLACKLISTED_SIGN, FORBIDDEN_SIGN

#: whose module it is: ``insert 'nvidia': Exec format error``, ``nvidia: Unknown symbol``, ``nvidia.ko disagrees about``
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
        "the module with which network cards reach GPU memory (nvidia-peermem, before it nv_peer_mem) does not fit the"
        " InfiniBand modules that are loaded, or was called for memory that is gone",
        "Install the network driver (MLNX_OFED or DOCA) first and the GPU driver after it, so that nvidia-peermem is"
        " built against its ib_core; then load it with modprobe nvidia-peermem. With an invalid context: bring the"
        " driver up to date",
        "nvidia-peermem.c, nv_get_p2p_free_callback; leptonai/gpud peermem",
    ),
)

#: before all messages of a module that does not load: these say why
DISABLED = (
    FailureRule(
        "module-disabled",
        r"find module by name='off'|insert '?off'?: |Module off not found"
        r"|Module 'nvidia[\w-]{0,20}' is (?:black|deny-)listed"
        r"|running install command '[^'\n]{0,20}\b(?:false|true|:)\b[^'\n]*' for module nvidia"
        r"|(?i:error running (?:install|remove) command '[^'\n]*modprobe[^'\n]*' for module nvidia)",
        "a line in modprobe.d keeps the module from being loaded, now or at the next boot: a blacklist, an alias that"
        " leads elsewhere (off), or an install command that loads nothing (/bin/false) or only another driver's module"
        " (Debian's nvidia-current)",
        "Provision again: the driver role comments out lines about its modules in /etc/modprobe.d, and writes a file of"
        " the same name there in place of one in /usr/lib, /lib or /run. Look at who wrote the line (prime-select, a"
        " package, a colleague), who may write it again; for another module, find it with modprobe -c",
        "modprobe.d(5); kmod libkmod-module.c; canonical/nvidia-prime#20",
        # Debian's own install line found the module, and why that is not taken stands beside it
        narrower=r"could not insert '?nvidia_(?:current|tesla|legacy)",
        sign=FORBIDDEN_SIGN,
    ),
    FailureRule(
        "module-blacklisted-at-boot",
        r"\bModule nvidia[\w-]{0,20} is blacklisted",
        "the kernel's command line keeps the module from being loaded (module_blacklist=, modprobe.blacklist=)",
        "Take the word out of GRUB_CMDLINE_LINUX and GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub or a file of"
        " /etc/default/grub.d, run update-grub and reboot",
        "Linux kernel/module/main.c, blacklisted; modprobe(8), kernel command line",
        sign=BLACKLISTED_SIGN,
        treatment=ForPeople(),
    ),
)

MODULES = (
    FailureRule(
        "module-of-another-module",
        r"\b\w{1,60}: disagrees about version of symbol (?:nvidia_p2p_|nvUvm|nvKms|ib_|rdma_|mlx[0-9]_|drm_|ttm_)",
        "the kernel module MODULE was built against another release of the module that has the symbol SYMBOL than the"
        " one that is loaded; the kernel itself fits",
        "Build MODULE again, with what installed it, against what is loaded now: the NVIDIA driver for nvidia_p2p_*,"
        " the InfiniBand stack (OFED, DOCA, or the kernel's own) for ib_* and rdma_*, the drm modules (amdgpu-dkms has"
        " its own) for drm_*; where that was upgraded since the boot, it is the one on disk that is to be loaded first",
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
        "the kernel module MODULE was built for another kernel, or against headers of another configuration, than the"
        " one that runs",
        "Build MODULE again for the kernel that runs, with what installed it (dkms install -k $(uname -r) where DKMS"
        " has it), or take its name out of /etc/modules and /etc/modules-load.d where nobody needs it. Compare modinfo"
        " -F vermagic MODULE with uname -r first: where they agree, another copy is loaded than modinfo -n MODULE finds"
        " (extra, updates, weak-updates, the initramfs), and that one is to be removed or made anew",
        "Linux kernel/module/main.c, check_modinfo and check_version",
        beside=r"version magic '[^'\n]+' should be|\bnvidia[\w-]{0,20}: (?:disagrees about version|Unknown symbol)",
        names=(r"\b(?P<module>nvidia[\w-]{0,20})(?:\.ko)?: (?:disagrees|Unknown symbol|version magic)", _MODULE),
        variants=(
            Variant(
                r"\bnvidia[\w-]{0,20}(?:\.ko)?: (?:disagrees|Unknown symbol|version magic)",
                "the driver's module (MODULE) was built for another kernel, or against headers of another"
                " configuration, than the one that runs",
                "Build MODULE again for the kernel that runs, against that one's own headers (linux-headers-$(uname"
                " -r)): provision again, or dkms install -k $(uname -r). A driver's container builds with the headers"
                " of its image's distribution, so take the image of the host's own release. Compare modinfo -F vermagic"
                " MODULE with uname -r: where they agree, another copy is loaded than modinfo -n MODULE finds (extra,"
                " updates, weak-updates, the initramfs), and that one is to be removed or made anew",
            ),
        ),
    ),
    FailureRule(
        "module-symbol-missing",
        r"\b\w{1,60}: Unknown symbol \w{1,80} \(err"
        r"|(?:insert|insmod|modprobe|inserting)[^\n]*: (?:-1 )?Unknown symbol[^\n]*\n(?:[^\n]*\n){0,5}?"
        r"[^\n]*: Unknown symbol \w{1,80} \(err"
        r"|(?:insert|insmod|modprobe|inserting)[^\n]*: (?:-1 )?Unknown symbol",
        "the kernel module MODULE calls what no loaded module has: one that it needs is not loaded, or not installed",
        "Load what has the symbol (dmesg names it: Unknown symbol) and then MODULE, with modprobe, which loads what a"
        " module needs, not with insmod: modprobe ipmi_devintf (over ipmi_msghandler) for ipmi_*, drm_kms_helper for"
        " drm_*, nvidia for what nvidia-uvm and nvidia-modeset call; for any other, modprobe -R symbol:SYMBOL names it."
        " Where no module has it, install the kernel's further ones (linux-modules-extra-$(uname -r)), run depmod -a",
        "Linux kernel/module/main.c, simplify_symbols; modprobe(8), --resolve-alias",
        names=(_MODULE, _SYMBOL),
    ),
    FailureRule(
        "driver-older-than-kernel",
        r"Kernel memory exposure attempt detected from SLUB object 'nvidia"
        r"|for kernel [3-9]\.[^\n]+\n(?:[^\n]*\n){0,4}?[^\n]{0,20}If you are using a Linux 2\.4 kernel"
        r"|Missing ENDBR: \w{1,80}\+?\S* \[nvidia",
        "the driver loads on this kernel, but is older than a check that the kernel makes, which stops it",
        "Name a newer driver release in the stack; until then ibt=off on the kernel's command line passes by a Missing"
        " ENDBR, and an older kernel that has this driver's module works too",
        "Linux mm/usercopy.c; arch/x86/kernel/cet.c; void-linux/void-packages#1231",
    ),
    FailureRule(
        "driver-parts-mixed",
        r"Version mismatch: nvidia(?:-modeset)?\.ko ?\(|kernel-modules?-only' option can only be used",
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
        "the installer built the module, and the kernel did not take it; the installer's own sentence names every"
        " reason that there may be{, and the kernel said: SAID|}",
        "Read the entries 'Kernel module load error' and 'Kernel messages' at the end of /var/log/nvidia-installer.log,"
        " or dmesg: a key that is rejected or required is Secure Boot, a probe routine that was not called is nouveau"
        " or vfio-pci, a version magic is another kernel's headers, No such device a card that this branch does not"
        " know",
        "nvidia-installer kernel.c, test_kernel_module",
        names=(r"Kernel module load error: (?P<said>[^\n]{3,200})",),
        variants=(
            Variant(
                r"insert(?:ing)? (?:module )?'?nvidia",
                "the kernel does not take the driver's module; modprobe does not say why, and the kernel's log does",
                "Read dmesg | tail right after another modprobe: a line 'disagrees about version of symbol' or 'version"
                " magic' is a module of another kernel's headers (build it again), 'unknown parameter' or 'invalid for"
                " parameter' a line in /etc/modprobe.d, NVRM's lines are of the card itself. provision builds and loads"
                " the module anew where that is the cause",
            ),
        ),
        weight="wrapper",
    ),
    FailureRule(
        "dkms-not-in-package",
        r"Unable to open '[\w-]{1,20}/dkms\.conf' for copying",
        "the installer was told to register its module with DKMS, and its unpacked package has no dkms.conf: it built"
        " the module without DKMS, so that the next kernel gets none. Whether the module loads is another matter",
        "Where the installation went on and failed, its cause is in the lines after this one and in dmesg (nouveau is"
        " the usual one). For DKMS, run the whole NVIDIA-Linux-….run, as it was downloaded, with --dkms; an unpacked or"
        " precompiled one, as in a driver's container, is run without that option",
        "nvidia-installer dkms.c; NVIDIA/gpu-operator#8",
        weight="wrapper",
    ),
    FailureRule(
        "module-index-missing",
        r"could not open (?:moddep|builtin) file '[^'\n]{1,200}'|Could(?: not|n't) (?:load"
        r"|open) /lib/modules/[^\n]{1,100}modules\.dep"
        r"|/lib/modules/[^\s:']{1,100}/modules\.(?:dep|alias)[.\w]{0,4}'?: No such file",
        "modprobe finds no index of modules for the kernel KERNEL: /lib/modules/KERNEL is gone or not whole (the"
        " running kernel's package was removed or upgraded, or it is a container), or depmod never ran for it",
        "Look into /lib/modules/KERNEL: where modules are there, run depmod -a KERNEL and modprobe again; where it is"
        " missing, install linux-image-KERNEL again (Ubuntu: and linux-modules-extra-KERNEL; its -headers for DKMS)."
        " In a container, load the module on the machine itself",
        "kmod libkmod/libkmod.c, kmod_search_moddep; depmod(8)",
        names=(r"/lib/modules/(?P<kernel>[^/\s']{1,80})/modules\.",),
        weight="consequence",
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
