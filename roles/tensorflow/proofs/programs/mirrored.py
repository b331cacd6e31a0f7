"""All GPUs of the host train one network together (MirroredStrategy), and come to what one of them comes to.

A host with fewer than two GPUs trains it on two logical devices of its processor.
"""

from __future__ import annotations

import subprocess
import time
from typing import Any

from hostwright.standard.roles.cuda.proofs.programs.common import (
    CPU,
    OF_LARGEST_CHANGE,
    Device,
    Lines,
    all_of,
    change_difference,
    images,
    run,
    trained_by_numpy,
)
from hostwright.standard.roles.tensorflow.proofs.programs.common import batches, exact_float32, gpus, network


def main(lines: Lines, arguments: dict[str, Any]) -> None:
    """Agreement first, then speed and balance."""
    import tensorflow as tf

    (processor,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(processor, [tf.config.LogicalDeviceConfiguration()] * 2)
    cards = gpus()
    together = cards if len(cards) > 1 else [Device("/device:CPU:0", CPU), Device("/device:CPU:1", CPU)]
    label = all_of(cards) if len(cards) > 1 else CPU
    lines.measure("devices", len(together), "", label)
    agreement(lines, together, label, int(arguments["steps"]))
    if len(cards) < 2:
        if not cards:
            for name in ("scaling efficiency", "utilisation"):
                lines.without_gpu(name, "%")
        return
    scaling(lines, cards, label, float(arguments["seconds"]))


def strategy_of(devices: list[Device]) -> Any:
    """A strategy over these devices."""
    import tensorflow as tf

    return tf.distribute.MirroredStrategy([device.name for device in devices])


def agreement(lines: Lines, devices: list[Device], label: str, steps: int) -> None:
    """Train the same batches in the same order on one device, on all, and by NumPy; they must learn the same."""
    batch = 256 * len(devices)
    inputs, labels = images(steps * batch)
    trained = []
    with exact_float32():
        for strategy in (strategy_of(devices[:1]), strategy_of(devices)):
            with strategy.scope():
                model = network()
            before = model.get_weights()
            model.fit(batches(inputs, labels, batch), verbose=0)
            trained.append(model.get_weights())
    alone, together = trained
    reference = trained_by_numpy(before, inputs, labels, batch)
    lines.measure("learned beside one device", change_difference(before, together, alone), OF_LARGEST_CHANGE, label)
    lines.measure("learned beside numpy", change_difference(before, together, reference), OF_LARGEST_CHANGE, label)


def scaling(lines: Lines, cards: list[Device], label: str, seconds: float) -> None:
    """Samples per second of one card and of all, and how evenly the cards are used meanwhile."""
    alone = rate(strategy_of(cards[:1]), 1024, seconds)
    watch = start_watch()
    together = rate(strategy_of(cards), 1024 * len(cards), seconds)
    used = read_watch(watch)
    lines.measure("samples per second on one gpu", alone, "1/s", cards[0].label, "more")
    lines.measure("samples per second", together, "1/s", label, "more")
    lines.measure("scaling efficiency", 100 * together / (alone * len(cards)), "%", label, "more")
    for card in cards:
        values = used.get(card.label.partition(" ")[0], [])
        if values:
            lines.measure("utilisation", sum(values) / len(values), "%", card.label)


def rate(strategy: Any, batch: int, seconds: float) -> float:
    """Samples per second while training a wide network for so long; its data is on the devices already."""
    import tensorflow as tf
    from tensorflow.keras import layers

    with strategy.scope():
        model = tf.keras.Sequential(
            [layers.Dense(4096, "relu", input_shape=(784,)), layers.Dense(4096, "relu"), layers.Dense(10, "softmax")]
        )
        model.compile(tf.keras.optimizers.SGD(0.01), "sparse_categorical_crossentropy")
    inputs, labels = images(batch)
    data = tf.data.Dataset.from_tensors((inputs, labels)).cache().repeat().prefetch(4)
    model.fit(data, steps_per_epoch=20, verbose=0)
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        model.fit(data, steps_per_epoch=50, verbose=0)
        steps += 50
    return steps * batch / (time.perf_counter() - start)


def start_watch() -> Any:
    """nvidia-smi telling every card's utilisation twice a second."""
    query = ["nvidia-smi", "--query-gpu=uuid,utilization.gpu", "--format=csv,noheader,nounits", "-lms", "500"]
    try:
        return subprocess.Popen(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return None


def read_watch(watch: Any) -> dict[str, list[float]]:
    """The utilisation by UUID, without the first three seconds, in which the network is made."""
    if watch is None:
        return {}
    watch.terminate()
    output, _ = watch.communicate()
    used: dict[str, list[float]] = {}
    for line in output.decode(errors="replace").splitlines():
        uuid, _, value = line.partition(",")
        if value.strip().isdigit():
            used.setdefault(uuid.strip(), []).append(float(value))
    return {uuid: values[6:] for uuid, values in used.items()}


if __name__ == "__main__":
    run(main)
