"""Failure messages of pip, Python and frameworks whose causes have no sign on a host."""

from __future__ import annotations

from hostwright.failures import FailureRule, Variant

#: modules that build scripts import, but that pip's isolated build environment lacks
_IMPORTED = r"(?:torch|numpy|Cython|packaging|setuptools|pkg_resources|wheel|pybind11|ninja|psutil|tensorflow|jax)"

#: pattern of lines that name the searched package indexes near pip's message
LOOKED_AT = r"^Looking in (?:indexes|links): |--no-index\b|--find-links|^ {0,8}hint: |was found on \S"

_TORCH = r"(?:torch|torchvision|torchaudio|triton|pytorch-triton|xformers)"
#: message of a pip that searched only PyTorch's own package index
_PYTORCH_ALONE = r"^Looking in indexes: \S*pytorch\.org/whl/\S*[^\s,]\s*$"

#: messages about package versions that are missing in the searched package index
NO_SUCH_WHEEL = (
    Variant(
        r"was not found in the package registry",
        "uv finds no package {PACKAGE|of that name} in the searched index: the name is wrong, or another index has"
        " the package. Often only PyTorch's index is configured (index-url, or an index marked as default)",
        "Configure both indexes: PyPI as the default, and PyTorch's as an explicit index for torch alone"
        " ([[tool.uv.index]] explicit = true, [tool.uv.sources]). NVIDIA's own packages are at https://pypi.nvidia.com"
        " (--extra-index-url). Compare the name on PyPI",
    ),
    Variant(
        r"Unable to find installation candidates",
        "poetry's lock file names {PACKAGE|a package} in a version or file that the searched index does not have for"
        " this Python, CPU architecture or system",
        "List the available files (pip index versions NAME, or the index's page). Use a Python that has wheels, or"
        " lock again on this machine (poetry lock, poetry cache clear --all .). PyTorch's builds with +cu… need"
        " PyTorch's index as a source ([[tool.poetry.source]] url = https://download.pytorch.org/whl/cu128, priority"
        " explicit)",
    ),
    Variant(
        r"no wheels with a matching|we only found wheels for|source distribution or wheel for the current platform",
        "the installer finds no wheel of {PACKAGE|a requested package or a dependency} for this Python{ (PYTHON)|}"
        " and CPU architecture{, only for TAGS|}. Packages that depend on it cannot be installed either",
        "Create the environment with a Python that has wheels (uv venv --python 3.12; pythons of the layer in the"
        " stack file; requires-python in pyproject.toml), or request a release with a wheel for this Python. For"
        " another CPU architecture (aarch64), see the project's page. Index, network and CUDA are not the cause",
    ),
    Variant(
        r"is not a supported wheel on this platform",
        "{FILE|the requested wheel file} is for another Python, CPU architecture or system. The end of its name gives"
        " them (cp310: Python 3.10; manylinux_2_28: glibc 2.28 or newer; x86_64, aarch64)",
        "Compare the name with python3 -V and uname -m; pip debug --verbose lists all compatible tags. Download a"
        " file of the same release with a compatible tag, or use the Python that the file is for. No index is the"
        " cause",
    ),
    Variant(
        r"\ALooking in links: [^+]*$|--no-index\b",
        "{LINKS|the directory or page of --find-links} has no file of {PACKAGE|the requested package} for this Python"
        " and CPU architecture; with --no-index, pip searches nowhere else",
        "List the files there: their names must end in tags of this Python and architecture (pip debug --verbose"
        " lists them). Download the missing files with all dependencies on a machine with a network and the same"
        " Python (pip download -d DIRECTORY {PACKAGE|NAME}), and copy them here. If an index is reachable, omit"
        " --no-index",
    ),
    Variant(
        rf"requirement {_TORCH}\b[^\n]*\.dev[0-9]{{8}}|found for {_TORCH}\b[^\n]*\.dev[0-9]{{8}}",
        "{PACKAGE|the requested version} is a nightly build, and PyTorch's nightly index keeps only the last two"
        " months",
        "Install a listed build (pip install --pre torch --index-url https://download.pytorch.org/whl/nightly/cu128,"
        " with the CUDA that you need), or better the later release, from the same address without nightly",
    ),
    Variant(
        r"(?:the requirement|found for) jaxlib\S{0,40}\+cuda",
        "no index has jaxlib with CUDA in its version any more: since 0.4.30, plugin packages provide CUDA for a"
        " common jaxlib",
        "Install jax[cuda13] or jax[cuda12] (pip install -U 'jax[cuda12]'), without -f and without jaxlib. Python,"
        " network, and the host's CUDA and cuDNN are not the cause",
    ),
    Variant(
        r"the requirement \S{1,60}\+cu[0-9]{3}\b[^\n]*\(from versions: [^)\n]*\+cu[0-9]{3}",
        "PyTorch's index does not have {PACKAGE|that version} for this Python, only the releases in the message. Each"
        " release is built for a few CUDA releases and for the Pythons of its time",
        "Use a Python that the release supports (python3.12 -m venv PATH; pythons of the layer in the stack file;"
        " interpreter lets the stack install one), with a CUDA that it has (cu118 to cu126 for releases of 2024). Or"
        " install one of the listed releases",
    ),
    Variant(
        rf"{_PYTORCH_ALONE}(?s:.)*(?:requirement {_TORCH}|found for {_TORCH})\b",
        "PyTorch's index for this CUDA has no {PACKAGE|wheel} for this Python and CPU architecture. Each CUDA index"
        " has only releases and Pythons of its time",
        "Open the address in the message with /torch/ appended, and search for this Python (cp312 …). Use the index"
        " of a CUDA that has it (cu126, cu128, cu130), or use a Python that has wheels",
    ),
    Variant(
        _PYTORCH_ALONE,
        "pip searched only PyTorch's index (--index-url), which has PyTorch and a few related packages, but not"
        " {PACKAGE|the requested package}",
        "Install in two steps: PyTorch with --index-url, the other packages without it. Or add PyTorch's index to the"
        " default one (--extra-index-url), with torch's exact version including its +cu part, because pip installs"
        " the highest version of both",
    ),
    Variant(
        r"(?:the requirement|found for|no versions? of) \S{1,60}\+cu[0-9]{3}\b",
        "the searched index does not have {PACKAGE|that version}. Only PyTorch's own index has builds with a CUDA"
        " suffix (+cu128), each release for a few CUDA releases and for the Pythons of its time",
        "Use that index (--index-url https://download.pytorch.org/whl/cu128, with the same suffix; in a requirements"
        " file, a line --extra-index-url), and check that it has the release for this Python. Or omit the +cu part",
    ),
    Variant(
        r"requires a different Python|Requires-Python",
        "{PACKAGE|the package}, or the requested release, requires another Python",
        "Give the host a supported Python (pythons of the layer in the stack file), let the stack install one"
        " (interpreter), or request a release that still supports this Python",
    ),
    Variant(
        r"\(from versions: [0-9]",
        "the index has no wheel of {PACKAGE|that version} for this Python and CPU architecture, only the releases in"
        " the message. The version is too old or too new for this Python, or was removed",
        "Request a listed release, or give the host a Python for which the release has wheels (pythons of the layer"
        " in the stack file; interpreter lets the stack install one). Another index or wheelhouse may have more files",
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
        "the program is written for Keras 2, but TensorFlow 2.16 and later include Keras 3 with another interface",
        "Install Keras 2 in TensorFlow's release (pip install 'tf-keras==2.17.*' for TensorFlow 2.17), and set"
        " TF_USE_LEGACY_KERAS=1 before the program starts. For transformers, the package is enough; if only torch is"
        " used, uninstall TensorFlow instead. Or port the program (Keras's guide, migrating to Keras 3), or use the"
        " stack tensorflow-2.15, the last with Keras 2",
        "Keras's guide, migrating to Keras 3; keras-team/keras#20106; kr-colab/diploSHIC#55; linkedin/Liger-Kernel#161",
        beside=r"/tensorflow_addons/",
        variants=(
            Variant(
                r"tensorflow_addons",
                "TensorFlow Addons, which ended in May 2024, uses Keras 2 and supports TensorFlow up to 2.15."
                " TensorFlow 2.16 and later include Keras 3",
                "Replace its functions (Keras 3 has AdamW, Lamb, GroupNormalization, and some of its metrics and"
                " losses) and uninstall the package. Or use the stack tensorflow-2.15, the last with Keras 2",
            ),
            Variant(
                r"has no attribute '__internal__'|keras\.api\._v2",
                "Keras 3 is installed with a TensorFlow up to 2.15, which needs the Keras of its own release",
                "Install the matching Keras (pip install 'keras==2.15.*' for TensorFlow 2.15), or TensorFlow 2.16 or"
                " later. To restore the stack's own environment, provision again",
            ),
            Variant(
                r"cannot import name '?(?:ops|KerasTensor|tree|distribution|quantizers)'? from|attribute '(?:ops"
                r"|tree)'",
                "the program is written for Keras 3, but Keras 2 is installed, which belongs to TensorFlow up to 2.15",
                "Install TensorFlow 2.16 or later, which includes Keras 3 (the stack tensorflow-2.21), or the"
                " program's release for Keras 2",
            ),
            Variant(
                r"batch_shape'|deserializing class|Could not locate class|Keras 3 only supports",
                "the saved model comes from another major release of Keras. TensorFlow up to 2.15 has Keras 2, later"
                " releases have Keras 3",
                "Load it with the TensorFlow that saved it (2.15 or older: the stack tensorflow-2.15, or tf-keras"
                " with TF_USE_LEGACY_KERAS=1; else 2.16 or newer), and save it again as .keras. Load a SavedModel with"
                " keras.layers.TFSMLayer",
            ),
        ),
    ),
    FailureRule(
        "build-alone",
        r"(?:Getting requirements to build|Preparing metadata|setup\.py egg_info|subprocess-exited-with-error"
        r"|Building wheel|Failed to (?:download and )?build `|build backend returned an error)[^\n]*\n"
        rf"(?:[^\n]*\n){{0,80}}?[^\n]*ModuleNotFoundError: No module named '?{_IMPORTED}\b",
        "pip builds {PACKAGE|a package} in an isolated environment without the module MODULE, which the package's"
        " build script imports. Packages of your environment have no effect there",
        "Install MODULE and the build tools (pip install MODULE setuptools wheel packaging ninja), then build in your"
        " own environment: pip install --no-build-isolation {PACKAGE|with the package}. Or install a prebuilt wheel"
        " for this version of MODULE, Python and CUDA",
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
        "a module was generated for a newer protobuf than the installed one",
        "Install the protobuf that the module requires in a separate environment. The stack's environment keeps 3.19"
        " or 3.20, which TensorFlow 2.9 needs (pip install -c constraints.txt keeps it)",
        "protobuf python/google/protobuf/runtime_version.py",
        names=(r"gencode (?P<wanted>[0-9.]{3,9}[0-9]) runtime (?P<has>[0-9.]{3,9}[0-9])",),
        variants=(
            Variant(
                r"gencode [0-9.]{3,10} runtime [0-9]",
                "a module was generated for protobuf WANTED, but HAS is installed. The installed release must not be"
                " older than the generating one, nor newer by more than one major release",
                "Install 'protobuf>=WANTED' of the same major release into that environment, or the release of the"
                " package (TensorFlow, …) for protobuf HAS. If two packages need different releases, give each its own"
                " environment. To restore the stack's environment, provision again",
            ),
        ),
    ),
    FailureRule(
        "tensorflow-gpu-gone",
        r"tensorflow-gpu-2\.1[0-9]\.[0-9]\.tar\.gz|The \"?tensorflow-gpu\"? package has been removed",
        "the package tensorflow-gpu has ended, and its last release only fails",
        "Install tensorflow, which supports GPUs since 2.1, or use the stack's environment",
        "PyPI, tensorflow-gpu; tensorflow/tensorflow#62613",
    ),
    FailureRule(
        "pip-conflict",
        r"\bResolutionImpossible\b|because these package versions have conflicting dependencies"
        r"|The conflict is caused by:|\b(?:LibMamba)?UnsatisfiableError\b"
        r"|VersionConflict: \("
        r"|version solving failed"
        r"|\bSolverProblemError\b",
        "the requested packages require conflicting versions of other packages, so that nothing is installed",
        "Read the conflicting requirements below the message. Omit version numbers that need not be exact, or install"
        " conflicting packages into separate environments",
        "pip, pip._internal.resolution; ZJUICSR/AIcert#3",
        closing=r"No solution found when resolving dependencies",
        beside=r"^ {1,8}\S.* (?:depends on|requires) |The user requested |subsequent index|first index that",
        narrower=r"ha(?:s|ve) no wheels with a matching|was not found in the package registry"
        r"|Because there (?:is|are) no versions? of \S{1,80} and (?:you|your project) ",
        variants=(
            Variant(
                r"may be available on a subsequent index|first index that contains",
                "uv installs a package only from the first index that has its name. Here this is PyTorch's index,"
                " which has few versions of other packages",
                "Mark that index as explicit and list its packages (pyproject.toml: [[tool.uv.index]] explicit ="
                " true, [tool.uv.sources] torch = { index = … }), or install PyTorch in a separate step. uv pip"
                " install --index-strategy unsafe-best-match searches all indexes",
            ),
            Variant(
                r"\[(?:cu|cuda)1[0-9]\] and \S{1,80}\[(?:cu|cuda)1[0-9]\] are incompatible",
                "uv resolves all extras of a project together, but the extras for two CUDA releases conflict",
                "Declare the conflict in pyproject.toml ([tool.uv] conflicts = [[{ extra = … }, { extra = … }]]), so"
                " that uv resolves each extra separately, and install one of them",
            ),
            Variant(
                r"requested nvidia-[a-z-]{2,30}-cu1[0-9]|nvidia-[a-z-]{2,30}-cu1[0-9]==\S{1,30} because",
                "a requirements file pins CUDA wheels (nvidia-…-cu12), but PyTorch requires exactly the wheels that"
                " it was built with",
                "Remove the lines nvidia-… and triton from the requirements file: PyTorch installs its own releases"
                " of them. If a pin is intended, pin the matching PyTorch",
            ),
            Variant(
                rf"\b{_TORCH}[ =][^\n]* depends on torch\b|\b{_TORCH}==\S* and {_TORCH}==",
                "packages built for one PyTorch release conflict: torchvision, torchaudio, xformers and vLLM each"
                " require exactly one torch. Builds with another CUDA (+cu128) count as other versions",
                "Install them in one command, from one index and without version numbers (pip install torch"
                " torchvision torchaudio --index-url …), or pin matching releases, which the lines below the message"
                " list. Install packages that require another torch into a separate environment",
            ),
        ),
    ),
    FailureRule(
        "python-without-ssl",
        r"ssl module (?:in Python )?is not available|No module named '?_ssl\b|Could not build the ssl module"
        r"|pip is configured with locations that require TLS/SSL",
        "this Python was built without OpenSSL, so that pip cannot use an index over https",
        "Use the distribution's Python or the stack's. For a Python that you built, install libssl-dev and build it"
        " again",
        "pip, pip._internal.utils.compat; CPython Modules/_ssl.c",
    ),
    FailureRule(
        "python-distutils-missing",
        r"No module named '?distutils\b|'pkgutil' has no attribute 'ImpImporter'",
        "this Python has no distutils: Python 3.12 removed it, and Debian ships it separately for older Pythons",
        "Install setuptools into the environment (below Python 3.12: the package python3-distutils), or install a"
        " release of the program for this Python",
        "PEP 632; Debian python3-distutils",
    ),
    FailureRule(
        "venv-interpreter-gone",
        r"(?:bad interpreter|\bsh): \S+/bin/python[0-9.]{0,5}: [Nn]o such file",
        "a virtual environment links to a Python that was removed or upgraded, so that its programs do not start",
        "Recreate the environment with an installed Python (python3 -m venv --clear PATH), and reinstall its"
        " packages. To restore the stack's own environment, provision again",
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
        "the program requests more GPU memory than is free",
        "List the GPU's processes with nvidia-smi, and end unneeded ones; otherwise reduce the batch or the model."
        " TensorFlow allocates all memory at once unless TF_FORCE_GPU_ALLOW_GROWTH=true, and JAX 75 % of it unless"
        " XLA_PYTHON_CLIENT_PREALLOCATE=false",
        "pytorch/pytorch#16417, tensorflow/tensorflow#8949",
        unless="not a failure",
        narrower=r"transport/shm\.cc:[0-9]{1,5} -> [1-9]",
        variants=(
            Variant(
                r"NCCL WARN",
                "NCCL finds no free GPU memory for its buffers: this program or another one uses all of it",
                "List the GPUs' processes with nvidia-smi, and leave one or two GB of each GPU for NCCL (vLLM:"
                " --gpu-memory-utilization, PyTorch: a smaller batch). NCCL_NVLS_ENABLE=0 and a smaller NCCL_BUFFSIZE"
                " reduce its need",
            ),
        ),
    ),
    FailureRule(
        "externally-managed",
        r"externally-managed-environment|This environment is externally managed",
        "the distribution's Python refuses pip outside a virtual environment",
        "Use the stack's environment, or create your own (python3 -m venv PATH). Do not use --break-system-packages",
        "PEP 668",
    ),
    FailureRule(
        "pip-permission",
        r"Could not install packages due to an? (?:OS|Environment)Error: \[Errno (?:1|13|30)\]"
        r"|\[Errno 13\] [^:\n]{1,40}: '[^'\n]*(?:site|dist)-packages"
        r"|Consider using the .--user. option or check the permissions",
        "pip has no write permission in this environment, which belongs to another user",
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
        "a package is compiled from source, but {HEADER, a file of a required library, is not installed|the headers"
        " of a required library (or its program NAME-config) are not installed}",
        "Install the package that contains {HEADER|the file} (apt-file search {HEADER|NAME} names it), or install a"
        " release of the Python package that has a wheel",
        "gcc, cpperror; scrapy/scrapy#2115; sgl-project/sglang#18644",
        names=(
            r"error: '?(?P<header>[\w./+-]{1,80}\.(?:h|hpp|cuh)|nv/target|(?:cccl/)?cuda/std/\w+)'?(?:: No such"
            r"| file not found)",
            r"\b(?P<header>(?:pg|mysql|mariadb|llvm|krb5|curl|xml2|gdal|freetype)[-_]config)",
        ),
        variants=(
            Variant(
                r"Python\.h|Could NOT find Python|python[0-9.]{0,4}-dev",
                "a package is compiled from source, or Triton compiles its launcher at run time, but Python's headers"
                " (Python.h) are not installed",
                "Install the headers of the building Python: apt-get install python3-dev, or python3.X-dev for"
                " python3.X (Red Hat: python3-devel). Or install a release of the package that has a wheel",
            ),
            Variant(
                r"error: '?(?:\w+/)?(?:cuda|cccl/|cu(?:blas|sparse|solver|rand|fft|dnn|pti)|nvrtc|nvToolsExt|nvtx"
                r"|thrust"
                r"|cub/|crt/|nv/|nvml|host_defines)[\w./+-]{0,70}'?(?:: No such| file not found)",
                "a package is compiled for CUDA, but the compiler does not find the toolkit's header HEADER. Causes:"
                " only a part of the toolkit is installed (a runtime, or wheels), CUDA_HOME points elsewhere, or this"
                " release moved the header (CUDA 13 has thrust, cub and cuda/std in include/cccl, and no nvToolsExt.h)",
                "Install a whole toolkit of the framework's release (the role cuda; find /usr/local/cuda/ -name"
                " HEADER), and set CUDA_HOME=/usr/local/cuda. Or install a prebuilt wheel of the package, or its newer"
                " release for CUDA 13",
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
        "the imported NumPy is not the one that the program was built for. Usually an older copy comes first on the"
        " path",
        "Locate it with python -c 'import numpy; print(numpy.__file__, numpy.__version__)'. Remove that copy, or use"
        " the stack's environment",
        "tensorflow/tensorflow#559",
        unless=r"this version of numpy is 0x2[0-9a-f]{6}\b|RuntimeWarning: numpy",
        weight="consequence",
    ),
    FailureRule(
        "build-failed",
        r"subprocess-exited-with-error|metadata-generation-failed|Failed building wheel for \S+"
        r"|Could not build wheels for \S+"
        r"|Error building extension '|legacy-install-failure|setup\.py install for \S{1,80} did not run successfully",
        "pip has no wheel of {PACKAGE|a package} for this Python and builds it from source, but the build failed. pip"
        " is not the cause",
        "Read the indented lines above: the last one with error or Error usually names the cause (a header, a"
        " compiler, a module, a CUDA release). Or install a release of {PACKAGE|the package}, or use a Python, that"
        " has a wheel (check with pip download --only-binary=:all: {PACKAGE|NAME})",
        "pip, pip._internal.exceptions, InstallationSubprocessError",
        names=(
            r"(?:Failed building wheel for|Could not build wheels for|Failed to build) (?P<package>[\w.-]{2,60})",
            r"setup\.py install for (?P<package>[\w.-]{2,60}) did",
        ),
        weight="wrapper",
    ),
)
