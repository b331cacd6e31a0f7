"""Writes the reports that the options of a verb request, such as a page in HTML or SBOMs."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path

from hostwright.audit.auditstore import AuditStore
from hostwright.audit.failures.rule import FailureRule
from hostwright.audit.fleetaudit import FleetAudit
from hostwright.audit.reports.ages import Ages
from hostwright.cli.shell.advice import current
from hostwright.common.errors import InputError
from hostwright.common.places import ANOTHER_FILE, PRIVATE_DIR, PRIVATE_FILE, plain_name, refused, write_whole
from hostwright.common.quoting import sh
from hostwright.common.userpaths import STDOUT

#: option that selects a report format → function that renders the report
RENDERERS = {
    "csv": "spreadsheet.render_csv",
    "junit": "junit.render_junit",
    "prometheus": "prometheus.render_prometheus",
}
HTML = "html"  #: option for the HTML report, the only format that needs the history of audits
CYCLONEDX = "cyclonedx"
SBOM_SUFFIX = ".cdx.json"


@dataclass(frozen=True, slots=True)
class Outputs:
    """The reports that options request. Each field is a file, ``-`` for standard output, or empty for no report.

    ``cyclonedx`` is a directory, which gets one SBOM per host.
    """

    csv: str = ""
    junit: str = ""
    prometheus: str = ""
    html: str = ""
    cyclonedx: str = ""

    @property
    def files(self) -> dict[str, str]:
        """Option → file, for each requested report."""
        return {name: file for name, file in asdict(self).items() if file and name != CYCLONEDX}

    def check(self, *, as_json: bool = False, watched: bool = False) -> None:
        """Raise ``InputError`` if a requested file cannot be written. Call this before contacting hosts.

        ``as_json`` and ``watched`` mean that standard output is already used for JSON, or for a redrawn screen.
        """
        check_files(self.files, as_json=as_json, watched=watched)
        if self.cyclonedx:
            _check_folder(self.cyclonedx)

    @property
    def on_stdout(self) -> bool:
        """Whether a report goes to standard output, in place of the table."""
        return STDOUT in self.files.values()

    def write(self, audit: FleetAudit, ages: Ages, memory: AuditStore, rules: Sequence[FailureRule] = ()) -> None:
        """Write the requested reports about ``audit``, each atomically. ``rules`` are failure rules that reports
        describe.
        """
        for name, file in self.files.items():
            put(file, _render(name, audit, ages, memory, rules), name)

    def write_sboms(self, sboms: Iterable[tuple[str, str]]) -> int:
        """Write ``sboms``, pairs of host and text, to files ``HOST.cdx.json``. Return the number of files."""
        folder, number = Path(self.cyclonedx), 0
        for number, (host, text) in enumerate(sboms, 1):  # noqa: B007 - the number
            _replace(folder / f"{plain_name(host)}{SBOM_SUFFIX}", text, CYCLONEDX)
        return number


def check_files(files: Mapping[str, str], *, as_json: bool = False, watched: bool = False) -> None:
    """Raise ``InputError`` if one of ``files`` cannot be written, or if two reports go to standard output.

    ``as_json`` and ``watched`` mean that standard output is already used for JSON, or for a redrawn screen.
    """
    taken = [name for name, file in files.items() if file == STDOUT]
    if len(taken) + as_json > 1:
        raise InputError("only one report can go to standard output; name a file for the others", f"--{taken[-1]}")
    if taken and watched:
        raise InputError(
            "--watch redraws the screen, so no report can go to standard output; name a file", f"--{taken[0]}"
        )
    for name, file in files.items():
        if file != STDOUT and not (folder := Path(file).absolute().parent).is_dir():
            raise InputError(f"there is no directory {folder}; create it first, or {ANOTHER_FILE}", f"--{name}")
        if file != STDOUT and Path(file).is_dir():
            raise InputError(f"{file} is a directory; name a file in it", f"--{name}")
        if file != STDOUT:
            _require_writable(folder, name)


def _require_writable(folder: Path, name: str) -> None:
    if os.access(folder, os.W_OK):
        return
    read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
    number = errno.EROFS if read_only else errno.EACCES
    why = refused(OSError(number, os.strerror(number)), ANOTHER_FILE)
    raise InputError(f"{folder} cannot be written to: {why}", f"--{name}")


def put(file: str, text: str, name: str) -> None:
    """Write ``text`` of the report ``name`` to ``file``, atomically, or to standard output."""
    if file == STDOUT:
        sys.stdout.write(text)
    else:
        _replace(Path(file), text, name)


def _check_folder(name: str) -> None:
    if name == STDOUT:
        raise InputError("each host has its own SBOM; name a directory for them", f"--{CYCLONEDX}")
    try:
        Path(name).mkdir(mode=PRIVATE_DIR, exist_ok=True)
    except OSError as error:
        raise InputError(f"the directory {name} cannot be created: {refused(error)}", f"--{CYCLONEDX}") from error
    _require_writable(Path(name), CYCLONEDX)


def _render(name: str, audit: FleetAudit, ages: Ages, memory: AuditStore, rules: Sequence[FailureRule]) -> str:
    if name == HTML:
        from hostwright.audit.reports.html.html import render_html

        places = current().request.inventory
        options = "".join(sh(" --inventory %s", place) for place in (places if isinstance(places, tuple) else ()))
        return render_html(audit, memory.trend(), ages, options, rules)
    module, _, function = RENDERERS[name].partition(".")
    text: str = getattr(import_module(f"hostwright.audit.reports.{module}"), function)(audit)
    return text


def _replace(path: Path, text: str, name: str) -> None:
    """Write ``text`` to ``path`` atomically, readable by this user only. An existing file keeps its mode."""
    try:
        write_whole(path, text.encode(), stat.S_IMODE(path.stat().st_mode) if path.exists() else PRIVATE_FILE)
    except OSError as error:
        raise InputError(f"cannot be written: {refused(error, ANOTHER_FILE)}", f"--{name} {path}") from error
