"""Makes the models of the tests with TensorFlow itself, in the image's own Python 3.9, and computes what they answer.

Below /out: half/1 and half/2 (half of x, plus 2 or 3), slow/1 (a table of many lines that is read when it is loaded),
and expected.json. Nothing of this project is imported: the file is given to the container on its standard input.
"""

import json
from pathlib import Path

import tensorflow as tf

FLOATS = tf.TensorSpec(None, tf.float32, "x")
LINES = 4_000_000


class Half(tf.Module):
    def __init__(self, more: float) -> None:
        super().__init__()
        self.factor = tf.Variable(0.5)
        self.more = tf.Variable(more)
        self.weights = tf.Variable([[1.0], [10.0]])

    @tf.function(input_signature=[FLOATS])
    def plain(self, x):
        return {"y": self.factor * x + self.more}

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x")])
    def dense(self, x):
        return {"y": tf.matmul(x, self.weights) + self.more}

    @tf.function(
        input_signature=[tf.TensorSpec([None, 3], tf.int32, "numbers"), tf.TensorSpec([None], tf.string, "text")]
    )
    def many(self, numbers, text):
        return {
            "sums": tf.reduce_sum(numbers, axis=1),
            "loud": tf.strings.upper(text),
            "text_bytes": text,
            "positive": numbers > 0,
        }

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float64, "x")])
    def logarithm(self, x):
        return {"y": tf.math.log(x)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def mean(self, x):
        return {"y": tf.reduce_mean(x)}


ASKED = {
    "serving_default": {"x": [[1.0, -2.5], [3.25, 1e20]]},
    "dense": {"x": [[1.0, 2.0], [0.1, 0.2], [-3.0, 1e-3]]},
    "many": {"numbers": [[1, 2, 3], [-4, 0, 2147483640]], "text": ["first", "second line"]},
    "logarithm": {"x": [2.718281828459045, 0.1, 1.0]},
}


def answered(value):
    """A tensor as JSON has it."""
    values = value.numpy().tolist()
    return [text.decode() for text in values] if value.dtype == tf.string else values


def main() -> None:
    expected = {}
    for version, more in ((1, 2.0), (2, 3.0)):
        half = Half(more)
        signatures = {
            "serving_default": half.plain, "dense": half.dense, "many": half.many, "logarithm": half.logarithm,
            "mean": half.mean,
        }  # fmt: skip
        place = f"/out/half/{version}"
        tf.saved_model.save(half, place, signatures)
        loaded = tf.saved_model.load(place)
        rows = {}
        for name, inputs in ASKED.items():
            function = loaded.signatures[name]
            kinds = {key: spec.dtype for key, spec in function.structured_input_signature[1].items()}
            tensors = {key: tf.constant(value, kinds[key]) for key, value in inputs.items()}
            rows[name] = {"inputs": inputs, "outputs": {k: answered(v) for k, v in function(**tensors).items()}}
        expected[version] = rows
    Path("/out/words.txt").write_text("".join(f"word{number}\n" for number in range(LINES)))
    slow = Half(9.0)
    slow.asset = tf.saved_model.Asset("/out/words.txt")
    slow.table = tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(
            slow.asset, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
        ),
        -1,
    )
    tf.saved_model.save(slow, "/out/slow/1", {"serving_default": slow.plain})
    Path("/out/expected.json").write_text(json.dumps({"tensorflow": tf.__version__, "versions": expected}))


main()
