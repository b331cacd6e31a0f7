"""Wheels of TensorFlow's environment: pip accepts only wheels with a known hash."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from hostwright.common.templates import STANDARD
from hostwright.plan.model import Refusal
from hostwright.plan.state_identity import identity_of
from hostwright.resources.python.python import Recipe, Venv
from hostwright.resources.python.users_files import HOMES
from hostwright.resources.python.venv_audit import Drift
from hostwright.resources.python.venv_scripts import install_script, mend_script
from hostwright.stack.store.hostcache import host_path
from hostwright.standard.roles.tensorflow import _known_wheels
from tests.unit.roles.test_role_tensorflow import AUDIT, LINK, PYTHON, WHEELS, found, only, recipe
from tests.unit.support.facts import changes_of
from tests.unit.support.shell import run


def test_every_pin_of_a_standard_stack_has_the_hash_of_its_wheel() -> None:
    wheels = _known_wheels()
    for file in sorted((STANDARD / "stacks" / "constraints").glob("*.txt")):
        python = re.sub(r".*-py3(\d+)", r"3.\1", file.stem)
        made = Recipe("tf", python, "", file.read_text(), wheels=wheels)
        assert [name for name in made.pins if not made.hashed(name)] == [], f"{file.name}: add them to wheels.txt"


def test_pip_takes_only_wheels_whose_hash_is_known() -> None:
    """Also from a wheelhouse, and for the repair of one package; a stack's own wheels are added to the role's."""
    wheels = f"{'1' * 64}  numpy-1.26.4-cp39-cp39-linux_x86_64.whl\n{'2' * 64}  tensorflow-2.9.0-py3-none-any.whl\n"
    for house in (None, WHEELS):
        made = Recipe("tf", "3.9", "tensorflow==2.9.0", "numpy==1.26.4\n", house, wheels=wheels)
        venv = Venv("/opt/tf", (made,))
        install = only(changes_of(venv, {"python3.14": PYTHON, AUDIT: "link\t\n"})).steps[1].script
        assert "numpy==1.26.4 --hash=sha256:1111" in install and "tensorflow==2.9.0 --hash=sha256:2222" in install
        assert "--require-hashes -r /dev/stdin" in install and "constraints.txt" not in install
        mend = mend_script(made, [Drift("numpy", "2.0", "1.26.4")])
        assert "numpy==1.26.4 --hash" in mend and "tensorflow==" not in mend
        assert "--force-reinstall --no-deps --require-hashes -r /dev/stdin" in mend


def test_a_pin_without_a_known_wheel_is_installed_as_before_and_no_venv_is_rebuilt_for_hashes() -> None:
    wheels = f"{'1' * 64}  numpy-1.26.4-cp39-cp39-linux_x86_64.whl\n"
    made = Recipe("tf", "3.9", "tensorflow==2.9.0", "numpy==1.26.4\n", wheels=wheels)
    plain = Recipe("tf", "3.9", "tensorflow==2.9.0", "numpy==1.26.4\n")
    assert made.home == plain.home and identity_of(made) == identity_of(plain)
    assert install_script(made) == install_script(plain)
    assert "--require-hashes" not in install_script(made)


def mirrored(**changed: Any) -> Recipe:
    return replace(recipe(), mirrored=True, **changed)


def planned(made: Recipe, audit: str = "link\t\n") -> Any:
    return only(changes_of(Venv("/opt/tf", (made,)), {"python3.14": PYTHON, AUDIT: audit}))


def test_a_venv_of_the_mirrors_wheels_takes_each_as_a_file_and_asks_no_index() -> None:
    change = planned(mirrored())
    assert change.want.endswith(", from 46 wheels of the mirror, without an index")
    assert len(change.artifacts) == 46 and "tensorflow-2.9.0-cp39-cp39" in change.artifacts
    create, install, _ = (step.script for step in change.steps)
    assert f"--no-index --find-links {recipe().home}.wheels" in install and "--require-hashes" in install
    assert install.count("/var/cache/hostwright/artifacts/") == 46
    assert f"trap 'rm -rf -- {recipe().home}.wheels' EXIT" in install, "links that nobody needs would stay"
    assert create.count("/var/cache/hostwright/artifacts/") == 1 and "/pip-24.0-py3-none-any.whl" in create


def test_a_package_that_differs_takes_its_own_wheel_only() -> None:
    change = planned(mirrored(), found({"numpy": "2.0.2"}))
    assert change.artifacts == ("numpy-1.26.4-cp39-cp39",)
    assert change.steps[0].script.count("/var/cache/hostwright/artifacts/") == 1


def test_a_pin_of_which_the_mirror_has_no_wheel_is_refused_and_a_whole_venv_is_left_alone() -> None:
    made = mirrored(wheels="")
    refusal = planned(made)
    assert isinstance(refusal, Refusal)
    assert refusal.sentence.startswith("the mirror has no wheel of ")
    assert isinstance(planned(made, found({"numpy": "2.0.2"})), Refusal)
    assert changes_of(Venv(LINK, (made,)), {"python3.14": PYTHON, AUDIT: found()}) == ()


def test_an_archive_of_wheels_goes_before_the_mirror() -> None:
    assert planned(mirrored(wheelhouse=WHEELS)).artifacts == ("wheels",)


def test_where_wheels_come_from_is_no_part_of_the_state() -> None:
    assert identity_of(mirrored()) == identity_of(recipe())


def test_the_wheels_lie_where_pip_looks_for_them(tmp_path: Path) -> None:
    """The directory that the step creates in a real shell: one link per wheel, by the wheel's name."""
    made = mirrored()
    script = mend_script(made, [Drift("numpy", "2.0", "1.26.4")])
    lines = [line for line in script.splitlines() if ".wheels" in line and " pip " not in line and "trap" not in line]
    assert run("\n".join(lines).replace(HOMES, str(tmp_path / "venvs"))).returncode == 0
    (link,) = (tmp_path / "venvs").glob("*.wheels/*")
    assert (link.name, str(link.readlink())) == (
        made.from_mirror("numpy")[0].file,
        host_path(made.from_mirror("numpy")[0]),
    )
