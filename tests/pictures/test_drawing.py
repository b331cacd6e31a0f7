"""Screens as SVG: what stands is drawn once, and where nothing moves the last screen is what is seen."""

from __future__ import annotations

import re

from defusedxml.ElementTree import fromstring

from tests.pictures.drawing import END_S, LIGHT, MOST_S, Frame, animate, draw, paced

SVG = "{http://www.w3.org/2000/svg}"
FRAMES = [Frame(0.0, "$ plan\n"), Frame(1.0, "$ plan\n\x1b[32mgpu01\x1b[0m  <as desired> & so on"), Frame(2.0, "gpu01")]


def words(svg: str) -> list[str]:
    return [text.text or "" for text in fromstring(svg).iter(f"{SVG}text")]


def test_a_screen_is_drawn_with_its_colours_each_run_at_its_columns() -> None:
    svg = draw(FRAMES[1].ansi, 40, theme=LIGHT)
    assert words(svg) == ["$ plan", "gpu01", "  <as desired> & so on"]
    runs = [text.attrib for text in fromstring(svg).iter(f"{SVG}text")]
    assert [run["x"] for run in runs] == ["0.0", "0.0", "42.0"]
    assert runs[1]["fill"] != runs[2]["fill"]
    assert "animation:" not in svg.split("@media")[0]
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")


def test_a_line_that_stands_is_drawn_once_and_the_last_screen_is_seen_where_nothing_moves() -> None:
    svg = animate(FRAMES, 40, rows=3)
    assert words(svg).count("$ plan") == 1
    hidden = set(re.findall(r"\.(m\d+)\{animation:[^}]*;visibility:hidden\}", svg))
    uses = [use.attrib for use in fromstring(svg).iter(f"{SVG}use")]
    lines = {group.attrib["id"]: "".join(group.itertext()) for group in fromstring(svg).iter(f"{SVG}g")}
    assert [lines[use["href"][1:]] for use in uses if use.get("class") not in hidden] == ["gpu01"]
    assert f"{FRAMES[-1].at_s + END_S:.2f}s step-end infinite" in svg


def test_nobody_waits_for_what_took_minutes() -> None:
    frames = paced([Frame(100.0, "a"), Frame(100.5, "a"), Frame(400.0, "b"), Frame(400.5, "c")])
    assert [(frame.at_s, frame.ansi) for frame in frames] == [(0.0, "a"), (0.5 + MOST_S, "b"), (1.0 + MOST_S, "c")]
