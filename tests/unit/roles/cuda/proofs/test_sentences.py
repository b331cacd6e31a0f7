"""The error that a program tells, of what TensorFlow raises."""

from __future__ import annotations

import pytest

from hostwright.standard.roles.cuda.proofs.programs.common import sentence_of


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("no such network", "ValueError: no such network"),
        ("", "ValueError: "),
        (
            'in user code:\n\n    File "x.py", line 3, in step\n    OOM when allocating tensor',
            "ValueError: OOM when allocating tensor",
        ),
        (
            "Graph execution error:\n\ncuDNN launch failure\n\t [[{{node conv}}]] [Op:step]",
            "ValueError: cuDNN launch failure",
        ),
    ],
)
def test_an_error_is_told_in_the_line_that_says_what_it_is(text: str, sentence: str) -> None:
    assert sentence_of(ValueError(text)) == sentence


HINT = (
    "Hint: If you want to see a list of allocated tensors when OOM happens, add report_tensor_allocations_upon_oom to "
    "RunOptions for current allocation info. This isn't available when running in Eager mode.\n"
)
OOM = (
    "OOM when allocating tensor with shape[{}] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by "
    "allocator GPU_0_bfc"
)
FRAMES = (
    'defined at (most recent call last):\n    File "/usr/lib/python3.8/runpy.py", line 194, in _run_module_as_main\n'
    "      return _run_code(code, main_globals, None,\n"
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(
            f"Graph execution error:\n\n{OOM.format('16,64,64,64')}\n\t [[{{{{node model/decoder}}}}]]\n{HINT} "
            "[Op:__inference_train_function_9135]",
            OOM.format("16,64,64,64"),
            id="hotosm/fAIr#59",
        ),
        pytest.param(
            f"Graph execution error:\n\nDetected at node 'dual/conv2d_21/Relu_1' {FRAMES}"
            f"Node: 'dual/conv2d_21/Relu_1'\n{OOM.format('32,256,62,62')}\n\t [[{{{{node dual/conv2d_21/Relu_1}}}}]]\n"
            f"{HINT} [Op:__inference_train_function_1424895]",
            OOM.format("32,256,62,62"),
            id="a public log of TensorFlow 2.9, found by its text",
        ),
        pytest.param(
            "JIT compilation failed. [Op:FloorMod]", "JIT compilation failed. [Op:FloorMod]", id="tensorflow#57162"
        ),
        pytest.param(
            f"{OOM.format('128,768')} [Op:StridedSliceGrad]",
            f"{OOM.format('128,768')} [Op:StridedSliceGrad]",
            id="kamalkraj/BERT-NER-TF#20",
        ),
        pytest.param(
            f"Graph execution error:\n\nDetected at node 'sequential_2/conv2d_2/Conv2D' {FRAMES}"
            "Node: 'sequential_2/conv2d_2/Conv2D'\nDNN library is not found.\n"
            "\t [[{{node sequential_2/conv2d_2/Conv2D}}]] [Op:__inference_train_function_32418]",
            "DNN library is not found.",
            id="googlecolab/colabtools#3013",
        ),
        pytest.param(
            f"2 root error(s) found.\n  (0) Resource exhausted: {OOM.format('16,112,112,147')}\n"
            f"\t [[{{{{node resnet_v1_50/conv1}}}}]]\n{HINT}\n\t [[Mean_1/_1047]]\n{HINT}\n"
            f"  (1) Resource exhausted: {OOM.format('16,112,112,147')}\n\t [[{{{{node resnet_v1_50/conv1}}}}]]\n"
            f"{HINT}\n0 successful operations.\n0 derived errors ignored.",
            f"Resource exhausted: {OOM.format('16,112,112,147')}",
            id="Azure/MachineLearningNotebooks#880",
        ),
        pytest.param(
            f"Graph execution error:\n\nDetected at node 'StatefulPartitionedCall_2' {FRAMES}"
            "Node: 'StatefulPartitionedCall_2'\nlibdevice not found at ./libdevice.10.bc\n"
            "\t [[{{node StatefulPartitionedCall_2}}]] [Op:__inference_train_function_10452]",
            "libdevice not found at ./libdevice.10.bc",
            id="talmolab/sleap#1485",
        ),
        pytest.param(
            "Graph execution error:\n\nDetected at node cluster_58_1/xla_run defined at (most recent call last):\n"
            "<stack traces unavailable>\nOut of memory while trying to allocate 127001552000 bytes.\n"
            f"\t [[{{{{node cluster_58_1/xla_run}}}}]]\n{HINT} [Op:__inference_multi_step_on_iterator_192048]",
            "Out of memory while trying to allocate 127001552000 bytes.",
            id="a public notebook with XLA, found by its text",
        ),
    ],
)
def test_what_tensorflow_raised_is_told_in_its_own_words(text: str, sentence: str) -> None:
    assert sentence_of(MemoryError(text)) == f"MemoryError: {sentence}"


def test_an_endless_message_is_cut() -> None:
    assert len(sentence_of(ValueError("x" * 10_000))) == 500
