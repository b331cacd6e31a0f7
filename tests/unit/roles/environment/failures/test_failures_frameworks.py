"""Messages of today's frameworks lead to their cause and fix; their normal output does not."""

from __future__ import annotations

import pytest

from tests.unit.support.known import KNOWN

OPEN = "cannot open shared object file: No such file or directory"
TORCH = 'site-packages/torch/__init__.py", line 427, in <module>\n    from torch._C import *\n'
CUDNN = "CuDNN library needs to have matching major version and equal or higher minor version."
LSPCI = "00:03.1 PCI bridge: AMD GPP Bridge\n\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+"
ERROR_803 = "Error 803: system has unsupported display driver / cuda driver combination"
NOT_COMPATIBLE = "with CUDA capability sm_120 is not compatible with the current PyTorch installation."
NO_KERNELS = "of compute capability (CC) 6.1. Your installed torch==2.14.0+cu130 does not include kernels for this GPU."


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("framework-extension-apart", "x.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEab", "x.abi3.so"),
        ("framework-extension-apart", "x.so: undefined symbol: _ZNK5torch8autograd4Node4nameEv", "no-build-isolation"),
        ("framework-extension-apart", "operator torchvision::nms does not exist", "one index"),
        (
            "framework-extension-apart",
            "PyTorch and torchaudio were compiled with different CUDA versions",
            "torchaudio has PyTorch's number",
        ),
        ("framework-extension-apart", f"ImportError: libc10_cuda.so: {OPEN}", "import torch first"),
        ("framework-extension-apart", "_text_ops.so: undefined symbol: _ZN10tensorflow14kernel", "tensorflow-text"),
        ("framework-extension-apart", "CUDA Setup failed despite GPU being available.", "newer bitsandbytes"),
        (
            "framework-other-release",
            "ImportError: cannot import name 'xla_pmap_p' from 'jax.extend.core.primitives' (/opt/x.py)",
            "the installed JAX does not have xla_pmap_p, which an installed package uses",
        ),
        ("framework-other-release", "AttributeError: jax.tree_map was removed in JAX v0.4.26", "jax.tree_map, which"),
        ("framework-other-release", "AttributeError: module 'scipy.linalg' has no attribute 'tril'", "scipy<1.13"),
        ("framework-other-release", "ModuleNotFoundError: No module named 'torch._six'", "torch._six, which"),
        ("framework-other-release", "ImportError: cannot import name 'triton_key' from 'triton.compiler'", "pip show"),
        ("framework-other-release", "AttributeError: module 'ml_dtypes' has no attribute 'float8_e3m4'", "ml_dtypes"),
        ("framework-other-release", "ModuleNotFoundError: No module named 'numpy._core'", "newer NumPy"),
        ("framework-other-release", "AttributeError: module 'tensorflow' has no attribute 'Session'", "compat.v1"),
        (
            "framework-other-release",
            "AttributeError: partially initialized module 'torch' has no attribute 'Tensor'",
            "Rename the file",
        ),
        (
            "framework-other-release",
            "ModuleNotFoundError: No module named 'tensorflow.keras'",
            "reinstall the library",
        ),
        (
            "protobuf-too-old",
            "runtime_version.VersionError: x.proto: gencode 6.31.1 runtime 5.29.5. Runtime",
            "protobuf>=6.31.1",
        ),
        ("numpy-too-new", "RuntimeError: Numpy is not available", "PyTorch below 2.3"),
        (
            "no-wheel",
            "Could not find a version that satisfies the requirement torch==1.9 (from versions: 2.6.0+cu124)",
            "only the releases",
        ),
        ("build-out-of-memory", "  Killed\n  ninja: build stopped: subcommand failed.", "MAX_JOBS"),
        (
            "cuda-after-fork",
            'torch/utils/data/dataloader.py", line 1, in DataLoader\nRuntimeError: CUDA error: initialization error',
            "spawn",
        ),
        ("ptxas-too-old", "INTERNAL: XLA requires ptxas version 11.8 or higher", "newer toolkit's bin"),
        (
            "nccl-network",
            "gloo/transport/tcp/pair.cc:525] Read error [192.0.2.1]:1: Connection reset by peer",
            "the nodes",
        ),
        (
            "nccl-network",
            "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The",
            "NCCL_SOCKET_IFNAME",
        ),
        ("libcuda-not-found", "RuntimeError: Found no NVIDIA driver on your system. Please check", "--gpus all"),
        ("python-distutils-missing", "module 'pkgutil' has no attribute 'ImpImporter'", "3.12 removed"),
        ("compile-cache-unwritable", "Permission denied: '/tmp/torchinductor_root/x'", "TORCHINDUCTOR_CACHE_DIR"),
        ("libcuda-link-missing", "AssertionError: libcuda.so cannot found!", "TRITON_LIBCUDA_PATH"),
        (
            "build-without-gpu",
            'cpp_extension.py", in _get_cuda_arch_flags\n    arch_list[-1]\nIndexError: list index out of range',
            "TORCH_CUDA_ARCH_LIST",
        ),
        ("library-not-found", f"{TORCH}ImportError: libcudnn.so.9: {OPEN}", "lib64"),
        ("library-not-found", "Cannot dlopen some GPU libraries. Please make sure", "tensorflow[and-cuda]"),
        ("library-not-found", "Unable to load cuSPARSE. Is it installed?", "jax[cuda13]"),
        ("library-not-found", f"ImportError: libnvshmem_host.so.3: {OPEN}", "provision again"),
        ("loader-mixed-cuda", "undefined symbol: cuptiActivityEnableDriverApi, version libcupti.so.12", "Unset LD_LIB"),
        ("ptxas-not-found", "libdevice is required by this HLO module but was not found", "nvidia-cuda-nvcc-cu12"),
        ("nvcc-not-found", "MissingCUDAException: CUDA_HOME does not exist, unable to compile", "/usr/local/cuda"),
        (
            "torch-without-cuda",
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False",
            "tensors of a GPU",
        ),
        ("torch-weights-only", "Due to a serious vulnerability issue in `torch.load`, even with", "2.6 or later"),
        (
            "jax-parts-apart",
            "JAX plugin jax_cuda12_plugin version 0.9.2 is installed, but it is not compatible with the"
            " installed jaxlib version 0.9.0.1",
            "jax-cuda12-plugin and jax-cuda12-pjrt in jaxlib's release 0.9.0.1",
        ),
        (
            "jax-parts-apart",
            "jaxlib version 0.4.31 is newer than and incompatible with jax version 0.4.30.",
            "each in the",
        ),
        ("jax-parts-apart", "ALREADY_EXISTS: PJRT_Api already exists for device type cuda", "two CUDA plugins"),
        ("jax-without-plugin", "Unknown backend: 'gpu' requested, but no platforms", "JAX_PLATFORMS"),
        (
            "jax-libraries-outdated",
            "Outdated cuDNN installation found.\nVersion JAX was built against: 90800",
            "older cuDNN",
        ),
        (
            "cudnn-other-version",
            f"Loaded runtime CuDNN library: 9.1.0 but source was compiled with: 9.3.0.  {CUDNN}",
            "nvidia-cudnn-cu12>=9.3",
        ),
        (
            "cudnn-other-version",
            f"Loaded runtime CuDNN library: 8.0.4 but source was compiled with: 8.1.0.  {CUDNN}",
            "the cudnn role",
        ),
        (
            "cudnn-not-initialized",
            "CUBLAS_STATUS_INVALID_VALUE when calling `cublasSgemm(handle)`",
            "Unset LD_LIBRARY_PATH",
        ),
        ("protobuf-too-new", "'MessageFactory' object has no attribute 'GetPrototype'", "protobuf<6"),
        (
            "keras-3",
            "ImportError: cannot import name 'ImageDataGenerator' from 'keras.preprocessing.image'",
            "tf-keras",
        ),
        (
            "keras-3",
            "Your currently installed version of Keras is Keras 3, but this is not yet supported",
            "transformers",
        ),
        ("keras-3", "Exception encountered: Unrecognized keyword arguments: ['batch_shape']", "saved model"),
        ("keras-3", "ImportError: cannot import name 'ops' from 'keras'", "Keras 2 is installed"),
        ("keras-3", "ModuleNotFoundError: No module named 'keras.api._v2'", "keras==2.15"),
        (
            "no-wheel",
            "Could not find a version that satisfies the requirement jaxlib==0.4.30+cuda12.cudnn89 (from versions: 1)",
            "jax[cuda12]",
        ),
        ("no-wheel", "No matching distribution found for torch==2.1.0+cu118", "PyTorch's own index"),
        (
            "no-wheel",
            "Because torch==2.1.0 has no wheels with a matching Python ABI tag",
            "torch==2.1.0 for this Python",
        ),
        (
            "build-alone",
            "  × Failed to build `flash-attn==2.7.4`\n  ModuleNotFoundError: No module named 'torch'",
            "flash-attn",
        ),
        ("build-header-missing", "fatal error: Python.h: No such file or directory", "python3-dev"),
        ("build-header-missing", "x.h:7:10: fatal error: cusparse.h: No such file or directory", "header cusparse.h"),
        ("gpu-code-missing", f"NVIDIA GeForce RTX 5090 {NOT_COMPATIBLE}", "newer (sm_120)"),
        ("gpu-code-missing", f"Found GPU0 NVIDIA GeForce GTX 1060 6GB which is {NO_KERNELS}", "volta-pascal"),
        (
            "gpu-code-missing",
            "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'",
            "TRITON_PTXAS_PATH",
        ),
        ("gpu-code-missing", "nvcc fatal   : Unsupported gpu architecture 'compute_120'", "remove compute_120 from"),
        ("gpu-code-missing", "Bfloat16 is only supported on GPUs with compute capability of at least 8.0.", "float16"),
        ("nvcc-compiler-unsupported", "gcc versions later than 12 are not supported!", "g++-12"),
        (
            "nvcc-compiler-unsupported",
            'error: exception specification is incompatible with that of previous function "cospi"',
            "glibc 2.41",
        ),
        (
            "cuda-newer-than-driver",
            "The NVIDIA driver on your system is too old (found version 12020).",
            "which is 12.2",
        ),
        (
            "cuda-differs-from-framework",
            "Installed CUDA version 12.4 does not match the version torch was compiled with",
            "torch.version.cuda",
        ),
        (
            "cuda-no-device",
            "Unable to initialize backend 'cuda': FAILED_PRECONDITION: No visible GPU devices.",
            "nvidia-smi",
        ),
        ("peer-access-refused", "CUDA error: peer mapping resources exhausted", "eight"),
        (
            "image-libcuda-first",
            f"docker run --runtime nvidia image:1\n$ python3\n{ERROR_803}",
            "the host, keep its driver",
        ),
        ("version-mismatch", ERROR_803, "If it works, the host's driver is not the cause"),
        ("acs-on", f"NCCL_P2P_DISABLE=1 all_reduce_perf completes\n{LSPCI}", "setpci"),
        (
            "nccl-interface-missing",
            "NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth2\n"
            "ncclSocketInit: connecting to address  with family 59936 is neither AF_INET(2) nor AF_INET6(10)",
            "eth2",
        ),
        ("nccl-interface-missing", "Unable to find address for: ib7", "ib7"),
        (
            "nvls-not-set-up",
            "transport/nvls.cc:598 NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast",
            "nvidia-smi --gpu-reset",
        ),
        (
            "nccl-network",
            "NET/IB : Got completion: IBV_WC_RETRY_EXC_ERR (status=12)\nGID 0 = fe80::1",
            "NCCL_IB_GID_INDEX",
        ),
        ("nccl-network", "NCCL WARN Call to ibv_reg_mr failed with error Bad address", "nvidia_peermem"),
        (
            "nccl-newer-than-driver",
            "NCCL WARN Cuda failure 500 'named symbol not found'",
            "NCCL for this driver's CUDA",
        ),
        ("locked-memory-limit", "UCX ERROR ibv_create_cq(cqe=4096) failed: Cannot allocate memory", "IPC_LOCK"),
        ("no-space", "Could not install packages due to an OSError: [Errno 28] No space left on device", "TMPDIR"),
        (
            "download-damaged",
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
            "pip cache purge",
        ),
        (
            "tensorflow-no-blackwell",
            "CUDA kernel binaries compatible with compute capability 12.0. CUDA",
            "NVIDIA's TensorFlow container",
        ),
    ],
)
def test_a_message_leads_to_its_cause_and_to_what_helps(name: str, text: str, says: str) -> None:
    failure = KNOWN.classify(f"begin\n{text}\nend\n")
    assert failure is not None and failure.rule.name == name
    assert says in f"{failure.cause}\n{failure.cure}"
    assert KNOWN.explained(text) is not None, "a check of verify tells it as well"


