"""Deploy of pyinfra that installs the whole stack. The data value ``files`` is the directory with its files."""

from pathlib import Path

from pyinfra import host
from pyinfra.facts.deb import DebPackages
from pyinfra.facts.files import File
from pyinfra.facts.server import Command
from pyinfra.operations import apt, files, pip, server, systemd

HERE = Path(host.data.files)
PREFIX = "/usr/local/cuda-11.2"
TREE = f"{PREFIX}/targets/x86_64-linux"
VENV = "/opt/tensorflow-2.9"
CUDA = [
    "cuda-toolkit-11-2=11.2.2-1",
    "cuda-cudart-11-2=11.2.152-1",
    "cuda-nvcc-11-2=11.2.152-1",
    "libcublas-11-2=11.4.1.1043-1",
    "libcufft-11-2=10.4.1.152-1",
    "libcurand-11-2=10.2.3.152-1",
    "libcusolver-11-2=11.1.0.152-1",
    "libcusparse-11-2=11.4.1.1152-1",
]
TOOLKIT = [
    "nvidia-container-toolkit=1.20.0-1",
    "nvidia-container-toolkit-base=1.20.0-1",
    "libnvidia-container-tools=1.20.0-1",
    "libnvidia-container1=1.20.0-1",
]
MODE = 'mode = "legacy"'  #: line of the configuration that only the section ``nvidia-container-runtime`` has
INSTALLER = (
    "--silent --dkms --no-cc-version-check --disable-nouveau --no-install-compat32-libs "
    "--no-check-for-alternate-installs --log-file-name=/var/log/nvidia-installer.log"
)


def put(name, dest, mode="644"):
    """Copy the file ``name`` of the stack, or of a vendor, to ``dest`` on the host."""
    return files.put(name=dest, src=str(HERE / name), dest=dest, mode=mode, add_deploy_dir=False)


def hold(names):
    """Hold the packages ``names`` at their versions with ``apt-mark``. pyinfra has no operation for this."""
    if set(names) - set((host.get_fact(Command, "apt-mark showhold") or "").split()):
        server.shell(name="held", commands=[f"apt-mark hold {' '.join(names)}"])


def named(packages):
    """Return the package names without versions (``NAME=VERSION`` → ``NAME``)."""
    return [package.partition("=")[0] for package in packages]


put("52hostwright", "/etc/apt/apt.conf.d/52hostwright")
if not host.get_fact(Command, "ls /var/lib/apt/lists | grep -c _Packages || true").strip("0"):
    apt.update(name="lists of packages")
apt.packages(
    name="build tools",
    packages=["build-essential", "dkms", "curl", "ca-certificates", "gnupg", "pciutils", "kmod", "procps"],
)
kernel = host.get_fact(Command, "uname -r")
apt.packages(name="kernel headers", packages=[f"linux-headers-{kernel}"])
server.shell(
    name="no other kernel",
    commands=[
        "apt-mark hold $(dpkg-query -W -f '${db:Status-Status} ${Package}\\n' 'linux-image-*' 'linux-headers-*' "
        "2>/dev/null | sed -n 's/^installed //p')"
    ],
    _if=lambda: f"linux-headers-{kernel}" not in (host.get_fact(Command, "apt-mark showhold") or ""),
)

put("hostwright-no-other-driver", "/etc/apt/preferences.d/hostwright-no-other-driver")
put("hostwright-nouveau.conf", "/etc/modprobe.d/hostwright-nouveau.conf")
put("hostwright-nvidia.conf", "/etc/modules-load.d/hostwright-nvidia.conf")
if host.get_fact(Command, "modinfo -F version nvidia 2>/dev/null || true") != "470.182.03":
    put(host.data.runfile, f"/tmp/{host.data.runfile}", mode="755")
    server.shell(
        name="driver",
        commands=[f"sh /tmp/{host.data.runfile} {INSTALLER}", "modprobe nvidia && modprobe nvidia-uvm"],
    )
server.user(
    name="user of persistenced", user="nvidia-persistenced", comment="NVIDIA persistence daemon", system=True,
    home="/nonexistent", create_home=False, shell="/usr/sbin/nologin", ensure_home=False,
)  # fmt: skip
unit = put("nvidia-persistenced.service", "/etc/systemd/system/nvidia-persistenced.service")
systemd.daemon_reload(name="read units again", _if=unit.did_change)
systemd.service(name="persistenced", service="nvidia-persistenced", enabled=True)

put(host.data.pin, "/etc/apt/preferences.d/cuda-repository-pin-600")
KEY = "/usr/share/keyrings/cuda-repo-ubuntu2004-11-2-local-keyring.gpg"
if "11.2.2-460.32.03-1" not in host.get_fact(DebPackages).get("cuda-repo-ubuntu2004-11-2-local", ()):
    put(host.data.deb, f"/tmp/{host.data.deb}")
    server.shell(name="repository", commands=[f"dpkg -i /tmp/{host.data.deb}"])
