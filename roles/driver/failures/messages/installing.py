"""Messages of the driver's installer, DKMS and the compiler about a module that was not built or installed."""

from __future__ import annotations

from hostwright.failures import FailureRule, ForPeople, Held, Stuck, Tangled, Variant
from hostwright.standard.roles.driver.failures.build import (
    BUILD_FAILED_SIGN,
    NO_COMPILER_SIGN,
    NO_HEADERS_SIGN,
    OTHER_MODULE,
    unbuilt_by_ours,
)
from hostwright.standard.roles.driver.failures.install import MODULE_HELD_SIGN, OTHER_INSTALLER_SIGN, X_SERVER_SIGN
from hostwright.standard.roles.driver.failures.load import NOT_SIGNED_SIGN, NOUVEAU_SIGN
from hostwright.standard.roles.driver.failures.logs import in_log
from hostwright.standard.roles.driver.failures.messages.bus import BOUND

#: pattern of the word "error" in messages of gcc and make, in several languages
_ERROR = r"(?:error|Error|ERROR|Fehler|erreur|Erreur|errore|Errore|erro|Erro|Ошибка|ошибка|错误|錯誤|エラー)"

_TOOL = r"(?:gcc|g\+\+|cc|c\+\+|cpp|clang(?:\+\+)?|gfortran|make|ld|as|ar|ranlib|objcopy|objdump)(?:-[0-9.]{1,5})?"
_BINUTILS = r"(?:ld|as|ar|ranlib|objcopy|objdump)"
_BUILD_AGAIN = (
    ", then repeat the failed command; for a module of the driver's, provision again: the base role installs "
    "build-essential and dkms"
)
#: patterns of messages that name a missing program
_NO_TOOL = (
    rf"(?:command|execute|directory:) '(?P<program>(?:\S{{1,60}}-)?{_TOOL})'",
    rf"(?:^|[\s:\"'`/(-])(?P<program>{_TOOL})[\"'`]?: (?:[Cc]ommand not found|not found|No such file or directory"
    r"|executable file not found)",
    r"trying to exec '(?P<program>cc1(?:plus|obj)?|as|collect2|ld)'",
    r"development tool\s{1,9}[`'\"](?P<program>[\w.+-]{1,40})",
    r"cannot find ['\"`](?P<program>ld|as)['\"`]",
    r"cannot execute .?(?P<program>cc1(?:plus|obj)?)",
    r"^not there: (?P<program>[^\n]{1,200})",
)

#: driver branches, oldest first. Distributions replace packages of an ended branch by packages of a newer branch.
_BRANCHES = ("470", "510", "515", "525", "535", "545", "550", "555", "560", "565", "570", "575", "580", "590", "595")
_OF_BRANCH = r"nvidia-[a-z]{2,12}(?:-[a-z]{2,12}){0,2}-"
_ENDED = "|".join(
    rf"\b{_OF_BRANCH}{old}(?:-server|-open){{0,2}}\b[^\n]{{0,100}}[Dd]epends: {_OF_BRANCH}(?:{newer})\b"
    for old, newer in ((old, "|".join(_BRANCHES[place:])) for place, old in enumerate(_BRANCHES[:-1], 1))
)

#: pattern of make's last error lines about a directory in DKMS's tree
_MAKE_FAILED = rf"\*\*\* \[[^\]\n]*\] {_ERROR}"
_IN_OUR_TREE = r"directory ['`‘]/var/lib/dkms/nvidia(?:-current|-open|-srv|-server)*/"

#: patterns of messages that name another module which uses the driver's module
_HELD_BY = (
    r"hostwright: the kernel module (?P<module>\w{1,60}), of somebody else, uses the driver's",
    r"Module '?nvidia\w*'? is in use by:(?: nvidia(?:_uvm|_drm|_modeset))* (?P<module>nvidia_fs|[a-mo-z]\w{0,60})",
)

_SIGNING_KEY = (
    "Compare modinfo -F signer nvidia (empty: not signed) with mokutil --list-enrolled | grep CN=. Find the key with "
    "which DKMS signs (mok_signing_key in /etc/dkms/framework.conf; Ubuntu /var/lib/shim-signed/mok/MOK.der, else "
    "/var/lib/dkms/mok.pub) and enrol it: mokutil --import FILE, reboot, confirm at the console (Enroll MOK); "
    "mokutil --test-key FILE reports whether it is enrolled. If the module is signed with an older key, rebuild it "
    "(dkms install --force -m nvidia -v VERSION). Alternatives: Ubuntu's linux-modules-nvidia-… are signed with a "
    "key that every Ubuntu kernel has; or, if the site allows it, switch Secure Boot off"
)

