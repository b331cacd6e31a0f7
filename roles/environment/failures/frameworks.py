"""Failure messages common to PyTorch, TensorFlow and JAX: mismatched releases, and compilation at run time."""

from __future__ import annotations

from typing import Final

from hostwright.failures import FailureRule, Variant

#: packages from which other packages import names that only some releases have
_OWNERS: Final = (
    r"torch(?:vision|audio|text|ao)?|jax(?:lib)?|flax|tensorflow|triton|scipy|numpy|ml_dtypes|typing_extensions"
    r"|transformers|diffusers|huggingface_hub"
)

#: PyTorch functions with a string parameter, which depend on the C++ string ABI
_WITH_STRINGS: Final = (
    r"_ZN(?:3c10(?:5Error|6detail(?:14torchCheckFail|23torchInternalAssertFail))|5torch3jit17parseSchemaOrName)"
)

_PARTS: Final = FailureRule(
    "framework-extension-apart",
    r"undefined symbol: _Z[A-Z]{0,6}[0-9]{0,3}(?:2at|3c10|5torch|6caffe2|10tensorflow|3tsl|6tflite)[0-9A-Z]"
    r"|/tensorflow_\w{2,30}/\S{1,200}\.so: undefined symbol"
    r"|operator torch(?:vision|audio|text)::\w{1,40} does not exist|Couldn't load custom C\+\+ ops"
    r"|PyTorch and torch(?:vision|audio) were compiled with different CUDA"
    r"|partially initialized module 'torch(?:vision|audio)' has no attribute"
    r"|Could not run 'torch(?:vision|audio)::\w{1,40}' with arguments from the 'CUDA'"
    r"|Could not load this library: [^\n]*/torch(?:vision|audio|text)/"
    r"|xFormers (?:can't load C\+\+/CUDA extensions|was built for)"
    r"|CUDA Setup failed despite (?:GPU|CUDA) being available|Configured (?:CUDA|ROCm) binary not found at"
    r"|bitsandbytes was compiled without GPU support|Could not find the bitsandbytes CUDA binary"
    r"|No module named '[a-z_]\w{1,40}\._C'|'_OpNamespace' '\w{1,40}' object has no attribute",
    "a compiled package was built for another release of PyTorch, or with another CUDA, than the installed PyTorch{:"
    " FILE|}",
    "Run python -c 'import torch; print(torch.__version__, torch.version.cuda)' and install the package's build for"
    " both. Wheels have both in their names, flash-attn's also the C++ ABI (cxx11abiTRUE for PyTorch from 2.6 or 2.7"
    " on). Or rebuild it with pip install --no-build-isolation --no-cache-dir --force-reinstall --no-deps NAME,"
    " because pip caches builds for earlier PyTorch releases",
    "vladmandic/sdnext#3531; PyTorch aten/src/ATen/core/dispatch; Dao-AILab/flash-attention#246",
    unless=r"Failed to load image Python extension",
    closing=r"\blib(?:torch\w{0,12}|c10\w{0,6}|tensorflow_framework)\.so[.0-9]{0,8}: cannot open shared object",
    names=(
        r"(?P<file>[^\s'\":;,()/]{1,200}\.so[.0-9]{0,12}): undefined symbol",
        r"No module named '(?P<owner>\w{2,40})\._C'",
        r"/(?P<addon>tensorflow_(?:text|addons|io|recommenders|ranking|decision_forests|quantum))/",
    ),
    variants=(
        Variant(
            r"torch(?:vision|audio|text)|custom C\+\+ ops",
            "torchvision, torchaudio or torchtext does not match the installed PyTorch. Each is built for one release"
            " of PyTorch and one CUDA",
            "Install them in one command and from one index (pip install torch torchvision torchaudio, with one"
            " --index-url). torchvision 0.N matches PyTorch 2.(N-15), for example 0.19 to 2.4 and 0.20 to 2.5;"
            " torchaudio has PyTorch's number. The stack's constraints keep its PyTorch (pip install -c"
            " constraints.txt)",
        ),
        Variant(
            rf"cxx11abiTRUE|undefined symbol: {_WITH_STRINGS}\w*__cxx11",
            "{FILE|the compiled package} uses the new C++ string ABI (cxx11 ABI; __cxx11 in the symbol), but the"
            " installed PyTorch uses the old one, as pip's builds did up to 2.5 or 2.6",
            "Check torch._C._GLIBCXX_USE_CXX11_ABI. If False, install the package's wheel with cxx11abiFALSE in its"
            " name, for the same PyTorch, CUDA and Python, or rebuild it (pip install --no-build-isolation"
            " --no-cache-dir --force-reinstall --no-deps NAME). Keep PyTorch and CUDA",
        ),
        Variant(
            rf"cxx11abiFALSE|undefined symbol: {_WITH_STRINGS}\w*Ss(?:[Ebijm]|$|\s)",
            "{FILE|the compiled package} uses the old C++ string ABI (no __cxx11 in the symbol), but the installed"
            " PyTorch uses the new one (cxx11 ABI), as pip's builds do from 2.6 or 2.7 on",
            "Check torch._C._GLIBCXX_USE_CXX11_ABI. If True, install the package's wheel with cxx11abiTRUE in its"
            " name, for the same PyTorch, CUDA and Python, or rebuild it (pip install --no-build-isolation"
            " --no-cache-dir --force-reinstall --no-deps NAME). Keep host, driver and CUDA",
        ),
        Variant(
            r"No module named '\w{2,40}\._C'|_OpNamespace",
            "the compiled part of a package{, OWNER,|} is missing or was not loaded. Python imports a source checkout"
            " in its place, or the package was built for another PyTorch, with its own error further above",
            "Start the program in another directory, and print the imported file (python -c 'import {OWNER|NAME};"
            " print({OWNER|NAME}.__file__)'). If the file is in site-packages, read the first warning above (Failed to"
            " import from …), and install the package's build for this PyTorch and CUDA, or rebuild it (pip install"
            " --no-build-isolation --no-cache-dir --force-reinstall --no-deps {OWNER|NAME})",
        ),
        Variant(
            r"CUDA Setup failed|Configured \w+ binary|bitsandbytes",
            "bitsandbytes has no library for PyTorch's CUDA, or PyTorch is a build for the CPU only",
            "Check torch.version.cuda. None means a PyTorch without CUDA. Otherwise install a newer bitsandbytes (pip"
            " install -U bitsandbytes), whose wheel has a library for that release; python -m bitsandbytes lists the"
            " libraries",
        ),
        Variant(
            r"tensorflow|3tsl|6tflite",
            "{ADDON|a package for TensorFlow (tensorflow-text, -io, -addons …)} was built for another release of"
            " TensorFlow than the installed one",
            "Compare both (pip list | grep -i tensorflow), and install the package's release for this TensorFlow."
            " Give TensorFlow's version in the same command, so that pip keeps it: tensorflow-text has the same number"
            " (pip install 'tensorflow==2.18.*' 'tensorflow-text==2.18.*'), tensorflow-io and"
            " tensorflow-decision-forests list theirs in a table, and tensorflow-addons has none after 2.15. If no"
            " release exists, install the last TensorFlow that has one",
        ),
        Variant(
            r"cannot open shared object",
            "a compiled package needs a library of PyTorch that the installed release does not have, or that is found"
            " only after an import of torch",
            "Let the program import torch first. If the message stays, install matching builds: the package was built"
            " for another PyTorch, or PyTorch has no CUDA (torch.version.cuda is None)",
        ),
    ),
)

