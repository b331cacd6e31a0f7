"""Default images of workspaces and model servers, by the framework of the host's stack.

`docs/workspaces-admin.md` has the reason for each choice.
"""

from __future__ import annotations

from hostwright.roles import Stack

#: image for TensorFlow up to 2.12, and for a stack without a framework
TENSORFLOW = "tensorflow/tensorflow:2.9.0-gpu-jupyter"
#: image for TensorFlow from 2.13 on. Users of the image 2.21.0 report cuDNN errors.
TENSORFLOW_OF_WHEELS = "tensorflow/tensorflow:2.15.0-gpu-jupyter"
TORCH_CUDA_12 = "quay.io/jupyter/pytorch-notebook:cuda12-pytorch-2.11.0"
TORCH_CUDA_13 = "quay.io/jupyter/pytorch-notebook:cuda13-notebook-7.5.6"
JAX = "nvcr.io/nvidia/jax:26.06-py3"
SERVING, SERVING_TODAY = SERVERS = ("tensorflow/serving:2.9.0", "tensorflow/serving:2.19.1")

_TORCH_OF_CUDA_13 = (2, 11)  #: first PyTorch version with wheels for CUDA 13
_OF_WHEELS = (2, 13)


def image_for(stack: Stack) -> str:
    """Return the default image of workspaces for the stack ``stack``."""
    if torch := _series(stack, "torch"):
        return TORCH_CUDA_13 if torch >= _TORCH_OF_CUDA_13 else TORCH_CUDA_12
    if _series(stack, "jax"):
        return JAX
    return TENSORFLOW_OF_WHEELS if _series(stack, "tensorflow") >= _OF_WHEELS else TENSORFLOW


def server_for(stack: Stack, named: str, *, gpus: bool) -> str:
    """Return the image of a model server for the stack ``stack``. ``named``: the inventory's image; a custom image is
    kept.
    """
    image = named.removesuffix("-gpu") or (SERVING if image_for(stack) == TENSORFLOW else SERVING_TODAY)
    if image not in SERVERS:
        return named
    return f"{image}-gpu" if gpus else image


def _series(stack: Stack, package: str) -> tuple[int, ...]:
    version = stack.versions().get(package, "")
    return tuple(map(int, version.split(".")[:2])) if version else ()
