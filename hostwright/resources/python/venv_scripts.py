"""Shell scripts that build and repair a venv."""

from __future__ import annotations

from hostwright.common.quoting import sh, sh_file, words
from hostwright.resources.files.paths import write_script
from hostwright.resources.python.recipe import PIP_MINIMUM, PIP_SHA256, PIP_VERSION, Recipe
from hostwright.resources.python.users_files import HOMES, MARKER, USERS_FILES
from hostwright.resources.python.venv_audit import Drift
from hostwright.stack.store.hostcache import host_path

CONSTRAINTS = "constraints.txt"  #: name of the constraints file in a venv, for users' ``pip install -c``

PIP_HASHED = f"pip=={PIP_VERSION} --hash=sha256:{PIP_SHA256}\n"
#: Options of every pip install. The code of source packages would run as root, a cache would need 600 MB, and
#: ``compile_script`` compiles on several processors.
_PIP_FLAGS = "--disable-pip-version-check --no-input --progress-bar off --no-cache-dir --only-binary :all: --no-compile"
#: Variables that override settings in the host's pip.conf. Such settings may redirect or prevent installations.
#: Options override directories in pip.conf, because pip ignores an empty variable.
_PIP_HERE = "PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 PIP_DRY_RUN=0 PIP_NO_DEPS=0"
_COMPILERS = 8  #: maximum number of processes that compile at a time (our choice). All processes write to one disk.


def create_script(recipe: Recipe, interpreter: str) -> str:
    """Script that makes a venv with pip (at least ``PIP_MINIMUM``), the constraints file, and no other packages."""
    return "\n".join(
        [
            "umask 022",  # root's umask may prevent other users from reading the venv
            sh("mkdir -p -- %s", HOMES),
            *_must_run(recipe, interpreter),
            USERS_FILES + sh("if [ -e %s ]; then set_aside %s; fi", f"{recipe.home}/{MARKER}", recipe.home),
            sh("rm -f -- %s", f"{recipe.home}/{MARKER}"),
            sh("%s -I -m venv --clear %s", interpreter, recipe.home),
            *_recent_pip(recipe),
            write_constraints(recipe),
        ]
    )


def _must_run(recipe: Recipe, interpreter: str) -> list[str]:
    """Commands that check the interpreter and print what is wrong with it, because other errors mislead.

    The shell prints only "not found" for an interpreter for another processor or C library.
    """
    brought = (
        f"{interpreter} does not run on this host; set the stack's interpreter to an archive with "
        f"bin/python{recipe.python} of CPython {recipe.python} for this processor and glibc"
    )
    installed = f"{interpreter} (Python {recipe.python}) cannot make a venv with pip: it lacks the module above"
    run = "%s -I -c %s || { echo %s >&2; exit 1; }"
    if recipe.interpreter:
        return [sh(run, interpreter, "import venv, ensurepip", brought)]
    return [sh(run, interpreter, "import ensurepip, ssl, venv, zlib", installed)]


def restore_script(recipe: Recipe, interpreter: str, lost: tuple[str, ...]) -> str:
    """Script that restores the parts ``lost`` (interpreter, pip) of a venv, and does not change its packages."""
    lines = ["umask 022"]
    if "pip" in lost:  # ensurepip would treat remains of pip as an installed pip
        lines.append(sh("rm -rf -- %s/pip %s/pip-*.dist-info", _site(recipe), _site(recipe)))
    lines.append(
        sh("%s -I -m venv", interpreter) + ("" if "pip" in lost else " --without-pip") + sh(" %s", recipe.home)
    )
    return "\n".join([*lines, *_recent_pip(recipe), compile_script(recipe), write_constraints(recipe)])


def _recent_pip(recipe: Recipe) -> list[str]:
    old = f"import pip, sys; sys.exit(tuple(map(int, pip.__version__.split('.')[:2])) < {PIP_MINIMUM})"
    install = _pip(recipe, "", PIP_HASHED, "pip")
    return [sh("%s -I -c %s || {", f"{recipe.home}/bin/python", old), *install, "}"]