_NAMES: Final = FailureRule(
    "framework-other-release",
    rf"AttributeError: (?:partially initialized )?module '(?:{_OWNERS})(?:\.[\w.]{{1,80}})?' has no attribute"
    rf"|ImportError: cannot import name '?\w{{1,80}}'? from (?:partially initialized module )?'?(?:{_OWNERS})\b"
    rf"|ModuleNotFoundError: No module named '?(?:{_OWNERS})\.\w"
    r"|AttributeError: jax\.[\w.]{1,80} (?:was|is|has been) (?:removed|deprecated)"
    r"|PyTorch >= ?[0-9.]{1,9} is required but found|Cannot find a working triton installation",
    "the installed {OWNER|library} does not have {NAME, which|a name that} the program or one of its packages uses."
    " The caller was written for another release, usually an older one",
    "The last files of the traceback belong to the calling package. Install a newer release of that package, or the"
    " release of {OWNER|the library} that it needs, in a separate environment (pip install -c constraints.txt refuses"
    " changes to the stack's). Host, driver and CUDA are not the cause",
    "SciPy's release notes 1.13; JAX's change log; dpeerlab/ENVI#9; pyro-ppl/numpyro#2174; blackjax-devs/blackjax#787",
    unless=r"Unable to initialize backend|Skipping import of|numpy\.core\.\w*multiarray",
    beside=r"/tf_keras/",
    names=(
        rf"cannot import name '?(?P<name>\w{{1,80}})'? from (?:partially initialized module )?'?(?P<owner>{_OWNERS})\b",
        rf"module '(?P<owner>{_OWNERS})[\w.]{{0,80}}' has no attribute '(?P<name>\w{{1,80}})",
        rf"No module named '?(?P<name>(?P<owner>{_OWNERS})\.[\w.]{{1,80}})",
        r"(?P<name>(?P<owner>jax)\.[\w.]{1,80}) (?:was|is|has been) (?:removed|deprecated)",
    ),
    variants=(
        Variant(
            r"__internal__'|tf_keras",
            "tf-keras (Keras 2, which transformers and older programs use) and TensorFlow are of different releases."
            " Their version numbers must match",
            "Compare both (pip list | grep -i -e keras -e tensorflow), and install them with the same number: pip"
            " install 'tensorflow==2.18.*' 'tf-keras==2.18.*'. TensorFlow up to 2.15 needs keras of its own number"
            " instead. If only torch is used, uninstall both",
        ),
        Variant(
            r"partially initialized module|is not a package|named '?tensorflow\.(?:keras|python)'"
            r"|'(?:torch|tensorflow|jax)' has no attribute '(?:__version__|Tensor|nn|keras|constant|Variable|numpy)'",
            "Python imports a file or directory with {OWNER's name|the library's name} instead of the library, from"
            " the program's directory or PYTHONPATH, or two modules import each other",
            "Print the file with python -v -c 'import {OWNER|torch}' in the same directory. Rename the file, and"
            " remove the directory from PYTHONPATH. If the file is in site-packages, reinstall the library",
        ),
        Variant(
            r"['. ]jax(?:lib)?\b|flax",
            "the installed JAX does not have {NAME, which|a name that} an installed package uses. JAX removes names"
            " in each minor release, and the package was written for another release",
            "The last files of the traceback belong to that package. Install its release for this JAX, or the last"
            " JAX with that name and jaxlib and CUDA plugin of the same release (pip install 'jax[cuda13]<RELEASE';"
            " JAX's change log names it), in a separate environment. The installation itself is intact",
        ),
        Variant(
            r"scipy",
            "the installed SciPy no longer has {NAME, which|a name that} an older package uses, such as JAX before"
            " 0.4.24. SciPy 1.13 removed tril and triu from scipy.linalg and the windows from scipy.signal; 1.14"
            " removed simps, trapz and cumtrapz from scipy.integrate",
            "Install an older SciPy (pip install 'scipy<1.13', 'scipy<1.14'), or a newer release of the package in"
            " the traceback",
        ),
        Variant(
            r"tensorflow[^\n]{0,60}(?:contrib|placeholder|[Ss]ession|ConfigProto|_graph'|global_variables"
            r"|set_random_seed|'(?:app|flags|gfile|logging|layers)'|examples)",
            "the program was written for another TensorFlow than the installed one. TensorFlow 2 removed contrib,"
            " placeholder, Session and ConfigProto of TensorFlow 1",
            "For a TensorFlow 1 program, import tensorflow.compat.v1 as tf and call tf.disable_v2_behavior(), or"
            " convert it with tf_upgrade_v2; replace calls of contrib. Otherwise install the release that the program"
            " requires",
        ),
        Variant(
            r"triton",
            "Triton and PyTorch do not match: PyTorch is built for exactly one Triton, but another one is installed,"
            " or a package uses names of an older Triton",
            "Read the required release (pip show torch, or Requires in the wheel's metadata), and install exactly"
            " that triton. Uninstall a second one (pytorch-triton, triton-nightly). If another package uses the name,"
            " install its newer release",
        ),
        Variant(
            r"'numpy' has no attribute '(?:dtypes|exceptions|bitwise_count|vecdot|long)'|named '?numpy\._core",
            "a package or saved file was made with a newer NumPy than the installed one, and uses {NAME|a name} of it",
            "Install a newer NumPy into that environment (pip install -U numpy; a file that names numpy._core was"
            " saved with NumPy 2), or a release of the package in the traceback for this NumPy",
        ),
        Variant(
            r"ml_dtypes|typing_extensions",
            "{OWNER|a library} is older than the framework or package that uses {NAME|it} requires",
            "Install a newer release (pip install -U {OWNER|NAME}). If another package pins the old release, give one"
            " of the two packages its own environment",
        ),
    ),
)

