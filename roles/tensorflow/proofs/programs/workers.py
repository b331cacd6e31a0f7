"""Several hosts train one network together (MultiWorkerMirroredStrategy), and come to what one device comes to.

Each host runs this with the addresses of all and its own place among them. While it runs, TensorFlow listens on the
port without asking who connects.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

from hostwright.standard.roles.cuda.proofs.programs.common import (
    OF_LARGEST_CHANGE,
    Lines,
    change_difference,
    host_label,
    images,
    run,
    sentence_of,
    trained_by_numpy,
)
from hostwright.standard.roles.cuda.proofs.programs.hosts import StepLimit, with_port
from hostwright.standard.roles.tensorflow.proofs.programs.common import batches, cpu, exact_float32, gpus, network

PER_DEVICE = 256  #: samples in a batch


def main(lines: Lines, arguments: dict[str, Any]) -> None:
    """Together, then on one device of this host alone."""
    peers = [with_port(peer, int(arguments["port"])) for peer in arguments["peers"]]
    place = int(arguments["index"])
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": peers}, "task": {"type": "worker", "index": place}})
    watch = StepLimit(lines, peers[:place] + peers[place + 1 :], float(arguments["step_limit_s"]))
    watch.start("the start of all hosts", float(arguments["start_limit_s"]))
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    devices = strategy.num_replicas_in_sync
    cards = gpus()
    label, one = host_label(cards), (cards or [cpu()])[0]
    batch, steps = PER_DEVICE * devices, int(arguments["steps"])
    inputs, labels = images(steps * batch)

    steps_told = tf.keras.callbacks.LambdaCallback(on_batch_end=lambda batch, **_: watch.step(batch))
    with exact_float32():
        try:
            with strategy.scope():
                model = network()
            before = model.get_weights()
            seconds = fitted(model, batches(inputs, labels, batch), [steps_told])
        except Exception as error:  # noqa: BLE001 - TensorFlow has many for a host that is gone
            watch.fail(sentence_of(error)[:200])
        watch.stop()
        together = model.get_weights()
        with tf.device(one.name):
            model = network()
            alone_seconds = fitted(model, batches(inputs, labels, batch), [])
    lines.measure("hosts", len(peers), "", label)
    lines.measure("devices", devices, "", label)
    lines.measure(
        "learned beside one device", change_difference(before, together, model.get_weights()), OF_LARGEST_CHANGE, label
    )
    reference = trained_by_numpy(before, inputs, labels, batch)
    lines.measure("learned beside numpy", change_difference(before, together, reference), OF_LARGEST_CHANGE, label)
    lines.measure("samples per second of all hosts", steps * batch / seconds, "1/s", label, "more")
    lines.measure("samples per second of one device", steps * batch / alone_seconds, "1/s", one.label, "more")


def fitted(model: Any, data: Any, callbacks: list[Any]) -> float:
    """Train an epoch; returns the seconds that it took after its first step."""
    import tensorflow as tf

    times: list[float] = []

    clock = tf.keras.callbacks.LambdaCallback(on_batch_end=lambda _batch, **_: times.append(time.perf_counter()))
    model.fit(data, verbose=0, callbacks=[*callbacks, clock])
    return max(times[-1] - times[0], 1e-9) * len(times) / max(len(times) - 1, 1)


if __name__ == "__main__":
    run(main)
