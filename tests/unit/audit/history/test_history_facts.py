"""Tests of the stored last facts of each host, for audits that contact no host."""

from __future__ import annotations

import gzip
import json
import stat
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.apply.journal import factfiles
from hostwright.apply.journal.redaction import Redactor
from hostwright.audit.history import FactStore
from hostwright.common.errors import HostwrightError, InputError
from hostwright.common.secret import Secret
from hostwright.plan.model import Answer, Facts, Probe

AT = datetime(2026, 11, 21, 10, tzinfo=UTC)
FACTS = Facts({Probe("uname -r", root=True): Answer(0, "5.10.0-28\n"), Probe("cat /x"): Answer(1, "", True)})
OPEN = Redactor([])


def the_file(root: Path) -> Path:
    (found,) = [path for path in root.rglob("*") if path.is_file()]
    return found


def test_facts_come_back_with_their_time(tmp_path: Path):
    store = FactStore(tmp_path)
    store.keep("inventory", "gpu01", AT.astimezone(timezone(timedelta(hours=2))), FACTS, OPEN)
    found = FactStore(tmp_path).load("inventory", "gpu01")
    assert found is not None
    assert (dict(found[0]), found[1]) == (dict(FACTS), AT)
    assert found[1].tzinfo is UTC


def test_the_last_ones_take_the_place_of_those_before(tmp_path: Path):
    store = FactStore(tmp_path)
    store.keep("inventory", "gpu01", AT, FACTS, OPEN)
    later = Facts({Probe("uname -r"): Answer(0, "6.1.0\n")})
    store.keep("inventory", "gpu01", AT + timedelta(days=1), later, OPEN)
    found = store.load("inventory", "gpu01")
    assert found is not None
    assert (dict(found[0]), found[1]) == (dict(later), AT + timedelta(days=1))
    assert the_file(tmp_path).name == "gpu01.last.json.gz"


def test_hosts_and_inventories_are_apart(tmp_path: Path):
    store = FactStore(tmp_path)
    store.keep("inventory", "gpu01", AT, FACTS, OPEN)
    assert store.load("inventory", "gpu02") is None
    assert store.load("elsewhere", "gpu01") is None
    assert store.load(tmp_path.cwd() / "inventory", "gpu01") is not None


def test_hosts_that_answer_alike_share_what_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    other = Facts({**FACTS, Probe("cat /x"): Answer(0, "y")})
    for number in range(20):
        FactStore(tmp_path).keep(
            "inventory", f"gpu{number:02}", AT + timedelta(seconds=number), other if number == 7 else FACTS, OPEN
        )
    read: list[object] = []
    asked: list[str] = []
    monkeypatch.setattr(factfiles, "Facts", lambda answers: read.append(answers) or Facts(answers))
    monkeypatch.setattr(factfiles, "Probe", lambda *of: asked.append(of[0]) or Probe(*of))
    store = FactStore(tmp_path)
    found = [store.load("inventory", f"gpu{number:02}") for number in range(20)]
    assert [one and (dict(one[0]), one[1]) for one in found] == [
        (dict(other if number == 7 else FACTS), AT + timedelta(seconds=number)) for number in range(20)
    ]
    assert len({id(one[0]) for one in found if one}) == len(read) == 2
    assert len(asked) == len(FACTS), "questions are read once for all hosts that were asked them"


def test_questions_are_packed_once_for_hosts_that_are_asked_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    packed: list[str] = []
    real = factfiles._packed
    monkeypatch.setattr(factfiles, "_packed", lambda text: packed.append(text) or real(text))
    asked = Probe(f"cat {tmp_path}")
    for number in range(20):
        FactStore(tmp_path).keep("inventory", f"gpu{number}", AT, Facts({asked: Answer(0, str(number))}), OPEN)
    assert sum(str(tmp_path) in text for text in packed) == 1
    assert len(packed) == 41


def test_no_more_than_so_many_different_answers_are_kept_for_other_hosts(tmp_path: Path):
    for number in range(factfiles.MOST_PARSED + 5):
        FactStore(tmp_path).keep("inventory", f"h{number}", AT, Facts({Probe("x"): Answer(0, str(number))}), OPEN)
    store = FactStore(tmp_path)
    for number in range(factfiles.MOST_PARSED + 5):
        found = store.load("inventory", f"h{number}")
        assert found is not None and found[0][Probe("x")].text == str(number)
    assert len(store._parsed._facts) == factfiles.MOST_PARSED


