"""Faults of the toolkit, of cuDNN and of the shells' environment."""

from __future__ import annotations

from tests.lab.audit.planting import CUDA, LIB, MULTIARCH, plant

LISTS = "/etc/apt/sources.list.d"
REPOSITORY = "/var/cuda-repo-ubuntu2004-11-2-local"
NETWORK = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2004/x86_64"
KEYRING = "/usr/share/keyrings/cuda-archive-keyring.gpg"
PIN = "/etc/apt/preferences.d/hostwright-no-other-driver"
CONF = "/etc/ld.so.conf.d/cuda-11-2.conf"
OTHER = "/usr/local/cuda-11.4"
TOOLKIT_FILES = "packaged files below"
SOURCES = "apt sources developer.download.nvidia.com/compute/cuda/repos"
#: ids of NVIDIA's keys before and since April 2022 in a keyring; nothing is verified with them
OLD_KEY = r"printf '\366\017\113\075\177\242\257\200'"
NEW_KEY = r"printf '\244\264\151\226\073\370\143\314'"

NVCC = f"mkdir -p {OTHER}/bin; touch {OTHER}/bin/nvcc"

#: The compiler of toolkit 11.2.0, with the other files of 11.2.2's package.
OLDER_NVCC = f"""
work=$(mktemp -d); dpkg-deb -R {REPOSITORY}/cuda-nvcc-11-2_*.deb "$work"
sed -i 's/^Version:.*/Version: 11.2.67-1/' "$work/DEBIAN/control"
printf '#!/bin/sh\\necho "Cuda compilation tools, release 11.2, V11.2.67"\\n' >"$work/usr/local/cuda-11.2/bin/nvcc"
dpkg-deb -Znone --build "$work" "$work.deb"; dpkg --install --force-depends "$work.deb"; rm -r "$work" "$work.deb"
"""


def package(name: str, version: str, content: str = "") -> str:
    """Return commands that install an empty package of this name; ``content`` creates files below ``$work``."""
    control = (
        f"Package: {name}\\nVersion: {version}\\nArchitecture: all\\nMaintainer: Lab <lab@localhost>\\n"
        "Description: planted\\n"
    )
    return (
        f"work=$(mktemp -d); chmod 755 $work; mkdir $work/DEBIAN; printf '{control}' >$work/DEBIAN/control\n{content}\n"
        "dpkg-deb -Znone --build $work $work.deb; dpkg --install $work.deb"
    )


