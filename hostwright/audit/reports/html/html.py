"""An audit as one self-contained HTML page: it needs no network, no server and no other file.

A Content-Security-Policy allows only the page's own style and script, by their hashes. The template escapes text from
hosts; the script inserts such text only as text nodes. A malicious host can therefore neither run a script nor forge a
part of the page.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from hostwright.audit.failures.rule import FailureRule
from hostwright.audit.fleetaudit import FleetAudit, HostAudit
from hostwright.audit.reports.ages import Ages
from hostwright.audit.reports.html.charts import HEIGHT, WIDTH, history
from hostwright.audit.reports.html.data import details
from hostwright.audit.reports.html.matrix import STATUSES, FoldedRow, failures, matrix, met, tiles, worst_first
from hostwright.audit.reports.html.spreads import alike, comparisons
from hostwright.audit.reports.html.text import embedded, folded, moment, name
from hostwright.audit.reports.table import SHOWN, WORDS
from hostwright.audit.reports.trend import TrendPoint
from hostwright.common.text import shown_seconds

PAGE = Path(__file__).with_name("page")
STYLES = tuple(f"styles/{name}.css" for name in ("colours", "page", "matrix", "panel", "charts", "print"))
#: paths of the scripts of the page, in the order of loading
SCRIPTS = tuple(f"scripts/{name}.js" for name in ("dom", "copy", "gpus", "details", "panel", "filter", "keyboard"))


def render_html(
    audit: FleetAudit,
    trend: Sequence[TrendPoint] = (),
    ages: Ages | None = None,
    options: str = "",
    rules: Iterable[FailureRule] = (),
) -> str:
    """Create the HTML page of ``audit``.

    ``trend`` is the history by day, ``ages`` are the times at which problems began. ``options`` are appended to the
    commands on the page, such as `` --inventory site``. ``rules`` describe the failures.
    """
    known = ages or {}
    hosts = worst_first(audit.hosts)
    style, script = joined(STYLES), joined(SCRIPTS)
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            **_head(audit, hosts),
            policy=policy(style, script),
            style=Markup(style),  # noqa: S704 - our own files
            script=Markup(script),  # noqa: S704 - our own files
            data=Markup(embedded(details(audit, hosts, known, options))),  # noqa: S704 - escaped for a script element
            layers=[name(layer) for layer in audit.layers],
            rows=matrix(audit, hosts, known),
            tiles=tiles(hosts),
            met=met(hosts),
            failures=failures(hosts, {rule.name: rule for rule in rules}),
            comparisons=comparisons(audit.spreads, [host.host for host in hosts]),
            alike=alike(audit.spreads),
            history=history(trend),
        )
    )


def policy(style: str, script: str) -> str:
    """Return the Content-Security-Policy that allows only the given style and script, and no other content
    or request.
    """
    return (
        f"default-src 'none'; style-src '{digest(style)}'; script-src '{digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def digest(text: str) -> str:
    """Return the hash of ``text`` in the syntax of Content-Security-Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def environment_of(folder: Path) -> Environment:
    """Return the Jinja environment for the templates in ``folder``: values are escaped, undefined names are errors."""
    return Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = environment_of(PAGE / "templates")
    environment.globals.update(width=WIDTH, height=HEIGHT, words=WORDS, shown=SHOWN, statuses=STATUSES)
    environment.tests["folded"] = lambda row: isinstance(row, FoldedRow)
    return environment


def joined(files: Sequence[str]) -> str:
    """Return the contents of ``files`` as one text. Lines end with a line feed, as in the hashes that
    browsers compute.
    """
    texts = ((PAGE / file).read_text("utf-8") for file in files)
    return "\n".join(text.replace("\r\n", "\n") for text in texts)


def _head(audit: FleetAudit, hosts: Sequence[HostAudit]) -> dict[str, object]:
    stand_ins: dict[str, list[str]] = {}
    for host in hosts:
        for stand_in in host.stand_ins:
            stand_ins.setdefault(stand_in, []).append(host.host)
    hosts_with = {host for names in stand_ins.values() for host in names}
    return {
        "at": moment(audit.at),
        "took": shown_seconds(audit.took_s),
        "offline": audit.offline,
        "inventory": name(audit.inventory),
        "stacks": list(dict.fromkeys(name(host.stack) for host in hosts)),
        "total": len(hosts),
        "well": sum(host.status == "desired" for host in hosts),
        "stand_ins": [name(stand_in) for stand_in in stand_ins],
        "stand_ins_on": folded([host.host for host in hosts if host.host in hosts_with])
        if len(hosts_with) < len(hosts)
        else "",
    }
