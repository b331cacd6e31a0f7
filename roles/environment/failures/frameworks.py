"""Messages of PyTorch, TensorFlow and JAX alike: parts of different releases, and what they compile while they run."""

from __future__ import annotations

from typing import Final

from hostwright.failures import FailureRule, Variant

#: packages whose names other packages import: a name that is not there belongs to another release
_OWNERS: Final = (
    r"torch(?:vision|audio|text|ao)?|jax(?:lib)?|flax|tensorflow|triton|scipy|numpy|ml_dtypes|typing_extensions"
    r"|transformers|diffusers|huggingface_hub"
)

#: functions of every PyTorch that take a string: where one is missing, its C++ interface is the other one
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
    "a compiled package was built for another release of PyTorch, or with another CUDA, than the one that is"
    " installed{: FILE|}",
    "Compare with python -c 'import torch; print(torch.__version__, torch.version.cuda)' and install the package's"
    " build for it (its wheels have both in their names; flash-attn's also the C++ interface: cxx11abiTRUE for PyTorch"
    " from 2.6 or 2.7 on), or build it again: pip install --no-build-isolation"
    " --no-cache-dir --force-reinstall --no-deps NAME, since pip keeps what it built for an earlier PyTorch",
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
            "torchvision, torchaudio or torchtext does not belong to the PyTorch that is installed: each is built for"
            " one release of it and one CUDA",
            "Install them together, in one command and from one index (pip install torch torchvision torchaudio, with"
            " one --index-url); torchvision 0.N belongs to PyTorch 2.(N-15), 0.19 to 2.4 and 0.20 to 2.5, and"
            " torchaudio has PyTorch's own number. The stack's constraints keep its PyTorch (pip install -c"
            " constraints.txt)",
        ),
        Variant(
            rf"cxx11abiTRUE|undefined symbol: {_WITH_STRINGS}\w*__cxx11",
            "{FILE|the compiled package} was built with the new C++ interface of strings (cxx11 ABI; __cxx11 in the"
            " symbol), and the PyTorch that is installed with the old one, as pip's were up to 2.5 or 2.6",
            "See torch._C._GLIBCXX_USE_CXX11_ABI: where it is False, install the package's wheel with cxx11abiFALSE in"
            " its name, for the same PyTorch, CUDA and Python, or build it here (pip install --no-build-isolation"
            " --no-cache-dir --force-reinstall --no-deps NAME). PyTorch and CUDA stay as they are",
        ),
        Variant(
            rf"cxx11abiFALSE|undefined symbol: {_WITH_STRINGS}\w*Ss(?:[Ebijm]|$|\s)",
            "{FILE|the compiled package} was built with the old C++ interface of strings (no __cxx11 in the symbol),"
            " and the PyTorch that is installed with the new one (cxx11 ABI), as pip's are from 2.6 or 2.7 on",
            "See torch._C._GLIBCXX_USE_CXX11_ABI: where it is True, install the package's wheel with cxx11abiTRUE in"
            " its name, for the same PyTorch, CUDA and Python, or build it here (pip install --no-build-isolation"
            " --no-cache-dir --force-reinstall --no-deps NAME). Host, driver and CUDA stay as they are",
        ),
        Variant(
            r"No module named '\w{2,40}\._C'|_OpNamespace",
            "the compiled part of a package{, OWNER,|} is not there or was not loaded: Python imports the package's"
            " sources in its place (the program was started in a checkout of it), or it was built for another PyTorch"
            " and its error stands further above",
            "Start the program in another directory, and see which file is taken (python -c 'import {OWNER|NAME};"
            " print({OWNER|NAME}.__file__)'). Where that is in site-packages, read the first warning above (Failed to"
            " import from …), and install the package's build for this PyTorch and CUDA, or build it anew (pip install"
            " --no-build-isolation --no-cache-dir --force-reinstall --no-deps {OWNER|NAME})",
        ),
        Variant(
            r"CUDA Setup failed|Configured \w+ binary|bitsandbytes",
            "bitsandbytes has no library for the CUDA that PyTorch was built with, or PyTorch itself is built for the"
            " processor alone",
            "See torch.version.cuda: None means a PyTorch without CUDA; else install a newer bitsandbytes (pip install"
            " -U bitsandbytes), whose wheel has a library for that release; python -m bitsandbytes lists those it has",
        ),
        Variant(
            r"tensorflow|3tsl|6tflite",
            "{ADDON|a package for TensorFlow (tensorflow-text, -io, -addons …)} was built for another release of"
            " TensorFlow than the one that is installed",
            "See both (pip list | grep -i tensorflow) and install the package's release for this TensorFlow, with"
            " TensorFlow's own number in the same command, so that pip does not move it: tensorflow-text has the same"
            " number (pip install 'tensorflow==2.18.*' 'tensorflow-text==2.18.*'); tensorflow-io and"
            " tensorflow-decision-forests name theirs in a table; tensorflow-addons has none after 2.15. Where none"
            " exists, go back to the last TensorFlow that it has one for",
        ),
        Variant(
            r"cannot open shared object",
            "a compiled package looks for a library of PyTorch that its installed release does not have, or that is"
            " only found once torch has been imported",
            "Let the program import torch first. Where the message stays, the package was built for another PyTorch, or"
            " PyTorch is one without CUDA (torch.version.cuda is None): install builds that belong together",
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
    "{OWNER|a library} as it is installed does not have {NAME, which|what} the program or one of its packages uses:"
    " that was written for another release, mostly an older one",
    "The last files of the traceback above the message are of the package that uses it: install a newer release of that"
    " package, or the release of {OWNER|the library} that it was written for, in an environment of its own (pip install"
    " -c constraints.txt refuses what would change the stack's); host, driver and CUDA have no part in it",
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
            "tf-keras (Keras 2, which transformers and older programs use) and TensorFlow are of different releases:"
            " they belong together by number",
            "See both (pip list | grep -i -e keras -e tensorflow) and install them together: pip install"
            " 'tensorflow==2.18.*' 'tf-keras==2.18.*', each with the same number; TensorFlow up to 2.15 needs keras of"
            " its own number in its place. Where only torch is used, take both out",
        ),
        Variant(
            r"partially initialized module|is not a package|named '?tensorflow\.(?:keras|python)'"
            r"|'(?:torch|tensorflow|jax)' has no attribute '(?:__version__|Tensor|nn|keras|constant|Variable|numpy)'",
            "Python imports a file or folder with {OWNER's name|the library's name} in its place, from the program's"
            " directory or from PYTHONPATH, or two modules that import each other",
            "See which file it is (python -v -c 'import {OWNER|torch}' in the same directory prints it): rename it,"
            " and take the directory out of PYTHONPATH; where it lies in site-packages, install the library again",
        ),
        Variant(
            r"['. ]jax(?:lib)?\b|flax",
            "the JAX that is installed does not have {NAME, which|what} one of the installed packages uses: JAX removes"
            " names with each minor release, and that package was written for another one",
            "The last files of the traceback are of that package: install its release for this JAX, or the last JAX"
            " with that name, with jaxlib and the CUDA plugin of the same release (pip install 'jax[cuda13]<RELEASE';"
            " JAX's change log names it), in an environment of its own; nothing is wrong with the installation",
        ),
        Variant(
            r"scipy",
            "the SciPy that is installed no longer has {NAME, which|what} an older package uses, such as a JAX before"
            " 0.4.24: 1.13 took tril and triu out of scipy.linalg and the windows out of scipy.signal, 1.14 took simps,"
            " trapz and cumtrapz out of scipy.integrate",
            "Install the SciPy before that (pip install 'scipy<1.13', 'scipy<1.14'), or a newer release of the package"
            " that the traceback names",
        ),
        Variant(
            r"tensorflow[^\n]{0,60}(?:contrib|placeholder|[Ss]ession|ConfigProto|_graph'|global_variables"
            r"|set_random_seed|'(?:app|flags|gfile|logging|layers)'|examples)",
            "the program was written for another TensorFlow than the one that is installed: 2 took contrib,"
            " placeholder, Session and ConfigProto away, which 1 had",
            "For a program of TensorFlow 1, import tensorflow.compat.v1 as tf and call tf.disable_v2_behavior(), or"
            " convert it with tf_upgrade_v2; what used contrib needs a replacement. Else install the release that the"
            " program names",
        ),
        Variant(
            r"triton",
            "Triton and PyTorch do not belong together: each PyTorch is built for one Triton, and another one is"
            " installed, or a package uses names of an older one",
            "See which it wants (pip show torch and its wheel's Requires), and install exactly that triton; take a"
            " second one out (pytorch-triton, triton-nightly); where another package uses the name, install its newer"
            " release",
        ),
        Variant(
            r"'numpy' has no attribute '(?:dtypes|exceptions|bitwise_count|vecdot|long)'|named '?numpy\._core",
            "a package, or a saved file, is of a newer NumPy than the one that is installed: it uses {NAME|a name} of"
            " it",
            "Install a newer NumPy into that environment (pip install -U numpy; a file that names numpy._core was"
            " saved with NumPy 2), or a release of the package that the traceback names for this one",
        ),
        Variant(
            r"ml_dtypes|typing_extensions",
            "{OWNER|a library} is older than the framework or package that uses {NAME|it} wants it",
            "Install a newer one (pip install -U {OWNER|NAME}); where another package pins the older, give one of the"
            " two an environment of its own",
        ),
    ),
)

