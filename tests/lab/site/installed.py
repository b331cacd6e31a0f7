"""The package as users install it: its wheel in a separate environment, and a site that ``init`` created."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import yaml

from lab.config import Lab
from lab.records import read_records
from lab.vendor.native import Compiler
from tests.lab.conftest import UNATTENDED
from tests.lab.recording import FILE as TRIED
from tests.unit.support.package import PROJECT, build_wheel, copy_sources

EXAMPLE = PROJECT / "tests/fixtures/site"
NCCL = "nccl_2.8.4-1+cuda11.2_x86_64"
LONGEST_S = 600

#: Stand-in for NCCL: it returns its version and transfers nothing.
STAND_IN = """
const char stand_in[] = "hostwright lab stand-in for NCCL: it moves no data";
__attribute__((visibility("default"))) int ncclGetVersion(int *version) { *version = 2804; return 0; }
"""


def install(folder: Path) -> Path:
    """Create an environment with the wheel of this checkout and with an author's tools for checking roles.

    Dependencies come from the package index, at the versions that the project is tested with. Returns the folder of the
    programs.
    """
    (folder / "wheel").mkdir(parents=True)
    wheel = build_wheel(copy_sources(folder / "sources"), folder / "wheel")
    shutil.rmtree(folder / "sources")
    constraints = folder / "constraints.txt"
    pins = {f"{one.name}=={one.version}\n" for one in distributions() if one.name not in {"hostwright", "pip"}}
    constraints.write_text("".join(sorted(pins)))
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    programs = folder / "venv" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", programs / "python", "--disable-pip-version-check", "--quiet"]
    words = [*pip, "install", "--constraint", constraints, wheel, "mypy", "ruff"]
    done = subprocess.run(words, cwd="/", capture_output=True, text=True, check=False, timeout=LONGEST_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return programs


@dataclass(frozen=True)
class Site:
    """A site outside the checkout, and the installed command with a separate home."""

    root: Path
    programs: Path
    home: Path

    def __call__(self, *words: str, program: tuple[str, ...] = ("hostwright",)) -> subprocess.CompletedProcess[str]:
        """Run an installed program in the site."""
        return subprocess.run(
            [str(self.programs / program[0]), *program[1:], *words],
            cwd=self.root if self.root.is_dir() else self.root.parent,
            env={
                "PATH": f"{self.programs}:/usr/bin:/bin",
                "HOME": str(self.home),
                "LC_ALL": "C.UTF-8",
                **UNATTENDED.get(words[0] if words else "", {}),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )

    def run(self, *words: str, status: int = 0, program: tuple[str, ...] = ("hostwright",)) -> str:
        """Run a program, which must end with ``status``; return its output."""
        done = self(*words, program=program)
        assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def json(self, *words: str, status: int = 0) -> Any:
        """Run a verb with ``--json``, which must end with ``status``; return its document."""
        return json.loads(self.run(*words, "--json", status=status))


def write_site(site: Site, lab: Lab, roles: dict[str, list[str]]) -> None:
    """Create a site with the four example roles, for lab hosts with these roles (none: the stack's roles)."""
    site.run("init", str(site.root))
    shutil.copytree(EXAMPLE, site.root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(lab.stack, site.root / "inventory/stacks/lab.yml")
    written = yaml.safe_load(lab.inventory.read_text())["lab"]
    variables = {name: value for name, value in written["vars"].items() if name != "stack"}
    hosts = {name: dict(written["hosts"][name]) for name in read_records(lab) if name in roles}
    for name, host in hosts.items():
        host["chrony"] = {"sets_clock": False}  # a lab host shares this machine's clock
        if roles[name]:
            host["hostwright_roles"] = roles[name]
    inventory = {"all": {"vars": variables, "hosts": hosts}}
    (site.root / "inventory/hosts.yml").write_text(yaml.safe_dump(inventory, sort_keys=False))


def archive_nccl(folder: Path) -> Path:
    """Return a directory with an archive of NCCL's layout, whose library is a stand-in."""
    tree = folder / "tree" / NCCL
    for name in ("lib", "include"):
        (tree / name).mkdir(parents=True)
    source = folder / "nccl.c"
    source.write_text(STAND_IN)
    library = Compiler(folder).library("libnccl.so.2.8.4", "libnccl.so.2", [source], {})
    shutil.copy2(library, tree / "lib")
    (tree / "lib/libnccl.so.2").symlink_to("libnccl.so.2.8.4")
    (tree / "lib/libnccl.so").symlink_to("libnccl.so.2")
    (tree / "include/nccl.h").write_text("/* hostwright lab stand-in for NCCL */\n#define NCCL_VERSION_CODE 2804\n")
    (folder / "files").mkdir()
    words = ["tar", "-cJf", str(folder / "files" / f"{NCCL}.txz"), "-C", str(tree.parent), NCCL]
    subprocess.run(words, check=True, timeout=60)
    return folder / "files"


def fingerprint(folder: Path) -> dict[str, str]:
    """Return path → checksum of every file below a folder."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def state_of_checkout() -> str:
    """Return git's differences of the checkout from its commit.

    Ignores the record of tried stacks, which concurrent tests may extend.
    """
    but = f":!{TRIED.relative_to(PROJECT)}"
    texts = (
        subprocess.run(
            ["git", "-c", f"safe.directory={PROJECT}", *words],
            cwd=PROJECT,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for words in (["status", "--porcelain", "--", ".", but], ["diff", "HEAD", "--", ".", but])
    )
    return "".join(texts)
