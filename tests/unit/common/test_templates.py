"""Templates: rendered text, and errors with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostwright.common.errors import InputError
from hostwright.common.templates import render


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "role").mkdir()
    (tmp_path / "role/good.j2").write_text('# {{ name }} ü <&">\n{% if name %}\n  kept\n{% endif %}\n')
    (tmp_path / "role/broken.j2").write_text("fine\n{{ name \n")
    return tmp_path


def test_values_are_inserted_verbatim_and_the_last_newline_stays(folder: Path) -> None:
    assert render("role/good.j2", [folder], name="<b>$(id)") == '# <b>$(id) ü <&">\n  kept\n'


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("role/good.j2", r"templates/role/good.j2:1: 'name' is undefined"),
        ("role/broken.j2", r"templates/role/broken.j2:2: "),
        ("role/none.j2", r"templates/role/none.j2: there is no such template"),
        ("../secrets.j2", r"there is no such template"),
    ],
)
def test_a_mistake_says_where_it_is(folder: Path, name: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        render(name, [folder])
