"""Messages of programs, pip, the loader and cuDNN, in the wordings of public reports, are classified by cause."""

from __future__ import annotations

import pytest

from tests.unit.support.known import KNOWN

OPEN = "cannot open shared object file: No such file or directory"
LOADED = "Loaded runtime CuDNN library: 8.0.5 but source was compiled with: 8.1.0.  CuDNN library needs to have"
NOT_STARTED = "Could not create cudnn handle: CUDNN_STATUS_NOT_INITIALIZED"
CUINIT = "tensorflow/stream_executor/cuda/cuda_driver.cc:318] failed call to cuInit: "
NO_DEVICE = f"{CUINIT}CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"
FORWARD = "forward compatibility was attempted on non supported HW"
NEW_SYMBOL = (
    "python3: symbol lookup error: nvidia/cudnn/lib/libcudnn_cnn_infer.so.8: undefined symbol: "
    "_ZN15TracebackLoggerC1EPKc, version libcudnn_ops_infer.so.8"
)


@pytest.mark.parametrize(
    "name, text",
    [
        ("library-not-found", f"ImportError: libcublas.so.8.0: {OPEN}"),
        ("library-not-found", f"Could not dlopen library 'libcudart.so.10.0'; dlerror: libcudart.so.10.0: {OPEN}"),
        ("library-not-found", "dso_loader.cc:126] Couldn't open CUDA library libcudnn.so.5. LD_LIBRARY_PATH: /usr"),
        (
            "library-not-found",
            f"Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8: {OPEN}",
        ),
        ("library-not-found", "RuntimeError: Library libcublas.so.12 is not found or cannot be loaded"),
        ("library-not-found", "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9}\nInvalid handle."),
        ("nvrtc-not-found", f"Could not load library libcudnn_cnn_infer.so.8. Error: libnvrtc.so: {OPEN}"),
        ("nvrtc-not-found", "nvrtc: error: failed to open libnvrtc-builtins.so.11.3."),
        ("cudnn-mixed", NEW_SYMBOL),
        ("cudnn-mixed", "cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH"),
        ("cudnn-other-version", LOADED),
        ("cudnn-other-version", f"{LOADED}\n{NOT_STARTED}"),
        ("cudnn-of-the-host-first", "cuDNN version incompatibility: PyTorch was compiled  against (8, 3, 2) but found"),
        ("cudnn-not-initialized", "cuda_blas.cc:510] failed to create cublas handle: CUBLAS_STATUS_NOT_INITIALIZED"),
        ("glibc-too-old", "ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found"),
        ("libstdcxx-too-old", "ImportError: /opt/lib/libstdc++.so.6: version GLIBCXX_3.4.32' not found (required by a"),
        ("libstdcxx-too-old", "libstdc++.so.6: version `CXXABI_1.3.15' not found"),
        ("gpu-out-of-memory", "RuntimeError: CUDA out of memory. Tried to allocate 2.00 MiB (GPU 0; 7.94 GiB total"),
        ("gpu-out-of-memory", "RuntimeError: cuda runtime error (2) : out of memory at THC/generic/THCStorage.cu:66"),
        ("gpu-out-of-memory", f"failed to allocate 8.0K: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n{NOT_STARTED}"),
        ("gpu-out-of-memory", "core/common_runtime/bfc_allocator.cc:696] 24 Chunks of size 256 totalling 6.0KiB"),
        ("externally-managed", "error: externally-managed-environment\n\n× This environment is externally managed"),
        (
            "pip-permission",
            "ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: '/usr/x'",
        ),
        (
            "venv-missing",
            "created successfully because ensurepip is not\navailable.  On Debian/Ubuntu systems, you need",
        ),
        ("venv-missing", "'-Im', 'ensurepip', '--upgrade', '--default-pip']' returned non-zero exit status 1"),
        ("no-wheel", "ERROR: tensorflow-2.9.0-cp39-cp39.whl is not a supported wheel on this platform."),
        ("protobuf-too-new", "TypeError: Descriptors should not be created directly, but only retrieved from their"),
        ("protobuf-too-new", "AttributeError: 'MessageFactory' object has no attribute 'GetPrototype'"),
        ("numpy-too-new", "module compiled against ABI version 0x1000009 but this version of numpy is 0x2000000"),
        ("no-avx", "5526 illegal hardware instruction (core dumped)  python3"),
        ("ptxas-not-found", "libdevice not found at ./libdevice.10.bc"),
        ("ptxas-not-found", "sh: 1: ptxas: not found"),
        ("cuinit-unknown", f"{CUINIT}CUDA_ERROR_UNKNOWN: unknown error"),
        ("cuinit-unknown", "CUDA error: unknown error (code 999, ERROR_UNKNOWN)"),
        ("cuda-visible-devices", "RuntimeError: Unexpected error. Error 101: invalid device ordinal"),
        ("cuda-no-device", NO_DEVICE),
        ("cuda-visible-devices", f'{NO_DEVICE}\ncuda_diagnostics.cc:153] env: CUDA_VISIBLE_DEVICES="-1"'),
        ("cuda-visible-devices", f"CUDA_VISIBLE_DEVICES=4 python train.py\n{NO_DEVICE}"),
        ("libcuda-not-found", f"{CUINIT}UNKNOWN ERROR (303)"),
        ("libcuda-not-found", f"Could not load library libcudnn_cnn_infer.so.8. Error: libcuda.so: {OPEN}"),
        (
            "cuinit-unknown",
            f"{CUINIT}CUDA_ERROR_OPERATING_SYSTEM: OS call failed or operation not supported",
        ),
        ("ptxas-not-found", "nvptx_compiler.cc:70] Can't find ptxas binary in ${CUDA_DIR}/bin.  Will back to the GPU"),
        (
            "ptxas-too-old",
            "ptxas input, line 9; fatal   : Unsupported .version 7.5; current version is '7.2'",
        ),
        ("cuda-newer-than-driver", "ptx error   : Unsupported .version 7.8; current version is '7.4'"),
        (
            "nvcc-compiler-unsupported",
            "#error -- unsupported GNU version! gcc versions later than 10 are not",
        ),
        ("nvcc-not-found", "/bin/sh: 1: nvcc: not found"),
        ("gpu-out-of-memory", "NCCL WARN Cuda failure 'out of memory'"),
        (
            "pip-conflict",
            "UnsatisfiableError: The following specifications were found to be incompatible with each other",
        ),
        ("mps-not-reachable", "cuInit: CUDA_ERROR_MPS_CONNECTION_FAILED: MPS client failed to connect"),
        ("numpy-too-new", "downgrade to 'numpy<2' or try to upgrade the affected module."),
        (
            "numpy-too-old",
            "ValueError: numpy.ndarray size changed, may indicate binary incompatibility. Expected 96",
        ),
        ("protobuf-too-old", "ImportError: cannot import name 'builder' from 'google.protobuf.internal'"),
        ("gpu-code-missing", "RuntimeError: FlashAttention only supports Ampere GPUs or newer."),
        ("shm-too-small", "DataLoader worker (pid 42) is killed by signal: Bus error."),
        (
            "no-avx",
            "The TensorFlow library was compiled to use SSE4.1 instructions, but these aren't available on",
        ),
        ("forward-compatibility", f"RuntimeError: already set an error? Error 804: {FORWARD}"),
        ("gpu-code-missing", "error = 48: no kernel image is available for execution on the device"),
        ("cuda-newer-than-driver", "CUDA driver version is insufficient for CUDA runtime version"),
        ("nccl-network", "gpu5:35917:35994 [0] NCCL WARN NET/IB : Got completion with error 12, opcode 1, len 0"),
        (
            "nccl-network",
            "socketPollConnect:533 NCCL WARN socketPollConnect: Connect to 192.0.2.4<56849> returned 113(No",
        ),
        ("nccl-network", "misc/ibvwrap.cc:284 NCCL WARN Call to ibv_modify_qp failed with error Invalid argument"),
        ("nccl-ranks-twice", "bootstrap.cc:131 NCCL WARN Bootstrap Root : rank 1 of 8 ranks has already checked in"),
    ],
)
def test_each_wording_leads_to_its_cause(name: str, text: str) -> None:
    failure = KNOWN.classify(f"begin\n{text}\nend\n")
    assert failure is not None
    assert failure.rule.name == name


