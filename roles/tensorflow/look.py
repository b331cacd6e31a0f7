"""What checks ask TensorFlow itself."""

from __future__ import annotations

from hostwright.plan.targets import TargetHost
from hostwright.standard.roles.cuda.wheels import LOGIN_SHELL, OPENED, libraries_in
from hostwright.standard.roles.tensorflow.section import TensorflowSection

#: One process, since each import of TensorFlow takes seconds. It runs as the login user without any variables set, or,
#: with CUDA as wheels, in a login shell.
LOOK = (
    r"""
import ctypes, json, os, platform, sys, tempfile
home = tempfile.TemporaryDirectory()
os.environ["HOME"] = home.name  # Keras writes its settings there, and the driver what it compiled
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1"  # its warnings name the library that is missing

class LinkMap(ctypes.Structure):
    _fields_ = [("address", ctypes.c_void_p), ("name", ctypes.c_char_p)]

def found(soname):
    try:
        library = ctypes.CDLL(soname)
    except OSError as error:
        return str(error)
    where = ctypes.POINTER(LinkMap)()
    ctypes.CDLL("libdl.so.2").dlinfo(ctypes.c_void_p(library._handle), 2, ctypes.byref(where))
    return os.path.realpath(os.fsdecode(where.contents.name))

libraries = {soname: found(soname) for soname in sys.argv[1:]}
import google.protobuf, keras, numpy, tensorflow as tf
build = tf.sysconfig.get_build_info()
cards = len(tf.config.list_physical_devices("GPU"))
tf.config.set_visible_devices([], "GPU")
tf.keras.utils.set_random_seed(1)
inputs = numpy.random.rand(512, 4).astype("float32")
wanted = inputs.sum(axis=1, keepdims=True)
model = tf.keras.Sequential([tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
losses = model.fit(inputs, wanted, epochs=10, verbose=0).history["loss"]
"""
    + OPENED
    + r"""
print(json.dumps({
    "python": ".".join(platform.python_version_tuple()[:2]),
    "versions": {"tensorflow": tf.__version__, "keras": keras.__version__, "numpy": numpy.__version__,
                 "protobuf": google.protobuf.__version__},
    "cuda": tf.test.is_built_with_cuda(),
    "build": {key: str(build.get(key)) for key in ("cuda_version", "cudnn_version")},
    "libraries": libraries, "cards": cards, "losses": losses, **opened,
}), flush=True)
"""
)

#: On a host with TensorRT, afterwards, since a TensorRT that does not fit may end the process: which version the wheel
#: was linked with, and which one TensorFlow opens here.
_OPEN_TENSORRT = """\
from tensorflow.compiler.tf2tensorrt import _pywrap_py_utils as trt
print("tensorrt", *trt.get_linked_tensorrt_version(), *trt.get_loaded_tensorrt_version())
"""


def look_command(target: TargetHost) -> tuple[str, ...]:
    """The command that asks TensorFlow everything that the checks of a host want to know of it."""
    section = target.stack.section(TensorflowSection)
    python = f"{section.home(target.variables['tensorflow'].path)}/bin/python"
    program = LOOK + (_OPEN_TENSORRT if "tensorrt" in target.variables else "")
    way = LOGIN_SHELL if libraries_in(section) else "%s -c %s"
    return (way + " %s" * len(section.libraries), python, program, *section.libraries)
