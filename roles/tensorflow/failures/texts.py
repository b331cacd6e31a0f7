"""Messages of pip, of Python and of frameworks that no sign on a host tells."""

from __future__ import annotations

from hostwright.failures import FailureRule, Variant

#: what a build script imports, and pip's own environment for a build does not have
_IMPORTED = r"(?:torch|numpy|Cython|packaging|setuptools|pkg_resources|wheel|pybind11|ninja|psutil|tensorflow|jax)"

#: lines beside pip's message that say where it looked
LOOKED_AT = r"^Looking in (?:indexes|links): |--no-index\b|--find-links|^ {0,8}hint: |was found on \S"

_TORCH = r"(?:torch|torchvision|torchaudio|triton|pytorch-triton|xformers)"
#: PyTorch's own index is the only one that pip asked
_PYTORCH_ALONE = r"^Looking in indexes: \S*pytorch\.org/whl/\S*[^\s,]\s*$"

#: versions that only one index has, or none any more
NO_SUCH_WHEEL = (
    Variant(
        r"was not found in the package registry",
        "uv found no package {PACKAGE|of that name} in the index that it asked: the name is wrong, or it is in another"
        " index, as where only PyTorch's is named (index-url, an index that is marked as default)",
        "Let uv ask the other index as well: PyPI as the default, PyTorch's as a further, explicit one for torch alone"
        " ([[tool.uv.index]] explicit = true, [tool.uv.sources]); packages of NVIDIA's own are at"
        " https://pypi.nvidia.com (--extra-index-url). Compare the name on PyPI",
    ),
    Variant(
        r"Unable to find installation candidates",
        "poetry's lock names {PACKAGE|a package} in a version or file that the index has not for this Python, processor"
        " or system, or that is not in the index which is asked",
        "See which files there are (pip index versions NAME; the index's page): use a Python that it has wheels for, or"
        " lock anew here (poetry lock, poetry cache clear --all .). PyTorch's builds with +cu… need its own index as a"
        " source ([[tool.poetry.source]] url = https://download.pytorch.org/whl/cu128, priority explicit)",
    ),
    Variant(
        r"no wheels with a matching|we only found wheels for|source distribution or wheel for the current platform",
        "the installer finds no wheel of {PACKAGE|a package that was asked for, or of one that it needs,} for this"
        " Python{ (PYTHON)|} and processor{, only for TAGS|}: what needs it cannot be installed either",
        "Make the environment with a Python that it has wheels for (uv venv --python 3.12; pythons of the layer in the"
        " stack file; requires-python in pyproject.toml), or ask for a release of it that has one for this Python. On"
        " another processor (aarch64) see the project's page for it. Index, network and CUDA are not at fault",
    ),
    Variant(
        r"is not a supported wheel on this platform",
        "{FILE is|a wheel that is named as a file is} for another Python, processor or system than this one: the end of"
        " its name says for which (cp310: Python 3.10; manylinux_2_28: glibc 2.28 or newer; x86_64, aarch64)",
        "Compare it with python3 -V and uname -m (pip debug --verbose lists every ending that fits), and take the file"
        " of the same release with one of these, or use the Python that it is for. No index has a part in it",
    ),
    Variant(
        r"\ALooking in links: [^+]*$|--no-index\b",
        "none of the files in {LINKS|the directory or page that pip was given} (--find-links) is {PACKAGE|what was"
        " asked for} for this Python and processor; with --no-index pip looks nowhere else",
        "See what is there: the names of the files have to end in this Python's and processor's words (pip debug"
        " --verbose lists them). Fetch what is missing, with all that it needs, on a machine with a network and the"
        " same Python (pip download -d DIRECTORY {PACKAGE|NAME}), and bring it there; or leave --no-index out where an"
        " index can be reached",
    ),
    Variant(
        rf"requirement {_TORCH}\b[^\n]*\.dev[0-9]{{8}}|found for {_TORCH}\b[^\n]*\.dev[0-9]{{8}}",
        "{PACKAGE|the version that was asked for} is a nightly build, and PyTorch's index lists those of the last two"
        " months alone, under nightly",
        "Take one that is listed (pip install --pre torch --index-url https://download.pytorch.org/whl/nightly/cu128,"
        " with the CUDA that is wanted), or better the release that came of it, from the same address without nightly",
    ),
    Variant(
        r"(?:the requirement|found for) jaxlib\S{0,40}\+cuda",
        "no index has jaxlib with CUDA in its version any more: from 0.4.30 on, CUDA comes as plugin packages beside"
        " one jaxlib",
        "Install jax[cuda13] or jax[cuda12] (pip install -U 'jax[cuda12]'), without -f and without jaxlib; Python,"
        " network, CUDA and cuDNN of the host stay as they are",
    ),
    Variant(
        r"the requirement \S{1,60}\+cu[0-9]{3}\b[^\n]*\(from versions: [^)\n]*\+cu[0-9]{3}",
        "{PACKAGE|that version} is not there for this Python: the index is PyTorch's own, and has for it only the"
        " releases that the message lists, as each release is built for a few CUDAs and for the Pythons of its time",
        "Use a Python that the release was built for (python3.12 -m venv PATH; pythons of the layer in the stack file,"
        " interpreter lets the stack bring one) and a CUDA that it has (cu118 to cu126 for releases of 2024), or take"
        " one of those that are listed",
    ),
    Variant(
        rf"{_PYTORCH_ALONE}(?s:.)*(?:requirement {_TORCH}|found for {_TORCH})\b",
        "PyTorch's index for this CUDA has no {PACKAGE|wheel} for this Python and processor: each CUDA has the releases"
        " and the Pythons of its time",
        "Open the address that the message names with /torch/ behind it and look for this Python (cp312 …): name the"
        " index of a CUDA that has it (cu126, cu128, cu130), or use a Python for which there are wheels",
    ),
    Variant(
        _PYTORCH_ALONE,
        "pip was told to look in PyTorch's index alone (--index-url), which has PyTorch and a few packages beside it,"
        " and not {PACKAGE|what was asked for}",
        "Install in two steps: PyTorch with --index-url, the rest without it; or name that index beside the usual one"
        " (--extra-index-url), with torch's version and its +cu part written out, for pip takes the highest version of"
        " both",
    ),
    Variant(
        r"(?:the requirement|found for|no versions? of) \S{1,60}\+cu[0-9]{3}\b",
        "{PACKAGE|that version} is not in the index that was asked: builds that name their CUDA (+cu128) are in"
        " PyTorch's own index alone, each release for a few of them and for the Pythons of its time",
        "Name that index (--index-url https://download.pytorch.org/whl/cu128, the same letters; in a requirements file"
        " a line --extra-index-url), and look there whether it has the release for this Python; or leave the +cu part"
        " out",
    ),
    Variant(
        r"requires a different Python|Requires-Python",
        "{PACKAGE|the package}, or the release that was asked for, is for another Python than this one",
        "Give the host a Python that it names (pythons of the layer in the stack file), let the stack bring one"
        " (interpreter), or ask for a release that still has this Python",
    ),
    Variant(
        r"\(from versions: [0-9]",
        "the index has no wheel of {PACKAGE|that version} for this Python and processor, only the releases that the"
        " message lists: what was asked for is too old or too new for this Python, or no longer there",
        "Ask for one of those that are listed, or give the host a Python for which the release has wheels (pythons of"
        " the layer in the stack file; interpreter lets the stack bring one); another index or wheelhouse may hold"
        " more",
    ),
)

