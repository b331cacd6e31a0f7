"""A small network is trained, and predicts the same as SavedModel, in TF Lite, and by TensorRT where that is."""

from __future__ import annotations

import ctypes
import os
import tempfile
from typing import Any

from hostwright.standard.roles.cuda.proofs.programs.common import CPU, Device, Lines, dense_by_numpy, difference, run
from hostwright.standard.roles.tensorflow.proofs.programs.common import cpu, exact_float32, gpus

UNIT = "of the largest value"


def main(lines: Lines, arguments: dict[str, Any]) -> None:
    """On the processor and on each GPU."""
    import numpy

    cards, lite = gpus(), []
    for device in [cpu(), *cards]:
        with exact_float32(), tempfile.TemporaryDirectory(dir=os.environ.get("HOME")) as folder:
            lite.append(on(lines, device, folder, int(arguments["samples"])))
    lines.measure("tf lite", float(numpy.max(lite)), UNIT, CPU)
    if not cards:
        for name in ("trained", "savedmodel", "tf-trt"):
            lines.without_gpu(name, UNIT)


def on(lines: Lines, device: Device, folder: str, samples: int) -> float:
    """Train and write on one device, and compare each format's predictions with NumPy's of the same weights.

    Returns TF Lite's difference, which is the processor's whatever the model was trained on.
    """
    import tensorflow as tf

    inputs, labels = data(samples)
    with tf.device(device.name):
        model = trained(inputs, labels)
        right = (model.predict(inputs, verbose=0).argmax(axis=1) == labels).mean()
        lines.measure("accuracy", float(right), "", device.label)
        reference = dense_by_numpy(model.get_weights(), inputs)
        lines.measure("trained", difference(model.predict(inputs, verbose=0), reference), UNIT, device.label)
        saved = folder + "/saved"
        tf.saved_model.save(model, saved)
        loaded = tf.saved_model.load(saved)
        result = loaded.signatures["serving_default"](tf.constant(inputs))
        lines.measure("savedmodel", difference(first(result), reference), UNIT, device.label)
    if device.label != CPU:
        if has_tensorrt():
            result = tensorrt_prediction(saved, folder + "/tensorrt", inputs)
            lines.measure("tf-trt", difference(result, reference), UNIT, device.label)
        else:
            lines.measure("tf-trt", "no TensorRT on this host", "", device.label)
    return difference(lite_prediction(saved, inputs), reference)


def data(samples: int) -> Any:
    """Points in 16 dimensions around four centres, with the number of the centre."""
    import numpy

    random = numpy.random.default_rng(4)
    centres = random.standard_normal((4, 16)) * 2
    labels = random.integers(0, 4, samples)
    return (centres[labels] + random.standard_normal((samples, 16))).astype("float32"), labels


def trained(inputs: Any, labels: Any) -> Any:
    """A dense network that has learned them."""
    import tensorflow as tf
    from tensorflow.keras import layers

    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(4)
    model = tf.keras.Sequential(
        [layers.Dense(64, "relu", input_shape=(16,)), layers.Dense(32, "relu"), layers.Dense(4, "softmax")]
    )
    model.compile(tf.keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy")
    model.fit(inputs, labels, batch_size=64, epochs=5, verbose=0)
    return model


def first(result: Any) -> Any:
    """The one output of a signature."""
    (output,) = result.values()
    return output.numpy()


def lite_prediction(saved: str, inputs: Any) -> Any:
    """Convert to TF Lite, in float32, and predict; its kernels run on the processor."""
    import tensorflow as tf

    written = tf.lite.TFLiteConverter.from_saved_model(saved).convert()
    interpreter = tf.lite.Interpreter(model_content=written)
    place = interpreter.get_input_details()[0]["index"]
    interpreter.resize_tensor_input(place, inputs.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(place, inputs)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def has_tensorrt() -> bool:
    """Whether the TensorRT that TensorFlow 2.9 opens is here."""
    try:
        ctypes.CDLL("libnvinfer.so.7")
    except OSError:
        return False
    return True


def tensorrt_prediction(saved: str, folder: str, inputs: Any) -> Any:
    """Convert with TF-TRT, in float32, and predict."""
    import tensorflow as tf
    from tensorflow.python.compiler.tensorrt import trt_convert

    converter = trt_convert.TrtGraphConverterV2(input_saved_model_dir=saved, precision_mode="FP32")
    converter.convert()
    converter.save(folder)
    loaded = tf.saved_model.load(folder)
    return first(loaded.signatures["serving_default"](tf.constant(inputs)))


if __name__ == "__main__":
    run(main)