FRAMEWORK_RULES = (
    _PARTS,
    _NAMES,
    FailureRule(
        "executable-stack-refused",
        r"cannot enable executable stack as shared object requires",
        "the C library refuses to load {FILE|a library} that requires an executable stack. glibc refuses this since"
        " 2.41 (Debian 13, Ubuntu 25.04); older releases allowed it",
        "Install a newer release of the package without this requirement. Until then, clear the flag (patchelf"
        " --clear-execstack FILE), or start the program with GLIBC_TUNABLES=glibc.rtld.execstack=2",
        "glibc's release notes 2.41 and 2.42",
        names=(r"(?P<file>[^\s'\":;,()]{1,300}\.so[.0-9]{0,12}): cannot enable executable",),
    ),
    FailureRule(
        "static-tls-full",
        r"cannot allocate memory in static TLS block",
        "{FILE|a library} was loaded too late for the loader's limited memory for thread-local data (static TLS):"
        " other libraries had used it",
        "Let the program import the library first (often torch, or scikit-learn before it), or start it with"
        " LD_PRELOAD=FILE. A newer C library can reserve more (GLIBC_TUNABLES=glibc.rtld.optional_static_tls=2048)",
        "glibc manual, dynamic linking tunables",
        names=(r"(?P<file>/[^\s'\":;,()]{1,300}\.so[.0-9]{0,12}): cannot allocate memory in static",),
    ),
    FailureRule(
        "pip-placeholder",
        r"The package you are trying to install is only a placeholder project",
        "the index has only a placeholder under this name. NVIDIA keeps the package in its own index, or under"
        " another name",
        "Add NVIDIA's index (pip install --extra-index-url https://pypi.nvidia.com NAME), or use the package's"
        " current name on PyPI (nvidia-cuda-runtime and similar packages end in their CUDA, -cu12, or in nothing for"
        " CUDA 13)",
        "PyPI, nvidia-pyindex; NVIDIA's CUDA installation guide, pip wheels",
    ),
    FailureRule(
        "xla-flag-unknown",
        r"Unknown (?:command line )?flags? in (?:TF_)?XLA_FLAGS",
        "XLA_FLAGS or TF_XLA_FLAGS has {OPTION, a flag|a flag} that this TensorFlow or JAX does not support. Flags"
        " differ between releases, and one unknown flag ends the program",
        "Remove the flag from the variable (env | grep XLA_FLAGS; grep -rn XLA_FLAGS ~/.bashrc /etc/profile.d), or"
        " from the program that sets it",
        "XLA xla/parse_flags_from_env.cc",
        names=(r"XLA_FLAGS: (?P<option>--?[\w]{1,80})",),
    ),
    FailureRule(
        "compile-cache-unwritable",
        r"Permission denied: '[^'\n]{0,200}(?:/\.triton|torchinductor|torch_extensions|/\.cache/(?:torch|vllm"
        r"|flashinfer)|/\.nv/)",
        "the program caches compiled code in a directory without write permission for this account: another user's"
        " directory in /tmp, or the home of an account without one",
        "Set a writable directory: TRITON_CACHE_DIR, TORCHINDUCTOR_CACHE_DIR, TORCH_EXTENSIONS_DIR, CUDA_CACHE_PATH,"
        " or HOME for all of them. Remove another user's leftovers under the same name",
        "Triton python/triton/knobs.py; PyTorch torch/_inductor/runtime/cache_dir_utils.py",
    ),
    FailureRule(
        "kernel-too-large",
        r"out of resources?: (?:shared memory|threads|tensor memory|registers), Required: [0-9]"
        r"|too many resources requested for launch|uses too much shared data",
        "a kernel requires more shared memory, registers or threads than this GPU provides for one block, because it"
        " was tuned for a larger GPU",
        "Reduce its blocks (Triton: BLOCK sizes, num_stages, num_warps), or install a release of the package that"
        " supports this GPU. With torch.compile, omit mode='max-autotune'",
        "Triton python/triton/runtime/errors.py",
        narrower=r"Ignoring this choice",
    ),
    FailureRule(
        "libcuda-link-missing",
        r"cannot find -l:?(?:cuda|libcuda\.so)(?:[^\w.]|$)|libcuda\.so cannot (?:be )?found!?",
        "the linker finds no libcuda.so. Programs run with the driver's libcuda.so.1, but -lcuda needs the name"
        " without a number, which is missing or outside the linker's search path",
        "Check ldconfig -p | grep libcuda. If libcuda.so.1 exists, give Triton its directory (TRITON_LIBCUDA_PATH),"
        " or create the link beside it (ln -s libcuda.so.1 libcuda.so). A build may use the toolkit's lib64/stubs for"
        " linking (-L), but never at run time. If libcuda.so.1 is missing, start the container with --gpus all, or"
        " provision the driver",
        "triton-lang/triton#8667; Triton third_party/nvidia/backend/driver.py",
    ),
    FailureRule(
        "triton-launcher-failed",
        r"CalledProcessError: Command '\[?'?[^\s']{0,200}\b(?:gcc|cc|clang)'[^\n]*(?:-lcuda\b|libcuda\.so|/triton"
        r"|cuda_utils)",
        "Triton, which torch.compile uses, could not compile its launcher with the host's C compiler. Usually"
        " Python.h or libcuda.so is missing",
        "Read the compiler's output above the traceback. For Python.h, install python3-dev of this Python. For"
        " -lcuda, give Triton the directory of libcuda.so.1 (ldconfig -p | grep libcuda, TRITON_LIBCUDA_PATH)",
        "Triton python/triton/runtime/build.py",
        weight="general",
    ),
    FailureRule(
        "build-without-gpu",
        r"_get_cuda_arch_flags[^\n]*\n(?:[^\n]*\n){0,4}?IndexError: list index out of range"
        r"|Unknown CUDA arch \([^)\n]{1,40}\) or GPU not supported",
        "an extension of PyTorch is built without a visible GPU (docker build, a login node), or for a GPU that this"
        " PyTorch does not support, so that it has no architecture to compile for",
        "Set the architecture: TORCH_CUDA_ARCH_LIST='8.0;9.0;12.0' (nvidia-smi --query-gpu=compute_cap --format=csv"
        " on the target host). If an entry is unknown, remove it, or install a newer PyTorch",
        "PyTorch torch/utils/cpp_extension.py",
    ),
)