TOOLKIT = (
    plant("nvcc deleted", "cuda", f"rm {CUDA}/bin/nvcc", states=(TOOLKIT_FILES,)),
    plant(
        "library of the toolkit emptied", "cuda", f": >$(readlink -f {LIB}/libcusolver.so.11)",
        states=(TOOLKIT_FILES,),
    ),
    plant(
        "toolkit link turned", "cuda", f"{NVCC}; ln -sfn {OTHER} /usr/local/cuda",
        rules="cuda-link-other-release", states=("alternative /usr/local/cuda",), cure=f"rm -r {OTHER}",
        quick=True,
    ),
    plant(
        "alternative of the toolkit set to another", "cuda",
        f"{NVCC}; update-alternatives --install /usr/local/cuda cuda {OTHER} 114; "
        f"update-alternatives --set cuda {OTHER}",
        rules="cuda-link-other-release", states=("alternative /usr/local/cuda",),
        cure=f"update-alternatives --remove cuda {OTHER}; rm -r {OTHER}",
    ),
    plant(
        "toolkit link left behind by another release", "cuda", f"ln -sfn {OTHER} /usr/local/cuda",
        rules="cuda-link-broken", states=("alternative /usr/local/cuda",),
    ),
    plant(
        "another toolkit beside", "cuda", NVCC, rules="cuda-toolkit-beside", cure=f"rm -r {OTHER}",
        quick=True,
    ),
    plant(
        "a newer runtime of nobody's beside the toolkit's, to which ldconfig links", "cuda",
        f"cp {LIB}/libcudart.so.11.2.152 {LIB}/libcudart.so.11.8.89; ldconfig", states=(TOOLKIT_FILES,),
    ),
    plant(
        "compiler of another update of 11.2", "cuda", OLDER_NVCC,
        rules="cuda-update-level", states=("packages cuda-toolkit-11-2",),
    ),
    plant(
        "something put over the compiler", "cuda",
        f"printf '#!/bin/sh\\necho Cuda compilation tools, release 11.2, V11.2.142\\n' >{CUDA}/bin/nvcc",
        rules="cuda-update-level", states=(f"{CUDA}/bin/nvcc -V",),
    ),
    plant(
        "hold released", "cuda", "apt-mark unhold cuda-toolkit-11-2",
        rules="cuda-not-held", states=("packages cuda-toolkit-11-2",),
        quick=True,
    ),
    plant(
        "toolkit of a runfile, its package gone", "cuda",
        f"dpkg --purge --force-depends cuda-toolkit-11-2; touch {CUDA}/bin/cuda-uninstaller",
        rules="cuda-from-runfile", states=("packages cuda-toolkit-11-2", "alternative /usr/local/cuda"),
    ),
    plant(
        "NVIDIA's network repository with the key of before 2022", "cuda",
        f"{OLD_KEY} >/etc/apt/trusted.gpg.d/cuda.gpg; echo 'deb {NETWORK} /' >{LISTS}/cuda.list",
        rules="cuda-network-key", states=(SOURCES,),
    ),
    plant(
        "NVIDIA's network repository without any key", "cuda",
        f"printf 'Types: deb\\nURIs: {NETWORK}\\nSuites: /\\n' >{LISTS}/cuda.sources",
        rules="cuda-network-key", states=(SOURCES,),
    ),
    plant(
        "NVIDIA's network repository as well", "cuda",
        f"{NEW_KEY} >{KEYRING}; echo 'deb [signed-by={KEYRING}] {NETWORK} /' >{LISTS}/cuda.list",
        rules="cuda-two-sources", states=(SOURCES,),
        quick=True,
    ),
    plant(
        "NVIDIA's network repository from before and after cuda-keyring", "cuda",
        f"{NEW_KEY} >{KEYRING}; echo 'deb [signed-by={KEYRING}] {NETWORK}/ /' >{LISTS}/cuda-ubuntu2004-x86_64.list; "
        f"echo 'deb {NETWORK} /' >{LISTS}/cuda.list",
        rules="cuda-sources-conflict", states=(SOURCES,),
    ),
    plant(
        "the local repository a second time after ours", "cuda",
        f"echo 'deb file://{REPOSITORY} /' >{LISTS}/cuda.list",
        rules="cuda-sources-conflict", states=(SOURCES,),
    ),
    plant(  # what apt reads first and names no key is read twice, and refused by nobody
        "the local repository a second time before ours", "cuda",
        f"echo 'deb file://{REPOSITORY} /' >{LISTS}/cuda-local.list",
        rules="apt-sources-twice", states=(SOURCES,),
    ),
    plant(
        "local repository of another release", "cuda",
        f"mkdir /var/cuda-repo-ubuntu2004-11-4-local; cd {REPOSITORY}; cp InRelease Release Release.gpg Packages "
        "/var/cuda-repo-ubuntu2004-11-4-local; sed s/11-2-local/11-4-local/2 "
        f"{LISTS}/cuda-ubuntu2004-11-2-local.list >{LISTS}/cuda-ubuntu2004-11-4-local.list",
        rules="cuda-other-local-repository",
        cure=f"rm -r /var/cuda-repo-ubuntu2004-11-4-local {LISTS}/cuda-ubuntu2004-11-4-local.list",
    ),
    plant(
        "NVIDIA's key where it vouches for all", "cuda", f"{OLD_KEY} >/etc/apt/trusted.gpg",
        rules="cuda-key-for-all", cure="rm /etc/apt/trusted.gpg",
    ),
    plant(
        "meta package beside the .run driver", "cuda",
        f"rm {PIN}; apt-get install -y --allow-change-held-packages cuda-11-2",
        rules="cuda-metapackage other-installer", states=(f"file {PIN}", "packages nvidia-driver", "NVIDIA driver"),
    ),
)  # fmt: skip

