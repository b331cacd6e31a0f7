"""Messages of programs that use CUDA or NCCL, about devices, driver libraries and networks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, Sign, Variant
from hostwright.standard.roles.cuda.compilers import HostCompiler

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

_NO_DEVICE = (
    r"CUDA_ERROR_NO_DEVICE\b|cudaErrorNoDevice\b|no CUDA-capable device is detected|No CUDA GPUs are available"
    r"|\binit(?:ialization)? failure(?: with error)?[ :]{1,3}100\b|No visible GPU devices"
    r"|\b0 active drivers \(\[\]\)|CUDA driver initialization failed, you might not have"
    r"|no supported devices found for platform CUDA|Failed to infer device type"
)


def compiler_too_new(ctx: AuditContext) -> Iterator[str]:
    """The host's own gcc is newer than the stack's nvcc accepts, and the stack names no other compiler for nvcc."""
    for state in (state for role in ctx.desired.roles for state in role.resources):
        if isinstance(state, HostCompiler):
            ctx.require(state.probes()[0])
            yield from state.notes(ctx.facts)


#: variants of the failure rules for programs that were built for other GPUs
CODE_VARIANTS = (
    Variant(
        r"[Mm]inimum required Cuda",
        "the framework ignores the card, because it is older than the build supports",
        "Use a build with its compute capability (an older release, or your own), or a newer card; or compute on the "
        "CPU if that is enough. No driver and no CUDA changes this",
    ),
    Variant(
        r"\bSM ?[0-9]{1,2}\.[0-9x] requires CUDA|NVCC version should be",
        "the program compiles for the card at run time (FlashInfer or DeepGEMM, parts of vLLM and SGLang), and its "
        "toolkit (CUDA_HOME, else /usr/local/cuda) is too old: it needs CUDA LEAST",
        "Select a toolkit that supports the card and has torch's own release: CUDA_HOME=/usr/local/cuda-13.0 and its "
        "bin first on PATH (ls -d /usr/local/cuda-*; torch.version.cuda), or name it in the stack's cuda section. "
        "Driver, card and the program are not the cause",
    ),
    Variant(
        r"Unsupported gpu architecture|nvcc fatal",
        "this nvcc does not compile for {CHIP|that architecture}: it is older than the card (Blackwell needs CUDA "
        "12.8, its latest cards 12.9), or so new that it dropped the architecture (CUDA 13 dropped those before 75)",
        "Build with a toolkit that supports it (nvcc --list-gpu-arch; a stack's cuda section names the release). Or, "
        "if no such card is used, remove {CHIP|it} from the build's list (TORCH_CUDA_ARCH_LIST, "
        "CMAKE_CUDA_ARCHITECTURES). Driver and card are not the cause",
    ),
    Variant(
        r"is not defined for option 'gpu-|ptxas fatal|--gpu-name=|not a recognized processor|nvrtc: error",
        "the compiler that the program calls at run time (ptxas or NVRTC, part of Triton, PyTorch and XLA) is too "
        "old for this GPU{, CHIP|}; the card and its driver are not the cause",
        "Provide a newer compiler: for Triton, TRITON_PTXAS_PATH=/usr/local/cuda/bin/ptxas of a toolkit that lists "
        "{CHIP|the card} (ptxas --help; CUDA 13 has all of Blackwell); for XLA, that toolkit's bin first on PATH; or "
        "install a release of the framework built with it",
    ),
    Variant(
        r"(?:supported on|requires?) SM ?|device capability: ?[0-9]|[Nn]o compiled",
        "the kernels of this build, or the selected kind of attention, do not support this card's generation",
        "Select another kind (vLLM: --attention-backend, formerly VLLM_ATTENTION_BACKEND; another quantisation), or "
        "install a release or image of the program built for the card (Blackwell: CUDA 12.8 or newer). Driver and "
        "card are not the cause",
    ),
    Variant(
        r"only supports? (?:Ampere|Ada|Hopper|Turing)|compute capability (?:of )?(?:at least|>)"
        r"|too old to be supported by the triton|type fp8\w{1,10} not supported|on CUDA arch <"
        r"|requires \.target",
        "the program uses a feature that this GPU's generation does not have: Triton needs 7.0, bfloat16 and "
        "FlashAttention 8.0, fp8 8.9",
        "Disable the feature (dtype float16 instead of bfloat16, another attention, no torch.compile), or use a "
        "newer GPU; a new driver or CUDA does not change it",
    ),
    Variant(
        r"\bsm_1[0-9]{2}[af]? is not compatible|CUDA capability sm_1[0-9]{2}|capability (?:\(CC\) )?1[0-9]\.[0-9]",
        "the installed PyTorch has no code for this GPU, which is newer{ (CHIP)|}: builds for CUDA 12.8 or later "
        "support Blackwell",
        "Install a PyTorch for CUDA 12.8 or newer (pip install -U torch --index-url "
        "https://download.pytorch.org/whl/cu128, or cu130), or provision a current stack, such as pytorch-2.14; "
        "torch.cuda.get_arch_list() lists the capabilities of a build. Keep the host's driver and toolkit",
    ),
    Variant(
        r"capability (?:\(CC\) )?(?:[3-6]\.[0-9]|7\.[0-2])|CUDA capability sm_(?:[3-6][0-9]|7[0-2])"
        r"|because it is too old",
        "the installed PyTorch has no code for this GPU, which is older than the build supports: builds for CUDA 13 "
        "begin at Turing (7.5), those for CUDA 12.8 and 12.9 exclude Maxwell and Pascal",
        "Install the same PyTorch's build for CUDA 12.6 (--index-url https://download.pytorch.org/whl/cu126), the "
        "last line with Maxwell, Pascal and Volta, or provision the stack volta-pascal; no newer PyTorch, CUDA or "
        "driver supports the card",
    ),
)

PROGRAM_RULES = (
    FailureRule(
        "nvcc-compiler-unsupported",
        r"unsupported (?:GNU|clang|Microsoft Visual Studio) version|(?:gcc|clang) versions? (?:later"
        r"|newer) than [0-9.]{1,6} (?:are|is) not"
        r" supported|CUDA [0-9.]{1,6} requires (?:gcc|clang)"
        r"|The current installed version of g\+\+ [^\n]+is (?:greater|less) than"
        r"|exception specification is incompatible with that of previous function \\?\"(?:(?:cos|sin|tan)pi|rsqrt)f?"
        r"|parameter packs not expanded with|identifier \"(?:__builtin_ia32_\w{1,40}|_Float(?:32|64"
        r"|128)x?)\" is undefined",
        "the host's compiler is newer than this release of CUDA's nvcc supports",
        "Install a gcc that this CUDA supports (10 or older for CUDA 11.2) besides the host's and select it: nvcc "
        "-ccbin g++-10, CUDAHOSTCXX or NVCC_PREPEND_FLAGS='-ccbin g++-10'; for all users, `compiler: g++-10` in the "
        "stack's `cuda`. If a newer one was made the default, update-alternatives --config gcc (and g++) restores "
        "the old one. --allow-unsupported-compiler only hides the error",
        "CUDA's crt/host_config.h; NVIDIA's CUDA installation guide, host compiler support policy;"
        " NVlabs/tiny-cuda-nn#386",
        names=(r"gcc versions later than (?P<latest>[0-9.]{1,6}) are not",),
        variants=(
            Variant(
                r"exception specification is incompatible",
                "the host's C library (glibc 2.41 or later: Debian 13, Ubuntu 25.04) declares mathematical functions "
                "differently from this CUDA's headers",
                "Build with a newer toolkit, or in a container of an older distribution "
                "(nvidia/cuda:…-devel-ubuntu24.04); another compiler does not help",
            ),
            Variant(
                r"gcc versions later than",
                "the host's gcc is newer than this release of CUDA's nvcc supports: gcc LATEST is the newest "
                "supported one",
                "Install gcc and g++ LATEST besides the host's and select it: nvcc -ccbin g++-LATEST; for Python's "
                "packages CC, CXX and NVCC_PREPEND_FLAGS='-ccbin g++-LATEST'; for all users, `compiler: g++-LATEST` "
                "in the stack's `cuda`; or build with a newer toolkit. If a newer gcc was made the default, "
                "update-alternatives --config gcc (and g++) restores the old one. --allow-unsupported-compiler only "
                "hides the error",
            ),
        ),
        sign=Sign("cuda", compiler_too_new, grave=False),
    ),
    FailureRule(
        "cuda-visible-devices",
        r"invalid device ordinal|CUDA_ERROR_INVALID_DEVICE\b|cudaErrorInvalidDevice\b"
        r"|listed an invalid GPU id|AssertionError: Invalid device id"
        rf"|CUDA_VISIBLE_DEVICES[^\n]*(?:\n[^\n]*){{0,8}}?(?:{_NO_DEVICE})"
        rf"|(?:{_NO_DEVICE})[^\n]*(?:\n[^\n]*){{0,8}}?CUDA_VISIBLE_DEVICES",
        "the program finds no GPU, or fewer than it needs: CUDA_VISIBLE_DEVICES, the job or the container hides some "
        "(the others are numbered from 0), or a GPU is missing",
        "Compare nvidia-smi -L with CUDA_VISIBLE_DEVICES in the program's own environment (and with docker's "
        "--gpus); number devices from 0. If nvidia-smi itself lists too few, fix the driver layer first",
        "NVIDIA's CUDA C++ programming guide, CUDA_VISIBLE_DEVICES; shariqfarooq123/AdaBins#79",
        weight="consequence",
    ),
    FailureRule(
        "mps-not-reachable",
        r"CUDA_ERROR_MPS_(?:CONNECTION_FAILED|SERVER_NOT_READY|RPC_FAILURE)|cudaErrorMps(?:ConnectionFailed"
        r"|ServerNotReady|RpcFailure)"
        r"|MPS client failed to connect to the MPS|the remote procedural call between the MPS server",
        "the program is configured for NVIDIA's MPS (a pipe directory is set or exists), and its control daemon or "
        "server does not answer, or belongs to another user",
        "Start the daemon (nvidia-cuda-mps-control -d) as that user, or unset CUDA_MPS_PIPE_DIRECTORY and remove "
        "/tmp/nvidia-mps; in a container, mount the directory and use --ipc=host",
        "NVIDIA's Multi-Process Service documentation",
    ),
    FailureRule(
        "cuda-no-device",
        _NO_DEVICE,
        "CUDA finds no GPU: a variable or the container hides them all, this user may not open /dev/nvidia*, or the "
        "driver itself has no working card",
        "Run nvidia-smi -L as the same user in the same environment. If it lists GPUs, check CUDA_VISIBLE_DEVICES "
        "(empty or -1 hides them), the permissions of /dev/nvidia*, and MIG. If not, start the container with --gpus "
        "all, or fix the driver layer",
        "NVIDIA's CUDA driver API, CUDA_ERROR_NO_DEVICE",
        weight="consequence",
    ),
    FailureRule(
        "gpu-code-missing",
        r"no kernel image is available|CUDA_ERROR_NO_BINARY_FOR_GPU|cudaErrorNoKernelImageForDevice"
        r"|no longer supports this GPU because it is too old|is not compatible with the current PyTorch installation"
        r"|[Mm]inimum required Cuda (?:compute )?capability is|Unsupported gpu architecture"
        r"|nvcc fatal {1,3}: Value 'sm_|is not defined for option 'gpu-|ptxas fatal {1,3}: Value 'sm_"
        r"|\binvalid device function\b"
        r"|device kernel image is invalid|CU(?:DNN|BLAS|SPARSE)_STATUS_ARCH_MISMATCH|only supports? (?:Ampere|Ada"
        r"|Hopper|Turing)[^\n]{0,20} GPUs?"
        r"|GPUs? with compute capability (?:of )?(?:at least|>)"
        r"|(?:compute capability \(CC\) [0-9.]{3,5}\n[^\n]*)?does not include kernels for this GPU"
        r"|compute capability \(CC\) [0-9.]{3,5}\.?\s{1,9}The following list shows the CCs"
        r"|(?:compute capability \(CC\) [0-9.]{3,5}[^\n]*\n(?:[^\n]*\n){1,16}?[^\n]*)?a PyTorch release that supports"
        r" one of these CUDA versions"
        r"|(?:which is of cuda capability [^\n]*\n)?[^\n]*capability supported by this version of PyTorch is"
        r"(?:[^\n]*\n[^\n]*\([0-9.]{3,4}\) - \([0-9.]{3,4}\))?|too old to be supported by the triton GPU compiler"
        r"|nvrtc: error: invalid value for --gpu-architecture|is not a recognized processor for this target"
        r"|type fp8\w{1,10} not supported in this architecture|not supported on CUDA arch < [0-9]"
        r"|/ptxas'[^\n]*--gpu-name=sm_[^\n]* non-zero exit status 255"
        r"|ptxas[^\n]*requires \.target sm_[0-9]|\bSM ?[0-9]{1,2}\.[0-9x] requires CUDA ?>=? ?[0-9.]{2,5}"
        r"|NVCC version should be >= ?[0-9.]{2,5}|compute capability less than CUDA device capability: ?[0-9]{2,3}"
        r"|(?:not supported on|requires|require) SM ?(?:>=? ?)?[0-9]{1,2}[0-9.]{0,3}\b"
        r"|[Nn]o compiled \w{3,60} for[^\n]*"
        r"(?:capability|SM ?[0-9])[^\n]*",
        "the program or its toolkit has no code for this GPU's compute capability: the GPU is newer or older than the"
        " build",
        "Compare nvidia-smi --query-gpu=compute_cap --format=csv with the capabilities of the build; install a "
        "build, or use an image, for this GPU (10.0 and 12.0 need one of CUDA 12.8 or newer, 10.3 and 12.1 of 12.9, "
        "11.0 of 13.0, and a card before Turing one of CUDA 12), or use another GPU. Keep the host's driver and "
        "toolkit",
        "pytorch/pytorch#6515; NVIDIA's CUDA release notes 12.8 and 13.0; PyTorch RELEASE.md, CUDA support matrix",
        beside=r"supports CUDA capabilities|with CUDA capability sm_|which is of (?:cuda|compute) capability"
        r"|which is of compute capability|get_arch_list|not include kernels for"
        r"|^ {0,8}\([0-9.]{3,4}\) - \([0-9.]{3,4}\)",
        # GPU code of the same major version runs, although PyTorch prints a warning.
        unless=r"capability 12\.1(?s:.)*- \(12\.0\)|\(CC\) 12\.1\.?\s[^\n]*\+cu1(?:29|3[0-9])"
        r"|capability 7\.5(?s:.)*\(7\.5\) -|capability 8\.0(?s:.)*\(8\.0\) -|capability 8\.6(?s:.)*\(8\.6\) -"
        r"|capability 8\.9(?s:.)*\(8\.9\) -|capability 9\.0(?s:.)*\(9\.0\) -",
        names=(
            r"(?:architecture|Value) '(?P<chip>(?:compute|sm)_[0-9]{2,3}[af]?)'",
            r"with CUDA capability (?P<chip>sm_[0-9]{2,3}[af]?)",
            r"--gpu-name=(?P<chip>sm_[0-9]{2,3}[af]?)",
            r"(?:requires CUDA|version should be) ?>=? ?(?P<least>[0-9.]{2,5})",
        ),
        variants=CODE_VARIANTS,
    ),
    FailureRule(
        "forward-compatibility",
        r"forward compatibility was attempted on non[- ]supported HW|CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"
        r"|cudaErrorCompatNotSupportedOnDevice|\bError 804: forward",
        "the program loads CUDA's compatibility library (or another libcuda than the driver's), which this GPU does "
        "not support: only data center GPUs do",
        "Remove the compat directory from LD_LIBRARY_PATH and /etc/ld.so.conf.d (ldconfig -p | grep libcuda shows "
        "it), or use an image for the CUDA version in nvidia-smi; after an upgrade of the driver, reboot",
        "NVIDIA's CUDA compatibility guide; chenfei-wu/TaskMatrix#379",
        weight="consequence",
    ),
    FailureRule(
        "cuda-newer-than-driver",
        r"CUDA driver version is insufficient for CUDA runtime version|cudaErrorInsufficientDriver\b"
        r"|The NVIDIA driver on your system is too old|CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
        r"|provided PTX was compiled with an unsupported toolchain"
        r"|Unsupported \.version [0-9.]{1,6}; current version is|CUDA driver is too old for"
        r"|driver version \([^)\n]+\) is older than|API call is not supported in the installed CUDA driver"
        r"|cudaErrorCallRequiresNewerDriver\b|\bError 500: named symbol|CUDA error: named symbol not found"
        r"|\binit(?:ialization)? failure(?: with error)?[ :]{1,3}35\b",
        "the program needs a newer CUDA than the driver supports, or the driver is not loaded",
        "Compare the CUDA version in nvidia-smi with the program's; install a build for that version (the stack's), "
        "or provision a stack with a newer driver",
        "NVIDIA's CUDA compatibility guide; PyTorch torch/cuda/__init__.py",
        names=(r"found version (?P<major>1[0-9])0(?P<minor>[0-9])0\b",),
        variants=(
            Variant(
                r"named symbol not found",
                "the program calls a function that its libcuda does not have: the driver is older than the program's "
                "CUDA, or another libcuda comes before the driver's (in WSL and Docker Desktop one of another "
                "release)",
                "Run nvidia-smi in the same environment and compare its CUDA version with the program's "
                "(torch.version.cuda): use a newer driver or a build for that CUDA. If they match, find the libcuda "
                "that is loaded (ldconfig -p | grep libcuda; LD_LIBRARY_PATH), and update Docker Desktop or WSL (wsl "
                "--update)",
            ),
            Variant(
                r"UNSUPPORTED_PTX_VERSION|unsupported toolchain|Unsupported \.version",
                "the program, or one of its libraries, contains code from a newer CUDA compiler (PTX) than the "
                "driver can translate for the card",
                "Compare the CUDA version in nvidia-smi with that of the build (torch.version.cuda; nvcc --version "
                "if it was built here): install a newer driver, a build for that CUDA or an older one, or, on data "
                "centre cards, the package cuda-compat. The host's toolkit does not matter; card and model are not "
                "the cause",
            ),
            Variant(
                r"driver on your system is too old",
                "the installed PyTorch was built for a newer CUDA than the host's driver supports{, which is "
                "MAJOR.MINOR|}: from 2.11 on, pip install torch installs CUDA 13, which needs a driver of R580 or "
                "later",
                "Install PyTorch's build for a CUDA that the driver supports (--index-url "
                "https://download.pytorch.org/whl/cu126 or cu128; CUDA 12 needs R525 or later), or, if the cards are "
                "Turing or newer, provision a stack with a newer driver, such as pytorch-2.14",
            ),
        ),
        weight="consequence",
    ),
    FailureRule(
        "nvenc-needs-newer-driver",
        r"does not support the required nvenc API version|minimum required Nvidia driver for nvenc is",
        "the program's video encoder (NVENC) is newer than the driver supports",
        "Provision a stack with the driver that the message names, or use a build of the program for this driver's "
        "release",
        "FFmpeg libavcodec/nvenc.c",
    ),
    FailureRule(
        "cuda-differs-from-framework",
        r"detected CUDA version \([0-9.]{1,9}\) mismatches the version that was used to compile"
        r"|CUDA version [0-9.]{1,9} does not match the version torch was compiled with"
        r"|only supported on CUDA [0-9.]{1,6} and above",
        "a package is compiled for PyTorch with another release of CUDA than PyTorch itself was built with",
        "Install a build of PyTorch for the toolkit's release (the stack's), or compile with an nvcc of the same "
        "release as PyTorch (torch.version.cuda)",
        "PyTorch torch/utils/cpp_extension.py",
    ),
    FailureRule(
        "gpu-busy",
        r"all CUDA-capable devices are busy or unavailable|CUDA-capable device\(s\) is/are busy or unavailable"
        r"|cudaErrorDevicesUnavailable\b",
        "the GPU accepts no further program: it is in exclusive mode and in use, or it needs a reset",
        "Check its users and its mode (nvidia-smi -q -d COMPUTE, nvidia-smi); nvidia-smi -c 0 lets programs share it",
        "NVIDIA CUDA Runtime API, cudaErrorDevicesUnavailable",
        weight="consequence",
    ),
    FailureRule(
        "illegal-memory-access",
        r"an illegal memory access was encountered|CUDA_ERROR_ILLEGAL_ADDRESS\b|cudaErrorIllegalAddress\b"
        r"|CUDA error[^\n]*(?:misaligned address|unspecified launch failure|an illegal instruction was encountered)"
        r"|\bCUDA error:? (?:700|714|715|716|719)\b|CUDA_ERROR_(?:MISALIGNED_ADDRESS|LAUNCH_FAILED"
        r"|ILLEGAL_INSTRUCTION)\b",
        "a program read or wrote outside its memory on the GPU: nearly always a bug in the program or its libraries",
        "Run it with CUDA_LAUNCH_BLOCKING=1 or under compute-sanitizer to find the line. If many programs fail so on "
        "only one GPU, check its Xids and memory errors",
        "NVIDIA CUDA Runtime API, cudaErrorIllegalAddress",
        weight="consequence",
        unless="NCCL",
        variants=(
            Variant(
                r"unspecified launch failure|\b719\b|LAUNCH_FAILED",
                "a kernel aborted without a reason from CUDA: the program read or wrote outside its memory or, if "
                "programs fail only on one card, that card is faulty",
                "Run it on another card (CUDA_VISIBLE_DEVICES). If it fails there too, CUDA_LAUNCH_BLOCKING=1 or "
                "compute-sanitizer finds the line in the program. If not, check the first card's Xids and memory "
                "errors (dmesg, nvidia-smi -q), cycle the host's power, prove that card (`invoke prove`), and have "
                "it replaced if it fails again",
            ),
        ),
    ),
    FailureRule(
        "kernel-timed-out",
        r"the launch timed out and was terminated|CUDA_ERROR_LAUNCH_TIMEOUT\b|cudaErrorLaunchTimeout\b",
        "a kernel ran longer than the driver allows on a card with a display (some seconds)",
        "Compute on a card without a display (CUDA_VISIBLE_DEVICES), or stop the display (systemctl isolate "
        "multi-user.target), or let the program do less in one kernel; nvidia-smi -q -d DISPLAY shows which card has "
        "a display. The card is not faulty",
        "NVIDIA CUDA Runtime API, cudaErrorLaunchTimeout",
    ),
    FailureRule(
        "device-assert",
        r"device-side assert triggered|CUDA_ERROR_ASSERT\b|cudaErrorAssert\b"
        r"|block: \[[0-9,]{5,30}\], thread: \[[0-9,]{5,30}\] Assertion",
        "a check in a kernel failed: the program passed a value out of range, usually an index or a class label "
        "beyond the size of a table",
        "Run it on the CPU or with CUDA_LAUNCH_BLOCKING=1, which shows the line, and check the smallest and largest "
        "index there; GPU, driver and CUDA are not the cause",
        "NVIDIA CUDA Runtime API, cudaErrorAssert; PyTorch aten/src/ATen/native/cuda/Indexing.cu",
    ),
    FailureRule(
        "peer-access-refused",
        r"peer mapping resources exhausted|cudaErrorTooManyPeers\b|CUDA_ERROR_TOO_MANY_PEERS\b"
        r"|peer access is not supported between these two devices|cudaErrorPeerAccessUnsupported\b"
        r"|CUDA_ERROR_PEER_ACCESS_UNSUPPORTED\b|doesn't support faster communication broadband via P2P",
        "two cards of the host cannot access each other's memory directly (GeForce cards, a virtual machine, cards "
        "of different sockets or models), and the program requires it",
        "Disable it: NCCL_P2P_DISABLE=1 for NCCL (accelerate launch sets it by itself); nvidia-smi topo -p2p r shows "
        "which pairs support it. No part is defective",
        "NVIDIA CUDA Runtime API, cudaErrorTooManyPeers, cudaErrorPeerAccessUnsupported; ggml-org/llama.cpp#21883",
        unless=r"transport/shm\.cc",
        variants=(
            Variant(
                r"resources exhausted|TooManyPeers|TOO_MANY_PEERS",
                "the program connects every card with every other one, and CUDA allows at most eight peers for each",
                "Give each process at most eight cards (CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7), or use a release of "
                "the program that does not connect all pairs; cards, switches and driver are not the cause",
            ),
        ),
    ),
    FailureRule(
        "cuinit-unknown",
        r"CUDA_ERROR_UNKNOWN\b|cudaErrorUnknown\b|CUDA error: unknown error|\bError 999: unknown error"
        r"|cuda runtime error \((?:30|999)\) ?: unknown|error=(?:30|999) ?: unknown|cudaSuccess \((?:30|999) vs\. 0\)"
        r"|\binit(?:ialization)? failure(?: with error)?[ :]{1,3}999\b"
        r"|code 999, ERROR_UNKNOWN|CUDA unknown error - this may be due to"
        r"|cuInit\b[^\n]*(?:\b999\b|UNKNOWN_CUDA_ERROR|unknown error)"
        r"|CUDA_ERROR_OPERATING_SYSTEM\b|cudaErrorOperatingSystem\b|\bError 304: OS call failed"
        r"|\bError 30: unknown error|\bError 3: initialization error"
        r"|cudaGetDeviceCount[^\n]*returned (?:30|999)\b",
        "CUDA cannot be initialised: nvidia-uvm or its device files are not ready for this user, often after suspend "
        "or an upgrade of the driver",
        "Check /dev/nvidia-uvm and run nvidia-modprobe -u -c=0 as root. If that does not help, reload nvidia_uvm "
        "(rmmod, modprobe) while no program uses a GPU, or reboot",
        "tensorflow/tensorflow#32623, #41937",
        unless=r"unknown error \(303\)",
        narrower=r"(?:could not (?:insert|find module)|FATAL: Module )[^\n]*nvidia",
        weight="consequence",
    ),
    FailureRule(
        "shm-too-small",
        r"(?:failed to extend|creating shared memory segment) /dev/shm/nccl"
        r"|Unable to allocate shared memory ?\((?:[0-9]|shm)|/dev/shm[^\n]*no space left on device"
        r"|unable to write to file </torch_|insufficient shared memory \(shm\)"
        r"|workers are out of\s{1,3}shared\s{1,3}memory|is killed by signal: Bus\s{1,3}error"
        r"|posix_fallocate failed ?: No space left",
        "the shared memory of the container or host (/dev/shm) is too small for the data that the job's "
        "processes exchange",
        "Start the container with --ipc=host or --shm-size=8g (in Kubernetes: an emptyDir of medium Memory there), "
        "and remove files of dead jobs from it",
        "NVIDIA/nccl src/misc/shmutils.cc; NCCL's troubleshooting guide, shared memory",
    ),
    FailureRule(
        "cuda-memory-not-shared",
        r"transport/shm\.cc:[0-9]{1,5} NCCL WARN (?:Cuda|CUDA) failure [^\n]*"
        r"|NCCL WARN (?:Cuda|CUDA) failure [^\n]*\n(?:[^\n]*\n){0,3}?[^\n]*transport/shm\.cc:[0-9]{1,5} -> [1-9]"
        r"|attaching to shared memory segment [^\n]*\(size 0\)"
        r"|pidfd_(?:getfd|open)\b[^\n]*(?:[Ff]ail|[Nn]ot permitted|does not support|[Dd]enied)[^\n]*",
        "NCCL shares host memory between the processes of a host through CUDA (cuMem, bound to NUMA nodes; since "
        "2.24), and that fails here: the container forbids the NUMA calls, the cards have no peer access, or a NUMA "
        "node has no processors",
        "Set NCCL_CUMEM_HOST_ENABLE=0 for all processes of the job: NCCL then uses /dev/shm, for which a container "
        "needs --ipc=host or --shm-size=8g. Or start the container with --cap-add SYS_NICE, which permits the calls, "
        "and install a newer NCCL (from 2.26.5 on it tries them first). Network and cards are not the cause",
        "NCCL user guide, NCCL_CUMEM_HOST_ENABLE; NVIDIA/nccl#1838, #2190, #2106; pytorch/pytorch#152302",
        closing=r"NCCL WARN UDS: [^\n]*",
        variants=(
            Variant(
                r"NCCL WARN UDS: ",
                "the processes of a host pass memory handles (NCCL's cuMem) to each other over a local socket, and "
                "one of them gets no answer: the other has already ended, or they run in containers with different "
                "network namespaces",
                "Check the first WARN of the other processes: one may have ended for another reason. If they run in "
                "several containers of one host, start these with --network=host and --ipc=host, or set "
                "NCCL_CUMEM_ENABLE=0 for all of them. The network between hosts is not the cause",
            ),
            Variant(
                r"pidfd_",
                "processes of a job share a card's memory by file descriptors that one duplicates from the other "
                "(pidfd_getfd), which the container or the kernel's ptrace_scope forbids",
                "Start the container with --cap-add SYS_PTRACE (in Kubernetes: securityContext.capabilities.add); on "
                "a host, check sysctl kernel.yama.ptrace_scope. Otherwise, remove expandable_segments:True from "
                "PYTORCH_ALLOC_CONF (PYTORCH_CUDA_ALLOC_CONF)",
            ),
        ),
    ),
    FailureRule(
        "nccl-ranks-twice",
        r"NCCL WARN [^\n]*rank [0-9]{1,6} of [0-9]{1,6} ranks has already checked in"
        r"|Duplicate GPU detected ?: rank",
        "two processes of the job have the same rank, or the same GPU",
        "Compare each process's RANK, LOCAL_RANK and CUDA_VISIBLE_DEVICES: every node needs its own node rank, every "
        "process its own GPU",
        "Lightning-AI/pytorch-lightning#14986",
        variants=(
            Variant(
                r"Duplicate GPU detected",
                "two processes of the job use the same GPU: usually more of them are started on the host than it has "
                "GPUs, or than CUDA_VISIBLE_DEVICES allows",
                "Start as many as the host has GPUs (torchrun --nproc_per_node, mpirun -N; nvidia-smi -L lists "
                "them), and let each select the GPU of its LOCAL_RANK (torch.cuda.set_device)",
            ),
        ),
    ),
    FailureRule(
        "nccl-cuda-error",
        r"(?:NCCL [Ee]rror|ncclUnhandledCudaError|NCCL WARN Cuda failure|NCCL WARN CUDA failure)[^\n]*",
        "a call of NCCL failed because a CUDA call failed; this line does not have the reason",
        "Run it again with NCCL_DEBUG=INFO and check the first WARN of every process, which has the call and CUDA's "
        "own error: a card that is out of memory or missing, a driver that is too old for this NCCL, Fabric Manager "
        "(NVLS), or two processes on one card. Begin with the process that ended first",
        "NCCL's troubleshooting guide",
        weight="general",
        unless=r"unhandled system|internal error|invalid usage|remote process",
    ),
    FailureRule(
        "engine-failed",
        r"Engine core initialization failed[^\n]*|EngineCore failed to start[^\n]*|Engine process failed to start[^\n]*"
        r"|\bEngineDeadError\b[^\n]*",
        "the inference server's engine process ended; this line does not have the reason",
        "Find the first error above this line in the whole log of the server (grep -n -m 5 -E 'ERROR|Error'): it is "
        "the cause",
        "vLLM vllm/v1/engine/core_client.py",
        weight="general",
    ),
    FailureRule(
        "nccl-network",
        r"Got completion:? [^\n]*(?:error|status)|transport retry count(?:er)? exceeded|IBV_WC_(?:RNR_)?RETRY_EXC_ERR"
        r"|NCCL WARN (?:Call to )?ibv_[a-z_]{1,40} failed|NCCL WARN [^\n]*[Cc]onnect to [^\n]+(?:failed|returned)"
        r"|NCCL WARN [^\n]*(?:Connection refused|Connection reset by peer|Connection timed out|No route to host"
        r"|Network is unreachable|[Cc]onnection closed by remote peer)|NCCL WARN Bootstrap ?: no socket interface"
        r"|ncclSystemError|ncclRemoteError|NCCL error[^\n]*unhandled system error|NCCL WARN [^\n]*(?:socket|bootstrap"
        r"|connect|ibv_|NET/|proxy|peer)[^\n]*(?:fail|error|time|abort|unreach|clos)|NCCL WARN Net : "
        r"|NCCL WARN NET/IB ?: Unable to|store->get\([^\n]*got error|\bRendezvous(?:Connection|Timeout)Error\b"
        r"|Watchdog caught collective operation timeout|NCCL operations have failed or timed out"
        r"|remote process exited or there was a network|NCCL (?:failure|Error)[^\n]*(?:unhandled system|remote process"
        r"|internal error)|NCCL WARN [^\n]*Call to \w{1,30} failed|client socket (?:has )?(?:failed to connect"
        r"|timed out)|\bDist(?:Network|Store)Error\b|RuntimeError: Socket Timeout|Timed out initializing process group"
        r"|DEADLINE_EXCEEDED: Barrier timed out|Timeout waiting for key: default_pg|Gloo connectFullMesh failed"
        r"|ncclInternalError[^\n]*\n(?:[^\n]*\n){0,2}?[^\n]*(?:[Ss]ocket|Proxy Call|[Cc]onnect)"
        r"|NCCL WARN [^\n]*exceeded retries|gloo/transport[^\n]*(?:Connection (?:closed|refused|reset)|Timed out"
        r"|timeout)",
        "the nodes of the job cannot connect to each other: wrong interface, firewall, unconfigured InfiniBand or "
        "RoCE, or a process that has already ended",
        "Run once with NCCL_DEBUG=INFO and check the first WARN of every rank; set the interface "
        "(NCCL_SOCKET_IFNAME, NCCL_IB_HCA, NCCL_IB_GID_INDEX), open the ports between the nodes, and test the link "
        "alone (ibstat, ib_write_bw); NCCL_IB_DISABLE=1 shows whether InfiniBand is the cause",
        "NVIDIA/nccl#426, #1170; NCCL's troubleshooting guide; uccl-project/uccl#803",
        beside=r"\bGIDs?\b|\bfe80:",
        variants=(
            Variant(
                r"ibv_modify_qp[^\n]*(?:\b110\b|[Tt]imed out)[^\n]*remote GID ::ffff:",
                "two network cards of different hosts cannot connect, though both have a routed address (RoCE, "
                "IPv4): usually the cards of each number have their own network (rails), without a path from one to "
                "another, and NCCL connects different rails",
                "Set NCCL_CROSS_NIC=0 for all processes of the job, which keeps traffic within a rail, or have the "
                "network route between the rails (ping the remote address from the local card's interface: ping -I); "
                "NCCL 2.29 and later select better. GID index, driver and cards are not the cause",
            ),
            Variant(
                r"\bGID|fe80:|ibv_modify_qp",
                "the RDMA connection between two hosts gets no answer, or is not established: over RoCE usually "
                "because its selected address (GID) is not routed, such as a link-local one (fe80:, index 0), or of "
                "another RoCE version than the peer's",
                "List the addresses (show_gids, or ibv_devinfo -v) and set the index of the RoCE v2 address that "
                "other hosts can reach: NCCL_IB_GID_INDEX=3 (or that program's own variable), the same on all hosts. "
                "If it is already set, and each card's number has its own network (rails), set NCCL_CROSS_NIC=0. "
                "Over InfiniBand, check the port's state (ibstat)",
            ),
            Variant(
                r"ibv_reg_\w{1,20}[^\n]*Bad address",
                "the network adapter cannot register the GPU's memory (GPUDirect RDMA): the module nvidia_peermem is "
                "not loaded, and the driver's open module, which does not need it (DMA-BUF), is not in use",
                "Run modprobe nvidia_peermem (a stack's driver section has peermem), or provision a stack with the "
                "open module. Until then, NCCL_NET_GDR_LEVEL=LOC lets a job run, slower",
            ),
        ),
        weight="consequence",
        unless=r"using internal|fall(?:ing|s)? back",
    ),
)
