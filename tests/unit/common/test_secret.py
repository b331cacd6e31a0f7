import copy
import json
import logging
import pickle
import traceback
from dataclasses import asdict, dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from hostwright.common.quoting import sh
from hostwright.common.secret import MASK, Secret

# Text that is not part of the mask, or of Python's own output around it.
hidden = st.text(alphabet="äöüßéХЖ☃", min_size=1)


@dataclass(frozen=True)
class Holder:
    password: Secret


@settings(deadline=None, max_examples=40)
@given(hidden)
def test_no_way_of_formatting_shows_it(text: str) -> None:
    secret = Secret(text)
    shown = [
        str(secret), repr(secret), f"{secret}", f"{secret!r:>40}", f"{secret:20}", "%s %r" % (secret, secret),  # noqa: UP031
        str([secret]), repr({"a": secret}), repr(Holder(secret)), str(asdict(Holder(secret))),
        json.dumps({"a": secret}, default=str), repr(copy.deepcopy(secret)), repr(vars(Secret)),
    ]  # fmt: skip
    assert not [one for one in shown if text in one]


@settings(deadline=None, max_examples=40)
@given(hidden)
def test_json_and_pickle_refuse_it(text: str) -> None:
    for refuse in (json.dumps, pickle.dumps):
        with pytest.raises(TypeError) as error:
            refuse(Secret(text))
        assert text not in str(error.value)


@settings(deadline=None, max_examples=40)
@given(hidden)
def test_a_secret_in_a_command_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="secret") as error:
        sh("echo %s", Secret(text))
    assert text not in str(error.value)


@settings(deadline=None, max_examples=40)
@given(st.text(), st.text())
def test_equality_and_hash_follow_the_text(one: str, other: str) -> None:
    assert (Secret(one) == Secret(other)) is (one == other)
    assert hash(Secret(one)) == hash(Secret(one))
    assert Secret(one) != one
    assert Secret(one).reveal() == one


def test_an_error_about_it_and_a_log_line_do_not_show_it(caplog: pytest.LogCaptureFixture) -> None:
    word = "".join(["hunt", "er2"])  # a single literal would appear in the traceback as source
    with pytest.raises(ValidationError) as error:
        TypeAdapter(int).validate_python(Secret(word))
    logging.getLogger("x").warning("using %s", Secret(word))
    assert word not in "".join(traceback.format_exception(error.value)) + caplog.text
    assert MASK in caplog.text


def test_a_secret_is_immutable() -> None:
    with pytest.raises(AttributeError):
        Secret("a")._text = "b"  # type: ignore[misc]


def test_pydantic_makes_one_of_text_and_dumps_the_mask() -> None:
    adapter = TypeAdapter(Holder)
    assert adapter.validate_python({"password": "a"}) == Holder(Secret("a"))
    assert adapter.validate_python({"password": Secret("a")}) == Holder(Secret("a"))
    assert adapter.dump_json(Holder(Secret("a"))) == b'{"password":"***"}'
