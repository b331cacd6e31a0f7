"""The image in which people work, made here: nothing else of these tests means anything without it."""

from __future__ import annotations

import json
import tarfile

from lab import images


def test_the_image_says_that_it_stands_in() -> None:
    with tarfile.open(images.ensure(images.TENSORFLOW)) as archive:
        member = archive.extractfile("manifest.json")
        assert member is not None
        (entry,) = json.load(member)
        described = archive.extractfile(entry["Config"])
        assert described is not None
        labels = json.load(described)["config"]["Labels"]
    assert entry["RepoTags"] == [images.TENSORFLOW.tag]
    assert "real TensorFlow 2.9.0" in labels[images.LABEL]
