"""Messages of programs that use CUDA or NCCL: which device, which driver library, which network."""

from __future__ import annotations

from hostwright.failures import FailureRule

_NO_DEVICE = r"CUDA_ERROR_NO_DEVICE\b|cudaErrorNoDevice\b|no CUDA-capable device is detected|No CUDA GPUs are available"

PROGRAM_RULES = (
    FailureRule(
        "nvcc-compiler-unsupported",
        r"unsupported (?:GNU|clang|Microsoft Visual Studio) version|(?:gcc|clang) versions? (?:later"
        r"|newer) than [0-9.]{1,6} (?:are|is) not"
        r" supported|CUDA [0-9.]{1,6} requires (?:gcc|clang)"
        r"|The current installed version of g\+\+ [^\n]+is (?:greater|less) than"
        r"|parameter packs not expanded with|identifier \"(?:__builtin_ia32_\w{1,40}|_Float(?:32|64"
        r"|128)x?)\" is undefined",
        "the host's compiler is newer than this release of CUDA's nvcc works with",
        "Install a gcc that this CUDA knows (10 or older for CUDA 11.2) beside the host's and name it: nvcc -ccbin"
        " gcc-10, CUDAHOSTCXX or NVCC_PREPEND_FLAGS='-ccbin gcc-10'; --allow-unsupported-compiler only silences it",
        "CUDA's crt/host_config.h; NVIDIA's CUDA installation guide, host compiler support policy",
    ),
    FailureRule(
        "cuda-visible-devices",
        r"invalid device ordinal|CUDA_ERROR_INVALID_DEVICE\b|cudaErrorInvalidDevice\b"
        r"|listed an invalid GPU id|AssertionError: Invalid device id"
        rf"|CUDA_VISIBLE_DEVICES[^\n]*(?:\n[^\n]*){{0,8}}?(?:{_NO_DEVICE})"
        rf"|(?:{_NO_DEVICE})[^\n]*(?:\n[^\n]*){{0,8}}?CUDA_VISIBLE_DEVICES",
        "the program sees no GPU, or fewer than it asks for: CUDA_VISIBLE_DEVICES, the job or the container hide them"
        " (it counts the rest from 0), or a GPU has gone missing",
        "Compare nvidia-smi -L with CUDA_VISIBLE_DEVICES in the program's own environment (and with docker's --gpus);"
        " use the numbers from 0 on; where nvidia-smi itself lists too few, fix the driver layer first",
        "NVIDIA's CUDA C++ programming guide, CUDA_VISIBLE_DEVICES; shariqfarooq123/AdaBins#79",
        weight="consequence",
    ),
    FailureRule(
        "mps-not-reachable",
        r"CUDA_ERROR_MPS_(?:CONNECTION_FAILED|SERVER_NOT_READY|RPC_FAILURE)|cudaErrorMps(?:ConnectionFailed"
        r"|ServerNotReady|RpcFailure)"
        r"|MPS client failed to connect to the MPS|the remote procedural call between the MPS server",
        "the program is told to use NVIDIA's MPS (a pipe directory is set or there), and its control daemon or server"
        " does not answer, or belongs to another user",
        "Start the daemon (nvidia-cuda-mps-control -d) as that user, or take CUDA_MPS_PIPE_DIRECTORY away and remove"
        " /tmp/nvidia-mps; in a container, mount the directory and use --ipc=host",
        "NVIDIA's Multi-Process Service documentation",
    ),
    FailureRule(
        "cuda-no-device",
        _NO_DEVICE,
        "CUDA sees no GPU: a variable or the container hides them all, this user may not open /dev/nvidia*, or the"
        " driver itself drives no card",
        "Run nvidia-smi -L as the same user in the same place. Where it lists GPUs, look at CUDA_VISIBLE_DEVICES (empty"
        " or -1 hides them), at the rights of /dev/nvidia*, and at MIG; where it does not, start the container with"
        " --gpus all, or fix the driver layer",
        "NVIDIA's CUDA driver API, CUDA_ERROR_NO_DEVICE",
        weight="consequence",
    ),
    FailureRule(
        "gpu-code-missing",
        r"no kernel image is available for|CUDA_ERROR_NO_BINARY_FOR_GPU|cudaErrorNoKernelImageForDevice"
        r"|no longer supports this GPU because it is too old|is not compatible with the current PyTorch installation"
        r"|[Mm]inimum required Cuda (?:compute )?capability is|Unsupported gpu architecture"
        r"|nvcc fatal {1,3}: Value 'sm_|is not defined for option 'gpu-|ptxas fatal {1,3}: Value 'sm_"
        r"|\binvalid device function\b"
        r"|device kernel image is invalid|CUDNN_STATUS_ARCH_MISMATCH|only supports? (?:Ampere|Ada|Hopper"
        r"|Turing)[^\n]{0,20} GPUs?"
        r"|GPUs? with compute capability (?:of )?(?:at least|>)",
        "the program or its toolkit has no code for this GPU's compute capability: the GPU is newer or older than the"
        " build",
        "Compare nvidia-smi --query-gpu=compute_cap --format=csv with the capabilities of the build; install a build"
        " for this GPU, or use another GPU",
        "pytorch/pytorch#6515",
        beside=r"supports CUDA capabilities|with CUDA capability sm_",
    ),
    FailureRule(
        "forward-compatibility",
        r"forward compatibility was attempted on non[- ]supported HW|CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"
        r"|cudaErrorCompatNotSupportedOnDevice|\bError 804: forward",
        "the program gets CUDA's compatibility library (or another libcuda than the driver's), which this GPU does not"
        " support: only data center GPUs do",
        "Take the compat directory out of LD_LIBRARY_PATH and /etc/ld.so.conf.d (ldconfig -p | grep libcuda tells),"
        " or use an image for the CUDA that nvidia-smi names; after a driver's upgrade, reboot",
        "NVIDIA's CUDA compatibility guide; chenfei-wu/TaskMatrix#379",
        weight="consequence",
    ),
    FailureRule(
        "cuda-newer-than-driver",
        r"CUDA driver version is insufficient for CUDA runtime version|cudaErrorInsufficientDriver\b"
        r"|The NVIDIA driver on your system is too old|CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
        r"|provided PTX was compiled with an unsupported toolchain"
        r"|Unsupported \.version [0-9.]{1,6}; current version is|CUDA driver is too old for"
        r"|driver version \([^)\n]+\) is older than",
        "the program brings a newer CUDA than the driver supports, or the driver is not loaded",
        "Compare the CUDA that nvidia-smi names with the program's; install a build for that one (the stack's), or"
        " provision a stack with a newer driver",
        "NVIDIA's CUDA compatibility guide",
        weight="consequence",
    ),
    FailureRule(
        "nvenc-needs-newer-driver",
        r"does not support the required nvenc API version|minimum required Nvidia driver for nvenc is",
        "the program's video encoder (NVENC) is newer than the driver knows",
        "Provision a stack with the driver that the message names, or use a build of the program for this driver's"
        " release",
        "FFmpeg libavcodec/nvenc.c",
    ),
    FailureRule(
        "cuda-differs-from-framework",
        r"detected CUDA version \([0-9.]{1,9}\) mismatches the version that was used to compile",
        "a package is compiled for PyTorch with another release of CUDA than PyTorch itself was built with",
        "Install a build of PyTorch for the toolkit's release (the stack's), or compile where nvcc is of the same"
        " release as PyTorch (torch.version.cuda)",
        "PyTorch torch/utils/cpp_extension.py",
    ),
    FailureRule(
        "gpu-busy",
        r"all CUDA-capable devices are busy or unavailable|CUDA-capable device\(s\) is/are busy or unavailable"
        r"|cudaErrorDevicesUnavailable\b",
        "the GPU takes no further program: it is in exclusive mode and another has it, or it needs a reset",
        "See who uses it and its mode (nvidia-smi -q -d COMPUTE, nvidia-smi); nvidia-smi -c 0 lets programs share it",
        "NVIDIA CUDA Runtime API, cudaErrorDevicesUnavailable",
        weight="consequence",
    ),
    FailureRule(
        "illegal-memory-access",
        r"an illegal memory access was encountered|CUDA_ERROR_ILLEGAL_ADDRESS\b|cudaErrorIllegalAddress\b",
        "a program read or wrote beyond its memory on the GPU: nearly always a fault of the program or its libraries",
        "Run it with CUDA_LAUNCH_BLOCKING=1 or under compute-sanitizer to find the place; where many programs end so on"
        " one GPU alone, look at its Xids and memory errors",
        "NVIDIA CUDA Runtime API, cudaErrorIllegalAddress",
        weight="consequence",
        unless="NCCL",  # it only hands on what another rank, or the network, began
    ),
    FailureRule(
        "cuinit-unknown",
        r"CUDA_ERROR_UNKNOWN\b|cudaErrorUnknown\b|CUDA error: unknown error|\bError 999: unknown error"
        r"|cuda runtime error \((?:30|999)\) ?: unknown|error=(?:30|999) ?: unknown|cudaSuccess \((?:30|999) vs\. 0\)"
        r"|code 999, ERROR_UNKNOWN|CUDA unknown error - this may be due to"
        r"|cuInit\b[^\n]*(?:\b999\b|UNKNOWN_CUDA_ERROR|unknown error)"
        r"|CUDA_ERROR_OPERATING_SYSTEM\b|cudaErrorOperatingSystem\b|\bError 304: OS call failed"
        r"|\bError 30: unknown error"
        r"|cudaGetDeviceCount[^\n]*returned (?:30|999)\b",
        "CUDA cannot be initialised: nvidia-uvm or its device files are not ready for this user, often after suspend or"
        " an upgrade of the driver",
        "Look for /dev/nvidia-uvm and run nvidia-modprobe -u -c=0 as root; where that changes nothing, reload"
        " nvidia_uvm (rmmod, modprobe) while no program uses a GPU, or reboot",
        "tensorflow/tensorflow#32623, #41937",
        unless=r"unknown error \(303\)",
        narrower=r"(?:could not (?:insert|find module)|FATAL: Module )[^\n]*nvidia",
        weight="consequence",
    ),
    FailureRule(
        "shm-too-small",
        r"(?:failed to extend|creating shared memory segment) /dev/shm/nccl|Unable to allocate shared memory \([0-9]"
        r"|/dev/shm[^\n]*no space left on device|unable to write to file </torch_"
        r"|insufficient shared memory \(shm\)|workers are out of\s{1,3}shared\s{1,3}memory"
        r"|is killed by signal: Bus\s{1,3}error"
        r"|posix_fallocate failed ?: No space left",
        "the shared memory of the container or host (/dev/shm) is too small for what the job's processes exchange",
        "Start the container with --ipc=host or --shm-size=8g (in Kubernetes: an emptyDir of medium Memory there), and"
        " remove files that dead jobs left in it",
        "NVIDIA/nccl src/misc/shmutils.cc; NCCL's troubleshooting guide, shared memory",
    ),
    FailureRule(
        "nccl-ranks-twice",
        r"NCCL WARN [^\n]*rank [0-9]{1,6} of [0-9]{1,6} ranks has already checked in"
        r"|Duplicate GPU detected ?: rank",
        "two processes of the job have the same rank, or the same GPU",
        "Compare each process's RANK, LOCAL_RANK and CUDA_VISIBLE_DEVICES: every node needs its own node rank, every"
        " process a GPU of its own",
        "Lightning-AI/pytorch-lightning#14986",
    ),
    FailureRule(
        "nccl-network",
        r"Got completion [^\n]*(?:error|status)|NCCL WARN (?:Call to )?ibv_[a-z_]{1,40} failed"
        r"|NCCL WARN [^\n]*[Cc]onnect to [^\n]+(?:failed|returned)"
        r"|NCCL WARN [^\n]*(?:Connection refused|Connection reset by peer|Connection timed out|No route to host"
        r"|Network is unreachable|[Cc]onnection closed by remote peer)"
        r"|NCCL WARN Bootstrap ?: no socket interface|ncclSystemError|ncclRemoteError"
        r"|NCCL error[^\n]*unhandled system error"
        r"|NCCL WARN [^\n]*(?:socket|bootstrap|connect|ibv_|NET/|proxy|peer)[^\n]*(?:fail|error|time"
        r"|abort|unreach|clos)"
        r"|NCCL WARN Net : |Watchdog caught collective operation timeout|NCCL operations have failed or timed out"
        r"|remote process exited or there was a network"
        r"|NCCL (?:failure|Error)[^\n]*(?:unhandled system|remote process|internal error)"
        r"|NCCL WARN [^\n]*Call to \w{1,30} failed"
        r"|client socket (?:has )?(?:failed to connect|timed out)"
        r"|\bDist(?:Network|Store)Error\b"
        r"|RuntimeError: Socket Timeout"
        r"|Timed out initializing process group"
        r"|Timeout waiting for key: default_pg"
        r"|gloo/transport[^\n]*(?:Connection (?:closed|refused|reset)|Timed out|timeout)",
        "the nodes of the job do not reach each other: wrong interface, firewall, InfiniBand or RoCE that is not"
        " configured, or a process that has already ended",
        "Run once with NCCL_DEBUG=INFO and read the first WARN of every rank; name the interface"
        " (NCCL_SOCKET_IFNAME, NCCL_IB_HCA, NCCL_IB_GID_INDEX), open the ports between the nodes, and test the link"
        " alone (ibstat, ib_write_bw); NCCL_IB_DISABLE=1 tells whether InfiniBand is at fault",
        "NVIDIA/nccl#426, #1170; NCCL's troubleshooting guide",
        weight="consequence",
        unless=r"using internal|fall(?:ing|s)? back",
    ),
)