INSTALLING = (
    FailureRule(
        "driver-branch-ended",
        _ENDED,
        "the distribution has ended this branch of the driver: PACKAGE is an empty package that depends on NEXT, so "
        "nothing of its own branch is installed",
        "Name the newer branch in the stack, by its own packages (NEXT), or install the old branch from NVIDIA's "
        "CUDA repository, which keeps it (driver.repository in the stack; nvidia-driver-pinning-BRANCH there pins a "
        "branch). Installing PACKAGE again gives the same result",
        "xnvme/aisio#67",
        names=(
            rf"(?P<package>{_OF_BRANCH}[0-9]{{3}}(?:-server|-open){{0,2}})\b[^\n]*[Dd]epends: "
            rf"(?P<next>{_OF_BRANCH}[0-9]{{3}}(?:-server|-open){{0,2}})",
        ),
        weight="consequence",
    ),
    FailureRule(
        "nouveau-in-use",
        r"Nouveau kernel driver is currently in\s{1,9}use|is already bound to (?:nouveau|nova)"
        r"|probe routine was not called for[^\n]*(?:\n[^\n]*){1,4}?such as:?[^\n]*(?:\n[^\n]*)?nouveau"
        r"|\bnouveau [0-9a-f:.]{7,12}: [^\n]*(?:\n[^\n]*){1,30}?probe routine was not called"
        r"|configuration files to disable\s{1,9}Nouveau are already|Unable to alter the nouveau",
        "the nouveau driver holds the GPU",
        "Blacklist nouveau, rebuild the initramfs and reboot (the driver role does all three), then provision again",
        "nvidia-installer misc.c; beclab/Olares#3963",
        sign=NOUVEAU_SIGN,
        narrower=BOUND,
        variants=(
            Variant(
                r"bound to nova|drives? \S{0,20}nova|\bnova(?:_core|_drm|core) drives",
                "the kernel's own driver nova (nova_core, nouveau's successor in kernels from 6.15 on) holds the "
                "GPU, so NVIDIA's module, which was built correctly, gets none",
                "Blacklist nova_core, nova_drm and nouveau, rebuild the initramfs and reboot (the driver role does all"
                " three), then provision again",
            ),
        ),
    ),
    FailureRule(
        "x-server",
        r"You appear to be running an\s{1,9}X server"
        r"|appears to contain the\s{1,9}process ID '[0-9]{1,9}' of a running\s{1,9}X server",
        "an X server is running",
        "Stop the display manager (systemctl isolate multi-user.target) and provision again",
        "nvidia-installer misc.c",
        sign=X_SERVER_SIGN,
        treatment=ForPeople(),
    ),
    FailureRule(
        "module-held",
        "|".join(_HELD_BY).replace("?P<module>", "?:"),
        "MODULE, a foreign kernel module, uses the loaded driver, which cannot be replaced before",
        "Stop the programs that use it and unload it (modprobe -r MODULE), then provision again. If DKMS manages it, "
        "it is built for the new driver",
        "nvidia-installer kernel.c; NVIDIA/gpu-driver-container#869",
        sign=MODULE_HELD_SIGN,
        names=(*_HELD_BY, r"/sys/module/nvidia/holders: (?P<module>\w{1,60})"),
        treatment=ForPeople(),
    ),
    FailureRule(
        "module-in-use",
        r"kernel module '[^']*' appears to\s{1,9}(?:already\s{1,9}be|be\s{1,9}already)\s{1,9}loaded"
        r"|Module '?nvidia[\w-]{0,20}'? is in use"
        r"|(?:remove|unload) [^\n]{0,20}nvidia[\w-]{0,20}'?: (?:Resource temporarily|Device or resource busy)"
        r"|hostwright: the kernel module nvidia\w* is in use"
        r"|Unable to unload the '?nvidia|Kernel module load error: Device or resource busy"
        r"|Could not unload NVIDIA driver kernel modules",
        "the loaded NVIDIA module is in use and cannot be unloaded",
        "End the processes that hold /dev/nvidia* (fuser -v /dev/nvidia*; daemons with systemctl stop "
        "nvidia-persistenced nvidia-fabricmanager), then provision again. A reboot of the host also works",
        "nvidia-installer kernel.c; kmod tools/rmmod.c",
        beside=r"Module '?nvidia\w*'? is in use by",
        names=(r"in use by:? {0,3}(?P<modules>nvidia[\w ,]{0,80}[\w])",),
        variants=(
            Variant(
                r"in use by:? {0,3}nvidia",
                "other modules of the driver (MODULES) use the one to be unloaded, which must come last",
                "End the processes that hold /dev/nvidia* (fuser -v /dev/nvidia*; systemctl stop "
                "nvidia-persistenced; a display holds nvidia_drm), then unload in this order: modprobe -r nvidia_drm "
                "nvidia_modeset nvidia_uvm nvidia_peermem nvidia. If allowed, provision does both",
            ),
        ),
        sign=in_log("module-in-use"),
        treatment=Held("the loaded driver is in use and cannot be unloaded"),
    ),
    FailureRule(
        "no-headers",
        r"Unable to find the\s{1,9}kernel source tree|The kernel header file [^\n]+ does not exist"
        r"|kernel (?:headers|source) for kernel \S+ cannot be found|Unable to locate package linux-headers-"
        r"|Package '?linux-headers-\S+ (?:has no installation candidate|is not available)"
        r"|(?:No package|No match for argument:|Unable to find a match:) kernel-(?:devel|headers)"
        r"|Missing \S+ kernel headers for module|skipped since the\s{1,9}kernel (?:headers|source)"
        r"|Module\.symvers file is missing|use the --kernelsourcedir option|autoconf\.h: No such file"
        r"|auto\.conf are missing|(?:autoconf|auto\.conf|kconfig|generated/utsrelease"
        r"|generated/uapi/linux/version)\.?h?'? file not found"
        r"|(?:linux/(?:version|module|kernel|kconfig)|generated/\S+|asm/\w{1,30})\.h: No such file"
        r"|scripts/module\.lds: No such file|scripts/(?:basic/fixdep|mod/modpost): (?:No such file|not found"
        r"|Exec format)"
        r"|lib/modules/[^'\n]+/build['»](?:\n[^\n]*){1,3}?No rule to make target ['`]modules"
        r"|headers for \S+ (?:were )?not found|skipped because[^\n]*headers"
        r"|/lib/modules/\S+/(?:build|source): No such file"
        r"|hostwright: no headers of the running kernel"
        r"|kernel source path '[^'\n]+'\s{1,9}(?:does not exist|is invalid)"
        r"|Neither the '[^\n]+kernel\s{1,9}header\s{1,9}file exists"
        r"|kernel headers for kernel \S+ cannot be found|(?:kernel|linux)[- ]headers (?:are )?(?:not (?:found"
        r"|installed)|missing)"
        r"|Could not resolve Linux kernel version|modules/\S+/build: No such file"
        r"|(?:/lib/modules/|for kernel )2\.[^\n]+\n(?:[^\n]*\n){0,4}?"
        r"[^\n]{0,20}If you are using a Linux 2\.4 kernel",
        "the headers of the running kernel are missing, often because the kernel was upgraded and not booted",
        "Install linux-headers-$(uname -r) (the base role does). If the archive no longer has it, install a new "
        "kernel with its headers, build the driver's module for it (dkms autoinstall -k KERNEL), and only then reboot",
        "nvidia-installer kernel.c",
        # With these messages, the failure is about the initramfs, because dkms skips a kernel without headers.
        narrower=r"update-initramfs: failed for |grep: /boot/config-\S{1,80}: No such file",
        # make prints each command first, and configure tries commands that may fail.
        unless=r"echo \"|conftest",
        sign=NO_HEADERS_SIGN,
    ),
    FailureRule(
        "no-compiler",
        r"Unable to find the\s{1,9}development tool|You do not appear to have libc\s{1,9}header files"
        rf"|(?:command|execute|directory:) '(?:\S{{1,60}}-)?{_TOOL}'(?: failed: No such file|: No such file|$)"
        r"|\b(?:gcc|g\+\+|cc|make)(?:-[0-9.]{1,5})?: (?:command not found|not found|No such file or directory)"
        rf"|(?:: |^|/){_TOOL}['\"`]?: (?:command not found|not found|executable file not found)"
        r"|cannot find ['\"`](?:ld|as)['\"`]|error trying to exec '(?:cc1(?:plus|obj)?|as|collect2|ld)'"
        r"|no acceptable C compiler found|No CMAKE_C(?:XX)?_COMPILER could be found|cannot execute .?cc1"
        r"|hostwright: no C compiler|Failed CC sanity check|does not appear to be able to\s{1,9}create executables"
        r"|Ninja is required to load C\+\+ extensions|No such file or directory: 'ninja'|Failed to find C compiler"
        r"|Cannot find (?:a )?C compiler|No working C\+\+ compiler found|(?:stdio|features"
        r"|sys/cdefs)\.h: No such file|unable to find a build program corresponding to",
        "{PROGRAM is missing|a compiler, make or the C library's headers are missing}: nothing can be built without it",
        "Install gcc (Debian, Ubuntu: build-essential, which contains gcc, g++, make and the C library's headers; "
        f"Red Hat: gcc){_BUILD_AGAIN}",
        "nvidia-installer misc.c; gcc gcc.c, execvp; GNU make src/job.c",
        sign=NO_COMPILER_SIGN,
        unless=r"conftest",
        names=_NO_TOOL,
        variants=(
            Variant(
                r"[Nn]inja",
                "ninja is missing, which a package uses to compile its C++ and CUDA sources at run time or "
                "installation",
                "Install it in the program's environment (pip install ninja) and start the program with the "
                "environment activated (its bin on PATH); or run apt-get install ninja-build",
            ),
            Variant(r"^not there: ", cure="Provision again: the base role installs build-essential and dkms"),
            Variant(
                r"(?:gcc|g\+\+|cpp|gfortran|clang)-[0-9.]{1,5}['\"`]?(?:: (?:[Cc]ommand |)not found|: No such|"
                r" failed: No such|: executable file|$)",
                "PROGRAM is missing: this build requires that release of the compiler, and the host has another or "
                "none (a kernel module usually requires the compiler of its kernel, see /proc/version)",
                "Run apt-get install PROGRAM (apt-cache policy PROGRAM shows whether a repository of the host has "
                "it). If none has it, use an installed compiler (CC=gcc, CXX=g++; update-alternatives --display "
                f"gcc){_BUILD_AGAIN}",
            ),
            Variant(
                r"g\+\+|c\+\+|cc1plus|CMAKE_CXX_COMPILER",
                "the C++ compiler{, PROGRAM,|} is missing: no C++ can be built without it",
                "Install g++ (Debian, Ubuntu: g++, or build-essential, which contains gcc and make too; Red Hat: "
                f"gcc-c++){_BUILD_AGAIN}",
            ),
            Variant(
                r"(?:^|[^\w+-])make['\"`]?(?:: |'|$)[^\n]*(?:not found|No such)|directory: 'make'|tool\s{1,9}[`'\"]make"
                r"|corresponding to .?Unix Makefiles",
                "make is missing: nothing can be built without it",
                f"Install make (the package has this name in all distributions){_BUILD_AGAIN}",
            ),
            Variant(
                rf"(?:exec|find|tool) ['`\"](?:{_BINUTILS}|collect2)['\"`]|(?:: |^|/|'){_BINUTILS}['\"`]?: ",
                "{PROGRAM|the assembler or linker}, of the package binutils, is missing: a compiler alone cannot build",
                f"Install binutils{_BUILD_AGAIN}",
            ),
            Variant(
                r"libc\s{1,9}header|(?:stdio|features|sys/cdefs)\.h: No such",
                "the headers of the C library are missing: a compiler alone cannot build",
                f"Install libc6-dev (Red Hat: glibc-devel){_BUILD_AGAIN}",
            ),
            Variant(
                r"(?:^|[^\w+])cpp['\"`]?: |'cpp'|[^\w]cc1['\"`]",
                "{PROGRAM|cpp}, the C preprocessor or the compiler behind gcc, is missing",
                f"Install cpp and gcc of one release (apt-get install --reinstall gcc cpp){_BUILD_AGAIN}",
            ),
        ),
    ),
    FailureRule(
        "compiler-too-old",
        r"unrecognized command[- ]line option .?-(?:ftrivial-auto-var-init|mharden-sls|fzero-call-used-regs"
        r"|fmin-function-alignment|fcf-protection|mfunction-return|mindirect-branch|fpatchable-function-entry"
        r"|fstack-protector-strong|fstrict-flex-arrays|mrecord-mcount)"
        r"|unrecognized command[- ]line option .?-(?:ftrivial-auto|fzero-init-padding|mindirect-branch-cs|mharden)",
        "the kernel was built with a newer gcc than the host's default compiler",
        "Install the gcc of /proc/version (gcc-12 for Ubuntu 22.04's 6.x kernels) and make it cc",
        "pop-os/pop#3117, GoogleCloudPlatform/compute-gpu-installation#15",
        sign=in_log("compiler-too-old", when=unbuilt_by_ours),
        treatment=ForPeople(),
    ),
    FailureRule(
        "compiler-mismatch",
        r"(?:Compiler|CC|gcc)[- ]version[- ]check failed|does not (?:exactly )?match the (?:current\s{1,9}compiler"
        r"|compiler used here)"
        r"|Failed CC version check|incompatible gcc/plugin versions"
        r"|Ignoring CC version mismatch[^\n]*(?:\n[^\n]*){1,25}?Unable to load the kernel module"
        r"|unrecognized command[- ]line option .?-(?:mretpoline-external-thunk|mllvm|fsplit-lto-unit|flto=thin"
        r"|fsanitize=kcfi|mstack-alignment=|no-integrated-as)|You are building kernel with non-retpoline compiler",
        "the compiler is not the one that the kernel was built with: another version or, with clang, another compiler",
        "Pass --no-cc-version-check (the driver role does). If the build then fails, install the kernel's own gcc",
        "GoogleCloudPlatform/compute-gpu-installation#15",
        sign=in_log("compiler-mismatch", when=unbuilt_by_ours),
        treatment=Stuck("the driver's last build failed"),
    ),
    OTHER_MODULE,
    FailureRule(
        "gpl-only-symbol",
        r"GPL-incompatible module \S+ uses\s{1,9}GPL-only symbol|module using GPL-only symbols uses symbols",
        "a fix in this kernel's stable series made a function GPL-only that the module in the line calls",
        "Install a newer release of that module: for nvidia's own, name a newer one of its branch in the stack. If "
        "there is none, stay on an older kernel of the series that has all modules for the host",
        "void-linux/void-packages#48504; NVIDIA/open-gpu-kernel-modules#866",
        names=(r"module (?P<module>[\w-]{1,40})(?:\.ko)? uses",),
        variants=(
            Variant(
                r"module nvidia[\w-]{0,20}\.ko uses",
                "a fix in this kernel made a function GPL-only that NVIDIA's proprietary module (MODULE) calls, so "
                "the module does not build. The open module, which is under the GPL too, may call the function",
                "Name a newer release of the driver's branch in the stack, which no longer calls it. Or, if all "
                "cards are Turing or newer and the branch is R515 or later, use the open module of the same release "
                "(driver.module: open in the stack; packages with -open). If neither is possible, stay on an older "
                "kernel of the series that has all modules for the host",
            ),
        ),
        sign=in_log("gpl-only-symbol", when=unbuilt_by_ours),
        treatment=ForPeople(),
    ),
    FailureRule(
        "module-loading-off",
        r"hostwright: no kernel module can be loaded on this host",
        "the kernel accepts no module from this host, whatever its signature: the host is a container, or "
        "kernel.modules_disabled is set",
        "If the host is a container, provision the machine whose kernel it shares. Otherwise remove "
        "kernel.modules_disabled from /etc/sysctl.d and from other boot settings, and reboot",
        "Linux kernel/module/main.c, may_init_module; sysctl/kernel.rst, modules_disabled",
        sign=in_log("module-loading-off"),
        treatment=ForPeople(),
    ),
    FailureRule(
        "module-not-signed",
        r"(?:insert|[Ll]oad|init_module|modul)[^\n]*: (?:Required\s{1,3}key not available|Key was rejected by service)"
        r"|not\s{1,9}signed by a key that is\s{1,9}trusted|Loading of unsigned module is rejected"
        r"|Loading of module with (?:unavailable key|unsupported crypto) is rejected"
        r"|unsigned module loading is restricted"
        r"|(?:could not insert|error inserting|insert module)[^\n]+: (?:-1 )?Operation not permitted"
        r"|Invalid module signature"
        r"|kernel does not trust any key"
        r"|signed kernel module failed to\s{1,9}load|module failed to load[. ]{1,3}Secure boot is\s{1,9}enabled"
        r"|module is not signed with (?:a )?recognized key",
        "Secure Boot (or kernel lockdown) is on and the module is not signed by a key that the firmware trusts",
        "Enrol DKMS's key with mokutil --import and confirm it at the console during the next boot; or, if the site "
        "allows it, switch Secure Boot off in the firmware",
        "nvidia-installer kernel.c; awesometic/realtek-r8126-dkms#3",
        variants=(
            Variant(
                r"unavailable key",
                "Secure Boot is on, and the module is signed with a key that the kernel does not have: no key is "
                "enrolled, or another key than DKMS's",
                _SIGNING_KEY,
            ),
            Variant(
                r"Key was rejected by service|Required\s{1,3}key not available|recognized key",
                "Secure Boot is on, and the module is not signed, or signed with a key that the kernel does not "
                "have: no key is enrolled, or another key than DKMS's",
                _SIGNING_KEY,
            ),
        ),
        sign=NOT_SIGNED_SIGN,
        treatment=ForPeople(),
    ),
    FailureRule(
        "kernel-without-precompiled",
        r"NVIDIA driver: filtering kernel [^\n]*no precompiled modules[^\n]*",
        "the driver is installed with precompiled modules (a module stream of dnf without -dkms), and NVIDIA has "
        "none of release {VERSION|that release} for the newer kernels, so dnf excludes these kernels from the update",
        "Wait for a driver release with modules for the kernel, or change to the stream that builds them: dnf module "
        "reset nvidia-driver, then dnf module install nvidia-driver:BRANCH-dkms (open-dkms). Keep the dnf plug-in: "
        "without it the host boots a kernel without a driver",
        "NVIDIA/yum-packaging-precompiled-kmod#50",
        names=(r"for version (?:[0-9]:)?(?P<version>[0-9][0-9.]{2,12}[0-9])",),
    ),
    FailureRule(
        "stale-dkms",
        r"DKMS tree already contains"
        r"|Failed to run [^\n]+dkms[^\n]*(?:\n[^\n]*){0,6}?\n[^\n]*already found in\s{1,9}kernel"
        r"|Error! Module version [^\n]+\s{1,9}(?:exactly matches|is not newer than) what is already",
        "this version of the module already exists: in DKMS's tree from an earlier run, or in the kernel's "
        "directory, not installed by DKMS",
        "If the module is nvidia's, provision again: the driver role removes the old entry from DKMS. For another "
        "module, run dkms status first: if it is installed for the running kernel, no action is needed; otherwise "
        "dkms install --force -m MODULE -v VERSION replaces the existing one. A copy that the line reports in the "
        "kernel is not DKMS's: modinfo -n MODULE prints its path",
        "negativo17/nvidia-driver#56",
        names=(
            r"already contains: (?P<module>[\w.+-]{1,60}?)[-/](?P<version>[0-9][\w.+-]{0,40})",
            r"DKMS tree already contains: (?P<module>[\w.+-]{1,60})",
            r"Module version (?P<version>\S{1,40}) for (?P<module>[\w-]{1,60})(?:\.ko\S{0,4})?\s",
        ),
        sign=in_log("stale-dkms", provision=True),
    ),
    FailureRule(
        "other-installer",
        r"installed\s{1,9}previously using\s{1,9}a different\s{1,9}installer"
        r"|presence of an\s{1,9}alternate\s{1,9}driver\s{1,9}installation",
        "the distribution's NVIDIA packages are, or were, on the host",
        "Provision again: the driver role purges them, with the dependent packages that the plan lists, and removes "
        "/usr/lib/nvidia/alternate-install-present",
        "nvidia-installer misc.c",
        sign=OTHER_INSTALLER_SIGN,
        treatment=Tangled("the distribution's driver packages are, or were, on the host"),
    ),
    FailureRule(
        "flag-unknown",
        r"[Ii]nvalid commandline, please run"
        r"|nvidia-installer: unrecognized option|Unrecognized flag ?: ",
        "the installer got an option that its branch does not have",
        "Check the driver role's flags: R470 has neither --rebuild-initramfs nor --kernel-module-type",
        "nvidia-installer option_table.h",
        sign=in_log("flag-unknown"),
        treatment=Stuck("the driver's last installation failed"),
    ),
    FailureRule(
        "dkms-build",
        r"\bmodpost: \S+ \[[^\]\n]*nvidia[^\]\n]*\] undefined"
        rf"|(?:\bnv|\bnv-[\w-]{{1,60}}|\bnvidia[\w-]{{0,60}}|\buvm[\w-]{{0,60}}|\bos-[\w-]{{1,40}})\.[ch]"
        rf":[0-9]{{1,6}}:(?:[0-9]{{1,4}}:)? ?(?:fatal )?{_ERROR}"
        rf"|\*\*\* \[[^\]\n]*[/ ]nv[\w-]{{0,60}}\.o\] {_ERROR} [1-9]"
        rf"|\*\*\* \[[^\]\n]*(?:kernel(?:-open)?/nvidia|scripts/Makefile\.(?:build|modpost"
        rf"|modfinal))[^\]\n]*\]"
        rf" {_ERROR} [1-9]"
        r"|\.c:[0-9]{1,6}:[0-9]{1,4}: (?:fatal )?error: [^\n]*struct (?:drm|mm|vm|pci|dma|file|proc|task|timer"
        r"|net)_\w{1,30}"
        r"|\bnvidia[\w-]{0,20}/[\w/-]{1,80}\.[ch]:[0-9]{1,6}:(?:[0-9]{1,4}:)? ?(?:fatal )?error: "
        r"|fatal error: (?:nv-\w|nvidia[\w-]*/nv|nvtypes|uvm_|os-interface|nv_)[\w./-]{0,60}\.h: No such file"
        r"|implicit declaration of function [‘'`](?:crypto|drm|pci|dma|vm|mm|kthread|ioremap|get_user_pages|pin_user"
        r"|do_gettimeofday"
        r"|del_timer|timer|pde|proc|efi|acpi|follow_pfn|screen_info|register_|unregister_|set_memory|follow_|vfs|i2c"
        r"|ktime)\w{0,40}[’']"
        r"|/dkms/\S+\.[ch]:[0-9]{1,6}:[0-9]{1,4}: ?(?:fatal )?error"
        r"|\*\*\* \[[^\]\n]*/var/lib/dkms/[^\]\n]+\] \w{3,12} [1-9]"
        r"|(?:nvlink|nvswitch|ibmnpu|nvkms|vgpu)[\w-]{0,40}\.[ch]:[0-9]{1,6}:[0-9]{1,4}: ?(?:fatal )?error"
        r"|ERROR: .\w{1,80}. \[[^\]\n]*nvidia[^\]\n]*\] undefined"
        r"|\berror: [^\n]{0,40}[‘'`](?:const )?struct (?:drm|vm|mm|pci|dma|file|proc|task|timer|net|backlight|fb|dev"
        r"|kobj|device|bus)_?\w{0,30}[’'] has no member named|\berror: [‘'`]DRM_\w+[’'] undeclared"
        r"|\berror: too (?:few|many) arguments to function [‘'`](?:drm|get_user_pages|pin_user|vma|vm|dma|pci|follow"
        r"|timer|class_create|acpi|backlight|migrate_vma|register_|unregister_)\w{0,40}[’']"
        r"|fatal error: (?:drm/drm\w{0,40}|linux/(?:swiotlb|of_gpio|dma-\w[\w-]{1,20}|iosys-map|mmu_notifier"
        r"|screen_info|aperture|time|pci-\w[\w-]{1,20}))\.h: No such file"
        r"|\*\*\* \[[^\]\n]*/usr/src/nvidia-[^\]\n]+\] \w{3,12} [1-9]"
        r"|is a PREEMPT_RT kernel"
        rf"|{_MAKE_FAILED}[^\n]*\n(?:[^\n]*\n){{0,5}}?[^\n]*{_IN_OUR_TREE}"
        rf"|{_IN_OUR_TREE}[^\n]*\n(?:[^\n]*\n){{0,30}}?[^\n]*{_MAKE_FAILED}"
        r"|(?:cannot find|No rule to make target) [^\n]{0,200}\bnv(?:-modeset)?-kernel\.o"
        r"|\bnvidia[\w/.-]{0,80}\.o: error: objtool: "
        r"|dkms\.conf for module nvidia[\w-]{0,20} includes a BUILD_EXCLUSIVE",
        "{the driver's module, release VERSION, did not compile for the kernel KERNEL|a kernel module did not "
        "compile}, usually because the kernel is newer than this release of the module supports",
        "Find the first error in make.log of the failed module (/var/lib/dkms/MODULE/VERSION/build). If the module "
        "is nvidia's, name a newer release of its branch, or a newer branch, in the stack, or boot and keep a kernel "
        "that it supports; then run dpkg --configure -a if packages wait for it. Sources patched for another kernel "
        "fail in the same way. For another module, install a newer release of it",
        "nvidia-installer misc.c",
        beside=r"[Cc]onsult [^\n]*/dkms/nvidia"
        r"|: ?(?:fatal )?error: [^\n]*(?:conflicting types|implicit declaration|incompatible[- ]pointer|keyword)",
        closing=r"Failed to install the kernel module through\s{1,9}DKMS|Bad return status for module build"
        r"|(?:Failed|Unable) to build the\s{1,9}NVIDIA kernel module|\(bad exit status: [1-9]"
        r"|DKMS module '?nvidia\S* (?:failed to build|for \S+ FAILED)|failed for [^\n]{0,200}\bnvidia[^\s(]*\([1-9]"
        r"|error occurred while performing the step: \"(?:Building kernel modules|Checking to see whether the nvidia)"
        r"|The (?:NVIDIA|nvidia)\S{0,20} kernel\s{1,9}module was not\s{1,9}(?:created|built)"
        r"|Errors were encountered while processing:(?:\n[^\n]*){0,4}?\n[^\n]* nvidia-(?:kernel-)?dkms"
        r"|Error! {1,2}Build of \S+\.ko failed for: |\bnvidia\S{0,20}\.ko failed to build"
        r"|nvidia[\w-]{0,20}dkms\S{0,20} package post-installation script [^\n]*exit status 10\b"
        r"|Failed to run .+dkms\s{1,9}(?:build|install)"
        r"|dkms (?:build|install) [^\n]{0,60}nvidia[^\n]{0,60} exited [1-9]|/akmods/nvidia[^\n]{0,80}failed\.log"
        r"|builder for '[^'\n]*-nvidia-(?:x11|open|kernel)[^'\n]*\.drv' failed",
        names=(
            r"/dkms/(?P<module>nvidia(?:-current|-open|-srv|-server)*)/(?P<version>[0-9][0-9.]{2,12}[0-9])",
            r"DKMS module 'nvidia-(?P<version>[0-9][0-9.]{2,12}[0-9])' for kernel-(?P<kernel>[\w.+-]{3,60}?)\.{3}",
            r"build on kernel: (?P<kernel>[\w.+~-]{3,80})",
            r"/usr/src/(?:linux-headers|kernels)[-/](?P<kernel>[\w.+~-]{3,80})/",
            r"/NVIDIA-Linux-x86_64-(?P<version>[0-9][0-9.]{2,12}[0-9])(?:-no-compat32)?/kernel",
        ),
        variants=(
            Variant(
                r"conftest\w*\.c[^\n]*incompatible[- ]pointer",
                "the compiler (GCC 14 or newer) treats former warnings as errors, so this driver release's tests of "
                "the kernel (conftest) give wrong results, and its module does not compile",
                "Name a newer release of the driver's branch in the stack (535.161, 550.54.14 and later support GCC "
                "14), or build with the compiler that the kernel was built with (/proc/version). Kernel and headers "
                "are not the cause",
            ),
            Variant(
                r"conflicting types for [‘'`](?:vm_fault_t|timespec64_to_ns|ktime_get_\w{1,20})"
                r"|implicit declaration of function [‘'`]phys_to_dma"
                r"|argument 1 of [‘'`]ktime_get_\w{1,20}[’'] from incompatible"
                r"|cannot use keyword [‘'`](?:false|true|bool)|[‘'`]bool[’'] cannot be defined via [‘'`]typedef",
                "this driver release's tests of the kernel (conftest) gave wrong results, so it declares again what "
                "the kernel already has: usually the compiler is newer than the release supports (GCC 15 uses C23 by "
                "default)",
                "Build with the compiler that the kernel was built with (/proc/version), or name a newer release of "
                "the driver's branch in the stack. Kernel and headers are not the cause",
            ),
            Variant(
                r"BUILD_EXCLUSIVE",
                "the driver's module excludes this kernel (BUILD_EXCLUSIVE in its dkms.conf), such as one with "
                "PREEMPT_RT or of another architecture, so DKMS builds no module for it",
                "Boot a kernel that the module supports, or name a driver release in the stack that supports this one",
            ),
        ),
        sign=BUILD_FAILED_SIGN,
        treatment=Tangled("DKMS's tree is broken"),
        unless="warning: implicit",
    ),
)
