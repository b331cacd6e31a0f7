"""CSAF bulletins in a vendor's forms, and untrusted directories."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from hostwright.common.errors import InputError
from hostwright.stack import bulletins
from hostwright.stack.ages import Advisories, Product
from hostwright.stack.bulletins import floors_of, read_bulletins
from tests.unit.stack.test_ages import KNOWN

NAMES = {name: product for product, each in KNOWN.products.items() for name in each.bulletins}


def leaf(key: str, name: str, version: str) -> dict[str, Any]:
    product = {"name": version, "product_id": key}
    return {"category": "product_version", "name": name, "product": product}


def bulletin(*leaves: tuple[str, dict[str, Any]], fixed: tuple[str, ...], **tracking: str) -> dict[str, Any]:
    """A bulletin with these versions, each below a platform."""
    head = {"id": "5999", "status": "final", "current_release_date": "2026-11-20T00:00:00.000Z", **tracking}
    branches = [{"category": "architecture", "name": platform, "branches": [each]} for platform, each in leaves]
    return {
        "document": {"csaf_version": "2.0", "category": "csaf_security_advisory", "tracking": head},
        "product_tree": {"branches": [{"category": "vendor", "name": "NVIDIA", "branches": branches}]},
        "vulnerabilities": [{"cve": "CVE-2026-11111", "product_status": {"fixed": list(fixed)}}],
    }


DRIVER = bulletin(
    ("Linux(R580)", leaf("a", "Tesla", "580.200.01")),
    ("Linux(R580)", leaf("b", "Tesla", "All driver versions prior to 580.200.01")),
    ("Linux(R595)", leaf("c", "Tesla", "595.95.02")),
    ("Windows(R580)", leaf("d", "Tesla", "582.99")),
    ("Linux(R580 vGPU 19)", leaf("e", "Guest driver", "580.200.01")),
    ("Linux(R580)", leaf("f", "GeForce", "580.200.01")),
    fixed=("a", "c", "d", "e", "f", "unknown"),
)


def test_the_versions_that_a_bulletin_calls_fixed_are_the_floors_of_their_series() -> None:
    found = [(name, floor.series, floor.version) for name, floor in floors_of(DRIVER, NAMES)]
    assert found == [("driver", "580", "580.200.01"), ("driver", "595", "595.95.02")]
    (_, first), *_ = floors_of(DRIVER, NAMES)
    assert (first.published, first.bulletin, first.cves) == ("2026-11-20", "5999", ("CVE-2026-11111",))


def test_a_product_of_one_series_has_a_floor_for_all() -> None:
    toolkit = bulletin(("Linux", leaf("a", "NVIDIA Container Toolkit", "1.21.0")), fixed=("a",))
    assert [(name, floor.series, floor.version) for name, floor in floors_of(toolkit, NAMES)] == [
        ("container-toolkit", None, "1.21.0")
    ]


def test_a_version_may_stand_below_its_products_name() -> None:
    """The form of CSAF's own examples."""
    version = {"category": "product_version", "name": "1.21.0", "product": {"name": "Tool 1.21.0", "product_id": "x"}}
    document = bulletin(fixed=("x",))
    named = {"category": "product_name", "name": "NVIDIA Container Toolkit", "branches": [version]}
    document["product_tree"]["branches"] = [named]
    assert [floor.version for _, floor in floors_of(document, NAMES)] == ["1.21.0"]


@pytest.mark.parametrize(
    "tracking",
    [
        {"status": "draft"},
        {"current_release_date": "yesterday"},
        {"current_release_date": "2026-13-40"},
        {"id": "../../etc"},
        {"id": "x" * 81},
    ],
)
def test_a_bulletin_without_a_sound_head_sets_no_floor(tracking: dict[str, str]) -> None:
    one = bulletin(("Linux(R580)", leaf("a", "Tesla", "580.200.01")), fixed=("a",), **tracking)
    assert list(floors_of(one, NAMES)) == []


@pytest.mark.parametrize("version", ["580", "", "580.200.01; rm -rf /", "9" * 12 + ".1", "580.2\n", "١٢.٣"])
def test_a_version_that_is_none_sets_no_floor(version: str) -> None:
    one = bulletin(("Linux(R580)", leaf("a", "Tesla", version)), fixed=("a",))
    assert [floor.version for _, floor in floors_of(one, NAMES)] in ([], ["580.2"])


@pytest.mark.parametrize("odd", [None, 7, "text", [], {"branches": 7}, {"branches": [None, 7, {"name": 7}]}])
def test_what_has_another_shape_is_passed_over(odd: object) -> None:
    one = {**DRIVER, "product_tree": odd}
    assert list(floors_of(one, NAMES)) == []
    assert list(floors_of({**DRIVER, "vulnerabilities": odd}, NAMES)) == []


def put(folder: Path, name: str, document: object) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def test_a_directory_is_read_to_its_depth_and_other_files_are_left_alone(tmp_path: Path) -> None:
    put(tmp_path, "2026/5999/5999.json", DRIVER)
    put(tmp_path, "2026/5999/CVE-2026-11111.json", {"dataType": "CVE_RECORD"})
    put(tmp_path, ".git/objects.json", DRIVER)
    (tmp_path / "2026/5999/5999.json.sha256").write_text("x")
    read = read_bulletins(tmp_path, KNOWN)
    assert (read.bulletins, read.skipped) == (1, ("2026/5999/CVE-2026-11111.json",))
    assert [floor.version for floor in read.advisories.products["driver"].floors] == ["580.200.01", "595.95.02"]
    assert read.advisories.date.isoformat() == "2026-11-20"


def test_links_pipes_and_large_files_are_no_bulletins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = put(tmp_path, "outside/real.json", DRIVER)
    folder = tmp_path / "folder"
    put(folder, "sound.json", DRIVER)
    (folder / "link.json").symlink_to(outside)
    os.mkfifo(folder / "pipe.json")
    (folder / "garbage.json").write_bytes(b"\xff\xfe{")
    (folder / "twice.json").write_text('{"document": 1, "document": 2}')
    (folder / "nested.json").write_text("[" * 100_000)
    put(folder, "large.json", {**DRIVER, "more": "x" * 5000})
    monkeypatch.setattr(bulletins, "MAX_BYTES", 4000)
    read = read_bulletins(folder, KNOWN)
    assert read.bulletins == 1
    assert set(read.skipped) == {f"{name}.json" for name in ("garbage", "large", "link", "nested", "pipe", "twice")}


def test_a_directory_with_too_much_or_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="has no security bulletin"):
        read_bulletins(tmp_path, KNOWN)
    with pytest.raises(InputError, match="is not a directory"):
        read_bulletins(tmp_path / "none", KNOWN)
    for number in range(4):
        put(tmp_path, f"{number}.json", DRIVER)
    monkeypatch.setattr(bulletins, "MAX_FILES", 3)
    with pytest.raises(InputError, match="more than 3 files"):
        read_bulletins(tmp_path, KNOWN)


def test_a_bulletin_as_large_as_allowed_is_read_in_linear_time() -> None:
    leaves = tuple(("Linux(R580)", leaf(str(number), "Tesla", f"580.{number}.01")) for number in range(20_000))
    one = bulletin(*leaves, fixed=tuple(str(number) for number in range(20_000)))
    began = time.process_time()
    assert len(list(floors_of(one, NAMES))) == 20_000
    assert time.process_time() - began < 5


def test_a_product_that_no_role_names_sets_no_floor() -> None:
    assert list(floors_of(DRIVER, {})) == []
    nobody = Advisories(date=KNOWN.date, products={"driver": Product()})
    assert nobody.products["driver"].bulletins == ()
