"""Messages of the loader: a library or a version of it that a program needs and does not get."""

from __future__ import annotations

from typing import Final

from hostwright.failures import FailureRule, Variant
from hostwright.standard.roles.cuda.failures.wheels import TWO_SETS, WHEEL_LINES

#: CUDA's and cuDNN's libraries, as they stand at the beginning of a file's name (TensorRT's is optional: not here)
_CUDA: Final = (
    r"lib(?:cudart|cublas|cublasLt|cufft|cufftw|curand|cusolver|cusolverMg|cusparse|cusparseLt|cupti|cudnn[a-z_]{0,40}"
    r"|nccl|npp[a-z]{1,6}|nvjpeg|cufile|nvJitLink|nvToolsExt|nvrtc|nvrtc-builtins|nvshmem_host|cudss|cutensor"
    r"|nvvm)\.so"
)

#: Libraries that TensorFlow opens where they are: TensorRT's, and CUPTI in the words of its old releases
OPTIONAL: Final = r"library '?libnvinfer|open CUDA library libcupti"
#: A library of CUDA 4 to 10.2 by its soname, which ends in the release: those of later ones do not
OLD_SONAME: Final = (
    r"(?P<soname>lib(?:cudart|cublas|cufft|curand|cusolver|cusparse|nvrtc|npp[a-z]{1,6})\.so\."
    r"(?P<release>(?:[4-9]|10)\.[0-9]))(?:[^.0-9]|$)"
)
#: Wordings of TensorFlow (dso_loader.cc, before 2.1 and since), of the loader, and of programs that open cuDNN 9
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

#: where a listing beside the message has such a library: in a wheel, or in a directory for the whole host
_IN_WHEELS: Final = r"/[^\s:]{1,200}/site-packages/nvidia/\w{1,30}/lib/"
_ON_HOST: Final = r"(?:/usr/local|/opt|/usr/lib)/(?:[^\s:]{1,200}/)?"
_PLACED: Final = rf"(?:^|[\s=>])(?P<place>(?:{_IN_WHEELS}|{_ON_HOST})lib\w{{2,40}}\.so[.0-9]{{0,12}})\s{{0,3}}(?:$|->)"
#: libraries of which one is as good as the other of the same major version
_KINDS: Final = (
    r"libcudnn\w{0,40}\.so\.8", r"libcudnn\w{0,40}\.so\.9", r"lib(?:cublas|cublasLt|cudart)\.so\.11",
    r"lib(?:cublas|cublasLt|cudart)\.so\.12", r"lib(?:cublas|cublasLt|cudart)\.so\.13", r"libnccl\.so\.2",
)  # fmt: skip


def _listed(place: str) -> str:
    """A message about a library, and below it a line with a file of its kind in this place."""
    return "|".join(rf"{kind}(?s:.)*(?:^|[\s=>]){place}{kind}" for kind in _KINDS)


