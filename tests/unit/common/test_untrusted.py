"""JSON from an untrusted host: an object that all parsers read alike, or nothing."""

from __future__ import annotations

import json
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.common.untrusted import json_object

LIES = {
    "NaN": '{"a": NaN}',
    "infinity": '{"a": -Infinity}',
    "infinity by its exponent": '{"a": 1e999}',
    "a number of 5000 digits": '{"a": ' + "9" * 5000 + "}",
    "a number that SQLite does not hold": '{"a": 9999999999999999999}',
    "digits that are not ASCII": '{"a": \u0663}',
    "a key that stands twice": '{"a": {"b": 1, "b": 2}}',
    "half a surrogate pair": r'{"a": "\ud800"}',
    "half a surrogate pair as a key": r'{"\udfff": 1}',
    "arrays in arrays": '{"a":' + "[" * 100_000,
    "objects in objects": '{"a":' * 50_000 + "1" + "}" * 50_000,
    "two objects": "{}{}",
    "an array": "[1]",
    "nothing": "",
}


@pytest.mark.parametrize("text", LIES.values(), ids=LIES)
def test_what_readers_take_differently_is_no_object(text: str) -> None:
    assert json_object(text) is None


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.dictionaries(st.text(), _VALUES) | _VALUES, st.booleans())
def test_what_is_an_object_can_be_stored_and_printed(value: object, ascii_only: bool) -> None:
    read = json_object(json.dumps(value, ensure_ascii=ascii_only))
    if read is not None:
        text = json.dumps(read, ensure_ascii=False, allow_nan=False)
        assert sqlite3.connect(":memory:").execute("SELECT json_valid(?), ?", (text, text)).fetchone()[0] == 1
        assert json_object(text) == read == value


@given(st.text())
def test_no_text_is_an_error(text: str) -> None:
    assert json_object(text) is None or text.strip().startswith("{")
