"""Messages of the loader: a missing library, or a missing version of a library."""

from __future__ import annotations

from typing import Final

from hostwright.failures import FailureRule, Variant
from hostwright.standard.roles.cuda.failures.wheels import TWO_SETS, WHEEL_LINES

#: pattern of the name prefixes of CUDA's and cuDNN's libraries
_CUDA: Final = (
    r"lib(?:cudart|cublas|cublasLt|cufft|cufftw|curand|cusolver|cusolverMg|cusparse|cusparseLt|cupti|cudnn[a-z_]{0,40}"
    r"|nccl|npp[a-z]{1,6}|nvjpeg|cufile|nvJitLink|nvToolsExt|nvrtc|nvrtc-builtins|nvshmem_host|cudss|cutensor"
    r"|nvvm)\.so"
)

#: messages about optional libraries of TensorFlow
OPTIONAL: Final = r"library '?libnvinfer|open CUDA library libcupti"
#: pattern of a library's soname in CUDA 4 to 10.2. These sonames end in the full release number.
OLD_SONAME: Final = (
    r"(?P<soname>lib(?:cudart|cublas|cufft|curand|cusolver|cusparse|nvrtc|npp[a-z]{1,6})\.so\."
    r"(?P<release>(?:[4-9]|10)\.[0-9]))(?:[^.0-9]|$)"
)
#: messages about a missing library, from TensorFlow, the loader and other programs
NOT_FOUND: Final = (
    r"Could not (?:load dynamic|dlopen) library '|Cannot dlopen some GPU libraries"
    r"|cu(?:SPARSE|DNN|BLAS|FFT|SOLVER) library was not found"
    r"|Couldn't open CUDA library "
    rf"|\b{_CUDA}[0-9.]{{0,20}}: cannot open shared object\s{{1,40}}file"
    r"|Unable to load (?:CUDA|cuBLAS|cuFFT|cuSOLVER|cuSPARSE|cuDNN|CUPTI|NCCL|nvJitLink)\. Is it installed"
    r"|Require cuDNN [0-9.*]{1,6} and CUDA [0-9.*]{1,6}"
    rf"|Library {_CUDA}[0-9.]{{0,20}} is not found or cannot be loaded"
    r"|CuPy failed to load lib|Unable to load any of \{libcudnn|Unable to load cuDNN DSO|Could not locate (?:lib)?cudnn"
    r"|cannot find -l(?:cudart|cublas|cudnn|cufft|curand|cusolver|cusparse|nccl|nvrtc|nvToolsExt)\b"
    r"|Cannot load symbol cudnn\w|jaxlib/cuda/versions_helpers\.cc:[0-9]{1,4}: operation (?:cu|gpu)\w+\([^\n]*failed"
)

#: pattern of the directory of CUDA libraries in wheels
_IN_WHEELS: Final = r"/[^\s:]{1,200}/site-packages/nvidia/\w{1,30}/lib/"
_ON_HOST: Final = r"(?:/usr/local|/opt|/usr/lib)/(?:[^\s:]{1,200}/)?"
_PLACED: Final = rf"(?:^|[\s=>])(?P<place>(?:{_IN_WHEELS}|{_ON_HOST})lib\w{{2,40}}\.so[.0-9]{{0,12}})\s{{0,3}}(?:$|->)"
#: patterns of libraries that are interchangeable within a major version
_KINDS: Final = (
    r"libcudnn\w{0,40}\.so\.8", r"libcudnn\w{0,40}\.so\.9", r"lib(?:cublas|cublasLt|cudart)\.so\.11",
    r"lib(?:cublas|cublasLt|cudart)\.so\.12", r"lib(?:cublas|cublasLt|cudart)\.so\.13", r"libnccl\.so\.2",
)  # fmt: skip


def _listed(place: str) -> str:
    return "|".join(rf"{kind}(?s:.)*(?:^|[\s=>]){place}{kind}" for kind in _KINDS)