def test_a_file_is_one_document_for_whoever_unpacks_it_and_one_of_an_earlier_version_is_read(tmp_path: Path):
    store = FactStore(tmp_path)
    store.keep("inventory", "gpu01", AT, FACTS, OPEN)
    document = json.loads(gzip.decompress(the_file(tmp_path).read_bytes()))
    asked, answers = document["probes"], document["answers"]
    assert (document["host"], len(asked), len(answers)) == ("gpu01", 2, 2)
    rows = [{**question, **answer} for question, answer in zip(asked, answers, strict=True)]
    head = {"schema": 1, "host": "gpu01", "at": document["at"]}
    begin, end = json.dumps({**head, "facts": rows}).split("[", 1)
    for earlier in ([begin, f"[{end}"], [f"{begin}[{end}"]):  # in two parts, and in one part
        the_file(tmp_path).write_bytes(b"".join(gzip.compress(part.encode()) for part in earlier))
        found = store.load("inventory", "gpu01")
        assert found is not None and (dict(found[0]), found[1]) == (dict(FACTS), AT)


@given(cut=st.integers(1, 400))
def test_a_file_that_was_cut_is_an_error(tmp_path_factory: pytest.TempPathFactory, cut: int):
    root = tmp_path_factory.mktemp("cut")
    store = FactStore(root)
    store.keep("inventory", "gpu01", AT, FACTS, OPEN)
    data = the_file(root).read_bytes()
    the_file(root).write_bytes(data[: max(0, len(data) - cut)])
    with pytest.raises(InputError, match=r"gpu01\.last\.json\.gz"):
        store.load("inventory", "gpu01")


def test_stored_facts_are_private(tmp_path: Path):
    root = tmp_path / "state"
    FactStore(root).keep("inventory", "gpu01", AT, FACTS, OPEN)
    modes = {path.is_dir(): stat.S_IMODE(path.stat().st_mode) for path in [root, *root.rglob("*")]}
    assert modes == {True: 0o700, False: 0o600}


def test_no_secret_is_kept(tmp_path: Path):
    facts = Facts({Probe("grep hunter22 /etc/x"): Answer(0, "token=hunter22")})
    FactStore(tmp_path).keep("inventory", "gpu01", AT, facts, Redactor([Secret("hunter22")]))
    assert b"hunter22" not in gzip.decompress(the_file(tmp_path).read_bytes())


@given(
    name=st.sampled_from(["../../etc/passwd", "/etc/passwd", "..", "", "a/b", "GPU01", "x" * 500, "gpu\0", "\ud800"])
)
def test_a_name_of_any_host_stays_inside(tmp_path_factory: pytest.TempPathFactory, name: str):
    root = tmp_path_factory.mktemp("facts")
    store = FactStore(root / "state")
    store.keep("inventory", "gpu01", AT, Facts({}), OPEN)
    store.keep("inventory", name, AT, FACTS, OPEN)
    files = [path for path in root.rglob("*") if path.is_file()]
    assert len(files) == 2
    assert len({path.parent for path in files}) == 1
    found = store.load("inventory", name)
    assert found is not None and dict(found[0]) == dict(FACTS)


def packed(text: str) -> bytes:
    """A gzip file that always has the same bytes, since they become the name of a test."""
    return gzip.compress(text.encode(), mtime=0)


@pytest.mark.parametrize(
    "document",
    [b"", b"\x1f\x8b", b"not gzip", packed("{"), packed("[]"), packed('{"facts": []}'),
     packed('{"facts": [], "at": "noon"}'), packed('{"facts": [], "at": 5}'),
     packed('{"facts": [{}], "at": "2026-11-21T10:00:00+00:00"}'),
     packed('{"at": "2026-11-21T10:00:00+00:00", "probes": ') + packed('[], "answers": ') + packed("[{}]}"),
     packed('{"at": "2026-11-21T10:00:00+00:00", "probes": ') + packed('[[5]], "answers": ') + packed("[]}")],
)  # fmt: skip
def test_a_damaged_facts_file_is_an_error_that_names_it(tmp_path: Path, document: bytes):
    store = FactStore(tmp_path)
    store.keep("inventory", "gpu01", AT, FACTS, OPEN)
    the_file(tmp_path).write_bytes(document)
    with pytest.raises(InputError, match=r"gpu01\.last\.json\.gz"):
        store.load("inventory", "gpu01")


def test_a_time_without_an_offset_is_utc(tmp_path: Path):
    store = FactStore(tmp_path)
    store.keep("inventory", "gpu01", AT, FACTS, OPEN)
    document = {"facts": [], "at": "2026-11-21T10:00:00"}
    the_file(tmp_path).write_bytes(gzip.compress(json.dumps(document).encode()))
    found = store.load("inventory", "gpu01")
    assert found is not None and found[1] == AT


def test_an_unwritable_facts_directory_is_an_error(tmp_path: Path):
    (tmp_path / "audits").write_text("")
    with pytest.raises(HostwrightError, match=r"gpu01\.last\.json\.gz: cannot be written"):
        FactStore(tmp_path).keep("inventory", "gpu01", AT, FACTS, OPEN)