if not host.get_fact(File, KEY):
    server.shell(
        name="key", commands=[f"gpg --batch --dearmor -o {KEY} /var/cuda-repo-ubuntu2004-11-2-local/7fa2af80.pub"]
    )
source = put("cuda-ubuntu2004-11-2-local.list", "/etc/apt/sources.list.d/cuda-ubuntu2004-11-2-local.list")
apt.update(name="lists of CUDA", _if=source.did_change)
apt.packages(name="toolkit", packages=CUDA)
hold(named(CUDA))
files.link(name="lib64", path=f"{PREFIX}/lib64", target="targets/x86_64-linux/lib")
files.link(name="include", path=f"{PREFIX}/include", target="targets/x86_64-linux/include")
if not host.get_fact(File, "/etc/alternatives/cuda") and not host.get_fact(Command, "readlink /usr/local/cuda || true"):
    server.shell(name="alternative", commands=[f"update-alternatives --install /usr/local/cuda cuda {PREFIX} 112"])

if not host.get_fact(File, f"{TREE}/lib/libcudnn.so.8.1.0"):
    put(host.data.cudnn, f"/tmp/{host.data.cudnn}")
    server.shell(
        name="cuDNN",
        commands=[
            f"tar -xzf /tmp/{host.data.cudnn} -C {TREE} --no-same-owner --strip-components=1 "
            "--transform=s,cuda/lib64,cuda/lib,"
        ],
    )

loader = put("cuda-11-2.conf", "/etc/ld.so.conf.d/cuda-11-2.conf")
server.shell(name="ldconfig", commands=["ldconfig"], _if=loader.did_change)
put("cuda.sh", "/etc/profile.d/cuda.sh")
put("cuda-command", "/usr/local/lib/hostwright/cuda-command", mode="755")
for tool in ("nvcc", "ptxas", "fatbinary", "nvlink", "cuobjdump", "nvdisasm"):
    files.link(name=tool, path=f"/usr/bin/{tool}", target="/usr/local/lib/hostwright/cuda-command")

apt.packages(name="venv", packages=["python3.9", "python3.9-venv"])
server.shell(
    name="venv kept",  # apt.packages leaves a package that is installed as it is marked, here as automatic
    commands=["apt-mark manual python3.9 python3.9-venv"],
    _if=lambda: "python3.9-venv" in (host.get_fact(Command, "apt-mark showauto") or "").split(),
)
if not host.get_fact(File, f"{VENV}/bin/tensorboard"):
    put(host.data.wheels, f"/tmp/{host.data.wheels}")
    put("constraints.txt", "/tmp/constraints.txt")
    server.shell(name="wheels", commands=["mkdir -p /tmp/wheels", f"tar -xf /tmp/{host.data.wheels} -C /tmp/wheels"])
pip.venv(name="environment", path=VENV, python="python3.9")
pip.packages(
    name="TensorFlow", packages=["tensorflow==2.9.0"], virtualenv=VENV,
    extra_install_args="--no-index --find-links /tmp/wheels -c /tmp/constraints.txt",
)  # fmt: skip

apt.packages(name="Docker", packages=["docker.io"])
put("nvidia-container-toolkit-keyring.gpg", "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg")
source = put("nvidia-container-toolkit.list", "/etc/apt/sources.list.d/nvidia-container-toolkit.list")
apt.update(name="lists of the toolkit", _if=source.did_change)
toolkit = apt.packages(name="container toolkit", packages=TOOLKIT)
hold(named(TOOLKIT))
if not host.get_fact(Command, f"grep -x '{MODE}' /etc/nvidia-container-runtime/config.toml || true"):
    server.shell(name="mode", commands=["nvidia-ctk config --in-place --set nvidia-container-runtime.mode=legacy"])
links = put("hostwright-nvidia-dev-char.service", "/etc/systemd/system/hostwright-nvidia-dev-char.service")
systemd.daemon_reload(name="read units again", _if=links.did_change)
server.shell(
    name="link devices", commands=["nvidia-ctk system create-dev-char-symlinks --create-all"], _if=links.did_change
)
settings = put("daemon.json", "/etc/docker/daemon.json")
systemd.service(name="device links at boot", service="hostwright-nvidia-dev-char", enabled=True, running=None)
systemd.service(name="Docker runs", service="docker", enabled=True)
systemd.service(
    name="Docker restarts", service="docker", restarted=True, _if=lambda: settings.did_change() or toolkit.did_change()
)
