"""NVIDIA's own cuDNN 8.6 on a lab host: found, linked, loaded and missed by the same checks as the stand-in."""

from __future__ import annotations

from hostwright.common.quoting import sh
from lab.config import HostOptions
from lab.vendor.real_cudnn import VERSION
from tests.lab.conftest import on
from tests.real.conftest import Guest

HOST = "real02"
ROLES = "base,cuda,cudnn"
LIBRARIES = "/usr/local/cuda-11.2/targets/x86_64-linux/lib"


def test_checks_link_and_load_the_real_library_and_miss_it(guest: Guest) -> None:
    machine, door = guest(HOST, "lab-real-cudnn", HostOptions(profile="small", real="cudnn"))
    done = door("provision", "--hosts", HOST, "--roles", ROLES)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    print(done.stdout)
    assert "cudnn" not in next(line for line in done.stdout.splitlines() if "stand-in" in line)
    assert int(on(machine, f"du -sL --apparent-size -BM {LIBRARIES}/libcudnn_cnn_infer.so.8").partition("M")[0]) > 100
    code = f"import ctypes; print(ctypes.CDLL('{LIBRARIES}/libcudnn.so.8').cudnnGetVersion())"
    assert on(machine, sh("python3 -c %s", code)).strip() == "8600"
    verified = door("verify", "--hosts", HOST, "--roles", "cudnn")
    assert verified.returncode == 0, verified.stdout[-3000:]
    print(verified.stdout)
    on(machine, f"mv {LIBRARIES}/libcudnn_ops_infer.so.{VERSION.rpartition('.')[0]} /root/")
    missed = door("verify", "--hosts", HOST, "--roles", "cudnn")
    assert missed.returncode != 0
    assert "Error: libcudnn_ops_infer.so.8: cannot open shared object file" in missed.stdout