#: pattern of lines that name the framework or the library's location near a loader message
WHEEL_LOADS: Final = (
    r"/torch/__init__\.py|from torch\._C import|Skipping registering GPU devices|initialize backend|onnxruntime"
    r"|/(?:site|dist)-packages/[^\n]*\.py\", line "
    rf"|{WHEEL_LINES}|{_PLACED}".replace("?P<place>", "?:")
)
_OF_RELEASE: Final = (
    r"(?P<soname>lib(?:cudart|cublas|cublasLt|nvJitLink)\.so\.(?P<release>1[1-9])(?:\.0)?)(?:[^.0-9]|$)"
)
_OF_PACKAGE: Final = (
    r"/(?:site|dist)-packages/(?P<owner>[A-Za-z][\w.-]{0,60})/[^\n]*\.py\", line [^\n]*\n"
    r"[^\n]*lib\w{2,20}\.so\.1[1-9](?:\.0)?: cannot open"
)
#: message that names the missing library and the library that needs it
_THROUGH: Final = (
    r"library '(?P<through>lib(?:cusolver|cusparse|cublas)\w{0,6}\.so[.0-9]{0,12})'; dlerror: lib(?:nvJitLink|cublasLt)"
)
#: patterns with named groups for the texts of the failure rule ``library-not-found``
LIBRARY_NAMES: Final = (
    _OF_PACKAGE,
    _THROUGH,
    OLD_SONAME,
    _OF_RELEASE,
    rf"(?P<soname>{_CUDA}(?:\.[0-9]{{1,4}}){{0,3}})",
    _PLACED,
)
_IN_WHEEL: Final = (
    "Let the program load the library through its framework (import torch first; ONNX Runtime from 1.21 on:"
    " onnxruntime.preload_dlls()), or set its directory for this program alone: LD_LIBRARY_PATH=DIRECTORY PROGRAM. No"
    " installation is needed. Do not use /etc/ld.so.conf.d, because each environment has its own release"
)
#: variants of ``library-not-found`` for an installed library outside the search path
NOT_SEARCHED: Final = (
    TWO_SETS,
    Variant(
        _listed(_IN_WHEELS),
        "{SONAME|the library} is installed as a wheel of a Python environment (PLACE), where the loader does not"
        " search: only its framework loads it from there",
        _IN_WHEEL,
    ),
    Variant(
        _listed(_ON_HOST),
        "{SONAME|the library} is installed (PLACE), but its directory is not in the loader's search path",
        "Write the directory into a file in /etc/ld.so.conf.d and run ldconfig as root; then check ldconfig -p | grep"
        " {SONAME|NAME}. For the stack's toolkit, provision does this (the environment role). For one program, use"
        " LD_LIBRARY_PATH=DIRECTORY PROGRAM. If the message names another release, install a build of the program for"
        " the installed release instead",
    ),
    Variant(
        r"libcudnn\w{0,40}\.so\.(?:8(?s:.)*nvidia-cudnn-cu1[0-9][ =]{1,60}8|9(?s:.)*nvidia-cudnn-cu1[0-9][ =]{1,60}9)\."
        r"|libcublas\w{0,4}\.so\.12(?s:.)*nvidia-cublas-cu12|libcudart\.so\.12(?s:.)*nvidia-cuda-runtime-cu12"
        r"|libnccl\.so\.2(?s:.)*nvidia-nccl-cu1",
        "{SONAME|the library} is installed as a wheel of the Python environment (site-packages/nvidia), where the"
        " loader does not search: only its framework loads it from there",
        _IN_WHEEL,
    ),
)
#: variants of ``library-not-found`` for programs that load libraries at run time by name
BY_NAME: Final = (
    Variant(
        _THROUGH,
        "the loader finds THROUGH, but not SONAME, which THROUGH needs. THROUGH belongs to another CUDA than the"
        " program's other libraries (from 12 on cuSOLVER and cuSPARSE need libnvJitLink), or its toolkit or wheel is"
        " incomplete",
        "Locate it (ldconfig -p | grep -e cusolver -e nvJitLink; LD_LIBRARY_PATH; pip list | grep nvidia). Give the"
        " program all libraries of its CUDA from one place, or install the missing library (the toolkit's package; pip"
        " install nvidia-nvjitlink-cu12). Driver and GPUs are not the cause",
    ),
    Variant(
        r"cannot find -l",
        "the linker finds no library of this name: the development part of the toolkit is not installed, or its"
        " directory is not in the linker's search path",
        "Give the build the toolkit's directory (-L/usr/local/cuda/lib64, LIBRARY_PATH, CUDA_HOME). If the library is"
        " missing, install a whole toolkit (the role cuda; ls /usr/local/cuda/lib64); cuDNN and NCCL have separate"
        " packages (libcudnn…-dev, libnccl-dev)",
    ),
    Variant(
        r"onnxruntime|Require cuDNN",
        "ONNX Runtime does not find {SONAME, a CUDA library|a CUDA library}, and computes on the CPU. onnxruntime-gpu"
        " includes no CUDA, and each release needs one CUDA (from 1.19 on 12 and cuDNN 9, earlier 11.8 and cuDNN 8)",
        "Install the libraries (pip install 'onnxruntime-gpu[cuda,cudnn]') and call onnxruntime.preload_dlls() before"
        " creating the session (from 1.21 on), or import a torch of the same CUDA first. If {SONAME|the library}"
        " belongs to another CUDA than the environment's, install onnxruntime-gpu for the environment's CUDA. A host"
        " toolkit in the loader's cache (ldconfig -p) also works",
    ),
    Variant(
        r"libcudnn_\w{2,12}_(?:infer|train)\.so\.8",
        "the program was built for cuDNN 8 (CTranslate2 before 4.5, as in faster-whisper), but the loader does not"
        " find {SONAME|the library}. Current frameworks include cuDNN 9, or a cuDNN 8 is in"
        " site-packages/nvidia/cudnn/lib, where only PyTorch searches",
        "Install the program's release for cuDNN 9 (pip install -U ctranslate2 faster-whisper). Otherwise check pip"
        " list | grep cudnn. For cuDNN 8, set its directory for this program alone"
        " (LD_LIBRARY_PATH=.../site-packages/nvidia/cudnn/lib PROGRAM). For cuDNN 9, install"
        " 'nvidia-cudnn-cu12==8.9.*' in a separate environment and use its directory",
    ),
    Variant(
        r"Unable to load any of \{libcudnn|Cannot load symbol cudnn",
        "the program loads cuDNN 9 by name, but the loader does not find it: cuDNN is not installed, or is in"
        " site-packages/nvidia/cudnn/lib, where only PyTorch searches",
        "Check pip list | grep cudnn and ldconfig -p | grep cudnn. If the wheel is installed, set its directory for"
        " this program alone (LD_LIBRARY_PATH=.../site-packages/nvidia/cudnn/lib PROGRAM), or import torch first. If"
        " neither is installed, run pip install 'nvidia-cudnn-cu12==9.*' (-cu13 for CUDA 13) in the environment",
    ),
)
#: variant for a package that was compiled for another CUDA than the environment's
OF_PACKAGE: Final = Variant(
    _OF_PACKAGE,
    "OWNER, a compiled package of the Python environment, was built for CUDA RELEASE. It loads SONAME, which the"
    " environment does not have, usually because its framework uses another CUDA",
    "Read the framework's CUDA (python -c 'import torch; print(torch.version.cuda)'), and install OWNER's build for"
    " it: the package's name or version ends in cu12 or cu13, or it comes from the index of that CUDA (pip uninstall"
    " the other build; pip install --no-deps). Or move the whole environment to CUDA RELEASE. If the framework has"
    " CUDA RELEASE, import it first, or reinstall its wheels. A host toolkit or a link of that name does not help",
)
OF_RELEASE: Final = Variant(
    _OF_RELEASE,
    "the program was built for CUDA RELEASE: it loads SONAME, which the loader does not find. That release is not"
    " installed, or is outside the search path",
    "If /usr/local/cuda-RELEASE… has the library (find / -name 'SONAME*' 2>/dev/null), provision again: the"
    " environment role adds the stack's toolkit to the loader (by hand: /etc/ld.so.conf.d and ldconfig). If"
    " site-packages/nvidia/… has it, let the program import torch first, or set LD_LIBRARY_PATH for this program"
    " alone. Otherwise install the program's build for the installed CUDA (torch.version.cuda, ls -d"
    " /usr/local/cuda-*). Do not link that name to another release's file: the program would crash later",
)
OF_WHEELS: Final = (
    Variant(
        r"/torch/__init__\.py|from torch\._C import",
        "PyTorch does not find a library of its wheels (nvidia-…). The wheel is not installed, another wheel"
        " overwrote its files, or it is in another site-packages than torch, for example if lib64 of an environment is"
        " not a link to lib",
        "Compare the locations (pip show -f torch nvidia-cudnn-cu12 | grep Location; ls -ld PATH/lib PATH/lib64)."
        " Recreate the environment (python3 -m venv, which links lib64 to lib) and install torch with all requirements"
        " in one command. To restore the stack's environment, provision again. A library of the host cannot replace"
        " the wheel",
    ),
    Variant(
        r"Cannot dlopen some GPU libraries",
        "TensorFlow does not find CUDA's libraries, and computes on the CPU. Its wheel includes them only if"
        " installed with the extra and-cuda; a host toolkit must be of the release that TensorFlow was built for",
        "Use the stack's environment (provision again if this is it), or install the libraries: pip install"
        " 'tensorflow[and-cuda]' of the installed release. The lines above name the missing library. If pip list has"
        " all of them (nvidia-…-cu12) and the message stays, set LD_LIBRARY_PATH to each lib directory below"
        " site-packages/nvidia of that environment",
    ),
    Variant(
        r"Unable to load (?:CUDA|cuBLAS|cuFFT|cuSOLVER|cuSPARSE|cuDNN|CUPTI|NCCL|nvJitLink)\. Is it"
        r"|jaxlib[^\n]* library was not found|versions_helpers",
        "JAX's CUDA plugin does not find a CUDA library, or loads another copy than its own. Its wheels (nvidia-…)"
        " are incomplete, LD_LIBRARY_PATH puts other libraries first, or jax, jaxlib and plugin are of different"
        " releases or CUDA",
        "Unset LD_LIBRARY_PATH for the program. If the message stays, reinstall JAX with its wheels in one command:"
        " pip install -U 'jax[cuda13]' (or cuda12); jax[cuda13-local] uses the host's toolkit instead. To restore the"
        " stack's own environment, provision again",
    ),
)