#: lines near it that name the framework which opens the library, or show where it is
WHEEL_LOADS: Final = (
    r"/torch/__init__\.py|from torch\._C import|Skipping registering GPU devices|initialize backend|onnxruntime"
    r"|/(?:site|dist)-packages/[^\n]*\.py\", line "
    rf"|{WHEEL_LINES}|{_PLACED}".replace("?P<place>", "?:")
)
_OF_RELEASE: Final = (
    r"(?P<soname>lib(?:cudart|cublas|cublasLt|nvJitLink)\.so\.(?P<release>1[1-9])(?:\.0)?)(?:[^.0-9]|$)"
)
#: the last file of a traceback above the message
_OF_PACKAGE: Final = (
    r"/(?:site|dist)-packages/(?P<owner>[A-Za-z][\w.-]{0,60})/[^\n]*\.py\", line [^\n]*\n"
    r"[^\n]*lib\w{2,20}\.so\.1[1-9](?:\.0)?: cannot open"
)
#: a library that was found, and one that it needs itself
_THROUGH: Final = (
    r"library '(?P<through>lib(?:cusolver|cusparse|cublas)\w{0,6}\.so[.0-9]{0,12})'; dlerror: lib(?:nvJitLink|cublasLt)"
)
#: names in the sentences of ``library-not-found``
LIBRARY_NAMES: Final = (
    _OF_PACKAGE,
    _THROUGH,
    OLD_SONAME,
    _OF_RELEASE,
    rf"(?P<soname>{_CUDA}(?:\.[0-9]{{1,4}}){{0,3}})",
    _PLACED,
)
_IN_WHEEL: Final = (
    "Let the program load it through the framework that brought it (import torch first; ONNX Runtime from 1.21 on:"
    " onnxruntime.preload_dlls()), or name its directory for this program alone: LD_LIBRARY_PATH=DIRECTORY PROGRAM."
    " Nothing is to be installed, and /etc/ld.so.conf.d is not the place for it, for each environment has its own"
    " release"
)
#: a listing beside the message shows the library: it is installed, and not searched for there
NOT_SEARCHED: Final = (
    TWO_SETS,
    Variant(
        _listed(_IN_WHEELS),
        "{SONAME|the library} is installed, as a wheel of a Python environment (PLACE), and the loader does not look"
        " there: only the framework that brought it does",
        _IN_WHEEL,
    ),
    Variant(
        _listed(_ON_HOST),
        "{SONAME|the library} is installed (PLACE), and its directory is not among those in which the loader looks",
        "Write the directory into a file of /etc/ld.so.conf.d and run ldconfig as root; ldconfig -p | grep"
        " {SONAME|NAME} shows whether it is found then. Of the stack's toolkit, provision does it (the environment"
        " role); for one program LD_LIBRARY_PATH=DIRECTORY PROGRAM is enough. Where its release is not that of the"
        " message, a build of the program for it is needed instead",
    ),
    Variant(
        r"libcudnn\w{0,40}\.so\.(?:8(?s:.)*nvidia-cudnn-cu1[0-9][ =]{1,60}8|9(?s:.)*nvidia-cudnn-cu1[0-9][ =]{1,60}9)\."
        r"|libcublas\w{0,4}\.so\.12(?s:.)*nvidia-cublas-cu12|libcudart\.so\.12(?s:.)*nvidia-cuda-runtime-cu12"
        r"|libnccl\.so\.2(?s:.)*nvidia-nccl-cu1",
        "{SONAME|the library} comes with a wheel of the Python environment (site-packages/nvidia), which is installed,"
        " and the loader does not look there: only the framework that brought it does",
        _IN_WHEEL,
    ),
)
#: programs that open the libraries by their names, and bring none
BY_NAME: Final = (
    Variant(
        _THROUGH,
        "the loader finds THROUGH, and not SONAME, which that one needs: it is of another CUDA (from 12 on cuSOLVER and"
        " cuSPARSE need libnvJitLink) than the program's other libraries, or its toolkit or wheel is not whole",
        "See where it comes from (ldconfig -p | grep -e cusolver -e nvJitLink; LD_LIBRARY_PATH; pip list | grep"
        " nvidia): let the program find the libraries of the CUDA that it was built for, all from one place, or install"
        " what is missing beside it (the toolkit's own package; pip install nvidia-nvjitlink-cu12). Driver and cards"
        " are not at fault",
    ),
    Variant(
        r"cannot find -l",
        "the linker finds no library of this name to build with: the development part of the toolkit is not installed,"
        " or its directory is not among those in which the linker looks",
        "Name the toolkit's directory to the build (-L/usr/local/cuda/lib64, LIBRARY_PATH, CUDA_HOME). Where it is not"
        " there, give the host a whole toolkit (the role cuda; ls /usr/local/cuda/lib64); cuDNN and NCCL have packages"
        " of their own for it (libcudnn…-dev, libnccl-dev)",
    ),
    Variant(
        r"onnxruntime|Require cuDNN",
        "ONNX Runtime does not find {SONAME, a library of CUDA's|one of CUDA's libraries}, and computes on the"
        " processor: onnxruntime-gpu brings none, and each release is for one CUDA (from 1.19 on 12 and cuDNN 9, before"
        " it 11.8 and cuDNN 8)",
        "Install them beside it (pip install 'onnxruntime-gpu[cuda,cudnn]') and call onnxruntime.preload_dlls() before"
        " the session is made (from 1.21 on), or import a torch of the same CUDA first. Where {SONAME|the library} is"
        " of another CUDA than the environment has, take the onnxruntime-gpu for that one; a toolkit on the host does"
        " it too where the loader knows it (ldconfig -p)",
    ),
    Variant(
        r"libcudnn_\w{2,12}_(?:infer|train)\.so\.8",
        "the program was built for cuDNN 8 (CTranslate2 before 4.5, as in faster-whisper), and the loader does not find"
        " {SONAME|it}: frameworks of today bring cuDNN 9, or an 8 lies in site-packages/nvidia/cudnn/lib, where only"
        " PyTorch looks",
        "Take the program's release for cuDNN 9 (pip install -U ctranslate2 faster-whisper). Else see pip list | grep"
        " cudnn: of an 8, name the directory for this program alone (LD_LIBRARY_PATH=.../site-packages/nvidia/cudnn/lib"
        " PROGRAM); of a 9, install 'nvidia-cudnn-cu12==8.9.*' in an environment of its own and name that",
    ),
    Variant(
        r"Unable to load any of \{libcudnn|Cannot load symbol cudnn",
        "the program opens cuDNN 9 by its name, and the loader does not find it: it is not installed, or lies in"
        " site-packages/nvidia/cudnn/lib, where only PyTorch looks",
        "See pip list | grep cudnn and ldconfig -p | grep cudnn. Where the wheel is there, name its directory for this"
        " program alone (LD_LIBRARY_PATH=.../site-packages/nvidia/cudnn/lib PROGRAM) or import torch first; where"
        " nothing is, pip install 'nvidia-cudnn-cu12==9.*' (-cu13 for CUDA 13) into the environment",
    ),
)
#: a compiled package of a Python environment, for another CUDA than that has
OF_PACKAGE: Final = Variant(
    _OF_PACKAGE,
    "OWNER, a compiled package of the Python environment, was built for CUDA RELEASE: it opens SONAME, which the"
    " environment does not have, mostly as its framework is of another CUDA",
    "See what that one is of (python -c 'import torch; print(torch.version.cuda)') and install OWNER's build for it:"
    " its package's name or version ends in cu12 or cu13, or it comes from the index of that CUDA (pip uninstall the"
    " other one; pip install --no-deps). Or bring the whole environment to CUDA RELEASE. Where the framework is of CUDA"
    " RELEASE, import it first, or install its wheels again. No toolkit of the host's and no link of that name helps",
)
#: a release of CUDA that the name of the library gives
OF_RELEASE: Final = Variant(
    _OF_RELEASE,
    "the program was built for CUDA RELEASE: it opens SONAME, which the loader does not find, as that release is not"
    " there or lies where it does not look",
    "Provision again where /usr/local/cuda-RELEASE… has it (find / -name 'SONAME*' 2>/dev/null): the environment role"
    " lists the stack's toolkit for the loader (by hand: /etc/ld.so.conf.d and ldconfig). Where it is in"
    " site-packages/nvidia/…, let the program import torch first, or name the directory in LD_LIBRARY_PATH for it"
    " alone. Where it is nowhere, take the program's build for the CUDA that is there (torch.version.cuda, ls -d"
    " /usr/local/cuda-*); a link of that name to another release's file makes it crash later",
)
#: a framework whose wheels bring the library
OF_WHEELS: Final = (
    Variant(
        r"/torch/__init__\.py|from torch\._C import",
        "PyTorch does not find one of the libraries that come with it as wheels (nvidia-…): that wheel is not"
        " installed, has lost its files to another one, or lies in another site-packages than torch itself, as where"
        " lib64 of an environment is no link to lib",
        "Compare the places (pip show -f torch nvidia-cudnn-cu12 | grep Location; ls -ld PATH/lib PATH/lib64). Make the"
        " environment anew (python3 -m venv, which links lib64 to lib) and install torch with all that it requires, in"
        " one command; the stack's own comes back when you provision. No library of the host's takes its place",
    ),
    Variant(
        r"Cannot dlopen some GPU libraries",
        "TensorFlow does not find CUDA's libraries, and computes on the processor: its wheel brings them only where it"
        " was installed with them, and a host's toolkit has to be of the release that it was built for",
        "Use the stack's environment (provision again where it is the one), or install them beside it: pip install"
        " 'tensorflow[and-cuda]', the same release as the one that is there; the lines above name the library that is"
        " missing. Where pip list has them all (nvidia-…-cu12) and the message stays, name their directories to the"
        " loader: LD_LIBRARY_PATH with each lib below site-packages/nvidia of that environment",
    ),
    Variant(
        r"Unable to load (?:CUDA|cuBLAS|cuFFT|cuSOLVER|cuSPARSE|cuDNN|CUPTI|NCCL|nvJitLink)\. Is it"
        r"|jaxlib[^\n]* library was not found|versions_helpers",
        "JAX's CUDA plugin does not find a library of CUDA's, or gets another one than its own: its wheels (nvidia-…)"
        " are not all installed, LD_LIBRARY_PATH puts others before them, or jax, jaxlib and plugin are not of one"
        " release and CUDA",
        "Unset LD_LIBRARY_PATH for the program. Where the message stays, install JAX again with its wheels, in one"
        " command: pip install -U 'jax[cuda13]' (or cuda12); jax[cuda13-local] takes the host's toolkit instead. The"
        " stack's own environment comes back when you provision",
    ),
)

