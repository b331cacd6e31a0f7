"""Ends of life and security floors: the reasons against a version on a given day."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from hostwright.common.errors import InputError
from hostwright.plan.roles.role import discover
from hostwright.stack.ages import (
    NONE,
    Advisories,
    End,
    Floor,
    Newest,
    Product,
    advisories_text,
    aged,
    combined,
    last_day,
    lifetimes,
    read_advisories,
    words,
)

TODAY = date(2026, 11, 28)
KNOWN = combined(role.advisories for role in discover())


def sentences(today: date = TODAY, **versions: str) -> list[str]:
    named = {name.replace("_", "-"): version for name, version in versions.items()}
    return [one.sentence for one in aged(KNOWN, named, today)]


@pytest.mark.parametrize(
    ("driver", "against"),
    [
        ("470.182.03", ["driver 470.182.03: support for 470 ended in September 2024"]),
        ("580.95.05", ["driver 580.95.05 is below the floor of May 2026 (580.159.03)"]),
        ("580.159.03", []),
        ("580.159.04", []),
        ("580.178.04", []),
        ("595.71.05", []),
        ("595.58.03", ["driver 595.58.03 is below the floor of May 2026 (595.71.05)"]),
        ("620.70.06", []),
        (
            "570.195.03",
            [
                "driver 570.195.03: support for 570 ended in February 2026",
                "driver 570.195.03 is below the floor of January 2026 (570.211.01)",
            ],
        ),
        ("550.163.01", ["driver 550.163.01: support for 550 ended in 2025"]),  # Debian 13's driver
        ("535.309.01", ["driver 535.309.01: support for 535 ended in June 2026"]),
        ("590.48.01", ["driver 590.48.01: support for 590 ended"]),
        ("999.1", []),
        ("nonsense", []),
    ],
)
def test_what_is_known_against_a_driver(driver: str, against: list[str]) -> None:
    assert sentences(driver=driver) == against


@pytest.mark.parametrize(
    ("toolkit", "below"),
    [("1.17.8-1", True), ("1.19.0-1", True), ("1.19.1-1", False), ("1.20.0-1", False), ("1.9.0", True)],
)
def test_the_container_toolkit_has_one_floor_for_all_versions(toolkit: str, below: bool) -> None:
    floor = f"container-toolkit {toolkit} is below the floor of June 2026 (1.19.1)"
    assert sentences(container_toolkit=toolkit) == ([floor] if below else [])


def test_a_package_may_have_an_epoch() -> None:
    assert sentences(dcgm="1:4.6.0-1") == []
    assert sentences(dcgm="1:4.5.2-1") == ["dcgm 1:4.5.2-1 is below the floor of July 2026 (4.5.3)"]


def test_an_end_counts_from_the_day_after_it() -> None:
    assert sentences(date(2028, 6, 30), driver="580.178.04") == []
    assert sentences(date(2028, 7, 1), driver="580.178.04") == ["driver 580.178.04: support for 580 ended in June 2028"]
    assert [last_day(when).isoformat() for when in ("2025", "2028-02", "2026-05-21")] == [
        "2025-12-31",
        "2028-02-29",
        "2026-05-21",
    ]
    assert [words(when) for when in ("2025", "2028-02", "2026-05-21")] == ["2025", "February 2028", "May 2026"]


def test_a_series_that_lives_says_until_when() -> None:
    versions = {"driver": "580.178.04", "tensorflow": "2.21.0", "torch": "2.15.0", "cuda": "13.0.2"}
    assert lifetimes(KNOWN, versions, TODAY) == (
        "driver 580 (LTS) until June 2028",
        "torch 2.15 until its next series, due in December 2026",
        "cuda 13.0 (images, with R580) until June 2028",
    )
    assert lifetimes(KNOWN, {"torch": "2.15.0"}, date(2026, 12, 23)) == ()
    assert lifetimes(KNOWN, {"driver": "470.182.03"}, TODAY) == ()


@pytest.mark.parametrize(
    ("product", "version", "against"),
    [
        ("torch", "2.15.0", []),
        ("torch", "2.16.0", []),
        (
            "torch",
            "2.14.1+cu130",
            ["2.15 is the newest series since October 2026, and older ones have no end that is published"],
        ),
        ("jax", "0.12.0.1", []),
        (
            "jax",
            "0.4.30",
            ["0.12 is the newest series since October 2026, and older ones have no end that is published"],
        ),
        ("tensorflow", "2.21.0", []),
        (
            "tensorflow",
            "2.15.1",
            ["2.21 is the newest series since March 2026, and older ones have no end that is published"],
        ),
        ("tensorflow", "2.9.0", ["support for 2.9 ended"]),
        ("cuda", "11.2.2", ["support for NVIDIA's container images with 11.2 ended in January 2022"]),
        ("cuda", "12.6.3-1", ["support for NVIDIA's container images with 12.6 ended"]),
        ("cuda", "13.0.2", []),
        ("cuda", "14.0.0", []),
    ],
)
def test_what_is_known_against_toolkits_and_frameworks(product: str, version: str, against: list[str]) -> None:
    assert sentences(**{product: version}) == [f"{product} {version}: {sentence}" for sentence in against]


def test_a_newer_source_names_another_newest_series() -> None:
    later = Newest(series="2.16", since="2026-12-22", source="x")
    both = combined((Advisories(date=TODAY, products={"torch": Product(newest=later)}), KNOWN))
    assert both.products["torch"].newest == later
    assert [one.kind for one in aged(both, {"torch": "2.15.0"}, TODAY)] == ["superseded"]


def test_the_narrowest_series_decides() -> None:
    product = Product(ends=(End(series="13", end="2027", source="x"), End(series="13.0", end="2025", source="y")))
    known = Advisories(date=TODAY, products={"tool": product})
    assert [one.source for one in aged(known, {"tool": "13.0.2"}, TODAY)] == ["y"]
    assert aged(known, {"tool": "13.2.1"}, TODAY) == ()


def test_sources_add_up() -> None:
    newer = Product(floors=(Floor(version="580.200.01", series="580", published="2026-11-20", bulletin="5999"),))
    both = combined((KNOWN, Advisories(date=date(2026, 12, 1), products={"driver": newer}), NONE))
    (found,) = aged(both, {"driver": "580.178.04"}, TODAY)
    assert (found.kind, found.source) == ("below the floor", "5999")
    assert both.date == date(2026, 12, 1)
    assert both.products["driver"].packages == KNOWN.products["driver"].packages


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "advisories.json").write_bytes(advisories_text(KNOWN))
    assert read_advisories(tmp_path / "advisories.json") == KNOWN
    assert read_advisories(tmp_path / "none.json") == NONE


@pytest.mark.parametrize(
    "text", ["", "{}", '{"date": "2026-11-28", "products": {"driver": {"ends": [{"series": "x"}]}}}']
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "advisories.json").write_text(text)
    with pytest.raises(InputError, match=r"the security advisories cannot be read"):
        read_advisories(tmp_path / "advisories.json")


def test_every_row_has_a_source_and_its_role_brings_it() -> None:
    rows = [row for product in KNOWN.products.values() for row in (*product.ends, product.newest) if row]
    assert all(row.source for row in rows)
    brought = {role.name: set(role.advisories.products) for role in discover() if role.advisories.products}
    assert brought == {
        "cuda": {"cuda"},
        "driver": {"driver", "container-toolkit", "dcgm"},
        "jax": {"jax"},
        "pytorch": {"torch"},
        "tensorflow": {"tensorflow"},
    }
