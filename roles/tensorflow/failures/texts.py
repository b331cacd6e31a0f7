"""Messages of pip, of Python and of frameworks that no sign on a host tells."""

from __future__ import annotations

from hostwright.audit.failures import FailureRule

TEXT_RULES = (
    FailureRule(
        "gpu-out-of-memory",
        r"CUDA(?: error:)? out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|torch\.OutOfMemoryError"
        r"|cuda runtime error \(2\) ?: out of memory|OOM when allocating tensor"
        r"|ran out of memory trying to allocate (?![^\n]{0,200}not a failure)"
        r"|bfc_allocator\.cc:[0-9]{1,6}\][^\n]{0,80}(?:Chunks of size|in-use [Cc]hunks)|CUBLAS_STATUS_ALLOC_FAILED"
        r"|CUDNN_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED: Out of memory|XlaRuntimeError: RESOURCE_EXHAUSTED"
        r"|cudaMalloc failed: out of memory|OutOfMemoryError: CUDA|std::bad_alloc: (?:out_of_memory: )?CUDA"
        r"|failed to allocate [^\n]{1,80}from device: ",
        "the program asks for more GPU memory than is free",
        "Look with nvidia-smi who uses the GPU, and end what nobody needs; else make the batch or the model smaller."
        " TensorFlow takes all memory at once unless TF_FORCE_GPU_ALLOW_GROWTH=true",
        "pytorch/pytorch#16417, tensorflow/tensorflow#8949",
    ),
    FailureRule(
        "externally-managed",
        r"externally-managed-environment|This environment is externally managed",
        "the distribution's Python refuses pip outside a virtual environment",
        "Use the stack's environment, or make one of your own (python3 -m venv PATH); not --break-system-packages",
        "PEP 668",
    ),
    FailureRule(
        "pip-permission",
        r"Could not install packages due to an? (?:OS|Environment)Error: \[Errno (?:1|13|30)\]"
        r"|\[Errno 13\] Permission denied: '[^'\n]{0,200}(?:site|dist)-packages",
        "pip may not write where this environment is, for it belongs to another user",
        "Install as the owner of the environment, or into a virtual environment of your own",
        "pip, pip._internal.commands.install",
    ),
    FailureRule(
        "numpy-too-old",
        r"compiled against (?:ABI|API) version 0x[0-9a-f]{1,8} but this version of numpy is 0x(?!2[0-9a-f]{6}\b)"
        r"|numpy\.core\.(?:_?multiarray(?:_umath)?|umath) failed to import",
        "the NumPy that is imported is not the one that the program was built for: mostly an older copy elsewhere on"
        " the path comes first",
        "See which one it is (python -c 'import numpy; print(numpy.__file__, numpy.__version__)'), remove that copy, or"
        " use the stack's environment",
        "tensorflow/tensorflow#559",
        weight="consequence",
    ),
)