TEXT_RULES = (
    FailureRule(
        "keras-3",
        r"installed version of Keras is Keras 3|Keras 3 only supports|(?:not|isn't) (?:yet )?supported (?:in|by"
        r"|with) Keras 3|Unrecognized keyword arguments passed to \w{1,40}: \{|Argument\(s\) not recognized: \{'"
        r"|Unrecognized keyword arguments: \['batch_shape'"
        r"|KerasTensor cannot be used as input to a TensorFlow function|The file(?:path"
        r"|name)[^\n]{0,40}must end in .\.(?:weights\.h5|keras)|(?:No module named"
        r"|cannot import name '?\w{1,60}'? from) '?(?:tensorflow\.(?:python\.)?)?keras\.\w"
        r"|cannot import name '?\w{1,60}'? from '?(?:tensorflow\.)?keras'|No module named '?tf_keras"
        r"|module 'keras[\w.]{0,60}' has no attribute|object has no attribute '(?:predict_classes|fit_generator)'"
        r"|Could not locate class '(?:Functional|Sequential|Model)'"
        r"|Error when deserializing class '\w{1,40}' using config|\b(?:LSTM|GRU|RNN"
        r"|SimpleRNN)\.__init__\(\) got an unexpected keyword argument|No module named '?tensorflow\.python\.keras",
        "the program is written for Keras 2, and TensorFlow 2.16 and later bring Keras 3, which has another interface",
        "Install Keras 2 beside it, in TensorFlow's own release (pip install 'tf-keras==2.17.*' for TensorFlow 2.17),"
        " and set TF_USE_LEGACY_KERAS=1 before the program starts; transformers needs the package alone, or no"
        " TensorFlow where only torch is used. Or change the program (Keras's guide, migrating to Keras 3), or use the"
        " stack tensorflow-2.15, the last with Keras 2",
        "Keras's guide, migrating to Keras 3; keras-team/keras#20106; kr-colab/diploSHIC#55; linkedin/Liger-Kernel#161",
        beside=r"/tensorflow_addons/",
        variants=(
            Variant(
                r"tensorflow_addons",
                "TensorFlow Addons, which has ended (May 2024), uses Keras 2, and its last release is for TensorFlow up"
                " to 2.15: TensorFlow 2.16 and later bring Keras 3",
                "Take what the program uses of it from elsewhere (Keras 3 has AdamW, Lamb, GroupNormalization, metrics"
                " and losses of it), and the package out; or use the stack tensorflow-2.15, the last with Keras 2",
            ),
            Variant(
                r"has no attribute '__internal__'|keras\.api\._v2",
                "Keras 3 is installed beside a TensorFlow up to 2.15, which needs the Keras of its own release",
                "Install that one (pip install 'keras==2.15.*' for TensorFlow 2.15), or a TensorFlow from 2.16 on; the"
                " stack's own environment comes back when you provision",
            ),
            Variant(
                r"cannot import name '?(?:ops|KerasTensor|tree|distribution|quantizers)'? from|attribute '(?:ops"
                r"|tree)'",
                "the program is written for Keras 3, and Keras 2 is installed, as TensorFlow up to 2.15 brings it",
                "Install a TensorFlow from 2.16 on, which brings Keras 3 (the stack tensorflow-2.21), or the program's"
                " release for Keras 2",
            ),
            Variant(
                r"batch_shape'|deserializing class|Could not locate class|Keras 3 only supports",
                "the saved model is of another major release of Keras than the one that reads it: TensorFlow up to"
                " 2.15 has Keras 2, later ones Keras 3",
                "Read it with the TensorFlow that it was saved with (2.15 or older: the stack tensorflow-2.15, or"
                " tf-keras with TF_USE_LEGACY_KERAS=1; else 2.16 or newer) and save it anew as .keras; a SavedModel is"
                " read by keras.layers.TFSMLayer",
            ),
        ),
    ),
    FailureRule(
        "build-alone",
        r"(?:Getting requirements to build|Preparing metadata|setup\.py egg_info|subprocess-exited-with-error"
        r"|Building wheel|Failed to (?:download and )?build `|build backend returned an error)[^\n]*\n"
        rf"(?:[^\n]*\n){{0,80}}?[^\n]*ModuleNotFoundError: No module named '?{_IMPORTED}\b",
        "pip builds {PACKAGE|a package} in an environment of its own, which has not the module MODULE that the"
        " package's build script imports, whatever is installed in yours",
        "Install MODULE and what builds need (pip install MODULE setuptools wheel packaging ninja), then pip install"
        " --no-build-isolation {PACKAGE|with the package}, which builds in your own environment; or take a wheel that"
        " is built already for this version of MODULE, Python and CUDA",
        "pip, build isolation (PEP 517, 518); Dao-AILab/flash-attention#246, #1421",
        names=(
            rf"No module named '?(?P<module>{_IMPORTED})\b",
            r"[Bb]uilding wheels? (?:for collected packages: )?(?P<package>[\w.-]{1,60})",
            r"build `(?P<package>[\w.-]{1,60})[=@`]",
        ),
        transient=False,
    ),
    FailureRule(
        "protobuf-too-old",
        r"cannot import name '?(?:builder|runtime_version)'? from '?google\.protobuf|Protobuf Gencode/Runtime versions"
        r"|runtime_version\.VersionError|No module named '?google\.protobuf\.(?:internal\.builder|runtime_version)",
        "a module was generated for a newer protobuf than the one that is installed",
        "Install the protobuf that the module asks for in an environment of its own; the stack's stays at 3.19 or 3.20,"
        " which TensorFlow 2.9 needs (pip install -c constraints.txt keeps it)",
        "protobuf python/google/protobuf/runtime_version.py",
        names=(r"gencode (?P<wanted>[0-9.]{3,9}[0-9]) runtime (?P<has>[0-9.]{3,9}[0-9])",),
        variants=(
            Variant(
                r"gencode [0-9.]{3,10} runtime [0-9]",
                "a module was generated for protobuf WANTED, and HAS is installed: the one that runs may not be older"
                " than the one that generated, nor newer by more than one major release",
                "Install 'protobuf>=WANTED' of the same major release into that environment, or the release of the"
                " package (TensorFlow, …) that goes with protobuf HAS; where two packages want different ones, give"
                " each an environment of its own. The stack's own comes back when you provision",
            ),
        ),
    ),
    FailureRule(
        "tensorflow-gpu-gone",
        r"tensorflow-gpu-2\.1[0-9]\.[0-9]\.tar\.gz|The \"?tensorflow-gpu\"? package has been removed",
        "the package tensorflow-gpu is no longer made: what is there under its name only fails",
        "Install tensorflow, which has supported GPUs itself since 2.1; for the stack's, use its environment",
        "PyPI, tensorflow-gpu; tensorflow/tensorflow#62613",
    ),
    FailureRule(
        "pip-conflict",
        r"\bResolutionImpossible\b|because these package versions have conflicting dependencies"
        r"|The conflict is caused by:|\b(?:LibMamba)?UnsatisfiableError\b"
        r"|VersionConflict: \("
        r"|version solving failed"
        r"|\bSolverProblemError\b",
        "the packages asked for want versions of others that exclude each other, so that nothing is installed",
        "Read who wants what below the message; leave out the version that need not be exact, or put what clashes into"
        " an environment of its own",
        "pip, pip._internal.resolution; ZJUICSR/AIcert#3",
        closing=r"No solution found when resolving dependencies",
        beside=r"^ {1,8}\S.* (?:depends on|requires) |The user requested |subsequent index|first index that",
        narrower=r"ha(?:s|ve) no wheels with a matching|was not found in the package registry"
        r"|Because there (?:is|are) no versions? of \S{1,80} and (?:you|your project) ",
        variants=(
            Variant(
                r"may be available on a subsequent index|first index that contains",
                "uv takes a package only from the first index that has its name, and that is PyTorch's here, which"
                " carries copies of other packages in few versions",
                "Mark that index as explicit and name the packages that come from it (pyproject.toml: [[tool.uv.index]]"
                " explicit = true, [tool.uv.sources] torch = { index = … }), or install PyTorch by itself; uv pip"
                " install --index-strategy unsafe-best-match looks in all of them",
            ),
            Variant(
                r"\[(?:cu|cuda)1[0-9]\] and \S{1,80}\[(?:cu|cuda)1[0-9]\] are incompatible",
                "uv resolves all extras of a project together, and those for two releases of CUDA exclude each other",
                "Declare them as such in pyproject.toml ([tool.uv] conflicts = [[{ extra = … }, { extra = … }]]), so"
                " that each is resolved by itself, and install one of them",
            ),
            Variant(
                r"requested nvidia-[a-z-]{2,30}-cu1[0-9]|nvidia-[a-z-]{2,30}-cu1[0-9]==\S{1,30} because",
                "a requirements file pins wheels of CUDA (nvidia-…-cu12), and PyTorch asks for exactly those that it"
                " was built with",
                "Take the lines nvidia-… and triton out of the requirements file: PyTorch brings the ones that belong"
                " to it. Where one is pinned on purpose, pin the PyTorch that goes with it",
            ),
            Variant(
                rf"\b{_TORCH}[ =][^\n]* depends on torch\b|\b{_TORCH}==\S* and {_TORCH}==",
                "the releases of PyTorch and of packages that are built for one release of it exclude each other:"
                " torchvision, torchaudio, xformers and vLLM each ask for exactly one torch, and builds with another"
                " CUDA (+cu128) count as another version",
                "Ask for them in one command, from one index and without versions of their own (pip install torch"
                " torchvision torchaudio --index-url …), or name the releases that belong together, as the lines below"
                " the message say; what asks for another torch gets an environment of its own",
            ),
        ),
    ),
    FailureRule(
        "python-without-ssl",
        r"ssl module (?:in Python )?is not available|No module named '?_ssl\b|Could not build the ssl module"
        r"|pip is configured with locations that require TLS/SSL",
        "this Python was built without OpenSSL, so that pip reaches no index over https",
        "Use the distribution's Python or the stack's; where it was built by hand, install libssl-dev and build it"
        " again",
        "pip, pip._internal.utils.compat; CPython Modules/_ssl.c",
    ),
    FailureRule(
        "python-distutils-missing",
        r"No module named '?distutils\b|'pkgutil' has no attribute 'ImpImporter'",
        "this Python has no distutils, which Python 3.12 dropped and Debian keeps in a package of its own before it",
        "Install setuptools into the environment (below Python 3.12: the package python3-distutils), or take a version"
        " of the program for this Python",
        "PEP 632; Debian python3-distutils",
    ),
    FailureRule(
        "venv-interpreter-gone",
        r"(?:bad interpreter|\bsh): \S+/bin/python[0-9.]{0,5}: [Nn]o such file",
        "a virtual environment leads to a Python that was removed or upgraded away, so that nothing in it starts",
        "Make the environment anew with a Python that is there (python3 -m venv --clear PATH), and install its packages"
        " again; the stack's own comes back when you provision",
        "Python's venv; pypa/pipx#146",
    ),
    FailureRule(
        "gpu-out-of-memory",
        r"CUDA(?: driver)?(?: error:)? out of memory|\bError 2: out of memory"
        r"|Cuda failure (?:[0-9]{1,4} )?'out of memory'"
        r"|Failed to allocate memory for requested buffer of size|cuMemAlloc\w{0,8} failed: out of memory"
        r"|Requested amount of GPU memory|Failed to allocate request for [0-9.]{1,8}[KMGT]iB"
        r"|No available memory for the cache blocks|is less than desired GPU memory utilization|OOM error encountered"
        r"|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|torch\.(?:cuda\.)?OutOfMemoryError"
        r"|cuda runtime error \(2\) ?: out of memory|OOM when allocating tensor|ran out of memory trying to allocate "
        r"|list of allocated tensors when OOM happens|bfc_allocator\.cc:[0-9]{1,6}\][^\n]*(?:Chunks of size"
        r"|in-use [Cc]hunks)|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED: Out of memory"
        r"|XlaRuntimeError: RESOURCE_EXHAUSTED|Triton Error \[CUDA\]: out of memory|cudaMalloc failed: out of memory"
        r"|OutOfMemoryError: CUDA|std::bad_alloc: (?:out_of_memory: )?CUDA|failed to allocate [^\n]+from device: ",
        "the program asks for more GPU memory than is free",
        "Look with nvidia-smi who uses the GPU, and end what nobody needs; else make the batch or the model smaller."
        " TensorFlow takes all memory at once unless TF_FORCE_GPU_ALLOW_GROWTH=true, JAX three quarters of it unless"
        " XLA_PYTHON_CLIENT_PREALLOCATE=false",
        "pytorch/pytorch#16417, tensorflow/tensorflow#8949",
        unless="not a failure",
        narrower=r"transport/shm\.cc:[0-9]{1,5} -> [1-9]",  # host memory that NCCL asks CUDA for
        variants=(
            Variant(
                r"NCCL WARN",
                "NCCL finds no free memory on a card for its own buffers: the program, or another one, has taken all",
                "Look with nvidia-smi who uses the cards, and leave NCCL one or two GB of each (vLLM:"
                " --gpu-memory-utilization, PyTorch: a smaller batch). NCCL_NVLS_ENABLE=0 and a smaller NCCL_BUFFSIZE"
                " make it need less",
            ),
        ),
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
        r"|\[Errno 13\] [^:\n]{1,40}: '[^'\n]*(?:site|dist)-packages"
        r"|Consider using the .--user. option or check the permissions",
        "pip may not write where this environment is, for it belongs to another user",
        "Install as the owner of the environment, or into a virtual environment of your own",
        "pip, pip._internal.commands.install",
    ),
    FailureRule(
        "build-header-missing",
        r"(?:^|[:Z] )(?:fatal )?error: '?(?:[\w./+-]{1,80}\.(?:h|hpp|cuh)|nv/target"
        r"|(?:cccl/)?cuda/std/\w+)'?(?:: No such file| file not found)"
        r"|Could NOT find Python\w*[^\n]*(?:INCLUDE|Development)"
        r"|(?:cannot|could not|can't) find [\"'`]?Python\.h"
        r"|Python\.h [\"'`]?(?:not found|could not be found|is missing)"
        r"|(?:need to|must|please) install (?:the )?python[0-9.]{0,4}-dev"
        r"|\b(?:pg|mysql|mariadb|llvm|krb5|curl|xml2|gdal|freetype)[-_]config(?: executable)?:? (?:is )?"
        r"(?:not found|required)",
        "a package is compiled from its source, and {HEADER, of a library that it needs, is not installed|the headers"
        " of a library that it needs (or its program NAME-config) are not installed}",
        "Install the package that brings {HEADER|it} (apt-file search {HEADER|NAME} names it), or take a version of the"
        " package for which there is a wheel",
        "gcc, cpperror; scrapy/scrapy#2115; sgl-project/sglang#18644",
        names=(
            r"error: '?(?P<header>[\w./+-]{1,80}\.(?:h|hpp|cuh)|nv/target|(?:cccl/)?cuda/std/\w+)'?(?:: No such"
            r"| file not found)",
            r"\b(?P<header>(?:pg|mysql|mariadb|llvm|krb5|curl|xml2|gdal|freetype)[-_]config)",
        ),
        variants=(
            Variant(
                r"Python\.h|Could NOT find Python|python[0-9.]{0,4}-dev",
                "a package is compiled from its source, or Triton compiles its launcher while a program runs, and"
                " Python's own headers (Python.h) are not installed",
                "Install them for the Python that builds: apt-get install python3-dev, or python3.X-dev for python3.X"
                " (Red Hat: python3-devel); or take a version of the package for which there is a wheel",
            ),
            Variant(
                r"error: '?(?:\w+/)?(?:cuda|cccl/|cu(?:blas|sparse|solver|rand|fft|dnn|pti)|nvrtc|nvToolsExt|nvtx"
                r"|thrust"
                r"|cub/|crt/|nv/|nvml|host_defines)[\w./+-]{0,70}'?(?:: No such| file not found)",
                "a package is compiled for CUDA, and the toolkit's header HEADER is not where the compiler looks: only"
                " a part of the toolkit is installed (a runtime, or wheels), CUDA_HOME leads elsewhere, or this"
                " release has moved it (CUDA 13 keeps thrust, cub and cuda/std in include/cccl, and has no"
                " nvToolsExt.h)",
                "Give the host a whole toolkit of the framework's release (the role cuda; find /usr/local/cuda/ -name"
                " HEADER), and name it: CUDA_HOME=/usr/local/cuda; or take a wheel of the package that is built"
                " already, or its newer release for CUDA 13",
            ),
        ),
        weight="consequence",
        unless=r"conftest",
    ),
    FailureRule(
        "numpy-too-old",
        r"compiled against (?:ABI|API) version 0x[0-9a-f]{1,8} but this version of numpy is 0x"
        r"|numpy\.core\.(?:_?multiarray(?:_umath)?|umath) failed to import"
        r"|ValueError: numpy\.(?:ndarray|ufunc) size changed"
        r"|numpy\.dtype size changed[^\n]+Expected 88 from C header, got 96",
        "the NumPy that is imported is not the one that the program was built for: mostly an older copy elsewhere on"
        " the path comes first",
        "See which one it is (python -c 'import numpy; print(numpy.__file__, numpy.__version__)'), remove that copy, or"
        " use the stack's environment",
        "tensorflow/tensorflow#559",
        unless=r"this version of numpy is 0x2[0-9a-f]{6}\b|RuntimeWarning: numpy",
        weight="consequence",
    ),
    FailureRule(
        "build-failed",
        r"subprocess-exited-with-error|metadata-generation-failed|Failed building wheel for \S+"
        r"|Could not build wheels for \S+"
        r"|Error building extension '|legacy-install-failure|setup\.py install for \S{1,80} did not run successfully",
        "pip has no wheel of {PACKAGE|a package} for this Python and builds it from its source, and that build failed:"
        " pip is not to blame",
        "The reason is in the indented lines above, mostly the last one with error or Error in it (a header, a"
        " compiler, a module, a version of CUDA). Or take a version of {PACKAGE|the package}, or a Python, for which"
        " there is a wheel (pip download --only-binary=:all: {PACKAGE|NAME} tells)",
        "pip, pip._internal.exceptions, InstallationSubprocessError",
        names=(
            r"(?:Failed building wheel for|Could not build wheels for|Failed to build) (?P<package>[\w.-]{2,60})",
            r"setup\.py install for (?P<package>[\w.-]{2,60}) did",
        ),
        weight="wrapper",
    ),
)
