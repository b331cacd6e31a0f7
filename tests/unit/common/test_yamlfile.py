from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.common.errors import InputError, InputErrors
from hostwright.common.input.unquoted import Unquoted
from hostwright.common.input.yamlfile import Origin, Reader, Vaulted, load_document, parse_document


def test_data_with_the_place_of_each_value() -> None:
    document = parse_document("a: 1\nb:\n  c: [x, y]\n", "f.yml")
    assert document.data == {"a": 1, "b": {"c": ["x", "y"]}}
    assert document.at(("b", "c", 1)) == Origin("f.yml", 3, 10)
    assert str(document.at(("b", "c"))) == "f.yml:3"
    assert document.at(("b", "nothing", 4)) == document.at(("b",))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs", "Cc"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abcäß' $(\"", min_size=1), inner),
)


@settings(deadline=None, max_examples=60)
@given(values)
def test_what_yaml_writes_is_read_back(value: object) -> None:
    assert parse_document(yaml.safe_dump(value, allow_unicode=True), "f.yml").data == value


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", None),
        ("d: 2022-01-31", {"d": "2022-01-31"}),
        ("18.04: x", {"18.04": "x"}),
        ("a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}", {"a": {"p": 1, "q": 2}, "b": {"q": 3, "p": 1}}),
        ("a: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  61", {"a": Vaulted()}),
        ("a: !unsafe '{{ b }}'", {"a": "{{ b }}"}),
    ],
)
def test_dialect(text: str, data: object) -> None:
    assert parse_document(text, "f.yml").data == data


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0644", 420), ("0x10", 16), ("1_000", 1000), ("+5", 5), ("22:22", 1342), ("1.10", 1.1), ("1.0e+3", 1000.0),
        ("1e3", "1e3"), ("08", "08"), ("0o17", "0o17"), ("y", "y"), ("2026-11-23", "2026-11-23"), (".5", 0.5),
    ],
)  # fmt: skip
def test_what_readers_of_yaml_differ_on_keeps_its_text(text: str, value: object) -> None:
    plain, quoted, single = parse_document(f"[{text}, '{text}', \"{text}\"]", "f.yml").data
    assert (plain, quoted, single) == (value, text, text)
    assert isinstance(plain, Unquoted)
    assert plain.text == text
    assert (type(quoted), type(single)) == (str, str)


@pytest.mark.parametrize("text", ["4", "-3", "0", "2.5", "1.0", "Europe/Berlin", "1.2.3", "yesterday", "a1", "8 GiB"])
def test_what_all_readers_agree_on_is_a_plain_value(text: str) -> None:
    (value,) = parse_document(f"[{text}]", "f.yml").data
    assert not isinstance(value, Unquoted)
    assert str(value) == text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: 1\n\tb: 2", "f.yml:2:1: is not valid YAML.*spaces, not with a tab"),
        ("a: b: c", "f.yml:1:5: is not valid YAML.*quote a value"),
        ("a: [1, 2", "f.yml:.*is not valid YAML"),
        ("a: 1\nb: 2\na: 3", "f.yml:3:1: 'a' is given twice: first at f.yml:1, again here"),
        ("a: &x [*x]", "f.yml:1:4: the alias refers to itself"),
        ("a: &x {<<: *x}", "f.yml:1:4: the alias refers to itself"),
        ("a: !!python/object/apply:os.system [ls]", "f.yml:1:4: the tag .* is not allowed"),
        ("a: !!python/name:os.system ''", "f.yml:1:4: the tag .* is not allowed"),
        ("a: 1\n---\nb: 2", "f.yml:2:1: .*one document"),
        ("a: !!int x", "f.yml:1:4: 'x' is not a valid int"),
    ],
)
def test_mistakes_name_file_line_and_column(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        parse_document(text, "f.yml")


def test_all_mistakes_at_once() -> None:
    with pytest.raises(InputErrors) as error:
        parse_document("a: 1\na: 2\nb: 1\nb: 2\n", "f.yml")
    assert len(error.value.errors) == 2


def test_aliases_do_not_multiply_without_bound() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(InputError, match="expands to more than"):
        parse_document("\n".join(lines), "f.yml")


@pytest.mark.parametrize("merge", ["[{}]", "{{'<<': [{}]}}"])
def test_aliases_are_counted_before_anything_is_expanded(monkeypatch: pytest.MonkeyPatch, merge: str) -> None:
    """Merged mappings were once not counted: 40 lines stopped the program."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {merge.format(', '.join([f'*a{n - 1}'] * 10))}" for n in range(1, 40)]
    monkeypatch.setattr(Reader, "pairs", lambda *_: pytest.fail("something was expanded"))
    with pytest.raises(InputError, match="expands to more than"):
        parse_document("\n".join(lines), "f.yml")


@pytest.mark.parametrize("text", ["[" * 300 + "]" * 300, "{a: " * 200 + "1" + "}" * 200])
def test_what_is_nested_without_end_is_a_mistake(text: str) -> None:
    with pytest.raises(InputError, match="nested too deeply"):
        parse_document(text, "f.yml")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.yml").write_bytes(b"a: 1\nb: \xe4\n")
    with pytest.raises(InputError, match=r"latin.yml:2: is not UTF-8"):
        load_document(tmp_path / "latin.yml")
    with pytest.raises(InputError, match="cannot be read: No such file"):
        load_document(tmp_path / "none.yml")


DEEP = 100_000


@pytest.mark.parametrize(
    "text",
    [
        "x: " + "[" * DEEP + "]" * DEEP,
        "x: " + "{a: " * DEEP + "}" * DEEP,
        "- " * DEEP + "x",
        "? " * DEEP + "x",
        "".join(f"{' ' * level}a:\n" for level in range(2000)),
    ],
    ids=["lists", "mappings", "dashes", "keys", "indentation"],
)
def test_what_is_too_deep_for_libyaml_is_a_mistake_and_ends_no_process(text: str) -> None:
    with pytest.raises(InputError, match=r"deep\.yml: is nested too deeply"):
        parse_document(text, "deep.yml")


def test_many_brackets_in_a_text_are_no_depth() -> None:
    assert parse_document(f"x: '{'[' * DEEP}'\ny: [{'{}, ' * 5000}]\n", "wide.yml").data["x"] == "[" * DEEP