def _site(recipe: Recipe) -> str:
    return f"{recipe.home}/lib/python{recipe.python}/site-packages"


def install_script(recipe: Recipe) -> str:
    """Script that installs all pins and the requirement in one resolution, then runs ``pip check``."""
    constraints = f"{recipe.home}/{CONSTRAINTS}"
    known = recipe.hashed()
    arguments = "" if known else sh("-c %s -r %s %s", constraints, constraints, recipe.requirement)
    return "\n".join(
        [
            "umask 022",
            *_pip(recipe, arguments, known),
            sh("%s -I -m pip --disable-pip-version-check check", f"{recipe.home}/bin/python"),
            compile_script(recipe),
        ]
    )


def mend_script(recipe: Recipe, drifts: list[Drift]) -> str:
    """Script that reinstalls the packages in ``drifts``, and first deletes ``dist-info`` that pip cannot remove."""
    stale = tuple(f"{_site(recipe)}/{directory}" for drift in drifts for directory in drift.stale)
    names = tuple(drift.name for drift in drifts)
    known = recipe.hashed(*names)
    pins = () if known else tuple(f"{drift.name}=={drift.version}" for drift in drifts)
    return "\n".join(
        [
            "umask 022",
            sh("rm -rf -- %s/~*", _site(recipe))
            + "".join(sh(" %s", path) for path in stale),  # an interrupted pip leaves directories with names like ~NAME
            *_pip(recipe, f"--force-reinstall --no-deps {words(pins)}".rstrip(), known, *names),
            compile_script(recipe),
        ]
    )


def _pip(recipe: Recipe, arguments: str, known: str, *names: str) -> list[str]:
    """Commands that run ``pip install`` in the venv, from a wheelhouse if the recipe has one.

    ``known`` is the text of requirements with the hashes of their wheels; if it is not empty, pip installs no other
    wheels. ``names`` are the packages to install, by default all.
    """
    here = sh("--target %s --prefix %s --root /", "", recipe.home)
    install = sh("%s -I -m pip install ", f"{recipe.home}/bin/python") + f"{_PIP_FLAGS} {here}"
    install = f"{_PIP_HERE} {install}"
    if known:
        install = sh("printf %s %s | ", "%s", known) + install
        arguments = f"{arguments} --require-hashes -r /dev/stdin".lstrip()
    if recipe.wheelhouse is None and not recipe.mirrored:
        return [install + " " + arguments]
    wheels = f"{recipe.home}.wheels"
    return [
        sh("trap %s EXIT", sh("rm -rf -- %s", wheels)),
        sh("rm -rf -- %s && mkdir -p -- %s", wheels, wheels),
        _fill(recipe, wheels, names),
        install + sh(" --no-index --find-links %s ", wheels) + arguments,
    ]


def _fill(recipe: Recipe, wheels: str, names: tuple[str, ...]) -> str:
    if recipe.wheelhouse is None:
        return sh("ln -s -t %s -- ", wheels) + words(tuple(map(host_path, recipe.from_mirror(*names))))
    # pip's --find-links reads no subdirectories, so --transform removes directories from the names
    unpack = sh("tar -xf %s -C %s --no-same-owner --transform %s", host_path(recipe.wheelhouse), wheels, "s,.*/,,")
    return unpack + " --wildcards --wildcards-match-slash '*.whl'"


def compile_script(recipe: Recipe) -> str:
    """Script that compiles the modules of a venv in several processes, with the same result as pip's."""
    values = {"python": f"{recipe.home}/bin/python", "site": _site(recipe)}
    return sh_file(__file__, "sh/venv_compiled.sh", **values, most=_COMPILERS).rstrip("\n")


def write_constraints(recipe: Recipe) -> str:
    """Command that writes the constraints file into the venv."""
    path = f"{recipe.home}/{CONSTRAINTS}"
    return write_script(path, recipe.plain, mode="644", owner="root:root", check="", backup=False)
