"""Failures of PyTorch and its environment; the layer ``cuda`` has the messages of CUDA programs."""

from __future__ import annotations

from hostwright.failures import FailureRule, Variant
from hostwright.standard.roles.environment.failures.shadowed import environment_rules

FAILURES = (
    FailureRule(
        "torch-without-cuda",
        r"Torch not compiled with CUDA enabled|PyTorch (?:was|is) (?:not )?(?:compiled|built) without CUDA"
        r"|Attempting to deserialize object on a CUDA device but torch\.cuda\.is_available\(\) is False"
        r"|torch\.version\.cuda\W{1,4}None\b|torch\.__version__\W{1,4}[0-9.]{3,9}\+cpu\b",
        "PyTorch finds no GPU: a build for the processor alone is installed",
        "See torch.version.cuda: where it is None, use the stack's environment, or install a build with CUDA over it"
        " (pip install --force-reinstall torch, with --index-url https://download.pytorch.org/whl/cu130 where another"
        " index gave the other one); where it names a release, run nvidia-smi as the same user in the same place",
        "PyTorch torch/cuda/__init__.py",
        variants=(
            Variant(
                r"torch\.version\.cuda|\+cpu\b",
                "the PyTorch that is installed is a build for the processor alone, so that it sees no GPU: an index"
                " without CUDA gave it (PyTorch's /whl/cpu; on aarch64 PyPI too, before 2.11), or another package asked"
                " for it",
                "Install a build with CUDA over it (pip install --force-reinstall torch --index-url"
                " https://download.pytorch.org/whl/cu130, or cu126 to cu129 for an older driver), or use the stack's"
                " environment. Driver, cards and CUDA_VISIBLE_DEVICES are not at fault",
            ),
            Variant(
                r"deserialize object",
                "the saved file holds tensors of a GPU, and PyTorch finds none here: it is a build for the processor"
                " alone, or driver, container or CUDA_VISIBLE_DEVICES show it none",
            ),
        ),
        weight="consequence",
    ),
    FailureRule(
        "torch-weights-only",
        r"Weights only load failed|Due to a serious vulnerability issue in .torch\.load",
        "PyTorch 2.6 and later read only tensors and plain types from a file (torch.load with weights_only=True), and"
        " this one holds other objects",
        "Allow the types that the message names (torch.serialization.add_safe_globals), or, for a file whose origin is"
        " trusted, load it with weights_only=False; better, save it as safetensors or a state_dict",
        "PyTorch torch/serialization.py; PyTorch's release notes 2.6",
        variants=(
            Variant(
                r"serious vulnerability",
                "the program refuses to read the file with a PyTorch below 2.6, for its torch.load can be made to run"
                " code",
                "Use a PyTorch of 2.6 or later (a stack of today), or take the model's file in the form safetensors",
            ),
        ),
    ),
    FailureRule(
        "torch-compile-python",
        r"(?:Dynamo|torch\.compile) (?:is )?not (?:yet )?supported on Python 3\.[0-9]{1,2}",
        "this PyTorch's torch.compile does not support this Python yet: it follows each Python with a later release",
        "Use a newer PyTorch or an older Python (pythons of the layer in the stack file); without torch.compile"
        " (TORCHDYNAMO_DISABLE=1) the program runs, slower",
        "PyTorch torch/_dynamo/eval_frame.py",
    ),
    FailureRule(
        "torch-rendezvous-port",
        r"server socket has failed to (?:listen on|bind to)[^\n]*(?:EADDRINUSE|[Aa]ddress already in use)"
        r"|TCPStore[^\n]*(?:EADDRINUSE|[Aa]ddress already in use)",
        "the port through which the job's processes find each other (MASTER_PORT, 29500 by default) is taken on its"
        " first host: another job has it, or processes of one that ended badly",
        "See who has it (ss -ltnp), end what is left over, or give the job a port of its own (torchrun --master-port,"
        " or --standalone on one host)",
        "PyTorch torch/csrc/distributed/c10d/socket.cpp",
    ),
    FailureRule(
        "torch-needs-newer-compiler",
        r"You need C\+\+[0-9]{2} to compile PyTorch"
        r"|C\+\+[0-9]{2} (?:or later )?compatible compiler is required to use (?:ATen|PyTorch)",
        "an extension is compiled for an older C++ than this PyTorch's headers need: its build script names the"
        " standard (-std=), or the compiler is too old",
        "Take the extension's release for this PyTorch, or write the standard that the message names into its setup.py"
        " (CXX_STANDARD, -std=c++17); where gcc is below 9, use a newer one",
        "PyTorch c10/util/C++17.h",
    ),
    FailureRule(
        "cuda-after-fork",
        r"Cannot re-initialize CUDA in forked subprocess"
        r"|(?:multiprocessing|DataLoader|forked)[^\n]*\n(?:[^\n]*\n){0,40}?[^\n]*CUDA error: initialization error",
        "a process used CUDA after it was forked from one that had already used it, which CUDA does not support:"
        " mostly a DataLoader's worker, or a server's",
        "Start processes with spawn (torch.multiprocessing.set_start_method('spawn'); vLLM:"
        " VLLM_WORKER_MULTIPROC_METHOD=spawn), and call nothing of torch.cuda before that; a data set should hand over"
        " tensors of the CPU",
        "PyTorch torch/cuda/__init__.py; PyTorch's notes on multiprocessing",
        weight="consequence",
    ),
    FailureRule(
        "torch-nvml-assert",
        r"NVML_SUCCESS == [^\n]*INTERNAL ASSERT FAILED",
        "PyTorch ran out of GPU memory and asked NVML who has it, and NVML did not answer: as on a MIG instance, or"
        " because the driver was upgraded under a running program or the container lost its GPUs",
        "Run nvidia-smi in the same place: where it fails, restart the container, or see what `invoke doctor` says"
        " about the driver; where it works, give the program less to do at once, or the GPU fewer programs",
        "PyTorch c10/cuda/CUDACachingAllocator.cpp",
        weight="consequence",
    ),
    FailureRule(
        "mkl-too-new",
        r"undefined symbol: iJIT_\w{1,40}",
        "conda has brought an MKL that this PyTorch was not built for: 2024.1 no longer has what it calls",
        "Install an older one into that environment (conda install 'mkl<2024.1'), or PyTorch from its own wheels",
        "pytorch/pytorch#123097",
    ),
    *environment_rules("pytorch", "PyTorch", "pytorch/pytorch#152783, #134929, #131312; NVIDIA/nccl#1180"),
)
