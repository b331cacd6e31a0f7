"""Failures of PyTorch and its venv. The layer ``cuda`` has the messages of CUDA programs in general."""

from __future__ import annotations

from hostwright.failures import FailureRule, Variant
from hostwright.standard.roles.environment.failures.shadowed import environment_rules

FAILURES = (
    FailureRule(
        "torch-without-cuda",
        r"Torch not compiled with CUDA enabled|PyTorch (?:was|is) (?:not )?(?:compiled|built) without CUDA"
        r"|Attempting to deserialize object on a CUDA device but torch\.cuda\.is_available\(\) is False"
        r"|torch\.version\.cuda\W{1,4}None\b|torch\.__version__\W{1,4}[0-9.]{3,9}\+cpu\b",
        "PyTorch finds no GPU: the installed build is for the CPU only",
        "Check torch.version.cuda. If the value is None, use the stack's environment, or replace the build with pip"
        " install --force-reinstall torch (with --index-url https://download.pytorch.org/whl/cu130 if another index"
        " provided the CPU build). If the value is a release, run nvidia-smi as the same user in the same place",
        "PyTorch torch/cuda/__init__.py",
        variants=(
            Variant(
                r"torch\.version\.cuda|\+cpu\b",
                "the installed PyTorch is a build for the CPU only. It came from an index without CUDA (PyTorch's"
                " /whl/cpu, or PyPI on aarch64 before 2.11), or another package required it",
                "Replace it with a CUDA build (pip install --force-reinstall torch --index-url"
                " https://download.pytorch.org/whl/cu130, or cu126 to cu129 for an older driver), or use the stack's"
                " environment. Driver, GPUs and CUDA_VISIBLE_DEVICES are not the cause",
            ),
            Variant(
                r"deserialize object",
                "the saved file has tensors of a GPU, but PyTorch finds no GPU: the build is for the CPU only, or"
                " driver, container or CUDA_VISIBLE_DEVICES expose none",
            ),
        ),
        weight="consequence",
    ),
    FailureRule(
        "torch-weights-only",
        r"Weights only load failed|Due to a serious vulnerability issue in .torch\.load",
        "PyTorch 2.6 and later load only tensors and plain types from a file (torch.load with weights_only=True), but"
        " this file has other objects",
        "Allow the types in the message (torch.serialization.add_safe_globals). For a file from a trusted origin,"
        " load it with weights_only=False, or better save it as safetensors or a state_dict",
        "PyTorch torch/serialization.py; PyTorch's release notes 2.6",
        variants=(
            Variant(
                r"serious vulnerability",
                "the program refuses to read the file with a PyTorch below 2.6, whose torch.load can execute code"
                " from the file",
                "Use PyTorch 2.6 or later (a current stack), or download the model in the format safetensors",
            ),
        ),
    ),
    FailureRule(
        "torch-compile-python",
        r"(?:Dynamo|torch\.compile) (?:is )?not (?:yet )?supported on Python 3\.[0-9]{1,2}",
        "torch.compile of this PyTorch does not support this Python yet; a later release does",
        "Use a newer PyTorch or an older Python (pythons of the layer in the stack file). Without torch.compile"
        " (TORCHDYNAMO_DISABLE=1) the program runs, but slower",
        "PyTorch torch/_dynamo/eval_frame.py",
    ),
    FailureRule(
        "torch-rendezvous-port",
        r"server socket has failed to (?:listen on|bind to)[^\n]*(?:EADDRINUSE|[Aa]ddress already in use)"
        r"|TCPStore[^\n]*(?:EADDRINUSE|[Aa]ddress already in use)",
        "the rendezvous port of the job's processes (MASTER_PORT, 29500 by default) is in use on the first host, by"
        " another job or by processes left from a failed job",
        "Find the process with ss -ltnp. End leftover processes, or give the job its own port (torchrun"
        " --master-port, or --standalone on one host)",
        "PyTorch torch/csrc/distributed/c10d/socket.cpp",
    ),
    FailureRule(
        "torch-needs-newer-compiler",
        r"You need C\+\+[0-9]{2} to compile PyTorch"
        r"|C\+\+[0-9]{2} (?:or later )?compatible compiler is required to use (?:ATen|PyTorch)",
        "an extension is compiled for an older C++ standard than this PyTorch's headers need: its build script sets"
        " the standard (-std=), or the compiler is too old",
        "Install the extension's release for this PyTorch, or set the standard from the message in its setup.py"
        " (CXX_STANDARD, -std=c++17). If gcc is below 9, use a newer compiler",
        "PyTorch c10/util/C++17.h",
    ),
    FailureRule(
        "cuda-after-fork",
        r"Cannot re-initialize CUDA in forked subprocess"
        r"|(?:multiprocessing|DataLoader|forked)[^\n]*\n(?:[^\n]*\n){0,40}?[^\n]*CUDA error: initialization error",
        "a process used CUDA after a fork from a process that had already used CUDA, which CUDA does not support. The"
        " process is usually a worker of a DataLoader or of a server",
        "Start processes with spawn (torch.multiprocessing.set_start_method('spawn'); vLLM:"
        " VLLM_WORKER_MULTIPROC_METHOD=spawn), and call no function of torch.cuda before the start. A data set should"
        " return CPU tensors",
        "PyTorch torch/cuda/__init__.py; PyTorch's notes on multiprocessing",
        weight="consequence",
    ),
    FailureRule(
        "torch-nvml-assert",
        r"NVML_SUCCESS == [^\n]*INTERNAL ASSERT FAILED",
        "PyTorch ran out of GPU memory, and NVML did not respond to PyTorch's query about the memory's users. Causes:"
        " a MIG instance, a driver upgrade under the running program, or a container that lost its GPUs",
        "Run nvidia-smi in the same place. If it fails, restart the container, or check the driver with `invoke"
        " doctor`. If it works, reduce the program's batch, or run fewer programs on the GPU",
        "PyTorch c10/cuda/CUDACachingAllocator.cpp",
        weight="consequence",
    ),
    FailureRule(
        "mkl-too-new",
        r"undefined symbol: iJIT_\w{1,40}",
        "conda installed MKL 2024.1 or later, which lacks a function that this PyTorch calls",
        "Install an older MKL into that environment (conda install 'mkl<2024.1'), or install PyTorch from wheels",
        "pytorch/pytorch#123097",
    ),
    *environment_rules("pytorch", "PyTorch", "pytorch/pytorch#152783, #134929, #131312; NVIDIA/nccl#1180"),
)