FRAMEWORK_RULES = (
    _PARTS,
    _NAMES,
    FailureRule(
        "executable-stack-refused",
        r"cannot enable executable stack as shared object requires",
        "the C library refuses to load {FILE|a library} that asks for an executable stack: glibc does since 2.41"
        " (Debian 13, Ubuntu 25.04), where older ones gave way",
        "Install a newer release of the package, which no longer asks for it; until then take the mark off the file"
        " (patchelf --clear-execstack FILE), or start that program with GLIBC_TUNABLES=glibc.rtld.execstack=2",
        "glibc's release notes 2.41 and 2.42",
        names=(r"(?P<file>[^\s'\":;,()]{1,300}\.so[.0-9]{0,12}): cannot enable executable",),
    ),
    FailureRule(
        "static-tls-full",
        r"cannot allocate memory in static TLS block",
        "{FILE|a library} came too late to get the memory that the loader keeps for its thread-local data: other"
        " libraries were loaded first and took it",
        "Let the program import it first (often torch, or scikit-learn before it), or start it with LD_PRELOAD=FILE; a"
        " newer C library keeps more (GLIBC_TUNABLES=glibc.rtld.optional_static_tls=2048)",
        "glibc manual, dynamic linking tunables",
        names=(r"(?P<file>/[^\s'\":;,()]{1,300}\.so[.0-9]{0,12}): cannot allocate memory in static",),
    ),
    FailureRule(
        "pip-placeholder",
        r"The package you are trying to install is only a placeholder project",
        "the index has only a placeholder under this name: NVIDIA keeps the package itself in an index of its own, or"
        " under another name",
        "Ask NVIDIA's index as well (pip install --extra-index-url https://pypi.nvidia.com NAME), or take the name"
        " that the package has on PyPI today (nvidia-cuda-runtime and its like carry their CUDA, -cu12, or none for"
        " CUDA 13)",
        "PyPI, nvidia-pyindex; NVIDIA's CUDA installation guide, pip wheels",
    ),
    FailureRule(
        "xla-flag-unknown",
        r"Unknown (?:command line )?flags? in (?:TF_)?XLA_FLAGS",
        "XLA_FLAGS or TF_XLA_FLAGS has {OPTION, a flag|a flag} that this TensorFlow or JAX does not have: flags come"
        " and go with releases, and one unknown flag ends the program",
        "Take it out of the variable (env | grep XLA_FLAGS; grep -rn XLA_FLAGS ~/.bashrc /etc/profile.d), or out of the"
        " program that sets it",
        "XLA xla/parse_flags_from_env.cc",
        names=(r"XLA_FLAGS: (?P<option>--?[\w]{1,80})",),
    ),
    FailureRule(
        "compile-cache-unwritable",
        r"Permission denied: '[^'\n]{0,200}(?:/\.triton|torchinductor|torch_extensions|/\.cache/(?:torch|vllm"
        r"|flashinfer)|/\.nv/)",
        "what the program compiles while it runs is kept in a directory that this account may not write: another user's"
        " in /tmp, or that of an account without a home",
        "Name a directory of the account's own: TRITON_CACHE_DIR, TORCHINDUCTOR_CACHE_DIR, TORCH_EXTENSIONS_DIR,"
        " CUDA_CACHE_PATH, or HOME for all of them; remove what another user left under the same name",
        "Triton python/triton/knobs.py; PyTorch torch/_inductor/runtime/cache_dir_utils.py",
    ),
    FailureRule(
        "kernel-too-large",
        r"out of resources?: (?:shared memory|threads|tensor memory|registers), Required: [0-9]"
        r"|too many resources requested for launch|uses too much shared data",
        "a kernel wants more shared memory, registers or threads than this GPU gives one block: it was tuned for a"
        " larger one",
        "Make its blocks smaller (Triton: BLOCK sizes, num_stages, num_warps), or take a release of the package that"
        " supports this GPU; with torch.compile leave out mode='max-autotune'",
        "Triton python/triton/runtime/errors.py",
        narrower=r"Ignoring this choice",  # torch.compile tries several, and takes one that fits
    ),
    FailureRule(
        "libcuda-link-missing",
        r"cannot find -l:?(?:cuda|libcuda\.so)(?:[^\w.]|$)|libcuda\.so cannot (?:be )?found!?",
        "the linker finds no libcuda.so: programs run with the driver's libcuda.so.1, and the name without a number,"
        " which -lcuda needs, is not there or not where the linker looks",
        "See what is there (ldconfig -p | grep libcuda). Where libcuda.so.1 is, give Triton its directory"
        " (TRITON_LIBCUDA_PATH), or link the name beside it (ln -s libcuda.so.1 libcuda.so); a build may take the"
        " toolkit's lib64/stubs for linking only (-L), never at run time. Where libcuda.so.1 is not, start the"
        " container with --gpus all, or provision the driver",
        "triton-lang/triton#8667; Triton third_party/nvidia/backend/driver.py",
    ),
    FailureRule(
        "triton-launcher-failed",
        r"CalledProcessError: Command '\[?'?[^\s']{0,200}\b(?:gcc|cc|clang)'[^\n]*(?:-lcuda\b|libcuda\.so|/triton"
        r"|cuda_utils)",
        "Triton, which torch.compile uses, could not compile its launcher with the host's C compiler: mostly Python.h"
        " or libcuda.so is missing",
        "Read what the compiler printed above the traceback. For Python.h install python3-dev of this Python; for"
        " -lcuda give Triton the directory of libcuda.so.1 (ldconfig -p | grep libcuda, TRITON_LIBCUDA_PATH)",
        "Triton python/triton/runtime/build.py",
        weight="general",
    ),
    FailureRule(
        "build-without-gpu",
        r"_get_cuda_arch_flags[^\n]*\n(?:[^\n]*\n){0,4}?IndexError: list index out of range"
        r"|Unknown CUDA arch \([^)\n]{1,40}\) or GPU not supported",
        "an extension of PyTorch is built where no GPU can be seen (docker build, a login node), or for one that this"
        " PyTorch does not support: it has no architecture to compile for",
        "Name it: TORCH_CUDA_ARCH_LIST='8.0;9.0;12.0' (nvidia-smi --query-gpu=compute_cap --format=csv on the host"
        " where it will run); where an entry is the unknown one, leave it out, or take a newer PyTorch",
        "PyTorch torch/utils/cpp_extension.py",
    ),
)
