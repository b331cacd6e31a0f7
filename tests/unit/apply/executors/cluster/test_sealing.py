"""Secrets are taken out of what is sent, and only the worker that needs them can read them."""

from __future__ import annotations

import pickle
import zlib
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.apply.executors.cluster.sealing import Mailbox, Sealed, Withheld, encrypted_for, opened, seal
from hostwright.common.errors import HostError
from hostwright.common.input.passwordcommand import PrintedSecret
from hostwright.common.secret import Secret

TEXTS = st.text(min_size=1, max_size=30)


@dataclass(frozen=True)
class Thing:
    name: str
    token: Secret
    more: tuple[Secret, ...] = ()


def anything(_: Secret) -> bool:
    return True


@given(st.lists(TEXTS, max_size=5), st.text(max_size=20))
def test_a_value_is_the_same_at_the_other_end(texts, name):
    thing = Thing(name, Secret(texts[0] if texts else ""), tuple(Secret(text) for text in texts))
    sealed, sent = seal(thing, anything)
    assert opened(sealed, sent, "gpu01") == thing
    assert list(sent) == list(dict.fromkeys(texts))


@given(st.text(alphabet="abcdefghij0123456789", min_size=12, max_size=30))
def test_what_is_sent_openly_holds_no_secret(text):
    sealed, sent = seal({"a": Secret(text), "b": [Thing("x", Secret(text))]}, anything)
    assert text.encode() not in zlib.decompress(sealed.body)
    assert text.encode() not in pickle.dumps(sealed)
    assert sent == (text,)


def test_what_is_not_needed_is_not_sent_and_said_so_where_it_is_wanted_after_all():
    sealed, sent = seal(Thing("x", Secret("needed"), (Secret("bmc"),)), lambda secret: secret == Secret("needed"))
    assert sent == ("needed",)
    thing = opened(sealed, sent, "gpu01")
    assert thing.token == Secret("needed")
    (withheld,) = thing.more
    assert bool(withheld)
    assert str(withheld) == "***"
    with pytest.raises(HostError, match="gpu01: a required secret was not sent"):
        withheld.reveal()
    assert withheld != Withheld("gpu01")
    assert hash(withheld) == hash(withheld)


def test_a_text_that_has_a_secret_in_it_is_taken_out_too():
    value = {"url": "https://me:hunter22@example.org", "plain": "hello", "a hunter22 key": ["hunter22", "hunt"]}
    sealed, sent = seal(value, anything, {"hunter22", "abc"})
    assert b"hunter22" not in zlib.decompress(sealed.body)
    assert opened(sealed, sent, "gpu01") == value
    assert seal({"x": "abc"}, anything, {"abc"})[1] == ()  # three letters stand anywhere


def test_an_empty_secret_is_none_that_is_sent():
    sealed, sent = seal(Thing("x", Secret("")), anything)
    assert sent == ()
    assert opened(sealed, (), "gpu01").token == Secret("")


def test_a_command_prints_its_secret_here_and_once(tmp_path: Path):
    printed = PrintedSecret(f"echo ran >>{tmp_path}/ran; echo hunter22", "gpu01", "token")
    sealed, sent = seal((printed, printed), anything)
    assert sent == ("hunter22",)
    assert opened(sealed, sent, "gpu01") == (Secret("hunter22"), Secret("hunter22"))
    assert (tmp_path / "ran").read_text() == "ran\n"


def test_a_command_that_fails_is_the_hosts_error():
    with pytest.raises(HostError, match="gpu01: the command of token printed no password"):
        seal(PrintedSecret("exit 3", "gpu01", "token"), anything)


def test_a_command_whose_secret_is_not_needed_is_not_run(tmp_path: Path):
    seal(PrintedSecret(f"touch {tmp_path}/ran", "gpu01", "bmc_password"), lambda _: False)
    assert list(tmp_path.iterdir()) == []


def test_sealed_bytes_are_not_shown():
    assert repr(Sealed(b"abc")) == "Sealed()"


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_only_the_mailbox_that_a_letter_was_written_for_can_read_it(texts):
    ours, other = Mailbox(), Mailbox()
    sent = encrypted_for(texts, ours.address)
    assert ours.read(sent) == tuple(texts)
    with pytest.raises(ValueError, match="encrypted for another recipient"):
        other.read(sent)
    for text in texts:
        assert len(text) < 6 or text.encode() not in sent


@given(st.data())
def test_a_letter_that_was_changed_is_refused(data):
    ours = Mailbox()
    sent = bytearray(encrypted_for(["hunter22"], ours.address))
    place = data.draw(st.integers(0, len(sent) - 1))
    sent[place] ^= 1 << data.draw(st.integers(0, 7 if place != 31 else 6))  # X25519 ignores the last bit of a key
    with pytest.raises(ValueError, match=r"another recipient|shared key"):
        ours.read(bytes(sent))


def test_two_letters_with_the_same_text_differ():
    ours = Mailbox()
    assert encrypted_for(["hunter22"], ours.address) != encrypted_for(["hunter22"], ours.address)


def test_nothing_to_send_is_no_letter():
    assert encrypted_for([], Mailbox().address) == b""
    assert Mailbox().read(b"") == ()


def test_a_secret_that_is_not_sealed_cannot_leave():
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(Thing("x", Secret("hunter22")))
