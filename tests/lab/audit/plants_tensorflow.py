"""Faults of TensorFlow's environment."""

from __future__ import annotations

from tests.lab.audit.planting import SITE, VENV, plant

PIP = f"{VENV}/bin/python -m pip --disable-pip-version-check"
LINK = f"venv {VENV}"


def dist(site: str, name: str, version: str) -> str:
    """Return commands that create pip's record of a package in ``site``, without its files."""
    directory = f"{name}-{version}.dist-info"
    return (
        f"mkdir -p {site}/{directory}; cd {site}/{directory}; echo pip >INSTALLER; "
        f"printf 'Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n' >METADATA; "
        f"printf '{directory}/INSTALLER,,\\n{directory}/METADATA,,\\n{directory}/RECORD,,\\n' >RECORD\n"
    )


#: Changes the version in TensorFlow's own record.
OTHER_VERSION = f"""
cd {SITE}; mv tensorflow-2.9.0.dist-info tensorflow-2.8.0.dist-info; cd tensorflow-2.8.0.dist-info
sed -i '/^Version:/s/2.9.0/2.8.0/' METADATA; sed -i 's,^tensorflow-2.9.0.dist-info,tensorflow-2.8.0.dist-info,' RECORD
"""

#: Creates a venv of a Python without TensorFlow 2.9 wheels in place of the link to the stack's.
BY_HAND = f"""
rm {VENV}; mkdir {VENV}; echo 'version = 3.11.2' >{VENV}/pyvenv.cfg
{dist(f"{VENV}/lib/python3.11/site-packages", "tensorflow", "2.12.0")}
"""

HOME = "~ops/.local/lib/python3.9/site-packages"

TENSORFLOW = (
    plant("numpy 2 installed", "tensorflow", f"{PIP} install -q numpy==2.0.2",
          rules="numpy-too-new", states=(LINK,)),
    plant("protobuf 4 installed", "tensorflow", f"{PIP} install -q protobuf==4.21.12",
          rules="protobuf-too-new", states=(LINK,), quick=True),
    plant("a package at another version than its pin", "tensorflow", f"{PIP} install -q six==1.16.0",
          rules="pins-not-kept", states=(LINK,)),
    plant("another TensorFlow", "tensorflow", OTHER_VERSION, rules="tensorflow-other-version", states=(LINK,)),
    plant("interpreter link deleted", "tensorflow", f"rm {VENV}/bin/python",
          rules="environment-damaged", states=(LINK,), quick=True),
    plant("file of a package deleted", "tensorflow", f"rm {SITE}/six.py",
          rules="environment-damaged", states=(LINK,)),
    plant("package uninstalled", "tensorflow", f"{PIP} uninstall -q -y termcolor",
          rules="environment-damaged", states=(LINK,)),
    plant("a venv by hand of another Python", "tensorflow", BY_HAND, rules="environment-python", states=(LINK,)),
    plant(
        "the distribution's Python replaced by a newer one", "tensorflow",
        "cd /usr/bin; mv python3.9 python3.11; ln -sfn python3.11 python3", rules="no-wheel", states=(LINK,),
        cure="cd /usr/bin; mv python3.11 python3.9; ln -sfn python3.9 python3",
    ),
    plant(
        "AVX hidden from the host", "tensorflow",
        "sed 's/ avx / /' /proc/cpuinfo >/run/cpuinfo; mount --bind /run/cpuinfo /proc/cpuinfo", rules="no-avx",
        cure="umount /proc/cpuinfo",
    ),
    plant("tensorflow-cpu as well", "tensorflow", dist(SITE, "tensorflow_cpu", "2.9.0"), rules="second-tensorflow",
          cure=f"{PIP} uninstall -q -y tensorflow-cpu"),
    plant("cuDNN as a wheel", "tensorflow", dist(SITE, "nvidia_cudnn_cu11", "8.6.0.163"), rules="nvidia-wheels",
          cure=f"{PIP} uninstall -q -y nvidia-cudnn-cu11"),
    plant(
        "a second TensorFlow in a home", "tensorflow", dist(HOME, "tensorflow", "2.9.0") + dist(HOME, "numpy", "2.0.2")
        + "chown -R ops ~ops/.local",
        rules="tensorflow-outside", cure="sudo -H -u ops python3 -m pip uninstall -q -y tensorflow",
        quick=True,
    ),
    plant(
        "a TensorFlow of the system's Python", "tensorflow",
        dist("/usr/local/lib/python3.9/dist-packages", "tensorflow", "2.9.0"),
        rules="tensorflow-outside", cure="python3 -m pip uninstall -q -y tensorflow",
    ),
)  # fmt: skip