CUDNN = (
    plant(
        "links copied to files", "cudnn", f"cd {LIB}; cp -L libcudnn.so.8 x; mv -f x libcudnn.so.8",
        rules="library-not-a-link", states=("files of cudnn",),
        quick=True,
    ),
    plant("library deleted", "cudnn", f"rm {LIB}/libcudnn_ops_infer.so.8.1.0", states=("files of cudnn",), quick=True),
    plant(
        "another cuDNN where the loader looks", "cudnn",
        f"cp {LIB}/libcudnn.so.8.1.0 {MULTIARCH}/libcudnn.so.8.2.0; ln -s libcudnn.so.8.2.0 {MULTIARCH}/libcudnn.so.8; "
        "ldconfig",
        rules="cudnn-mixed", states=("other libcudnn*.so.8*",),
        quick=True,
    ),
    plant(
        "cuDNN of conda in the loader's cache", "cudnn",
        f"mkdir -p /opt/conda/lib; cp {LIB}/libcudnn.so.8.1.0 /opt/conda/lib/libcudnn.so.8.2.0; "
        "echo /opt/conda/lib >/etc/ld.so.conf.d/zz-conda.conf; ldconfig",
        rules="cudnn-in-loader", cure="rm -r /opt/conda /etc/ld.so.conf.d/zz-conda.conf; ldconfig",
    ),
    plant(
        "cuDNN of apt as well", "cudnn", package("libcudnn8", "8.2.0.53-1+cuda11.3"),
        rules="cudnn-mixed", states=("packages libcudnn8",),
    ),
    plant(
        "cuDNN replaced by another", "cudnn",
        f"""cd {LIB}
for one in libcudnn*.so.8.1.0; do
  mv $one ${{one%1.0}}2.0; ln -sfn ${{one%1.0}}2.0 ${{one%.1.0}}
done
sed -i '/define CUDNN_MINOR/s/1/2/' ../include/cudnn_version*.h; ldconfig""",
        rules="cudnn-other-version", states=("files of cudnn", "other libcudnn*.so.8*"),
    ),
    plant(
        "header of its version deleted", "cudnn", f"rm {CUDA}/targets/x86_64-linux/include/cudnn_version*.h",
        rules="cudnn-headers", states=("files of cudnn",),
        quick=True,
    ),
    plant(
        "header of another cuDNN", "cudnn",
        f"sed -i '/define CUDNN_MINOR/s/1/2/' {CUDA}/targets/x86_64-linux/include/cudnn_version*.h",
        rules="cudnn-headers", states=("files of cudnn",),
    ),
)  # fmt: skip

LOADER = (
    plant(
        "loader path dropped", "environment", f"rm {CONF}; ldconfig",
        rules="library-not-found", states=(f"file {CONF}", "loader cache"),
        quick=True,
    ),
    plant(
        "profiler's path dropped", "environment", f"sed -i /CUPTI/d {CONF}; ldconfig",
        rules="cupti-not-found", states=(f"file {CONF}",),
    ),
    plant(
        "another CUDA first in the loader's cache", "environment",
        f"mkdir -p /opt/cuda/lib; cp -L {LIB}/libcudart.so.11.0 /opt/cuda/lib; "
        "echo /opt/cuda/lib >/etc/ld.so.conf.d/000-cuda.conf; ldconfig",
        rules="loader-finds-another-cuda", states=("loader cache",),
        cure="rm /etc/ld.so.conf.d/000-cuda.conf; ldconfig",
    ),
    plant(
        "another CUDA behind the stack's in the loader's cache", "environment",
        f"mkdir -p /opt/cuda/lib; cp -L {LIB}/libcudart.so.11.0 /opt/cuda/lib; "
        "echo /opt/cuda/lib >/etc/ld.so.conf.d/zz-cuda.conf; ldconfig",
        rules="cuda-twice-in-loader", cure="rm /etc/ld.so.conf.d/zz-cuda.conf; ldconfig",
    ),
    plant(
        "forward compatibility package before the driver", "environment",
        f"mkdir {CUDA}/compat; cd {CUDA}/compat; cp -L {MULTIARCH}/libcuda.so.1 libcuda.so.460.32.03; "
        "ln -s libcuda.so.460.32.03 libcuda.so.1; "
        f"echo {CUDA}/compat >/etc/ld.so.conf.d/000-compat.conf; ldconfig",
        rules="cuda-compat-in-loader", states=("NVIDIA driver",),
        cure="rm /etc/ld.so.conf.d/000-compat.conf; ldconfig",
    ),
    plant(
        "CUDA's stubs before the driver's libraries", "driver",
        f"echo {CUDA}/lib64/stubs >/etc/ld.so.conf.d/00-cuda-stubs.conf; ldconfig",
        rules="driver-library-shadowed", states=("NVIDIA driver",),
        cure="rm /etc/ld.so.conf.d/00-cuda-stubs.conf; ldconfig",
    ),
    plant(
        "a library's name turned to the next version", "environment",
        f"ln -s libcusolver.so.11 {LIB}/libcusolver.so.10", rules="library-of-another-name",
        cure=f"rm {LIB}/libcusolver.so.10; ldconfig",
    ),
)  # fmt: skip

