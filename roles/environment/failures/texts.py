"""Messages of the loader: a library or a version of it that a program needs and does not get."""

from __future__ import annotations

from typing import Final

from hostwright.audit.failures import FailureRule

#: CUDA's and cuDNN's libraries, as they stand at the beginning of a file's name (TensorRT's is optional: not here)
_CUDA: Final = (
    r"lib(?:cudart|cublas|cublasLt|cufft|cufftw|curand|cusolver|cusolverMg|cusparse|cusparseLt|cupti|cudnn[a-z_]{0,40}"
    r"|nccl|nvJitLink|nvToolsExt|nvrtc|nvrtc-builtins)\.so"
)

#: Wordings of TensorFlow (dso_loader.cc, before 2.1 and since), of the loader, and of programs that open cuDNN 9
NOT_FOUND: Final = (
    r"Could not (?:load dynamic|dlopen) library '(?!libnvinfer)|Cannot dlopen some GPU libraries"
    r"|Couldn't open CUDA library (?!libnvinfer|libcupti)"
    rf"|\b{_CUDA}[0-9.]{{0,20}}: cannot open shared object\s{{1,40}}file"
    rf"|Library {_CUDA}[0-9.]{{0,20}} is not found or cannot be loaded"
    r"|Unable to load any of \{libcudnn|Unable to load cuDNN DSO|Could not locate (?:lib)?cudnn"
)

TEXT_RULES = (
    FailureRule(
        "nvrtc-not-found",
        r"\blibnvrtc(?:-builtins)?\.so[0-9.]{0,20}: cannot open shared object\s{1,40}file"
        r"|failed to open libnvrtc|Could not load (?:dynamic )?library '?libnvrtc|could not find (?:the )?libnvrtc",
        "a program compiles for the GPU while it runs, and the loader does not find CUDA's runtime compiler (NVRTC)"
        " under the name that it asks for",
        "Look where it is (ldconfig -p | grep nvrtc); give the program the release that it was built for, and where it"
        " asks for libnvrtc.so without a number, the toolkit's own directory (the environment role lists it)",
        "vladmandic/sdnext#539",
    ),
    FailureRule(
        "glibc-too-old",
        r"version .?GLIBC_[0-9.]{1,12}.? not\s{1,40}found",
        "the program or its wheel was built for a newer C library than the host's",
        "Install a build for this distribution, build it here, or run it in a container of a newer one; never replace"
        " the host's glibc",
        "huggingface/lerobot#2219",
    ),
    FailureRule(
        "libstdcxx-too-old",
        r"version .?(?:GLIBCXX|CXXABI)_[0-9.]{1,12}.? not\s{1,40}found",
        "the program gets an older libstdc++ than its extension was built with, often that of a conda environment",
        "Look which file the message names: update it there (conda install -c conda-forge libstdcxx-ng, or the"
        " distribution's libstdc++6), or start the program without that directory in LD_LIBRARY_PATH",
        "kvcache-ai/ktransformers#524",
    ),
    FailureRule(
        "loader-mixed-cuda",
        r"lib(?:cublas|cusparse|cusolver|nvrtc|nvJitLink|cudart|cufft|curand|cupti|nccl)[^\s:]{0,60}: undefined symbol"
        r"|undefined symbol: (?:nvrtc|__nvJitLink|nccl|cusparse|cublas)\w{1,80}"
        r"|version lib(?:cublas|cublasLt|cusparse|cusolver|nvJitLink)\.so\.[0-9]{1,2} not (?:found|defined)",
        "the loader gives the program libraries of two CUDA releases at once",
        "See which directory comes first (ldd, LD_DEBUG=libs): take the other CUDA's directory out of LD_LIBRARY_PATH"
        " and /etc/ld.so.conf.d, or the second copy out of the Python environment",
        "nanoporetech/dorado#166",
    ),
)