#: CUDA's libraries of which one may come from another release than the rest (cuDNN's have a rule of their own)
_MIXED: Final = (
    r"lib(?:cublas|cublasLt|cusparse|cusparseLt|cusolver|nvrtc|nvJitLink|cudart|cufft|curand|cupti|nccl|cufile"
    r"|nvshmem_host)"
)

#: where a toolkit has them, in the loader's trace (LD_DEBUG=libs)
_OF_TOOLKIT: Final = rf"cuda[^/\s]{{0,30}}/(?:\w[^/\s]{{0,40}}/){{0,3}}{_MIXED}\.so[.0-9]{{0,12}}"

_TAKEN: Final = r"(?:[0-9]{1,9}:\s+){1,2}file=\S+ [^\n]*generating link map"  # it follows the file that was found

#: a file that the loader opens, in its messages (glibc elf/dl-load.c)
_FILE: Final = r"(?P<file>[^\s'\":;,()]{1,300}\.so(?:\.[0-9]{1,9}){0,4})"

#: libraries of the distribution's that frameworks and their companions need, and minimal images lack
_OF_SYSTEM: Final = (
    r"lib(?:GL|EGL|GLX|OpenGL|SM|ICE|Xext|Xrender|X11|gthread-2\.0|glib-2\.0|gomp|numa|ibverbs|rdmacm|mpi|aio|openblas"
    r"|gfortran|quadmath|tinfo|ncurses\w{0,2}|sndfile|jpeg|png16|jemalloc|tcmalloc\w{0,12}|hwloc|pmix|ucp|ucs|efa"
    r"|stdc\+\+|crypt|ffi|ssl|crypto)\.so(?:\.[0-9]{1,4}){1,3}"
)