#: pattern of CUDA libraries whose release may differ from the release of other CUDA libraries
_MIXED: Final = (
    r"lib(?:cublas|cublasLt|cusparse|cusparseLt|cusolver|nvrtc|nvJitLink|cudart|cufft|curand|cupti|nccl|cufile"
    r"|nvshmem_host)"
)

#: path of a toolkit's library in the loader's trace (LD_DEBUG=libs)
_OF_TOOLKIT: Final = rf"cuda[^/\s]{{0,30}}/(?:\w[^/\s]{{0,40}}/){{0,3}}{_MIXED}\.so[.0-9]{{0,12}}"

# pattern of the line after the selected file in the loader's trace
_TAKEN: Final = r"(?:[0-9]{1,9}:\s+){1,2}file=\S+ [^\n]*generating link map"

#: pattern of a file in the loader's messages (glibc elf/dl-load.c)
_FILE: Final = r"(?P<file>[^\s'\":;,()]{1,300}\.so(?:\.[0-9]{1,9}){0,4})"

#: libraries from the distribution that minimal images lack
_OF_SYSTEM: Final = (
    r"lib(?:GL|EGL|GLX|OpenGL|SM|ICE|Xext|Xrender|X11|gthread-2\.0|glib-2\.0|gomp|numa|ibverbs|rdmacm|mpi|aio|openblas"
    r"|gfortran|quadmath|tinfo|ncurses\w{0,2}|sndfile|jpeg|png16|jemalloc|tcmalloc\w{0,12}|hwloc|pmix|ucp|ucs|efa"
    r"|stdc\+\+|crypt|ffi|ssl|crypto)\.so(?:\.[0-9]{1,4}){1,3}"
)

