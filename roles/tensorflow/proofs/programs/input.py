"""Whether the host feeds its GPUs: images from its own disk through ``tf.data``, beside what each device trains.

Records of JPEG images, as large as those of ImageNet, are written to the disk, read past the cache, decoded, cropped
and batched by all processors. What a device trains of the same images from memory is its appetite.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hostwright.standard.roles.cuda.proofs.programs.common import CPU, Device, Lines, run
from hostwright.standard.roles.tensorflow.proofs.programs.common import cpu, gpus

WIDTH, HEIGHT = 500, 375  #: of a stored image in pixels: the usual size in ImageNet, with about 110 kB each
DIFFERENT = 64  #: images that are made; the records repeat them
CROP = 224  #: pixels that a network of ImageNet takes of each side
FILES = 16  #: from which records are read side by side
SPARE_BYTES = 1 << 30  #: of the disk, which stay free


def main(lines: Lines, arguments: dict[str, Any]) -> None:
    """The disk, the processors' preparation, then each device alone and fed by both."""
    size = int(arguments["megabytes"]) * 10**6
    if shutil.disk_usage(".").free < size + SPARE_BYTES:
        lines.tell(**{"not run": f"too little space is free where proofs run: {size // 10**6} MB are written"})
        return
    cards = gpus()
    seconds = float(arguments["seconds"])
    files, written = write(images(), size)
    forget(files)
    read(lines, files, written)
    prepared = rate(prepared_images(files, int(arguments["batch"])), lambda batch: int(batch[0].shape[0]), seconds)
    lines.measure("images prepared", prepared, "1/s", CPU, "more")
    for device in cards or [cpu()]:
        batch = int(arguments["batch" if cards else "cpu_batch"])
        feed(lines, device, files, batch, seconds)
    if not cards:
        lines.without_gpu("images trained from memory", "1/s")
        lines.without_gpu("images trained from disk", "1/s")


def images() -> list[bytes]:
    """JPEG images of shapes under noise, of about 100 kB each."""
    import numpy

    import tensorflow as tf

    random = numpy.random.default_rng(9)
    made = []
    for _ in range(DIFFERENT):
        coarse = tf.image.resize(random.random((12, 16, 3), "float32"), (HEIGHT, WIDTH), "bicubic").numpy()
        noisy = coarse + random.normal(0, 0.075, coarse.shape)
        pixels = (numpy.clip(noisy, 0, 1) * 255).astype("uint8")
        made.append(tf.io.encode_jpeg(pixels, quality=90).numpy())
    return made


def write(pictures: list[bytes], size: int) -> tuple[list[str], int]:
    """Files of records, of about so many bytes together, and how often each image is in them. A record is a byte with
    the image's number, and the image."""
    import tensorflow as tf

    files = [f"images-{number:02}.records" for number in range(FILES)]
    times = max(1, round(size / FILES / sum(map(len, pictures))))
    for file in files:
        with tf.io.TFRecordWriter(file) as writer:
            for _ in range(times):
                for number, picture in enumerate(pictures):
                    writer.write(bytes([number]) + picture)
    return files, times * FILES


def forget(files: list[str]) -> None:
    """Take the files out of the memory that Linux keeps of them, so that the disk is read."""
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def records(files: list[str]) -> Any:
    """All records, of several files at a time; one that is damaged ends the program."""
    import tensorflow as tf

    names = tf.data.Dataset.from_tensor_slices(files)
    return names.interleave(
        lambda name: tf.data.TFRecordDataset(name, buffer_size=8 << 20),
        cycle_length=FILES,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=False,
    )


def read(lines: Lines, files: list[str], written: int) -> None:
    """All records, once, as MB/s; each image must come as often as it was written."""
    import tensorflow as tf

    counts = [0] * DIFFERENT
    start = time.perf_counter()
    firsts = records(files).map(lambda record: tf.io.decode_raw(tf.strings.substr(record, 0, 1), tf.uint8)[0])
    for batch in firsts.batch(256).as_numpy_iterator():
        for number in batch:
            counts[number] += 1
    took = time.perf_counter() - start
    size = sum(Path(file).stat().st_size for file in files)
    lines.measure("records", sum(counts), "", CPU)
    lines.measure("records changed", sum(abs(count - written) for count in counts), "", CPU)
    lines.measure("records read", size / took / 1e6, "MB/s", CPU, "more")


def prepared_images(files: list[str], batch: int) -> Any:
    """Batches for training, as a network of ImageNet gets them, again and again."""
    import tensorflow as tf

    def prepare(record: Any) -> Any:
        number = tf.io.decode_raw(tf.strings.substr(record, 0, 1), tf.uint8)[0]
        picture = tf.io.decode_jpeg(tf.strings.substr(record, 1, -1), channels=3)
        picture = tf.image.random_crop(picture, (HEIGHT * 4 // 5, HEIGHT * 4 // 5, 3))
        picture = tf.image.random_flip_left_right(tf.image.resize(picture, (CROP, CROP)))
        return picture / 127.5 - 1, tf.cast(number, tf.int32)

    ready = records(files).map(prepare, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
    return ready.repeat().batch(batch, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def rate(batches: Any, take: Callable[[Any], int], seconds: float) -> float:
    """How many images a second ``take`` takes of these batches, for so long. The first two batches are not timed."""
    steps: Iterator[Any] = iter(batches)
    for _ in range(2):
        take(next(steps))
    taken, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        taken += take(next(steps))
    return taken / (time.perf_counter() - start)


def feed(lines: Lines, device: Device, files: list[str], batch: int, seconds: float) -> None:
    """What the device trains of ResNet-50 from memory, and of the same images from the disk."""
    import tensorflow as tf

    tf.keras.backend.clear_session()
    with tf.device(device.name):
        model = tf.keras.applications.ResNet50(weights=None, classes=DIFFERENT)
        model.compile(tf.keras.optimizers.SGD(0.01), "sparse_categorical_crossentropy")

    def train(pair: Any) -> int:
        with tf.device(device.name):
            model.train_on_batch(*pair)  # returns the loss: the step has ended
        return batch

    forget(files)
    from_disk = prepared_images(files, batch)
    with tf.device(device.name):
        held = tuple(tf.identity(part) for part in next(iter(from_disk)))
    alone = rate(tf.data.Dataset.from_tensors(0).repeat(), lambda _: train(held), seconds)
    fed = rate(from_disk, train, seconds)
    lines.measure("images trained from memory", alone, "1/s", device.label, "more")
    lines.measure("images trained from disk", fed, "1/s", device.label, "more")


if __name__ == "__main__":
    run(main)
