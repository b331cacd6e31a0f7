"""Signs that programs load another copy of a library than the one in their environment's wheels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from hostwright.failures import FailureRule, ForPeople, Sign, Tangled, Unread, wanted
from hostwright.resources import Probe, Venv, parse_audit
from hostwright.roles import sh_file
from hostwright.standard.roles.cuda.wheels import cuda_of
from hostwright.standard.roles.driver.failures.loader_cache import CONF, Cached, named_by
from hostwright.standard.roles.environment.failures.variables import VARIABLES, on_loader_path
from hostwright.standard.roles.environment.winning import LOGIN, libraries, settings

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

LIBRARIES = Probe(sh_file(__file__, "shadowed.sh"), cap_bytes=256 * 1024)
_Seen = Callable[["AuditContext"], Iterator[str]]


def shadowed(ctx: AuditContext, layer: str) -> Iterator[str]:
    """``LD_LIBRARY_PATH`` puts a copy of a library before the wheel's library. The evidence names both, and the line
    that sets the variable.
    """
    own = _own(ctx, layer)
    for place, path in on_loader_path(ctx):
        if wheel := own.get(path.rpartition("/")[2]):
            yield f"{place}: {path} is loaded before {wheel}"
    answer = ctx.answer(LOGIN)
    last = settings(answer.text, "LD_LIBRARY_PATH")[-1:] if answer.ok else ()
    for each in last:
        for path in libraries(answer.text):
            if (wheel := own.get(path.rpartition("/")[2])) and path.rpartition("/")[0] in each.directories:
                yield f"{each.place}: {path} is loaded before {wheel}"


def beside(ctx: AuditContext, layer: str) -> Iterator[str]:
    """The loader's cache has another copy of a wheel's library, which programs load unless they set the wheel's
    path.
    """
    own = _own(ctx, layer)
    for name, path in (row[1:] for row in _rows(ctx) if len(row) == 3 and row[0] == "cached"):
        if wheel := own.get(name):
            entry = Cached(name, path, path)
            yield f"{entry}{named_by(ctx, entry)}, beside {wheel}"


def mixed(ctx: AuditContext, layer: str) -> Iterator[str]:
    """The environment has wheels of two CUDA major versions."""
    venv = wanted(ctx, layer, Venv)
    answer = ctx.answer(venv.probes()[1])
    if answer.truncated:
        raise Unread("the Python environment has too many packages to list")
    audit = parse_audit(answer.text)
    dists = audit.homes[audit.link].dists if audit.link in audit.homes else ()
    found = cuda_of({canonicalize_name(dist.name): dist.version for dist in dists})
    if len(found) > 1:
        yield from (f"{venv.path}: {wheel} (CUDA {major})" for major, wheel in sorted(found.items()))


def environment_rules(layer: str, title: str, source: str) -> tuple[FailureRule, ...]:
    """Return the failure rules for the Python environment of the role ``layer``, with CUDA from wheels."""
    return (
        FailureRule(
            f"{layer}-cuda-wheels-mixed",
            "",
            "one environment has wheels of two CUDA releases: cuDNN, NCCL, NVSHMEM and cuSPARSELt of both write the"
            " same files, so that one release has lost its files",
            "Uninstall both wheels of each pair, also the stack's (PATH/bin/python -m pip uninstall NAME-cu12"
            " NAME-cu13), because each uninstallation removes files of the other. Then provision again to restore the"
            " stack's pins. Install the other framework in a separate environment",
            "the file lists of nvidia-cudnn-cu12 and -cu13, measured",
            sign=Sign(layer, _of(mixed, layer)),
            treatment=Tangled("wheels of two CUDA releases share files"),
        ),
        FailureRule(
            f"{layer}-library-shadowed",
            "",
            f"LD_LIBRARY_PATH gives {title} another copy of a library than its wheels have, which causes undefined"
            " symbols or results of another release",
            "Remove the directory from that line: the environment does not need LD_LIBRARY_PATH",
            source,
            sign=Sign(layer, _of(shadowed, layer), (LIBRARIES, VARIABLES, LOGIN)),
            treatment=ForPeople(),
        ),
        FailureRule(
            f"{layer}-library-beside",
            "",
            f"the loader's cache has another copy of a library in {title}'s wheels, which a program loads unless the"
            " program or its libraries set the wheel's directory",
            "If nobody needs that copy, remove its package, or the file in /etc/ld.so.conf.d with its directory, and"
            " run ldconfig",
            "ld.so(8)",
            sign=Sign(layer, _of(beside, layer), (LIBRARIES, CONF), grave=False),
        ),
    )


def _of(seen: Callable[[AuditContext, str], Iterator[str]], layer: str) -> _Seen:
    def on_layer(ctx: AuditContext) -> Iterator[str]:
        yield from seen(ctx, layer)

    on_layer.__doc__ = seen.__doc__
    return on_layer


def _rows(ctx: AuditContext) -> list[list[str]]:
    answer = ctx.answer(LIBRARIES)
    if not answer.ok or answer.truncated:
        raise Unread("the environments' libraries could not be listed")
    return [line.split("\t") for line in answer.text.splitlines()]


def _own(ctx: AuditContext, layer: str) -> Mapping[str, str]:
    path = wanted(ctx, layer, Venv).path
    if PurePosixPath(path).parent != PurePosixPath("/opt"):
        raise Unread(f"Hostwright checks only environments in /opt, but this environment is {path}")
    paths = (row[1] for row in _rows(ctx) if len(row) == 2 and row[0] == "library")
    return {each.rpartition("/")[2]: each for each in paths if each.startswith(f"{path}/")}
