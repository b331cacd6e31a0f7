"""Wheels that TensorFlow's environment is made of: pip takes only those whose hash is known."""

from __future__ import annotations

import re

from hostwright.common.templates import STANDARD
from hostwright.plan.state_identity import identity_of
from hostwright.resources.python.python import Recipe, Venv
from hostwright.resources.python.venv_audit import Drift
from hostwright.resources.python.venv_scripts import install_script, mend_script
from hostwright.standard.roles.tensorflow import _known_wheels
from tests.unit.roles.test_role_tensorflow import AUDIT, PYTHON, WHEELS, only
from tests.unit.support.facts import changes_of


def test_every_pin_of_a_standard_stack_has_the_hash_of_its_wheel() -> None:
    wheels = _known_wheels()
    for file in sorted((STANDARD / "stacks" / "constraints").glob("*.txt")):
        python = re.sub(r".*-py3(\d+)", r"3.\1", file.stem)
        made = Recipe("tf", python, "", file.read_text(), wheels=wheels)
        assert [name for name in made.pins if not made.hashed(name)] == [], f"{file.name}: add them to wheels.txt"


def test_pip_takes_only_wheels_whose_hash_is_known() -> None:
    """Also from a wheelhouse, and when a single package is mended; a stack's own wheels count beside ours."""
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
