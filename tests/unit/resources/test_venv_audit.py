"""What is damaged in a venv, by what pip recorded: a real tree, and the real shell."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Refusal
from hostwright.plan.testing import facts_for
from hostwright.resources.python.python import Recipe, Venv
from hostwright.resources.python.users_files import MARKER
from hostwright.resources.python.venv_audit import NO_PERL, Dist, audit_probe, parse_audit
from hostwright.resources.python.venv_scripts import CONSTRAINTS
from tests.unit.support.forks import forks
from tests.unit.support.shell import ask, program, run

FILES = ("numpy/core.py", "numpy/empty.py", "numpy/my data.txt", "../../../bin/f2py", "numpy-1.0.dist-info/METADATA")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """site-packages of a whole venv with two packages."""
    site = tmp_path / "venvs/tf-py3.9-0123456789ab/lib/python3.9/site-packages"
    rows = ["numpy/include/core.h,sha256=x,9", "numpy/__pycache__/core.pyc,,", "../../../share/doc,sha256=x,9"]
    for name in FILES:
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("" if "empty" in name else "text\n")
        rows.append(f"{name},sha256=x,{path.stat().st_size}")
    rows += ['"numpy/a, b.py",sha256=x,9', "numpy-1.0.dist-info/RECORD,,"]
    (site / "numpy-1.0.dist-info/RECORD").write_text("\r\n".join(rows) + "\r\n")
    for name in ("pip", "pip-24.0.dist-info"):
        (site / name).mkdir()
    (site / "pip/main.py").write_text("pip\n")
    (site / "pip-24.0.dist-info/RECORD").write_text("pip/main.py,sha256=x,4\n")
    home = site.parents[2]
    (home / MARKER).touch()
    (home / CONSTRAINTS).touch()
    return site


def script(site: Path) -> str:
    return audit_probe(str(site.parents[4] / "tf"), (str(site.parents[2]),), CONSTRAINTS).script


def damaged(site: Path) -> dict[str, str]:
    """The file of each package that is not as recorded."""
    status, text = ask(script(site))
    assert status == 0
    (venv,) = parse_audit(text).homes.values()
    assert {dist.directory for dist in venv.dists if dist.recorded} == {"numpy-1.0.dist-info", "pip-24.0.dist-info"}
    return {dist.name: dist.damage for dist in venv.dists if dist.damage}


def test_a_whole_venv_is_whole(site: Path) -> None:
    assert damaged(site) == {}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_gone_or_of_another_size_is_damage(site: Path, name: str) -> None:
    path = site / name
    was = path.read_text()
    path.write_text(was + "more")
    assert damaged(site) == {"numpy": name}
    path.unlink()
    assert damaged(site) == {"numpy": name}
    path.mkdir()
    assert damaged(site) == {"numpy": name}
    path.rmdir()
    path.symlink_to("nowhere")
    assert damaged(site) == {"numpy": name}
    path.unlink()
    path.write_text(was)
    assert damaged(site) == {}


def test_a_script_into_which_an_older_pip_wrote_the_venvs_python_is_whole(site: Path) -> None:
    """pip 20.3 records the size that jsonpointer's script has in the wheel: the venv was mended at every run."""
    record, script = site / "numpy-1.0.dist-info/RECORD", site / "../../../bin/f2py"
    row = "../../../bin/f2py,sha256=x,"
    text = "\nprint('f2py')\n"
    record.write_text(record.read_text().replace(f"{row}5", f"{row}{len('#!python' + text)}"))
    script.write_text(f"#!{site.parents[2]}/bin/python{text}")
    assert damaged(site) == {}
    script.write_text(f"#!{site.parents[2]}/bin/python{text}more")
    assert damaged(site) == {"numpy": "../../../bin/f2py"}
    script.unlink()
    assert damaged(site) == {"numpy": "../../../bin/f2py"}


def test_a_package_of_which_nothing_is_left_is_damaged_and_no_other(site: Path) -> None:
    shutil.rmtree(site / "numpy")
    assert damaged(site) == {"numpy": "numpy/core.py"}
    shutil.rmtree(site / "pip")
    assert damaged(site) == {"numpy": "numpy/core.py", "pip": "pip/main.py"}


def test_a_venv_without_any_file_that_was_recorded_is_damaged(site: Path) -> None:
    for name in (*FILES, "pip/main.py"):
        (site / name).unlink()
    assert set(damaged(site)) == {"numpy", "pip"}


def test_a_package_without_a_record_is_told(site: Path) -> None:
    (site / "pip-24.0.dist-info/RECORD").write_text("")
    _, text = ask(script(site))
    (venv,) = parse_audit(text).homes.values()
    assert Dist("pip-24.0.dist-info", recorded=False) in venv.dists


def test_looking_starts_a_handful_of_processes_however_many_files_there_are(site: Path) -> None:
    assert forks(script(site)) <= 9, "what people put into it is looked for where no link leads to it"
    (site.parents[4] / "tf").symlink_to(site.parents[2])
    assert forks(script(site)) <= 3


def test_a_host_without_perl_is_refused_and_not_taken_for_whole(site: Path, tmp_path: Path) -> None:
    program(tmp_path / "bin", "perl", "exit 127")
    done = run(f"set +eu\n{script(site)}", path=tmp_path / "bin")
    assert done.returncode == NO_PERL
    venv = Venv("/opt/tf", (Recipe("tf", "3.9", "tf==2.9", ""),))
    planned = venv.plan(facts_for(venv, {"python3.14": "/usr/bin/python3.9 3.9\n", "users_files": Answer(NO_PERL, "")}))
    assert isinstance(planned, Refusal)
    assert planned.sentence.endswith("pip's records, is missing; install perl-base")


def test_names_that_a_record_quotes_are_left_out(site: Path) -> None:
    """pip writes rows as CSV does: only a name with a comma, a quote or a line break in it is quoted."""
    record = site / "numpy-1.0.dist-info/RECORD"
    record.write_bytes(b'"numpy/a ""b"".py",sha256=x,9\n"numpy/a\nb.py",sha256=x,9\n' + record.read_bytes())
    assert damaged(site) == {}