@pytest.mark.parametrize(
    "text",
    [
        f"W dso_loader.cc:64] Could not load dynamic library 'libnvinfer.so.7'; dlerror: libnvinfer.so.7: {OPEN}",
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.20GiB with freed_by_count=0. The caller indicates"
        " that this is not a failure, but this may mean that there could be performance gains",
        "host-13:941227:943077 [0] NCCL INFO Call to connect returned Connection refused, retrying",
        "RuntimeWarning: numpy.dtype size changed, may indicate binary incompatibility. Expected 96, got 88",
        "xla_bridge.py:841] Unable to initialize backend 'tpu': INTERNAL: Failed to open libtpu.so: libtpu.so: " + OPEN,
        "ERROR: pip's dependency resolver does not currently take into account all the packages that are installed.",
        "cuda_dnn.cc:9261] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN",
    ],
)
def test_what_programs_say_without_harm_is_not_blamed(text: str) -> None:
    assert KNOWN.classify(text) is None


@pytest.mark.parametrize(
    ("library", "release"),
    [
        ("libcudart.so.6.5", "6.5"),
        ("libcublas.so.8.0", "8.0"),
        ("libcudart.so.10.1", "10.1"),
        ("libcufft.so.9.2", "9.2"),
    ],
)
def test_a_library_of_an_old_cuda_tells_what_the_program_was_built_for(library: str, release: str) -> None:
    """FXIhub/condor#3: provisioning installs the stack's release, which does not help here."""
    failure = KNOWN.classify(f"/opt/spsim: error while loading shared libraries: {library}: {OPEN}")
    assert failure is not None and failure.rule.name == "library-not-found"
    assert failure.cause == (
        f"the program was built for CUDA {release}: it loads {library}, which the loader does not find"
    )
    assert failure.cure.startswith("Install a build of the program for the host's CUDA")


@pytest.mark.parametrize("library", ["libcudart.so.11.0", "libcudart.so.12", "libcurand.so.10", "libcudnn.so.8"])
def test_a_library_of_a_later_cuda_may_be_the_stacks(library: str) -> None:
    failure = KNOWN.classify(f"/opt/x: error while loading shared libraries: {library}: {OPEN}")
    assert failure is not None and "provision again" in failure.cure.lower()
