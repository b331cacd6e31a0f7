"""What XLA, mixed precision and cuDNN's autotuning gain in a step of training, on each device.

TensorFlow reads these settings when it starts, so each is a process of its own: this file again, with the setting among
its arguments.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from hostwright.standard.roles.cuda.proofs.programs.common import CPU, Device, Lines, run
from hostwright.standard.roles.tensorflow.proofs.programs.common import cpu, gpus

PLAIN, XLA, MIXED, UNTUNED = "plain", "xla", "mixed precision", "without autotuning"
#: a processor has no cuDNN, and computes float16 slower than float32
ON_A_PROCESSOR = (PLAIN, XLA)


def main(lines: Lines, arguments: dict[str, Any]) -> None:
    """All settings, or the one that the arguments name."""
    if "setting" in arguments:
        one(lines, arguments)
    else:
        every(lines, arguments)


def every(lines: Lines, arguments: dict[str, Any]) -> None:
    """Each setting in a process of its own, and what it gains."""
    steps = {setting: started(arguments, setting) for setting in (PLAIN, XLA, MIXED, UNTUNED)}
    for device, plain in steps[PLAIN].items():
        lines.measure("step", plain["step"], "ms", device, "less")
        for setting in (XLA, MIXED, UNTUNED):
            if device in steps[setting]:
                compared(lines, device, setting, plain, steps[setting][device])
    if list(steps[PLAIN]) == [CPU]:
        for name in ("step", "step with xla", "step with mixed precision", "step without autotuning"):
            lines.without_gpu(name, "ms")
        for name in ("gain of xla", "gain of mixed precision", "gain of autotuning"):
            lines.without_gpu(name, "×")


def compared(lines: Lines, device: str, setting: str, plain: dict[str, float], other: dict[str, float]) -> None:
    """One setting beside none: its step, its gain, and how far the loss of the first step is from the plain one."""
    name = "step " + setting if setting == UNTUNED else "step with " + setting
    lines.measure(name, other["step"], "ms", device, "less")
    if setting == UNTUNED:
        lines.measure("gain of autotuning", other["step"] / plain["step"], "×", device)
    else:
        lines.measure("gain of " + setting, plain["step"] / other["step"], "×", device)
    far = abs(other["loss"] - plain["loss"]) / abs(plain["loss"])
    lines.measure("first loss " + name.partition(" ")[2], far, "of the plain one", device)


def started(arguments: dict[str, Any], setting: str) -> dict[str, dict[str, float]]:
    """Run this file with the setting, and read what it measured. Raises RuntimeError with its error."""
    path = Path("setting.json")
    path.write_text(json.dumps({**arguments, "setting": setting}), "utf-8")
    environment = {**os.environ, "TF_CUDNN_USE_AUTOTUNE": "0" if setting == UNTUNED else "1"}
    command = [sys.executable, sys.argv[0], str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=False)
    measured: dict[str, dict[str, float]] = {}
    error = f"it ended with status {done.returncode}"
    for line in done.stdout.decode().splitlines():
        message = json.loads(line)
        error = message.get("error", error)
        if "measure" in message:
            measured.setdefault(message["device"], {})[message["measure"]] = message["value"]
    if done.returncode != 0:
        raise RuntimeError(f"{setting}: {error}")
    return measured


def one(lines: Lines, arguments: dict[str, Any]) -> None:
    """The steps of one setting on every device that has it."""
    import tensorflow as tf

    setting = arguments["setting"]
    devices = [*([cpu()] if setting in ON_A_PROCESSOR else []), *gpus()]
    if setting == MIXED:
        tf.keras.mixed_precision.set_global_policy("mixed_float16")
    for device in devices:
        batch = int(arguments["cpu_batch" if device.label == CPU else "batch"])
        count = int(arguments["cpu_steps" if device.label == CPU else "steps"])
        step, loss = timed(device, batch, count, compiled=setting == XLA)
        lines.measure("step", step, "ms", device.label)
        lines.measure("loss", loss, "", device.label)


def timed(device: Device, batch: int, count: int, *, compiled: bool) -> tuple[float, float]:
    """Milliseconds of a step of training, and the loss of the first one. Tuning and compiling are not timed."""
    import numpy

    import tensorflow as tf

    tf.keras.utils.set_random_seed(5)
    random = numpy.random.default_rng(5)
    with tf.device(device.name):
        model = network()
        images = tf.constant(random.standard_normal((batch, 64, 64, 3)), tf.float32)
        labels = tf.constant(random.integers(0, 10, batch))
        losses = tf.keras.losses.SparseCategoricalCrossentropy()

        @tf.function(jit_compile=compiled)  # type: ignore[untyped-decorator]
        def step() -> Any:
            with tf.GradientTape() as tape:
                loss = losses(labels, model(images, training=True))
            for variable, gradient in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
                variable.assign_sub(0.001 * gradient)
            return loss

        first = float(step().numpy())
        for _ in range(3):
            step().numpy()
        start = time.perf_counter()
        for _ in range(count):
            loss = step()
        loss.numpy()  # waits for the device
        return (time.perf_counter() - start) * 1000 / count, first


def network() -> Any:
    """Convolutions of 64 and 128 channels, as they are in the first half of a ResNet."""
    from tensorflow.keras import Sequential, layers

    return Sequential(
        [
            layers.Conv2D(64, 3, padding="same", activation="relu", input_shape=(64, 64, 3)),
            layers.Conv2D(64, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(128, 3, padding="same", activation="relu"),
            layers.Conv2D(128, 3, padding="same", activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10),
            layers.Activation("softmax", dtype="float32"),  # probabilities in float16 would lose the small ones
        ]
    )


if __name__ == "__main__":
    run(main)
