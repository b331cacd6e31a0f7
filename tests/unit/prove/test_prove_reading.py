"""Tests of parsing a program's output into measurements: exactly the printed values."""

from __future__ import annotations

import json

import pytest

from hostwright.prove.model import Measurement
from hostwright.prove.reading import LINE_CHARACTERS, MOST_ERRORS, MOST_LINES, MOST_MEASUREMENTS, read


def line(**values: object) -> str:
    return json.dumps(values)


def measured(**values: object) -> str:
    return line(**{"measure": "speed", "value": 2.5, "unit": "GB/s", "device": "cpu", **values})


END = line(end=True)


def test_noise_between_the_lines_is_passed_over() -> None:
    text = "\n".join(["WARNING: {not json}", measured(), '["measure"]', "{}", measured(measure="other"), END, ""])
    printed = read(text)
    assert [(one.name, one.number, one.unit, one.device) for one in printed.measurements] == [
        ("speed", 2.5, "GB/s", "cpu"),
        ("other", 2.5, "GB/s", "cpu"),
    ]
    assert (printed.ended, printed.errors, printed.broken, printed.not_run) == (True, (), "", "")


@pytest.mark.parametrize(("value", "taken"), [(1, 1.0), (2.5, 2.5), (True, True), ("NVLink", "NVLink"), (-3, -3.0)])
def test_a_value_is_a_number_a_word_or_yes_and_no(value: object, taken: object) -> None:
    (one,) = read(measured(value=value)).measurements
    assert (one.value, type(one.value)) == (taken, type(taken))


def test_without_a_gpu_there_is_no_value_whatever_was_said() -> None:
    (one,) = read(measured(value=99.0, device="no GPU")).measurements
    assert one == Measurement("speed", None, "GB/s", "no GPU")
    assert one.number is None


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (measured(device=""), "speed: the device is missing"),
        (measured(device=None), "speed: the device is missing"),
        (measured(value=None), "speed: the value for cpu is missing"),
        (measured(value=[1]), "speed: the value for cpu is missing"),
        (measured(unit=3), "speed: the unit is not a string"),
        (measured(better="most"), "speed: 'better' is 'most', not more or less"),
        (measured(better=["more"]), "speed: 'better' is ['more'], not more or less"),
        (measured(measure="Speed!"), "the program printed an invalid name of a measurement: 'Speed!'"),
        (measured(measure=7), "the program printed an invalid name of a measurement: 7"),
        (f"{END}\n{measured()}", "the program printed more after its end line"),
    ],
)
def test_a_line_of_the_protocol_that_makes_no_sense_is_named(broken: str, sentence: str) -> None:
    assert read(broken).broken == sentence


def test_a_later_value_on_the_same_device_takes_the_place_of_the_earlier_one() -> None:
    printed = read("\n".join([measured(value=1), measured(value=2), measured(value=3, device="GPU-1")]))
    assert [(one.device, one.number) for one in printed.measurements] == [("cpu", 2.0), ("GPU-1", 3.0)]


def test_errors_and_what_kept_it_from_running_are_sentences() -> None:
    printed = read("\n".join([line(error="wrong\nresult"), line(**{"not run": "no compiler"}), END]))
    assert (printed.errors, printed.not_run) == (("wrong result",), "no compiler")


def test_how_much_is_read_is_bounded() -> None:
    many = "\n".join(measured(measure=f"m{number}") for number in range(MOST_MEASUREMENTS + 1))
    assert len(read(many).measurements) == MOST_MEASUREMENTS
    assert read(many).broken == "the program printed more than 1000 measurements"
    assert len(read("\n".join([line(error="x")] * 50)).errors) == MOST_ERRORS
    assert not read("\n" * MOST_LINES + END).ended
    assert len(read(measured(device="x" * LINE_CHARACTERS)).measurements) == 0


def test_the_model_of_a_device_stands_in_parentheses() -> None:
    devices = {"GPU-1 (A100-SXM4-80GB)": "A100-SXM4-80GB", "cpu (Xeon(R) Gold)": "Xeon(R) Gold", "cpu": "cpu"}
    assert {device: Measurement("x", 1.0, "", device).model for device in devices} == devices