SHELLS = (
    plant(
        "the toolkit on a user's path", "environment",
        "echo 'export PATH=/usr/local/cuda-11.2/bin${PATH:+:${PATH}}' >>~ops/.bashrc",
        rules="path-in-start-file", cure="sed -i '/cuda-11.2/d' ~ops/.bashrc",
        quick=True,
    ),
    plant("ptxas no longer on PATH", "environment", "rm /usr/bin/ptxas",
          rules="ptxas-not-found", states=("link /usr/bin/ptxas",), quick=True),
    plant(
        "the distribution's CUDA with its nvcc", "environment",
        package(
            "nvidia-cuda-toolkit", "11.2.2-3+deb11u3", "mkdir -p $work/usr/bin; echo '#!/bin/sh' >$work/usr/bin/nvcc"
        ),
        rules="nvcc-of-distribution", states=("link /usr/bin/nvcc",), cure="dpkg --purge nvidia-cuda-toolkit",
    ),
    plant(
        "the distribution's CUDA beside the stack's", "environment", package("nvidia-cuda-dev", "11.2.2-3+deb11u3"),
        rules="cuda-of-distribution", cure="dpkg --purge nvidia-cuda-dev",
    ),
    plant(
        "profile names lib for lib64", "environment",
        "echo 'export LD_LIBRARY_PATH=/usr/local/cuda/lib' >>/etc/profile.d/cuda.sh",
        states=("file /etc/profile.d/cuda.sh",),
        quick=True,
    ),
    plant(
        "a user's shell names lib for lib64", "environment",
        "echo 'export LD_LIBRARY_PATH=/usr/local/cuda/lib:$LD_LIBRARY_PATH' >>~ops/.profile",
        rules="path-lib-not-lib64", cure="sed -i /cuda/d ~ops/.profile",
    ),
    plant(
        "a user's shell with another CUDA", "environment",
        "echo 'export LD_LIBRARY_PATH=/opt/cuda-11.4/lib64' >>~ops/.bashrc",
        rules="variable-of-another-cuda", cure="sed -i /cuda-11.4/d ~ops/.bashrc",
        quick=True,
    ),
    plant(
        "conda's libraries first for everybody's login shells", "environment",
        f"mkdir -p /opt/miniconda3/lib; cp -L {LIB}/libcudart.so.11.0 {LIB}/libcudnn.so.8 /opt/miniconda3/lib; "
        "echo 'C=/opt/miniconda3; export LD_LIBRARY_PATH=$C/lib:$LD_LIBRARY_PATH' >/etc/profile.d/miniconda.sh",
        rules="library-path-first", cure="rm -r /etc/profile.d/miniconda.sh /opt/miniconda3",
        quick=True,
    ),
    plant(
        "conda's libraries first in a user's shells", "environment",
        f"mkdir -p ~ops/conda/lib; cp -L {LIB}/libcudart.so.11.0 ~ops/conda/lib; "
        "echo 'export LD_LIBRARY_PATH=$HOME/conda/lib:$LD_LIBRARY_PATH' >>~ops/.bashrc",
        rules="library-path-first", cure="rm -r ~ops/conda; sed -i /conda/d ~ops/.bashrc",
    ),
    plant(
        "ROS's numpy before the environment's", "environment",
        "mkdir -p /opt/ros/lib/numpy; "
        "echo 'export PYTHONPATH=/opt/ros/lib${PYTHONPATH:+:$PYTHONPATH}' >/etc/profile.d/ros.sh",
        rules="python-path-first", cure="rm -r /etc/profile.d/ros.sh /opt/ros", quick=True,
    ),
    plant(
        "a variable that names a file that is gone", "environment",
        "echo REQUESTS_CA_BUNDLE=/etc/ssl/planted.pem >>/etc/environment",
        rules="variable-names-missing-file", cure="sed -i /planted/d /etc/environment", quick=True,
    ),
    plant(
        "all GPUs hidden from login shells", "environment",
        "echo 'export CUDA_VISIBLE_DEVICES=-1' >/etc/profile.d/zz-tf-cpu.sh",
        rules="gpus-hidden", cure="rm /etc/profile.d/zz-tf-cpu.sh", quick=True,
    ),
    plant(
        "NCCL without peer access", "environment", "echo NCCL_P2P_DISABLE=1 >/etc/nccl.conf",
        rules="nccl-hindered", cure="rm /etc/nccl.conf",
    ),
    plant(
        "PATH set anew after the stack's", "environment",
        "echo 'export PATH=/usr/bin:/bin' >/etc/profile.d/zz-local.sh",
        rules="path-replaced", cure="rm /etc/profile.d/zz-local.sh",
        quick=True,
    ),
    plant(
        "PATH of sessions without the system's programs", "environment",
        "echo 'PATH=\"/usr/share/archcraft/scripts\"' >>/etc/environment",
        rules="path-without-system", cure="/bin/sed -i /archcraft/d /etc/environment",
    ),
    plant(
        "a copied line with a backslash", "environment",
        r"echo 'export PATH=/usr/local/cuda/bin\${PATH:+:${PATH}}' >>~ops/.bashrc",
        rules="path-misquoted", cure="sed -i /cuda/d ~ops/.bashrc",
    ),
)  # fmt: skip

ENVIRONMENT = (*LOADER, *SHELLS)
