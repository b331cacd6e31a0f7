"""Messages of the loaded module, of the driver's tools and of Fabric Manager."""

from __future__ import annotations

from hostwright.failures import FailureRule, ForPeople, Hardware, Stuck, Tangled, Variant
from hostwright.standard.roles.driver.failures import fabric
from hostwright.standard.roles.driver.failures.build import MISSING_SIGN
from hostwright.standard.roles.driver.failures.cards.lost import GPU_LOST_SIGN
from hostwright.standard.roles.driver.failures.cards.treatments import CYCLE, GPUD, NO_POWER
from hostwright.standard.roles.driver.failures.install import STUB, VERSION_MISMATCH_SIGN
from hostwright.standard.roles.driver.failures.load import FIRMWARE_SIGN, GPU_UNSUPPORTED_SIGN, NO_DEVICE_SIGN

#: pattern of messages about a container's start, or about a libcuda that does not match the module
_IN_CONTAINER = (
    r"(?:docker|podman|nerdctl|kubectl) (?:run|exec|compose)|--runtime[= ]nvidia|--gpus\b|/cuda[^\s/]*/compat"
)
_COMBINATION = r"system has unsupported display driver / cuda driver combination"

RUNNING = (
    FailureRule(
        "gpu-reset-in-use",
        r": In use by another client|currently being used by one or more other processes"
        r"|GPU (?:\S{1,40} )?is currently in use by another process",
        "a card cannot be reset, or its MIG mode or instances changed, while it is open: by a program, a daemon "
        "(nvidia-persistenced, DCGM, Fabric Manager), an X server, or the module nvidia_drm",
        "Find the users (nvidia-smi; fuser -v /dev/nvidia* as root; lsmod for nvidia_drm) and stop them (systemctl "
        "stop nvidia-persistenced nvidia-dcgm; nvidia-smi -pm 0 -i N; modprobe -r nvidia_drm), repeat the command, "
        "and start the daemons. A pending mode also takes effect at a reboot",
        "NVML, NVML_ERROR_IN_USE; NVIDIA/mig-parted#181; NVIDIA/gpu-operator#118",
    ),
    FailureRule(
        "dcgm-not-running",
        r"[Uu]nable to connect to host ?engine|Host engine connection invalid|Failed to start DCGM Server"
        r"|Host ?engine is not running|DCGM_ST_CONNECTION_NOT_VALID",
        "DCGM's daemon (nv-hostengine) does not run or does not start, so dcgmi and exporters get no answer",
        "Start it (systemctl start nvidia-dcgm), and check its journal and /var/log/nv-hostengine.log: it needs a "
        "working driver (nvidia-smi), the free port 5555, and to be the only instance",
        "NVIDIA/DCGM#57, #21; dcgm_structs.h, DCGM_ST_CONNECTION_NOT_VALID",
        weight="consequence",
    ),
    FailureRule(
        "dcgm-profiling",
        r"[Tt]hird-party Profiling module returned an unrecoverable error|Profiling module returned an unrecoverable",
        "DCGM cannot read a card's profiling counters: another program uses them (Nsight, a second exporter or "
        "nv-hostengine), or this DCGM does not support this driver or card",
        "Let only one program profile at a time (dcgmi profile --pause while Nsight runs), and update DCGM to the "
        "driver's branch; other values are not affected",
        "NVIDIA/DCGM#62; NVIDIA/dcgm-exporter#330",
    ),
    FailureRule(
        "fabric-manager-config",
        r"fabric manager config file item: \S+ has an invalid value|Failed to (?:open|parse) fabric manager config",
        "Fabric Manager rejects its configuration: ITEM has a value that this release does not support, or names a "
        "missing file; probably the configuration belongs to another release",
        "Restore the release's own /usr/share/nvidia/nvswitch/fabricmanager.cfg (reinstall its package with "
        "--force-confnew), set the site's values again one by one, and restart nvidia-fabricmanager",
        "NVIDIA Fabric Manager user guide, config file; siderolabs/extensions#511",
        names=(r"config file item: (?P<item>\S{1,60}) has",),
    ),
    FailureRule(
        "libcuda-not-found",
        r"\blibcuda\.so[.0-9]{0,12}: cannot open shared object\s{1,40}file|UNKNOWN ERROR \(303\)"
        r"|(?:Could not load dynamic|dlopen) library '?libcuda\.so|(?:could not|cannot|unable to|failed to) (?:find"
        r"|load|open|locate) (?:the )?(?:library )?[\"'`]?libcuda(?:\.so|\b)|libcuda\.so[.0-9]{0,4} (?:was "
        r"|could )?not (?:be )?found|CUDA driver library [^\n]*not be found"
        r"|CUDA_ERROR_SHARED_OBJECT_INIT_FAILED|cudaErrorSharedObjectInitFailed|couldn't find libnvidia-ml\.so"
        r"|\blib(?:nvidia-ml|nvidia-cfg|nvidia-ptxjitcompiler|nvcuvid"
        r"|nvidia-encode)\.so[.0-9]{0,12}: cannot open shared object|(?:cannot|could not|failed to|unable to) (?:load"
        r"|open) lib(?:nvidia-ml|nvcuvid|nvidia-encode)\.so",
        "the program does not find the driver's library {LIBRARY|libcuda.so.1}: the host has no NVIDIA driver, the "
        "container was started without GPUs, or the loader does not search the library's directory",
        "Run nvidia-smi and ldconfig -p | grep -e libcuda -e libnvidia-ml. If only nvidia-smi works, run ldconfig as "
        "root; if neither finds the driver, provision the driver, or start the container with --gpus all. If a "
        "program needs libcuda.so without a number, set the driver's directory for it (WSL: /usr/lib/wsl/lib). A "
        "Flatpak has its own driver libraries: flatpak update installs the host's version",
        "CUDA driver API; TensorFlow dso_loader.cc; tensorflow/tensorflow#42761",
        closing=r"Found no NVIDIA driver on your system|NVMLError_LibraryNotFound|NVML Shared Library Not Found"
        r"|\bnvidia-smi['\"]?: (?:command )?not found",
        unless=r"GPU will not be used|\bCPU\b|skip|optional|fall(?:ing|s)? back",
        beside=r"driver (?:was )?detected, but|[Ff]latpak|org\.freedesktop\.Platform"
        r"|[Cc]apabilities\W{1,8}(?:gpu\W{1,6})?utility\W{0,6}$|DRIVER_CAPABILITIES=utility\s*$",
        names=(
            r"(?P<library>lib(?:cuda|nvidia-ml|nvidia-cfg|nvidia-ptxjitcompiler|nvcuvid"
            r"|nvidia-encode)\.so(?:\.[0-9]{1,3})?)",
        ),
        variants=(
            Variant(
                r"[Cc]apabilities\W{1,8}(?:gpu\W{1,6})?utility\W{0,6}$|DRIVER_CAPABILITIES=utility\s*$",
                "the container requests only the driver's programs (capability utility), without compute: it gets "
                "nvidia-smi and libnvidia-ml, but not {LIBRARY|libcuda.so.1}",
                "Request compute as well: capabilities: [gpu] alone in a compose file, or [gpu, compute, utility]; "
                "NVIDIA_DRIVER_CAPABILITIES=compute,utility in the container's environment. Driver and toolkit are "
                "not the cause",
            ),
            Variant(
                r"driver (?:was )?detected, but|[Ff]latpak|org\.freedesktop\.Platform",
                "the driver is installed, and the program does not find its library {LIBRARY|libnvidia-ml.so.1}: it "
                "runs in a Flatpak or another container, which needs libraries of exactly the host driver's version "
                "and has none, or those from before an upgrade",
                "Run nvidia-smi on the host: if it works, keep the driver. Run flatpak update to get the runtime of "
                "that version (org.freedesktop.Platform.GL.nvidia-…). Until it is published, return to the previous "
                "driver, or use another container with --gpus all",
            ),
            Variant(
                r"nvidia-smi['\"]?: (?:command )?not found",
                "nvidia-smi is missing: the host has no NVIDIA driver, or not its programs (nvidia-utils-…, "
                "nvidia-smi), or the container was started without GPUs",
                "On a host, provision the driver, or install the driver's own package with its programs at the same "
                "version (Ubuntu nvidia-utils-BRANCH, Debian nvidia-smi). In a container, start it with --gpus all",
            ),
            Variant(
                r"NVMLError_LibraryNotFound|NVML Shared Library Not Found",
                "the program (pynvml or another user of NVML) does not find the driver's library libnvidia-ml.so.1: "
                "the host has no NVIDIA driver, the container was started without GPUs or without the capability "
                "utility, or the loader does not search the library's directory",
            ),
        ),
    ),
    FailureRule(
        "gpu-unsupported",
        r"installed in this (?:vGPU host )?system\s{1,9}(?:NVRM: )?(?:is not supported by|requires use of)"
        r"|does not include the required GPU|NVIDIA GPU supported by the(?:\s|#012|NVRM: ){1,20}proprietary"
        r"|is supported(?:\s|NVRM: ){1,9}through the|supported through (?:the )?NVIDIA\s{1,9}"
        r"(?:[0-9.x]{1,12}\s{1,9})?legacy"
        r"|ignoring the legacy GPU|Open nvidia\.ko is only ready for use on Data Center GPUs"
        r"|kernel modules are incompatible with the\s{1,9}GPU"
        r"|[Yy]our card is (?:not supported by any driver version|only supported (?:up to|by) the)",
        "the GPU is newer (Ada, Hopper, Blackwell) or older than this driver branch or its kind of module supports: "
        "the open module needs Turing or newer, the proprietary one does not support Blackwell",
        "Choose a stack whose driver and kind of module support this GPU",
        "NVIDIA/nvtrust#55",
        beside=r"NVRM: The NVIDIA [^\n]{0,80}GPU |NVRM: NVIDIA [0-9.]{3,20} driver release"
        r"|NVRM: +(?:System Processor|nvidia\.ko because|information)",
        names=(
            r"(?:through|up to|by) the\s{0,3}(?:NVIDIA )?(?:Tesla )?(?P<branch>[0-9]{2,3}(?:\.[0-9x]{1,4})?) "
            r"(?:legacy|drivers? series)",
            r"The NVIDIA (?:NVIDIA )?(?P<card>[A-Z][^\n]{2,60}) GPU installed",
            r"any driver version up to (?P<release>[0-9.]{3,12}[0-9])",
        ),
        variants=(
            Variant(
                r"legacy|only supported (?:up to|by) the",
                "{CARD|the card} is older than this driver branch supports{: BRANCH is the last branch that supports "
                "it|}",
                "Name {a driver of branch BRANCH|the branch that the message names} in the stack, with the "
                "proprietary module if the card is older than Turing; `invoke stacks --hosts HOST` lists the stacks "
                "that fit",
            ),
            Variant(
                r"not supported by any driver version",
                "the card is newer than every driver among the host's package sources{ (up to RELEASE)|}: it needs "
                "another branch",
                "Choose a stack with a newer branch from NVIDIA's own repository or .run, with the open module, "
                "which Blackwell and later need (`invoke stacks --hosts HOST` lists the stacks that fit). "
                "nvidia-detect uses its own list: lspci -nn -d 10de: prints the card, for NVIDIA's list of supported "
                "products",
            ),
            Variant(
                r"requires use of the|proprietary kernel modules are incompatible",
                "the GPU needs the open kernel module, as Blackwell does, and the host has the proprietary one",
                "Set driver.module: open in the stack, or remove the setting (auto selects the right one), and "
                "provision again; for packages, name the set with -open",
            ),
            Variant(
                r"only ready for use on Data Center",
                "the open kernel module of this branch supports only data-centre cards, and the host has another kind",
                "Set driver.module: proprietary in the stack, or remove the setting (auto selects the right one), or "
                "name a branch from 560 on, whose open module supports all cards from Turing on",
            ),
            Variant(
                r"not supported by open\b|does not include the required GPU|System Processor \(GSP\)"
                r"|open kernel modules are incompatible",
                "the GPU is older than Turing and has no GSP, which the open kernel module needs",
                "Set driver.module: proprietary in the stack, or remove the setting (auto selects the right one), "
                "and provision again; branch 580 is the last one for Maxwell, Pascal and Volta",
            ),
        ),
        sign=GPU_UNSUPPORTED_SIGN,
        treatment=ForPeople(),
    ),
    FailureRule(
        "image-libcuda-first",
        rf"(?:{_IN_CONTAINER})[^\n]*\n(?:[^\n]*\n){{0,40}}?[^\n]*{_COMBINATION}"
        rf"|{_COMBINATION}[^\n]*\n(?:[^\n]*\n){{0,40}}?[^\n]*(?:{_IN_CONTAINER})",
        "in the container, the program loads the image's own libcuda (CUDA's compatibility directory) instead of the "
        "host driver's, which is newer: the image lists it in /etc/ld.so.conf.d or LD_LIBRARY_PATH",
        "Put the driver's library first: -e LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/usr/local/nvidia/lib for the "
        "container, or an image without that entry (rm /etc/ld.so.conf.d/*compat*; ldconfig). If nvidia-smi works on "
        "the host, keep its driver",
        "NVIDIA's CUDA compatibility guide; gpustack/gpustack#4678",
    ),
    FailureRule(
        "version-mismatch",
        r"[Dd]river/library version mismatch|API mismatch: (?:the |this )?(?:NVIDIA |client)"
        r"|NVRM: API mismatch|kernel version \S{3,20} does not match DSO version|LIB_RM_VERSION_MISMATCH"
        r"|NVML/RM version mismatch|system has unsupported display driver / cuda driver combination"
        r"|SYSTEM_DRIVER_MISMATCH|cudaErrorSystemDriverMismatch"
        r"|has the version [0-9.]{3,20}, but\s{1,9}(?:NVRM: )?this kernel module has|RM version mismatch"
        r"",
        "{the loaded kernel module has version MODULE, and the user-space libraries have LIBRARY|the loaded kernel "
        "module has another version than the user-space libraries}. They must be equal to the last number: the "
        "libraries were upgraded since the module was loaded, or a container's image contains its own",
        "Provision again: the driver role ends the programs on the GPU, if allowed, and loads the module of the "
        "libraries' version, or reboots. By hand, first check that the module on disk has that version (modinfo -F "
        "version nvidia, for the kernel of the next boot with -k KERNEL), else a reboot changes nothing. If only a "
        "container is affected and nvidia-smi works on the host, remove the driver's libraries (libnvidia-*, "
        "nvidia-utils) from the image: the container toolkit mounts the host's",
        "shine-cluster#50",
        beside=r"this kernel module has the version|the client has the version|NVML library version: [0-9]"
        r"|NVRM version: |NVIDIA-Linux-x86_64-[0-9.]+\S*\.run|open-gpu-kernel-modules-[0-9]",
        names=(
            r"NVIDIA-Linux-x86_64-(?P<library>[0-9.]{3,20}[0-9])\S{0,20}\.run",
            r"(?:NVML library version:|client (?:has|\(has) (?:the )?version) (?P<library>[0-9.]{3,20}[0-9])",
            r"open-gpu-kernel-modules-(?P<module>[0-9][0-9.]{2,20}[0-9])",
            r"Kernel Module (?: for \w{3,10} )? ?(?P<module>[0-9][0-9.]{2,20}[0-9])",
            r"kernel module has (?:the )?version (?P<module>[0-9.]{3,20}[0-9])",
        ),
        variants=(
            Variant(
                r"open-gpu-kernel-modules-[0-9]|--no-kernel-modules?\b",
                "the modules were built by hand from sources of another version{ (MODULE)|} than the user-space "
                "libraries{ (LIBRARY)|}; they must be equal to the last number",
                "Remove the user space (nvidia-uninstall) and install the one of exactly the modules' version "
                "({NVIDIA-Linux-x86_64-MODULE.run|the .run of that version} --no-kernel-modules), or build the "
                "modules from sources of the libraries' version; then reload them. A reboot alone changes nothing",
            ),
            Variant(
                r"unsupported display driver|SYSTEM_DRIVER_MISMATCH|cudaErrorSystemDriverMismatch",
                "the program's libcuda has another version than the loaded kernel module: the driver was upgraded "
                "since the module was loaded, or another libcuda comes before the driver's, such as CUDA's "
                "compatibility library in an image",
                "Run nvidia-smi on the host. If it reports a mismatch, provision again: the driver role loads the "
                "module of the libraries' version, or reboots. If it works, the host's driver is not the cause: find "
                "the libcuda that the program loads (ldconfig -p | grep libcuda, LD_LIBRARY_PATH, in a container the "
                "image's), and remove the compat directory from its path",
            ),
        ),
        sign=VERSION_MISMATCH_SIGN,
    ),
    FailureRule(
        "gsp-firmware-missing",
        r"RmFetchGspRmImages: No firmware image found|Direct firmware load for nvidia/[0-9.]{3,12}/gsp\S{0,20} failed"
        r"|(?:GSP|gsp)[^\n]*firmware (?:image )?version mismatch|firmware version mismatch[^\n]*(?:GSP|gsp)"
        r"|loading \S{0,60}nvidia/[0-9.]{3,12}/gsp\S{0,20} failed with error"
        r"|firmware: failed to load nvidia/[0-9.]{3,12}/gsp|RmInitAdapter failed! \(0x61:",
        "the driver's firmware for the card's system processor (GSP) is missing where the kernel searches for it, or "
        "has another version",
        "Check /lib/firmware/nvidia for a directory of the driver's version, and restore that version's files: for "
        "packages, apt-get install --reinstall the package with these files (dpkg -S /lib/firmware/nvidia; Ubuntu "
        "nvidia-firmware-…, Debian firmware-nvidia-gsp); for a .run, run its installer again (`invoke rebuild` does "
        "either). If the initramfs contains the module, rebuild it (update-initramfs -u -k all). Then reload the "
        "module",
        "NVIDIA's open kernel modules, kernel-open/nvidia/nv.c; NVIDIA's driver README, GSP firmware",
        beside=r"got version [0-9.]{3,12}, expected version [0-9.]{3,12}",
        names=(r"got version (?P<got>[0-9.]{3,12}), expected version (?P<expected>[0-9.]{3,12})",),
        variants=(
            Variant(
                r"firmware (?:image )?version mismatch",
                "the firmware for the card's system processor (GSP) has another version than the driver's module{ "
                "(GOT and EXPECTED)|}: packages of two releases are mixed, or the package of the module's sources "
                "contains another release than its version",
                "Compare modinfo -F version nvidia, ls /lib/firmware/nvidia and the packages (dpkg -l '*nvidia*', "
                "rpm -qa '*nvidia*'). Install one release for all: upgrade the older part, or downgrade all. If a "
                "package's sources do not have its own version (dkms status against modinfo), install its next "
                "build. Build the module again (dkms), rebuild an initramfs that contains it, and reboot. A reboot "
                "alone or the same firmware again does not help, and the card is not the cause",
            ),
        ),
        sign=FIRMWARE_SIGN,
        treatment=Tangled("files of the driver's firmware are missing"),
    ),
    FailureRule(
        "gpu-permission",
        r"/dev/nvidia\S{0,12} ?[^\n]{0,20}permission denied|Failed to initialize NVML: Insufficient Permissions"
        r"|nvml error: insufficient permissions"
        r"|permission denied[^\n]{0,20} ['\"`]?/dev/nvidia",
        "this user may not open the driver's device files",
        "Check ls -l /dev/nvidia*: all users may read and write the files unless NVreg_DeviceFileMode or "
        "NVreg_DeviceFileGID in /etc/modprobe.d restricts them. In a job or container, check which devices it may use",
        "NVIDIA's driver README, NVreg_DeviceFileMode",
    ),
    FailureRule(
        "gpu-lost",
        r"has\s{1,40}(?:NVRM: )?fallen off\s{1,9}the\s{1,9}bus|GPU is lost|GPU_IS_LOST|NVRM: Xid [^\n]+\): 79\b"
        r"|Unable to determine the device handle for [^\n]+(?:Unknown Error|Not Found)"
        r"|XID ?79\b|NVIDIA[^\n]+\(rev ff\)|nvidia [0-9a-f:.]{7,12}: (?:can't"
        r"|Unable to) change power state from D3(?:cold|hot) to D0[ ,(]{1,3}(?:config space|device) inaccess",
        "{the GPU CARD|a GPU} stopped responding on PCIe: power, heat, its link (slot, riser, cable) or the card "
        "itself",
        "Drain the host and cycle its power. If it recurs, check power and heat, the card's seat, slot and riser, "
        "and the link's generation in the BIOS (one lower for a trial; lspci -vv, LnkSta). If it follows the card to "
        "another slot, have the card replaced",
        "NVIDIA Xid catalog, Xid 79",
        names=(r"(?:Xid \((?:PCI:)?|GPU )(?P<card>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)",),
        sign=GPU_LOST_SIGN,
        treatment=Hardware(
            "power cycle", f"NVIDIA's Xid catalog: 79 RESTART_BM; {GPUD}", explains=("no-gpu", "gpus-fewer")
        ),
    ),
    FailureRule(
        "no-device",
        r"insert(?:ing)? (?:module )?(?:\S*/|'?)nvidia[\w-]{0,20}(?:\.ko|'?)(?: \(\S+\))?: (?:-1 )?No such device"
        r"|NVRM: request_mem_region failed|do not appear to have an NVIDIA GPU supported",
        "the driver finds no card that it can use: another driver holds it (nouveau, vfio-pci), it is too new or too "
        "old for this driver, or defective",
        "On the host, find the card's driver and the module's messages: lspci -nnk -d 10de: (Kernel driver in use) "
        "and dmesg | grep NVRM. For nouveau: blacklist it, rebuild the initramfs and reboot (the driver role does "
        "all three). If lspci prints no line, the card is not on the bus",
        "nvidia-installer kernel.c",
        sign=NO_DEVICE_SIGN,
        narrower=rf"{NO_POWER}|RmInitAdapter failed|rm_init_adapter failed",
        closing=r"^No devices were found|NVRM: No NVIDIA (?:graphics adapter|GPU|devices?) (?:found|probed)"
        r"|NVRM: The NVIDIA probe routine (?:failed|was not called)|\bprobe with driver nvidia failed with error"
        r"|\bnvidia: probe of \S{7,12} failed with error"
        r"|NVRM: None of the NVIDIA (?:devices|graphics adapters) were|No NVIDIA GPUs? (?:were )?(?:found|detected)",
        treatment=Hardware("power cycle", CYCLE, tries=1, layer="driver"),
        unless=r"\bCPU\b|skip|fall(?:ing|s)? back",
        names=(r"supported by the\s{1,9}(?P<release>[0-9.]{3,12}[0-9])",),
        variants=(
            Variant(
                r"do not appear to have an NVIDIA GPU supported",
                "no card of the host is in the list of {the driver's release RELEASE|this driver's release}: it is "
                "newer, or older, or not on the bus",
                "Find the card's model (lspci -nn -d 10de:) and name a release in the stack that supports it: "
                "`invoke stacks --hosts HOST` lists the stacks that fit; 470 is the last branch for Kepler, 580 for "
                "Maxwell, Pascal and Volta. If lspci prints none, check the card's seat and the hypervisor's "
                "passthrough",
            ),
        ),
    ),
    FailureRule(
        "module-missing",
        r"Module nvidia[\w-]{0,20} not found"
        r"|could not find module by name '?nvidia|FATAL: nvidia[\w-]{0,20} not found in directory"
        r"|Failed to find module 'nvidia[\w-]{0,20}'",
        "the running kernel{, KERNEL,|} has no NVIDIA module to load, often after a kernel upgrade, or the module is "
        "not loaded. A module that is still in memory is gone at the next boot",
        "Provision again: the driver role builds the module with DKMS and loads it, or reports why it cannot",
        "GoogleCloudPlatform/compute-gpu-installation#18",
        unless="Module nvidia[-_]uvm",
        beside=r"^Linux \S{1,60} [0-9]+\.[0-9]\S* #|in directory /lib/modules/",
        narrower=STUB,
        closing=r"couldn.t communicate with\s{1,9}the NVIDIA driver"
        r"|kernel driver does not appear to be running on this host|NVIDIA driver is not (?:loaded|running)"
        r"|DRIVER_NOT_LOADED|Failed to initialize NVML: Driver Not Loaded",
        sign=MISSING_SIGN,
        names=(
            r"^(?P<file>/lib/modules/\S{1,200}) is there",
            r"in directory /lib/modules/(?P<kernel>[\w.+~-]{1,80})",
            r"^Linux \S{1,60} (?P<kernel>[0-9][\w.+~-]{1,80}) #",
            r"for the running kernel (?P<kernel>[\w.+~-]{1,80})",
        ),
        variants=(
            Variant(
                r"^/lib/modules/\S{1,200} is there",
                "the module is built and on disk (FILE), and depmod's index of the running kernel does not contain "
                "it, so modprobe does not find it",
                "As root, run depmod -a, then modprobe nvidia and modprobe nvidia-uvm. If the index later lacks it "
                "again, find out which package runs depmod (a kernel's or another module's). Provisioning rebuilds "
                "the module instead, which takes longer and also works",
            ),
        ),
    ),
    FailureRule(
        "fabric-manager-version",
        r"driver interface version \S+ don't match with driver version"
        r"|fabric ?manager[^\n]*version[^\n]*(?:mismatch|does not match)",
        "Fabric Manager{, version MANAGER,|} does not have exactly the driver's version{, which is DRIVER|}",
        "Install Fabric Manager's package of the driver's version (nvidia-fabricmanager-BRANCH before R580, "
        "nvidia-fabricmanager since), from the driver's repository, hold it and restart its service; the driver role "
        "does this",
        "Azure/azhpc-images#86",
        names=(
            r"interface version (?P<manager>[0-9.]{3,20}[0-9]) don't match with driver version"
            r" (?P<driver>[0-9.]{3,20}[0-9])",
        ),
        sign=fabric.VERSION_SIGN,
    ),
    FailureRule(
        "fabric-bridge-missing",
        r"[^\n]*\bib_umad\b[^\n]*(?:not (?:been )?loaded|is not (?:available|present)|not found|module loaded\?)[^\n]*"
        r"|(?:find|locate) [^\n]{0,60}\bnvlsm\b[^\n]*"
        r"|\bnvlsm\b[^\n]{0,40}(?:[Nn]o such file|not found|not installed)[^\n]*",
        "the kernel module ib_umad, for InfiniBand management, is not loaded: on a board with NVLink 5 (HGX B200, "
        "B300) Fabric Manager needs it to reach the switches over the board's own bridges, and cannot start",
        "Run modprobe mlx5_ib and modprobe ib_umad, and for each boot write both names to a file in "
        "/etc/modules-load.d (provision does that on such a board). If modprobe does not find it, install the "
        "running kernel's additional modules (Ubuntu: linux-modules-extra-$(uname -r)). Then run systemctl restart "
        "nvidia-fabricmanager and wait until nvidia-smi -q reports Completed for each card's Fabric",
        "spectrocloud/CanvOS#700; NVIDIA/gpu-operator#2781; siderolabs/docs#581",
        variants=(
            Variant(
                r"\bnvlsm\b[^\n]*(?:No such|not found|not installed)|(?:find|locate) [^\n]{0,60}\bnvlsm",
                "Fabric Manager cannot start on a board with NVLink 5 (HGX B200, B300): it needs the subnet manager "
                "nvlsm, which is not installed or does not start",
                "Install the package nvlsm besides nvidia-fabricmanager (provision does that), check that mlx5_ib "
                "and ib_umad are loaded (lsmod), then run systemctl restart nvidia-fabricmanager and wait until "
                "nvidia-smi -q reports Completed for each card's Fabric",
            ),
        ),
    ),
    FailureRule(
        "fabric-not-ready",
        r"system not yet initialized|cudaErrorSystemNotReady|CUDA_ERROR_SYSTEM_NOT_READY"
        r"|\bError 802\b|runtime error \(802\)"
        r"|\b(?:returned|failed with|code)[ :=]{1,2}802\b|fabric manager found but not active",
        "the host's cards are connected by switches, and Fabric Manager does not run, or has not joined them",
        "Install nvidia-fabricmanager at exactly the driver's version if it is missing (the driver role does), run "
        "systemctl enable --now nvidia-fabricmanager and check its journal; HGX B200 and B300 also need nvlsm. In "
        "nvidia-smi -q, each card's Fabric must have State Completed and Status Success. For a virtual machine "
        "without the switches, the machine below must do this; the program is not the cause, and waiting longer does "
        "not help. A host without switches (RTX cards) gets this message on some kernels because of HMM: write "
        "options nvidia_uvm uvm_disable_hmm=1 to /etc/modprobe.d, then reload nvidia_uvm",
        "pytorch/pytorch#35710",
        unless=r"NVLS|nvls|[Mm]ulticast",  # another rule covers messages about NVLS or multicast
        sign=fabric.NOT_READY_SIGN,
    ),
    FailureRule(
        "fabric-manager-failed",
        r"(?:nv-fabricmanager|nvidia-fabricmanager(?:-start\.sh)?|nvlsm"
        r"|fabricmanager)(?:\[[0-9]{1,10}\])?: [^\n]*(?:[Ff]ail|FATAL"
        r"|\b[Ee]rror\b|[Uu]nable to|[Nn]ot installed|[Cc]ould not|[Nn]o such)[^\n]*"
        r"|request to query NVSwitch device information[^\n]*failed[^\n]*"
        r"|^Usage: \S*nvidia-fabricmanager-start\.sh[^\n]*"
        r"|not all local fabric manager instances finished their configuration[^\n]*"
        r"|failed to configure all the available GPUs or NVSwitches[^\n]*"
        r"|Failed to start (?:nvidia-fabricmanager|NVIDIA fabric manager)[^\n]*"
        r"|nvidia-fabricmanager\.service: (?:Failed with"
        r" result|[Ss]tart operation timed out|(?:Main|Control) process exited, code=\w{1,10}, status=[1-9])[^\n]*",
        "Fabric Manager, or its subnet manager nvlsm, ended with an error: until it runs, CUDA fails on cards that "
        "are connected by switches (error 802)",
        "Check its log (journalctl -b -u nvidia-fabricmanager; /var/log/fabricmanager.log). It must have exactly the "
        "driver's version and start after the driver was loaded (nvidia-smi); HGX B200 and B300 need the package "
        "nvlsm and the modules mlx5_ib and ib_umad (provision does all that). Then run systemctl restart "
        "nvidia-fabricmanager. If it reports missing switches or cards, search dmesg for SXid and Xid, and reset all "
        "cards or cycle the power. If the host has no switches (lspci -d 10de:), disable it",
        "NVIDIA Fabric Manager user guide",
        variants=(
            Variant(
                r"not all local fabric manager instances finished|failed to configure all the available GPUs or",
                "Fabric Manager stopped before all cards and switches were ready: it was started too early (by "
                "cloud-init or a custom script, while the driver was still starting), or one of them does not start",
                "Run systemctl restart nvidia-fabricmanager now. If that succeeds, leave its start to the enabled "
                "unit (systemctl enable nvidia-fabricmanager) and remove it from cloud-init. If it fails again, "
                "search dmesg for SXid and Xid, compare its version with the driver's, and reset all cards or cycle "
                "the power",
            ),
            Variant(
                r"^Usage: ",
                "Fabric Manager was not started: its start script got arguments that this release does not support, "
                "and printed its usage. Caller (a driver container, a GPU operator, a custom unit) and package have "
                "different releases",
                "Start it with its own unit (systemctl start nvidia-fabricmanager), or use the release of the "
                "container or operator that matches the package; for a manual start, pass --fm-config-file "
                "/usr/share/nvidia/nvswitch/fabricmanager.cfg. File, cards and switches are not the cause",
            ),
        ),
        unless=r"NV_WARN_NOTHING_TO_DO|[Nn]on-?fatal|[Nn]on-?critical|: Unit ",
        weight="consequence",
    ),
    FailureRule(
        "fabric-nothing-to-do",
        r"NV_WARN_NOTHING_TO_DO",
        "Fabric Manager was started on a host without its own switches",
        "Disable nvidia-fabricmanager there; the GPUs are not affected. In a rack (GB200, GB300) the switch trays "
        "manage the fabric, and compute trays run nvidia-imex instead. If CUDA still fails with 802, the host has "
        "switches that are not visible: for a virtual machine, the machine below manages them; HGX B200 and B300 "
        "first need the modules mlx5_ib and ib_umad",
        "leptonai/gpud fabric-manager",
        sign=fabric.NOTHING_SIGN,
    ),
    FailureRule(
        "fabric-not-joined",
        r"fabric[ ._-]?state[^\n]{0,60}\b(?:In Progress|Not Started)\b"
        r"|fabric\.state[^\n]*\n(?:[^\n]*\n){0,16}?[^\n]*(?:\bIn Progress|\bNot Started)"
        r"|^ *Fabric\n +State +: (?:In Progress|Not Started)",
        "a card has not joined the fabric of its switches: nvidia-smi lists it, and CUDA fails on it with error 802",
        "Check that nvidia-fabricmanager runs and has the driver's version (systemctl status nvidia-fabricmanager), "
        "check its journal, and start it if it failed. On HGX B200 and B300 it needs the package nvlsm and the "
        "modules mlx5_ib and ib_umad (provision does that); then restart it. If it persists, reset all cards of the "
        "board, or reboot. For a rack, or a virtual machine without the switches, the fabric is configured elsewhere",
        "siderolabs/extensions pull requests 717 and 893; NVIDIA/gpu-operator#2781",
        variants=(
            Variant(
                r"fabric[ ._-]?state|\bState +:",
                "a card has not joined the fabric of its switches, usually because Fabric Manager (with NVLink 5, "
                "also nvlsm) failed, does not run or does not have the driver's version. nvidia-smi lists the card "
                "with normal other values, and CUDA fails on it with error 802 however long it waits",
            ),
        ),
        sign=fabric.NOT_JOINED_SIGN,
        treatment=Stuck("cards have not joined the fabric"),
    ),
    FailureRule(
        "fabric-apart",
        "",
        "cards of one host are in different cliques of the fabric: NCCL connects them by PCIe or the network",
        "Check the partitions of Fabric Manager, or of the rack's NMX-M: all cards of one job must be in one partition",
        "NVIDIA NVML, nvmlGpuFabricInfo_t",
        sign=fabric.APART_SIGN,
    ),
)
