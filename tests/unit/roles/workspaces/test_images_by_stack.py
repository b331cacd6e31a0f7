"""Default images of workspaces and model servers, by the stack of their host."""

from __future__ import annotations

import pytest

from hostwright.standard.roles.container.images.reference import read_image_name
from hostwright.standard.roles.workspaces.declared.images import image_for, server_for
from tests.places import PROJECT
from tests.unit.support.stacks import load_stack


@pytest.mark.parametrize(
    ("stack", "image", "server"),
    [
        ("tensorflow-2.9", "tensorflow/tensorflow:2.9.0-gpu-jupyter", "tensorflow/serving:2.9.0"),
        ("tensorflow-2.12", "tensorflow/tensorflow:2.9.0-gpu-jupyter", "tensorflow/serving:2.9.0"),
        ("debian-13-r550", "tensorflow/tensorflow:2.9.0-gpu-jupyter", "tensorflow/serving:2.9.0"),
        ("tensorflow-2.15", "tensorflow/tensorflow:2.15.0-gpu-jupyter", "tensorflow/serving:2.19.1"),
        ("tensorflow-2.21", "tensorflow/tensorflow:2.15.0-gpu-jupyter", "tensorflow/serving:2.19.1"),
        ("pytorch-2.10", "quay.io/jupyter/pytorch-notebook:cuda12-pytorch-2.11.0", "tensorflow/serving:2.19.1"),
        ("volta-pascal", "quay.io/jupyter/pytorch-notebook:cuda12-pytorch-2.11.0", "tensorflow/serving:2.19.1"),
        ("pytorch-2.14", "quay.io/jupyter/pytorch-notebook:cuda13-notebook-7.5.6", "tensorflow/serving:2.19.1"),
        ("pytorch-2.15", "quay.io/jupyter/pytorch-notebook:cuda13-notebook-7.5.6", "tensorflow/serving:2.19.1"),
        ("jax-0.12", "nvcr.io/nvidia/jax:26.06-py3", "tensorflow/serving:2.19.1"),
    ],
)
def test_the_image_follows_the_stack_and_stands_in_the_document(stack: str, image: str, server: str) -> None:
    loaded = load_stack(stack)
    assert (image_for(loaded), server_for(loaded, "", gpus=False)) == (image, server)
    assert server_for(loaded, "", gpus=True) == f"{server}-gpu"
    document = (PROJECT / "docs/workspaces-admin.md").read_text()
    for name in (image, server):
        assert f"`{name}`" in document
        assert read_image_name(name).tag not in ("", "latest")


def test_a_model_server_keeps_its_image_and_changes_with_its_gpus_only_ours() -> None:
    stack = load_stack("pytorch-2.14")
    assert server_for(stack, "tensorflow/serving:2.9.0", gpus=True) == "tensorflow/serving:2.9.0-gpu"
    assert server_for(stack, "tensorflow/serving:2.9.0-gpu", gpus=False) == "tensorflow/serving:2.9.0"
    assert server_for(stack, "house/serving:7-gpu", gpus=False) == "house/serving:7-gpu"
