"""Asks TensorFlow everything in one process, since each import takes seconds.

It runs as the login user without any variables set, or, with CUDA as wheels, in a login shell. What is appended to it
prints ``FOUND``. Its arguments are the libraries that TensorFlow opens.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import tempfile
from typing import Any

HOME = tempfile.TemporaryDirectory()
os.environ["HOME"] = HOME.name  # Keras writes its settings there, and the driver what it compiled
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1"  # its warnings name the library that is missing


class LinkMap(ctypes.Structure):
    """The loader's record of a library (link.h)."""

    _fields_ = (("address", ctypes.c_void_p), ("name", ctypes.c_char_p))


def file_of(soname: str) -> str:
    """The file that the loader finds for a library, or its error."""
    try:
        library = ctypes.CDLL(soname)
    except OSError as error:
        return str(error)
    where = ctypes.POINTER(LinkMap)()
    ctypes.CDLL("libdl.so.2").dlinfo(ctypes.c_void_p(library._handle), 2, ctypes.byref(where))
    return os.path.realpath(os.fsdecode(where.contents.name))


def look() -> dict[str, Any]:
    """Versions, the libraries, the cards, and how a small model learns."""
    libraries = {soname: file_of(soname) for soname in sys.argv[1:]}
    import google.protobuf
    import keras  # type: ignore[import-not-found]
    import numpy as np

    import tensorflow as tf

    build = tf.sysconfig.get_build_info()
    cards = len(tf.config.list_physical_devices("GPU"))
    tf.config.set_visible_devices([], "GPU")
    tf.keras.utils.set_random_seed(1)
    inputs = np.random.rand(512, 4).astype("float32")
    wanted = inputs.sum(axis=1, keepdims=True)
    model = tf.keras.Sequential([tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    losses = model.fit(inputs, wanted, epochs=10, verbose=0).history["loss"]
    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "versions": {
            "tensorflow": tf.__version__, "keras": keras.__version__, "numpy": np.__version__,
            "protobuf": google.protobuf.__version__,
        },
        "cuda": tf.test.is_built_with_cuda(),
        "build": {key: str(build.get(key)) for key in ("cuda_version", "cudnn_version")},
        "libraries": libraries,
        "cards": cards,
        "losses": losses,
    }  # fmt: skip


if __name__ == "__main__":
    FOUND = look()