TEXT_RULES = (
    FailureRule(
        "framework-not-in-this-python",
        r"ModuleNotFoundError: No module named '(?:torch|tensorflow|jax|jaxlib)'",
        "the Python that ran is not the one of the environment: it has no MODULE",
        "See which one runs (command -v python3; head -n 1 of the program) and call the environment's own, such as"
        " /opt/tensorflow-2.9/bin/python; conda's base, an alias, sudo, cron and a notebook's kernel take another",
        "Python, import system; WGLab/DeepMod2#18",
        # a package that is built finds no other one's modules
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
        "FILE is there, and is not a whole library: it is empty, cut off, or something else under its name",
        "Look at it (ls -lL and file tell its size and kind; df whether the disk was full), then bring it anew: dpkg -S"
        " names its package for apt-get install --reinstall; what was copied by hand is copied again",
        "glibc elf/dl-load.c, open_verify; microsoft/CNTK#2213",
        names=(rf"{_FILE}['\"]?: ",),
    ),
    FailureRule(
        "library-of-another-machine",
        r"\.so[.0-9]*['\"]?: (?:wrong ELF class|ELF file (?:OS ABI|machine|version) |cannot open shared object file:"
        r" Exec format)",
        "FILE is a library of another architecture, such as a 32-bit one, and comes before the right one",
        "Take its directory out of LD_LIBRARY_PATH, or the file away (file FILE tells its kind), so that the loader"
        " reaches the one for this machine",
        "glibc elf/dl-load.c, open_verify",
        names=(rf"{_FILE}['\"]?: ",),
        unless=r"ld\.so: object|level=DEBUG",  # a program that tries many files goes on
    ),
    FailureRule(
        "library-not-readable",
        r"\.so[.0-9]*['\"]?: cannot open shared object file: Permission denied",
        "FILE is there, and this account may not read it or pass one of the directories that lead to it",
        "See where it stops (namei -l FILE): let everybody read the file and pass its directories (chmod go+rX); where"
        " the modes are right, look for AppArmor or SELinux in the kernel's log",
        "glibc elf/dl-load.c, open_verify",
        names=(rf"{_FILE}['\"]?: ",),
    ),
    FailureRule(
        "system-library-missing",
        rf"\b{_OF_SYSTEM}: cannot open shared object[^\n]*",
        "the program needs SONAME, a library of the distribution's, which is not installed",
        "Install the package that has it (apt-file search SONAME; dnf provides '*/SONAME*'): libGL.so.1 is in libgl1,"
        " libgthread-2.0.so.0 in libglib2.0-0, libgomp.so.1 in libgomp1, libnuma.so.1 in libnuma1, libmpi.so.40 in"
        " libopenmpi3, libaio.so.1 in libaio1. A number that this release of the distribution no longer has"
        " (libssl.so.1.1, libffi.so.7) means a build for an older one: take the program's for this."
        " opencv-python-headless does without libGL. CUDA, driver and framework are not at fault",
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
        "the first ptxas on the path is of an older CUDA than the program, or the compiler in front of it, that calls"
        " it",
        "See which one it is (type -a ptxas; ptxas --version): put the newer toolkit's bin first on PATH, or remove the"
        " older one (a distribution's nvidia-cuda-toolkit, a conda package). JAX and TensorFlow from wheels bring one"
        " of their own: pip install -U nvidia-cuda-nvcc-cu12 (CUDA 13: nvidia-cuda-nvcc), in the environment, and unset"
        " CUDA_HOME and --xla_gpu_cuda_data_dir, which lead elsewhere; Triton's is named by TRITON_PTXAS_PATH",
        "XLA xla/service/gpu, ptxas checks; tensorflow/tensorflow#39716; jax-ml/jax#25344, #25853",
        names=(
            r"Unsupported \.version (?P<wanted>[0-9.]{1,6}); current version is '?(?P<has>[0-9.]{1,5}[0-9])",
            r"PTX version (?P<has>[0-9.]{3,5}) does not support target '(?P<chip>sm_[0-9]{2,3}[af]?)'",
        ),
        variants=(
            Variant(
                r"PTX version [0-9.]{3,5} does not support target",
                "the CUDA that this program was built with, whose newest PTX is HAS, does not know the card (CHIP) yet",
                "Install a release of the framework whose wheels have a newer CUDA (jax[cuda13] instead of"
                " jax[cuda12]), or wait for one that names this card; driver and card are not at fault",
            ),
            Variant(
                r"Unsupported \.version",
                "the ptxas that compiles for the program is older than what made its code: it reads PTX up to HAS, and"
                " the code is PTX WANTED (8.0 is of CUDA 12.0, 8.5 of 12.5, 8.7 of 12.8, 9.0 of 13.0)",
            ),
        ),
    ),
    FailureRule(
        "toolkit-mixed",
        r"CUDA compiler and CUDA toolkit headers are incompatible[^\n]*",
        "nvcc and the headers that it gets are of two releases of CUDA: CUDA_HOME, CPATH or an include directory of"
        " another toolkit, of wheels (site-packages/nvidia/…/include) or of conda is mixed in",
        "Let one toolkit give both: CUDA_HOME=/usr/local/cuda-X.Y, that one's bin first on PATH, CPATH and"
        " CPLUS_INCLUDE_PATH unset; in an environment with CUDA from wheels, nvidia-cuda-nvcc, -runtime and -cccl at"
        " one release (pip list | grep nvidia-cuda). Then empty the cache of what was compiled (~/.cache/flashinfer)."
        " Until then vLLM starts with VLLM_USE_FLASHINFER_SAMPLER=0",
        "CUDA's cuda/std/__cccl/cuda_toolkit.h; flashinfer-ai/flashinfer#3493",
    ),
    FailureRule(
        "jit-build-failed",
        r"[Nn]inja build failed[^\n]*|ninja: build stopped: subcommand failed[^\n]*",
        "sources that a package compiles for this card, while it runs or is installed, did not compile; this line does"
        " not say why",
        "Read the compiler's first error above it (FAILED: and the lines below that): an nvcc or header that is missing"
        " or of another CUDA (CUDA_HOME, PATH), an architecture that nvcc does not know (CUDA 12.9 or newer for"
        " Blackwell), or too little memory (MAX_JOBS=1). FlashInfer needs no compiler with its package"
        " flashinfer-jit-cache for torch's CUDA; vLLM can do without its sampler (VLLM_USE_FLASHINFER_SAMPLER=0)",
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
        "Provision again: the cuda role installs the toolkit, the environment role puts nvcc on PATH; where the build"
        " asks for CUDA_HOME, set it to /usr/local/cuda. A package of Python's may have a wheel that is built already"
        " for this torch, CUDA and Python; else the toolkit has to be of torch's own release (torch.version.cuda)",
        "CMake's FindCUDAToolkit; PyTorch torch.utils.cpp_extension",
        beside=r"Cuda compilation tools, release|Build cuda_[0-9]",
        variants=(
            Variant(
                r"\bsh: [0-9]: :\S{3,80}/nvcc: not found",
                "CUDA_HOME begins with a colon, so that the build starts a program named :/…/nvcc, which is nowhere;"
                " the toolkit may well be there",
                "Take the colon out where CUDA_HOME is set (export CUDA_HOME=$CUDA_HOME:/… makes it; only lists as PATH"
                " are written so): CUDA_HOME=/usr/local/cuda. Start the program again; nothing is to be installed",
            ),
            Variant(
                r"Cuda compilation tools, release|Build cuda_[0-9]",
                "a program that compiles while it runs does not find nvcc, though the output shows that one is there:"
                " it looks for it in another way than by this PATH (CUDA_HOME, /usr/local/cuda, the PATH of a service"
                " or container)",
                "Give the program both, where it is started: CUDA_HOME=/usr/local/cuda (the directory above nvcc's bin)"
                " and that bin on PATH. Where the message stays, it is the package's own search (FlashInfer 0.4.0):"
                " take its release before or after. No toolkit is missing",
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
        "a program compiles for the GPU while it runs, and the loader does not find CUDA's runtime compiler (NVRTC)"
        " under the name that it asks for",
        "Look where it is (ldconfig -p | grep nvrtc); give the program the release that it was built for, and where it"
        " asks for libnvrtc.so without a number, the toolkit's own directory (the environment role lists it)",
        "vladmandic/sdnext#539",
    ),
    FailureRule(
        "glibc-too-old",
        r"\bGLIBC_[0-9.]{1,12}.? (?:not\s{1,40}found|nicht gefunden|introuvable|no encontrad|non trovat)",
        "the program or its wheel was built for a newer C library{ (glibc LEAST)|} than the host's",
        "Install a build for this distribution, build it here, or run it in a container of a newer one; never replace"
        " the host's glibc",
        "huggingface/lerobot#2219",
        names=(r"GLIBC_(?P<least>[0-9.]{1,12}[0-9])",),
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
        rf"{_MIXED}[^\s:]*: undefined symbol"
        r"|undefined symbol:? [\"'`]?(?:nvrtc|(?:__)?nvJitLink|nccl|cusparse|cublas|cufft|curand|cusolver|cupti"
        r"|nvshmem)\w{1,80}"
        rf"|undefined symbol: \w{{1,200}},? version {_MIXED}"
        rf"|version .?{_MIXED}\.so\.[0-9]{{1,2}}.? not (?:found|defined)"
        rf"|needed by [^\n]*/(?:site|dist)-packages/[^\n]*\n(?:[^\n]*\n){{1,16}}?[^\n]*trying file=/[^\n]*{_OF_TOOLKIT}"
        rf"\s+{_TAKEN}",
        "{TAKER gets a GIVEN of another release than it was built with|the loader gives the program libraries of two"
        " CUDA releases at once}: a toolkit of the host's, or a second copy in the environment, comes before the right"
        " one",
        "Unset LD_LIBRARY_PATH for the program: a framework from wheels finds its own libraries without it. Where the"
        " message stays, see which file comes first (ldd, LD_DEBUG=libs), and take the other CUDA's directory out of"
        " /etc/ld.so.conf.d, or the second copy out of the Python environment; `invoke doctor` names both",
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
                "the loader's trace shows it: a library of the Python environment's wheels gets {PLACE|a toolkit's"
                " file} for one that it needs, from a toolkit of the host's that the search path names (mostly"
                " LD_LIBRARY_PATH, which comes before the wheel's own place), whatever release that is of",
                "Unset LD_LIBRARY_PATH for the program (module unload cuda where a module file sets it; take the line"
                " out of ~/.bashrc or the job's script), so that the wheels' own libraries are taken. Nothing is"
                " missing, and nothing is to be installed",
            ),
            Variant(
                r"undefined symbol: (?:__)?nvJitLink",
                "the loader gives the program an older libnvJitLink than its cuSPARSE or cuSOLVER needs: that of a"
                " toolkit of the host's (LD_LIBRARY_PATH, a module file, /etc/ld.so.conf.d), or an older wheel",
                "Unset LD_LIBRARY_PATH for the program. Where the message stays, bring the wheel to the release of the"
                " others (pip install -U nvidia-nvjitlink-cu12, or torch again with all that it requires), and see"
                " which file comes first (LD_DEBUG=libs). Driver and toolkit stay",
            ),
            Variant(
                r"undefined symbol:? [\"'`]?nccl\w",
                "the program (PyTorch, or one built with NCCL) gets an older NCCL than the one that it was built with:"
                " the host's (libnccl2, LD_LIBRARY_PATH, /etc/ld.so.conf.d), an older wheel, or two wheels in one place"
                " (nvidia-nccl-cu11, -cu12, -cu13) come before its own",
                "See which file is taken (ldd, LD_DEBUG=libs). A program that was built with NCCL gets that one's"
                " directory (LD_LIBRARY_PATH for it alone), or upgrade the host's (libnccl2, libnccl-dev; the role"
                " nccl). For PyTorch unset LD_LIBRARY_PATH; where the message stays, see pip list | grep nccl: install"
                " torch again with all that it requires (pip install --force-reinstall torch, from its index), which"
                " brings the NCCL that it pins, and take a second one out",
            ),
        ),
    ),
)
