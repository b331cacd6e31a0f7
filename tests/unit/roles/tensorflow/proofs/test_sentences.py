"""The error that a program tells, of what TensorFlow raises."""

from __future__ import annotations

import pytest

from hostwright.standard.roles.tensorflow.proofs.programs.common import sentence_of


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


def test_an_endless_message_is_cut() -> None:
    assert len(sentence_of(ValueError("x" * 10_000))) == 500
