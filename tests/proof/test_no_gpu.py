"""A host without a GPU: every figure says on what it was measured, what needs a GPU says that there is none."""

from __future__ import annotations

import pytest

from tests.proof.bench import Bench, Document, failed, results, rows, unexpected, values

OF_CARDS = {"cuda.bandwidth", "cuda.memory", "cuda.burnin"}
#: TensorFlow's proofs that take a minute or two each, and one of their rows of a GPU
OF_GPUS = {
    "tensorflow.devices": "compute capability",
    "tensorflow.formats": "tf-trt",
    "tensorflow.input": "images trained from disk",
    "tensorflow.mirrored": "utilisation",
}
DISKS_AND_PROCESSORS = ("cpu (", "disk ")


@pytest.fixture(scope="module")
def told(hosts: Bench) -> Document:
    """Proofs of a host's own parts, of cards, and of TensorFlow."""
    return hosts.prove(",".join(["base.processors", "base.memory", "base.disk", "cuda", *OF_GPUS]), "cpu01", status=0)


def test_every_proof_passes_or_says_that_there_is_no_gpu(told: Document) -> None:
    assert failed(told) == {"cpu01": set()}, unexpected(told)
    outcomes = {one["proof"]: one["outcome"] for one in results(told)}
    assert {proof for proof, outcome in outcomes.items() if outcome == "no GPU"} == OF_CARDS
    assert set(outcomes) == OF_CARDS | set(OF_GPUS) | {"base.processors", "base.memory", "base.disk"}


def test_every_row_says_on_what_it_was_measured(told: Document) -> None:
    measured = rows(told)
    assert len(measured) > 30
    for row in measured:
        if row["device"] == "no GPU":
            assert row["value"] is None, row
        else:
            assert row["value"] is not None, row
            assert row["device"].startswith(DISKS_AND_PROCESSORS), row


def test_the_rows_of_a_gpu_are_there_and_empty(told: Document) -> None:
    for one in results(told):
        if one["proof"] in OF_CARDS:
            assert (one["sentence"], one["measurements"]) == ("no GPU in this host", [])
        if name := OF_GPUS.get(one["proof"]):
            of_gpu = [row for row in one["measurements"] if row["device"] == "no GPU"]
            assert name in {row["name"] for row in of_gpu}, one["proof"]


def test_real_tensorflow_computed_rightly(told: Document) -> None:
    figures = {one["proof"]: values(one) for one in results(told)}
    assert figures["tensorflow.devices"]["tensorflow"] == "2.9.0"
    of_cpu = [row for row in rows(told) if row["name"] == "product" and row["device"].startswith("cpu (")]
    assert [row["value"] for row in of_cpu] == [0]
    assert figures["tensorflow.formats"]["accuracy"] > 0.95
    fed = figures["tensorflow.input"]
    assert (fed["records"] > 10_000, fed["records changed"]) == (True, 0)
    assert fed["images prepared"] > fed["images trained from memory"] > 0


def test_the_table_says_no_gpu(hosts: Bench) -> None:
    words = ("--hosts", "cpu01", "--proofs", "base.processors,cuda,tensorflow.devices")
    done = hosts.invoke("prove", *words, COLUMNS="200")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("1 host in ") and ", full proofs: 1 " in line]
    row = next(line for line in lines if line.startswith("cpu01 "))
    assert row.count("– no GPU") == len(OF_CARDS)
    assert row.count("✓") == 2
    empty = [line for line in lines if line.rstrip().endswith("no GPU") and "capability" in line]
    assert [line.split() for line in empty] == [["compute", "capability", "no", "GPU", "no", "GPU"]]