@pytest.mark.parametrize(
    "text",
    [
        "cuda_blas.cc:1413] Unable to register cuBLAS factory: Attempting to register factory for plugin cuBLAS",
        "computation_placer.cc:177] computation placer already registered. Please check linkage and avoid linking",
        "successful NUMA node read from SysFS had negative value (-1), but there must be at least one NUMA node",
        "oneDNN custom operations are on. You may see slightly different numerical results due to floating-point",
        "torch/_inductor/utils.py:1137] [0/0] Not enough SMs to use max_autotune_gemm mode",
        "The NVIDIA driver's CUDA version is 12.4 which is older than the PTX compiler version 12.8.90. Because the"
        " driver is older than the PTX compiler version, XLA is disabling parallel compilation, which may slow it.",
        "ptxas warning : Registers are spilled to local memory in function 'gemm_fusion_dot_3', 8 bytes spill stores",
        "INFO:jax._src.xla_bridge:Unable to initialize backend 'rocm': module 'jaxlib.xla_extension' has no attribute",
        "NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.\nNET/IB : No device",
        "NCCL INFO NVLS multicast support is available on dev 0\nNCCL INFO transport/nvls.cc:244 -> 0",
        "NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0\nNCCL INFO Bootstrap : Using eth0:192.0.2.7<0>",
        "UserWarning: Failed to load image Python extension: 'x.so: undefined symbol: _ZN3c106detail'",
        "Skipping import of cpp extensions due to incompatible torch version 2.9.0+cu128 for torchao version 0.13.0",
        "ProcessGroupNCCL.cpp:1496] Warning: WARNING: destroy_process_group() was not called before program exit",
        "FutureWarning: You are using `torch.load` with `weights_only=False` (the current default value), which uses",
        "TensorFloat32 tensor cores for float32 matrix multiplication available but not enabled.",
        "Local rendezvous is aborting with status: OUT_OF_RANGE: End of sequence",
        f"$ lspci -vvv\n{LSPCI}",
        "Error: docker run --gpus all image:1\nTests passed",
    ],
)
def test_what_frameworks_print_in_good_order_is_not_blamed(text: str) -> None:
    assert KNOWN.classify(text) is None
