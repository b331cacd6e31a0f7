"""What TensorFlow's programs share: the devices that it finds, exact products, and the network that is trained."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from hostwright.standard.roles.cuda.proofs.programs.common import CPU, RATE, Device, on_bus, uuids


def gpus() -> list[Device]:
    """The GPUs that TensorFlow can use, named by UUID and model; without nvidia-smi by their address on the bus."""
    import tensorflow as tf
    from tensorflow.python.client import device_lib

    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
    if not tf.config.list_physical_devices("GPU"):
        return []
    known = uuids()
    found = []
    for device in device_lib.list_local_devices():
        if device.device_type == "GPU":
            described = re.search(r"name: (.+), pci bus id: ([0-9A-Fa-f:.]+)", device.physical_device_desc)
            model, bus = described.groups() if described else ("unknown model", "at an unknown address")
            found.append(Device(device.name, "{} ({})".format(known.get(on_bus(bus), "GPU " + bus), model)))
    return found


def cpu() -> Device:
    """The processor."""
    return Device("/device:CPU:0", CPU)


@contextlib.contextmanager
def exact_float32() -> Iterator[None]:
    """Ampere's cards round the factors of float32 products to 10 bits (TF32), unless they are told not to."""
    import tensorflow as tf

    before = tf.config.experimental.tensor_float_32_execution_enabled()
    tf.config.experimental.enable_tensor_float_32_execution(False)
    try:
        yield
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(before)


def batches(inputs: Any, labels: Any, batch: int) -> Any:
    """The data in this order, in batches that a strategy divides among its devices."""
    import tensorflow as tf

    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return tf.data.Dataset.from_tensor_slices((inputs, labels)).batch(batch).with_options(options)


def network() -> Any:
    """784-128-10, made inside of its strategy; plain gradient descent shows a difference as large as it is.

    Its activation has no kink: the slope of ReLU is 0 or 1 by the last bit of a sum near 0, and one such sum in one of
    10,000 samples was seen to change 2e-3 of what is learned, between NumPy in float32 and in float64, too.
    """
    import tensorflow as tf
    from tensorflow.keras import layers

    tf.keras.utils.set_random_seed(6)
    model = tf.keras.Sequential([layers.Dense(128, "tanh", input_shape=(784,)), layers.Dense(10, "softmax")])
    model.compile(tf.keras.optimizers.SGD(RATE), "sparse_categorical_crossentropy")
    return model
