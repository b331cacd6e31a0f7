"""Our own pip installs into its venv, whatever settings for packages the host's pip.conf has."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hostwright.resources.python.recipe import Recipe
from hostwright.resources.python.users_files import HOMES
from hostwright.resources.python.venv_audit import Drift
from hostwright.resources.python.venv_scripts import mend_script

RECIPE = Recipe("tf", f"{sys.version_info[0]}.{sys.version_info[1]}", "tensorflow==2.9.0", "tiny==1.0\n")
FILES = {
    "tiny.py": "",
    "tiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
    "tiny-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "tiny-1.0.dist-info/RECORD": "",
}
SETTINGS = "[global]\nrequire-virtualenv = true\ndry-run = true\nno-index = true\nfind-links = {0}\n"


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of venvs, with one that has pip, and a wheel beside it."""
    folder = tmp_path_factory.mktemp("homes")
    subprocess.run(
        [sys.executable, "-I", "-m", "venv", str(folder / RECIPE.home.removeprefix(f"{HOMES}/"))], check=True
    )
    with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in FILES.items():
            wheel.writestr(name, text)
    return folder


@pytest.mark.parametrize("setting", ["user = true", "target = {0}/far", "prefix = {0}/far", "root = {0}/far"])
def test_no_setting_of_the_hosts_pip_sends_packages_elsewhere(homes: Path, setting: str) -> None:
    """Its index stays in force: the wheel is only where find-links says."""
    (homes / "pip.conf").write_text(f"{SETTINGS}[install]\n{setting}\n".format(homes))
    script = mend_script(RECIPE, [Drift("tiny", "", "1.0")]).replace(HOMES, str(homes))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    env = {**kept, "PIP_CONFIG_FILE": str(homes / "pip.conf")}
    done = subprocess.run(["sh", "-euc", script], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("ERROR")) == (0, 0), done.stderr
    assert sorted(str(path.relative_to(homes)) for path in homes.rglob("tiny.py")) == [
        f"{RECIPE.home.removeprefix(f'{HOMES}/')}/lib/python{RECIPE.python}/site-packages/tiny.py"
    ]