TEXT_RULES = (
    FailureRule(
        "framework-not-in-this-python",
        r"ModuleNotFoundError: No module named '(?:torch|tensorflow|jax|jaxlib)'",
        "the Python that ran has no MODULE: it is not the environment's Python",
        "Check which Python runs (command -v python3; head -n 1 of the program), and call the environment's own, such"
        " as /opt/tensorflow-2.9/bin/python. conda's base, an alias, sudo, cron and a notebook's kernel may use"
        " another",
        "Python, import system; WGLab/DeepMod2#18",
        narrower=r"metadata-generation-failed|Getting requirements to build wheel|subprocess-exited-with-error"
        r"|setup\.py egg_info",
        names=(r"No module named '(?P<module>\w{1,20})'",),
        weight="general",
    ),
    FailureRule(
        "library-damaged",
        r"\.so[.0-9]*['\"]?: (?:file too short|invalid ELF header|cannot read file data|file truncated"
        r"|ELF load command [a-z/ ]{1,40}|ELF file's phentsize|only ET_DYN and ET_EXEC can be loaded"
        r"|object file has no (?:loadable segments|dynamic section)|file not recognized: File (?:truncated|format)"
        r"|cannot open shared object file: (?:Input/output error|Is a directory|Too many levels))",
        "FILE exists but is not a valid library: it is empty, truncated, or another kind of file",
        "Check size and kind (ls -lL, file) and free disk space (df). Then reinstall it: dpkg -S names the package"
        " for apt-get install --reinstall. Copy a file again that was copied by hand",
        "glibc elf/dl-load.c, open_verify; microsoft/CNTK#2213",
        names=(rf"{_FILE}['\"]?: ",),
    ),
    FailureRule(
        "library-of-another-machine",
        r"\.so[.0-9]*['\"]?: (?:wrong ELF class|ELF file (?:OS ABI|machine|version) |cannot open shared object file:"
        r" Exec format)",
        "FILE is a library of another architecture, such as 32-bit, and comes before the right one",
        "Remove its directory from LD_LIBRARY_PATH, or remove the file (file FILE shows its kind), so that the loader"
        " reaches the library for this machine",
        "glibc elf/dl-load.c, open_verify",
        names=(rf"{_FILE}['\"]?: ",),
        unless=r"ld\.so: object|level=DEBUG",
    ),
    FailureRule(
        "library-not-readable",
        r"\.so[.0-9]*['\"]?: cannot open shared object file: Permission denied",
        "FILE exists, but this account has no permission to read it or to enter one of its parent directories",
        "Find the directory with namei -l FILE, and let everyone read the file and enter its directories (chmod"
        " go+rX). If the modes are right, check the kernel's log for AppArmor or SELinux",
        "glibc elf/dl-load.c, open_verify",
        names=(rf"{_FILE}['\"]?: ",),
    ),
    FailureRule(
        "system-library-missing",
        rf"\b{_OF_SYSTEM}: cannot open shared object[^\n]*",
        "the program needs SONAME, a library of the distribution, which is not installed",
        "Install the package that contains it (apt-file search SONAME; dnf provides '*/SONAME*'): libGL.so.1 is in"
        " libgl1, libgthread-2.0.so.0 in libglib2.0-0, libgomp.so.1 in libgomp1, libnuma.so.1 in libnuma1,"
        " libmpi.so.40 in libopenmpi3, libaio.so.1 in libaio1. A number that this distribution release no longer has"
        " (libssl.so.1.1, libffi.so.7) belongs to a build for an older one: install the program's build for this"
        " release. opencv-python-headless does not need libGL. CUDA, driver and framework are not the cause",
        "glibc elf/dl-load.c; opencv/opencv-python#370",
        names=(rf"\b(?P<soname>{_OF_SYSTEM})",),
        unless=r"NCCL INFO|plugin|optional|fall(?:ing|s)? back|level=DEBUG",
        weight="consequence",
    ),
    FailureRule(
        "ptxas-too-old",
        r"You are using ptxas [0-9.x]{1,12}, (?:but|which is)|requires ptxas version [0-9]"
        r"|ptxas [0-9.]{3,12} has a bug|ptxas[^\n]*Unsupported \.version"
        r"|ptxas (?:version )?[0-9.]{1,9}[^\n]*(?:is )?too old|PTX assembler[^\n]*older than"
        r"|\bptxas(?: version)?(?: is)? too old|ptxas[^\n]*[Pp]lease use a newer"
        r"|Invoking ptxas with version [0-9.]{3,12}, which corresponds to a CUDA version"
        r"|PTX version [0-9.]{3,5} does not support target",
        "the first ptxas on the path is of an older CUDA than the program or compiler that calls it",
        "Check which ptxas runs (type -a ptxas; ptxas --version). Put the newer toolkit's bin first on PATH, or"
        " remove the older ptxas (a distribution's nvidia-cuda-toolkit, a conda package). For JAX and TensorFlow from"
        " wheels, run pip install -U nvidia-cuda-nvcc-cu12 (CUDA 13: nvidia-cuda-nvcc) in the environment, and unset"
        " CUDA_HOME and --xla_gpu_cuda_data_dir. For Triton, set TRITON_PTXAS_PATH",
        "XLA xla/service/gpu, ptxas checks; tensorflow/tensorflow#39716; jax-ml/jax#25344, #25853",
        names=(
            r"Unsupported \.version (?P<wanted>[0-9.]{1,6}); current version is '?(?P<has>[0-9.]{1,5}[0-9])",
            r"PTX version (?P<has>[0-9.]{3,5}) does not support target '(?P<chip>sm_[0-9]{2,3}[af]?)'",
        ),
        variants=(
            Variant(
                r"PTX version [0-9.]{3,5} does not support target",
                "the program was built with a CUDA whose newest PTX is HAS, which does not support the GPU (CHIP)",
                "Install a release of the framework whose wheels have a newer CUDA (jax[cuda13] instead of"
                " jax[cuda12]), or wait for a release that supports this GPU. Driver and GPU are not the cause",
            ),
            Variant(
                r"Unsupported \.version",
                "the ptxas that compiles for the program is older than the compiler that made its code: it reads PTX"
                " up to HAS, but the code is PTX WANTED (8.0 is of CUDA 12.0, 8.5 of 12.5, 8.7 of 12.8, 9.0 of 13.0)",
            ),
        ),
    ),
    FailureRule(
        "toolkit-mixed",
        r"CUDA compiler and CUDA toolkit headers are incompatible[^\n]*",
        "nvcc and its headers are of two CUDA releases: CUDA_HOME, CPATH or an include path points to another"
        " toolkit, to wheels (site-packages/nvidia/…/include) or to conda",
        "Use one toolkit for both: CUDA_HOME=/usr/local/cuda-X.Y, its bin first on PATH, CPATH and CPLUS_INCLUDE_PATH"
        " unset. In an environment with CUDA wheels, install nvidia-cuda-nvcc, -runtime and -cccl in one release (pip"
        " list | grep nvidia-cuda). Then delete the cache of compiled code (~/.cache/flashinfer). Until then, start"
        " vLLM with VLLM_USE_FLASHINFER_SAMPLER=0",
        "CUDA's cuda/std/__cccl/cuda_toolkit.h; flashinfer-ai/flashinfer#3493",
    ),
    FailureRule(
        "jit-build-failed",
        r"[Nn]inja build failed[^\n]*|ninja: build stopped: subcommand failed[^\n]*",
        "a package compiles sources for this GPU, at run time or during installation, and the compilation failed."
        " This line does not give the reason",
        "Read the compiler's first error above (FAILED: and the lines below it). Causes: a missing nvcc or header or"
        " one of another CUDA (CUDA_HOME, PATH), an architecture that nvcc does not support (Blackwell needs CUDA 12.9"
        " or newer), or too little memory (MAX_JOBS=1). FlashInfer needs no compiler with the package"
        " flashinfer-jit-cache for torch's CUDA. vLLM runs without FlashInfer's sampler"
        " (VLLM_USE_FLASHINFER_SAMPLER=0)",
        "PyTorch torch/utils/cpp_extension.py; vllm-project/vllm#36077, #50705",
        weight="general",
    ),
    FailureRule(
        "nvcc-not-found",
        r"\bnvcc[\"'`]?: (?:command )?not found|No CMAKE_CUDA_COMPILER could be found"
        r"|Failed to find (?:a working CUDA compiler|nvcc)"
        r"|CUDA_HOME environment variable is not set|directory: '[^'\n]*nvcc'|nvcc (?:was |is )?not (?:found"
        r"|installed)"
        r"|(?:Could not|cannot|unable to) (?:find|locate) (?:the )?nvcc"
        r"|Could NOT find CUDA(?:Toolkit)?(?: \(|:)|nvcc binary could not be"
        r"|/bin/nvcc\"[^\n]*\n\s{0,8}TypeError: unsupported operand type"
        r"|CUDA_TOOLKIT_ROOT_DIR not found"
        r"|Specify CUDA_TOOLKIT_ROOT_DIR"
        r"|nvcc[\"'`]?(?: failed)?: No such file|\['which', 'nvcc'\]' returned non-zero"
        r"|CUDA_(?:HOME|PATH|TOOLKIT_PATH) (?:environment variable )?(?:is |was )?not (?:set|found|defined)"
        r"|^[^\n]*\bsh: [0-9]: :\S{3,80}/nvcc: not found|CUDA_HOME does not exist|assert CUDA_HOME is not None"
        r"|CUDA toolkit (?:was |is )?not found"
        r"|(?:Unable to|Could not|Cannot) find (?:the )?CUDA (?:toolkit|compiler)",
        "a build finds no CUDA compiler (nvcc): the toolkit is not installed, or its bin directory is not on PATH",
        "Provision again: the cuda role installs the toolkit, and the environment role puts nvcc on PATH. If the"
        " build requires CUDA_HOME, set it to /usr/local/cuda. For a Python package, look for a prebuilt wheel for"
        " this torch, CUDA and Python; otherwise the toolkit must be of torch's release (torch.version.cuda)",
        "CMake's FindCUDAToolkit; PyTorch torch.utils.cpp_extension",
        beside=r"Cuda compilation tools, release|Build cuda_[0-9]",
        variants=(
            Variant(
                r"\bsh: [0-9]: :\S{3,80}/nvcc: not found",
                "CUDA_HOME begins with a colon, so that the build starts a program named :/…/nvcc, which does not"
                " exist. The toolkit may be installed",
                "Remove the colon where CUDA_HOME is set: CUDA_HOME=/usr/local/cuda. It comes from export"
                " CUDA_HOME=$CUDA_HOME:/…, a form only for lists such as PATH. Start the program again; no"
                " installation is needed",
            ),
            Variant(
                r"Cuda compilation tools, release|Build cuda_[0-9]",
                "a program that compiles at run time does not find nvcc, although the output shows an installed one."
                " It searches elsewhere than on this PATH (CUDA_HOME, /usr/local/cuda, the PATH of a service or"
                " container)",
                "Set both where the program is started: CUDA_HOME=/usr/local/cuda (the parent of nvcc's bin"
                " directory), and that bin on PATH. If the message stays, the package's own search is wrong"
                " (FlashInfer 0.4.0): install its previous or next release. The toolkit is not missing",
            ),
        ),
        unless="^-- Could NOT find"
        r"|nvcc (?:was |is )?not [^\n]*(?:skipping|without CUDA|CUDA support (?:is )?disabled)",
        weight="consequence",
    ),
    FailureRule(
        "nvrtc-not-found",
        r"\blibnvrtc(?:-builtins)?\.so[0-9.]{0,20}: cannot open shared object\s{1,40}file"
        r"|(?:failed to load|unable to load|failure finding|cannot load)[^\n]*\b(?:lib)?nvrtc"
        r"|failed to open libnvrtc|Could not load (?:dynamic )?library '?libnvrtc|could not find (?:the )?libnvrtc",
        "a program compiles for the GPU at run time, but the loader does not find CUDA's runtime compiler (NVRTC)"
        " under the requested name",
        "Locate it with ldconfig -p | grep nvrtc. Install the release that the program was built for. If the program"
        " requests libnvrtc.so without a number, add the toolkit's directory to the loader (the environment role does"
        " this)",
        "vladmandic/sdnext#539",
    ),
    FailureRule(
        "glibc-too-old",
        r"\bGLIBC_[0-9.]{1,12}.? (?:not\s{1,40}found|nicht gefunden|introuvable|no encontrad|non trovat)",
        "the program or its wheel was built for a newer C library{ (glibc LEAST)|} than the host's",
        "Install a build for this distribution, build it here, or run it in a container of a newer distribution."
        " Never replace the host's glibc",
        "huggingface/lerobot#2219",
        names=(r"GLIBC_(?P<least>[0-9.]{1,12}[0-9])",),
    ),
    FailureRule(
        "libstdcxx-too-old",
        r"version .?(?:GLIBCXX|CXXABI)_[0-9.]{1,12}.? not\s{1,40}found",
        "the program loads an older libstdc++ than its extension was built with, often from a conda environment",
        "Read the file in the message. Update it there (conda install -c conda-forge libstdcxx-ng, or the"
        " distribution's libstdc++6), or start the program without that directory in LD_LIBRARY_PATH",
        "kvcache-ai/ktransformers#524",
    ),
    FailureRule(
        "loader-mixed-cuda",
        rf"{_MIXED}[^\s:]*: undefined symbol"
        r"|undefined symbol:? [\"'`]?(?:nvrtc|(?:__)?nvJitLink|nccl|cusparse|cublas|cufft|curand|cusolver|cupti"
        r"|nvshmem)\w{1,80}"
        rf"|undefined symbol: \w{{1,200}},? version {_MIXED}"
        rf"|version .?{_MIXED}\.so\.[0-9]{{1,2}}.? not (?:found|defined)"
        rf"|needed by [^\n]*/(?:site|dist)-packages/[^\n]*\n(?:[^\n]*\n){{1,16}}?[^\n]*trying file=/[^\n]*{_OF_TOOLKIT}"
        rf"\s+{_TAKEN}",
        "{TAKER loads a GIVEN of another release than it was built with|the program loads libraries of two CUDA"
        " releases at once}: a host toolkit, or a second copy in the environment, comes before the right library",
        "Unset LD_LIBRARY_PATH for the program: a framework from wheels finds its libraries without it. If the"
        " message stays, find the first file (ldd, LD_DEBUG=libs), and remove the other CUDA's directory from"
        " /etc/ld.so.conf.d, or the second copy from the Python environment. `invoke doctor` names both",
        "nanoporetech/dorado#166; infiniflow/ragflow#4466; pytorch/pytorch#157381",
        beside=WHEEL_LINES,
        names=(
            rf"trying file=(?P<place>/\S{{1,200}}{_OF_TOOLKIT})\s+{_TAKEN}",
            r"(?P<taker>lib[\w+-]{2,40}\.so[.0-9]{0,12}): (?:undefined )?symbol",
            r"version (?P<given>lib\w{2,30}\.so\.[0-9]{1,2})",
        ),
        variants=(
            TWO_SETS,
            Variant(
                r"trying file=",
                "the loader's trace shows that a library of the Python environment's wheels loads {PLACE|a toolkit's"
                " file} from a host toolkit in the search path. Usually LD_LIBRARY_PATH names the toolkit, which comes"
                " before the wheel's own directory whatever its release",
                "Unset LD_LIBRARY_PATH for the program (module unload cuda if a module file sets it; otherwise remove"
                " the line from ~/.bashrc or the job's script), so that the wheels' libraries are loaded. No"
                " installation is needed",
            ),
            Variant(
                r"undefined symbol: (?:__)?nvJitLink",
                "the program loads an older libnvJitLink than its cuSPARSE or cuSOLVER needs, from a host toolkit"
                " (LD_LIBRARY_PATH, a module file, /etc/ld.so.conf.d) or an older wheel",
                "Unset LD_LIBRARY_PATH for the program. If the message stays, upgrade the wheel to the release of the"
                " others (pip install -U nvidia-nvjitlink-cu12, or torch again with all requirements), and find the"
                " first file (LD_DEBUG=libs). Keep driver and toolkit",
            ),
            Variant(
                r"undefined symbol:? [\"'`]?nccl\w",
                "the program (PyTorch, or a program built with NCCL) loads an older NCCL than it was built with: the"
                " host's (libnccl2, LD_LIBRARY_PATH, /etc/ld.so.conf.d), an older wheel, or two wheels in one place"
                " (nvidia-nccl-cu11, -cu12, -cu13)",
                "Find the loaded file (ldd, LD_DEBUG=libs). For a program built with NCCL, set the directory of its"
                " NCCL (LD_LIBRARY_PATH for this program alone), or upgrade the host's (libnccl2, libnccl-dev; the"
                " role nccl). For PyTorch, unset LD_LIBRARY_PATH. If the message stays, check pip list | grep nccl,"
                " reinstall torch with all requirements (pip install --force-reinstall torch, from its index), which"
                " installs its pinned NCCL, and uninstall a second NCCL",
            ),
        ),
    ),
)
