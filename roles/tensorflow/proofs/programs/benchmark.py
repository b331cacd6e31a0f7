"""Seconds that an epoch of training takes on the processor and on each GPU, by a dense or a convolutional network.

The dense one, its 60,000 random samples and its batches of 128 are those of the articles about this stack.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from hostwright.standard.roles.cuda.proofs.programs.common import Device, Lines, dense_by_numpy, difference, run
from hostwright.standard.roles.tensorflow.proofs.programs.common import cpu, exact_float32, gpus

BATCH = 128


def dense() -> Any:
    """784-512-256-10 with dropout, trained by Adam."""
    from tensorflow.keras import Sequential, layers

    return Sequential(
        [
            layers.Dense(512, "relu", input_shape=(784,)),
            layers.Dropout(0.3),
            layers.Dense(256, "relu"),
            layers.Dropout(0.3),
            layers.Dense(10, "softmax"),
        ]
    )


def convolutional() -> Any:
    """Two convolutions over images of 28×28, and two dense layers."""
    from tensorflow.keras import Sequential, layers

    return Sequential(
        [
            layers.Reshape((28, 28, 1), input_shape=(784,)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(128, "relu"),
            layers.Dense(10, "softmax"),
        ]
    )


NETWORKS: dict[str, Callable[[], Any]] = {"dense": dense, "convolutional": convolutional}


def main(lines: Lines, arguments: dict[str, Any]) -> None:
    """The processor, then each GPU with its ratio."""
    network = arguments["network"]
    cards = gpus()
    slow = epoch(lines, cpu(), network, int(arguments["cpu_samples"]), int(arguments["epochs"]))
    for card in cards:
        fast = epoch(lines, card, network, int(arguments["samples"]), int(arguments["epochs"]))
        lines.measure("times the processor", fast / slow, "×", card.label)
    if not cards:
        lines.without_gpu("seconds per epoch", "s")
        lines.without_gpu("samples per second", "1/s")
        lines.without_gpu("times the processor", "×")


def epoch(lines: Lines, device: Device, network: str, samples: int, epochs: int) -> float:
    """Train on one device; returns the samples per second of the median epoch. The first epoch is not timed."""
    import numpy

    import tensorflow as tf

    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(1)
    random = numpy.random.default_rng(1)
    inputs = random.random((samples, 784), "float32")
    labels = random.integers(0, 10, samples)
    with tf.device(device.name):
        model = NETWORKS[network]()
        model.compile("adam", "sparse_categorical_crossentropy")
        warm = min(samples, 40 * BATCH)
        model.fit(inputs[:warm], labels[:warm], batch_size=BATCH, verbose=0)
        seconds = []
        for _ in range(epochs):
            start = time.perf_counter()
            loss = model.fit(inputs, labels, batch_size=BATCH, verbose=0).history["loss"][-1]
            seconds.append(time.perf_counter() - start)
        with exact_float32():
            result = model(inputs[:BATCH], training=False).numpy() if network == "dense" else None
    median = statistics.median(seconds)
    lines.measure("seconds per epoch", median, "s", device.label)
    lines.measure("samples per second", samples / median, "1/s", device.label, "more")
    lines.measure("samples", samples, "", device.label)
    lines.measure("loss", float(loss), "", device.label)
    if result is not None:
        reference = dense_by_numpy(model.get_weights(), inputs[:BATCH])
        lines.measure("prediction", difference(result, reference), "of the largest value", device.label)
    return samples / median


if __name__ == "__main__":
    run(main)
