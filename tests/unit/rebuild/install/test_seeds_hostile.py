"""Whatever the settings hold, it stays a value in the seed; and the private key is in the seed alone."""

from __future__ import annotations

import logging
import shlex
import traceback
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from hostwright.common.errors import InputError
from hostwright.rebuild.install.seeds.escaping import preseed, to_yaml
from hostwright.rebuild.install.seeds.reading import read_install
from hostwright.rebuild.install.seeds.rendering import render_keys
from tests.unit.support.seed_reading import PRIVATE, answers, document, seed
from tests.unit.support.seeds import HASH, KEYS, MINIMUM, host, install

NASTY = (
    "a\nb", 'x": y', "': ", "{{ x }}", "{% raw %}", "- a", "# c", "null", "~", "yes", "0x10", "*a", "&a", " ", "%s",
    "!!python/name:os", "\u2028", "\x85", "\x7f", "ü😀", "\ud800", "\0", "$(reboot)", "`reboot`", "a\\", "\ttab",
    "a\r\nd-i x/y string z",
)  # fmt: skip
hostile = (
    st.text(max_size=40)
    | st.sampled_from(NASTY)
    | st.builds("{0}{1}".format, st.text(max_size=10), st.sampled_from(NASTY))
)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc: {}\"'\n😀", max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(values)
@example("😀\u2028\x85\x7f\ufeff\x00")
def test_any_value_comes_out_of_yaml_as_it_went_in(value: Any) -> None:
    written = to_yaml(value)
    assert written.isascii()
    assert "\n" not in written
    assert yaml.safe_load(f"a: {written}\nb: 1\n") == {"a": value, "b": 1}


@given(hostile)
def test_a_preseed_value_stays_on_its_line_or_is_refused(value: str) -> None:
    try:
        line = f"d-i a/b string {preseed(value, 'x')}"
    except InputError:
        return
    assert len(line.splitlines()) == 1
    assert line.removeprefix("d-i a/b string ") == value
    assert not value.endswith("\\")


#: The field, and where its value stands in the document; lists hold it as their last.
FIELDS: dict[str, tuple[str | int, ...]] = {
    "hostname": ("identity", "hostname"),
    "user": ("identity", "username"),
    "password_hash": ("identity", "password"),
    "locale": ("locale",),
    "keyboard": ("keyboard", "layout"),
    "timezone": ("timezone",),
    "proxy": ("proxy",),
    "mirror": ("apt", "primary", 0, "uri"),
    "disk": ("storage", "layout", "match", "path"),
    "disk.serial": ("storage", "layout", "match", "serial"),
    "packages": ("packages", -1),
    "late_commands": ("late-commands", -1),
    "ssh_keys": ("ssh", "authorized-keys", -1),
}
PLAIN_KEYS = set(document(install())) | {"proxy", "apt", "network"}


def settings(field: str, value: str) -> dict[str, Any]:
    name, _, inner = field.partition(".")
    if inner:
        return {name: {inner: value}}
    if name == "ssh_keys":
        return {name: [f"{KEYS.public.line} {value}"]}
    return {name: [value] if name in ("packages", "late_commands") else value}


@given(st.sampled_from(sorted(FIELDS)), hostile)
@example("late_commands", "echo '{{ x }}': \"a\nb\" # ü😀\x85")
def test_what_a_setting_holds_is_refused_or_comes_out_again(field: str, value: str) -> None:
    changes = settings(field, value)
    try:
        wanted = read_install(host({**MINIMUM, **changes}))
    except InputError:
        return
    assert wanted is not None
    whole = document(wanted)
    assert set(whole) <= PLAIN_KEYS
    if not value and field != "ssh_keys":
        return  # as if it had not been given
    found: Any = whole
    for part in FIELDS[field]:
        found = found[part]
    assert found == (f"{KEYS.public.line} {value}".strip() if field == "ssh_keys" else value)


@given(st.sampled_from(sorted(set(FIELDS) - {"disk.serial"})), hostile)
@example("late_commands", "echo '{{ x }}': \"a\nb\" # ü😀\x85")
def test_nothing_in_a_setting_becomes_a_line_of_the_preseed_file(field: str, value: str) -> None:
    changes = settings(field, value)
    plain = set(answers(install(os="debian", mirror="http://mirror.example/debian")))
    plain |= {f"mirror/https/{name}" for name in ("hostname", "directory", "proxy")}
    try:
        wanted = read_install(host({**MINIMUM, "os": "debian", "release": "12", **changes}))
        assert wanted is not None
        said = answers(wanted)
    except InputError:
        return
    assert set(said) <= plain
    if field == "late_commands":
        last = seed(wanted).files["late.sh"].decode().rpartition("\nsh -c ")[2]
        assert shlex.split(f"sh -c {last}") == ["sh", "-c", value]


@pytest.mark.parametrize("system", ["ubuntu", "debian"])
def test_the_private_key_is_never_shown(system: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    made = seed(install(os=system, password_hash=HASH))
    secret_line = PRIVATE.splitlines()[2]
    assert any(secret_line in content.decode() for content in made.files.values())
    for shown in (repr(made), str(made), repr(KEYS), caplog.text):
        assert secret_line not in shown
        assert HASH not in shown


def test_the_private_key_is_not_in_the_error_of_a_broken_template(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "keys.j2").write_text("{{ private }}{{ nonsense }}")
    monkeypatch.setattr("hostwright.rebuild.install.seeds.rendering.TEMPLATES", tmp_path)
    with pytest.raises(InputError, match="nonsense") as error:
        render_keys(KEYS)
    shown = "".join(traceback.format_exception(error.value))
    assert PRIVATE.splitlines()[2] not in shown
