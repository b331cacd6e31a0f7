"""Prints recorded runs: a table of all runs, or one run with its hosts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hostwright.apply.events import SHOWN_RESULTS
from hostwright.apply.journal.reading import RunSummary
from hostwright.apply.journal.runs import HostRun, RecordedRun, RoleRun
from hostwright.audit.reports.run.spans import sources_of
from hostwright.cli.console import Listed
from hostwright.common.text import ago, count, local_time, printable, shown_bytes, shown_seconds
from hostwright.inventory import fold
from hostwright.plan.model import StepResult, tally

#: maximum age in seconds of a run for printing the age instead of a date
RECENT_S = 14 * 86400.0
#: maximum width in characters of host names in the table. The number of hosts replaces longer names.
_FOLDED_CHARACTERS = 16
BAD = ("failed", "unreachable", "interrupted")
_OPEN = ("pending", "locked", "stopped", "untouched", "running", "waiting")
_STATES = {"interrupted": "red", "crashed": "red", "running": "yellow"}


def runs_table(summaries: Iterable[RunSummary], ids: Mapping[str, str]) -> Table:
    """Return a table with a row for each run, at most 80 columns wide. ``ids`` maps IDs of runs to short IDs."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    every = list(summaries)
    results = [_counted(summary.results) for summary in every]
    longest = max((len(part) for result in results for part in result.plain.split(", ")), default=0)
    for column in ("run", "began", "took", "verb", "by", "hosts", "results", "exit"):
        least = longest if column == "results" else None
        table.add_column(column, overflow="fold", no_wrap=column not in ("by", "hosts", "results"), min_width=least)
    folded: dict[tuple[str, ...], str] = {}  # folding thousands of names is slow, and many runs have the same hosts
    for summary, result in zip(every, results, strict=True):
        names = summary.header.hosts
        if names not in folded:
            folded[names] = _folded(names)
        table.add_row(
            Text(printable(ids.get(summary.run, summary.run)), style="bold"),
            _began(summary.began),
            lasting(summary.duration_s),
            Text(printable(summary.header.verb)),
            Text(printable(summary.header.operator.partition("@")[0])),
            Text(printable(folded[names])),
            Listed.of(result),
            _exit(summary),
        )
    return table


def show_run(out: Console, summary: RunSummary, run: RecordedRun, *, outputs: bool) -> None:
    """Print ``run``: its summary, and each host, failed hosts last. With ``outputs``, include the output of each step.

    For several hosts, the totals are repeated at the end.
    """
    show_head(out, summary, run, details=True)
    for host in sorted(run.hosts, key=lambda host: host.result in BAD):
        _show_host(out, host, outputs=outputs)
    if len(run.hosts) > 1:
        out.print(Text.assemble("\n", (printable(summary.run), "bold"), ": ", _counted(summary.results)))


def record_line(record: Mapping[str, Any]) -> Text:
    """Return ``record``, from the journal of a run, as a line: time, host, and text."""
    kind, role = str(record.get("kind")), str(record.get("role", ""))
    match record:
        case {"kind": "observed", "plan": dict(plan)}:
            text = _planned(plan)
        case {"kind": "role started", "steps": int(steps)}:
            text = f"{role}: {count(steps, 'step')}"
        case {"kind": "role finished", "status": int(status)}:
            how = "ok" if status == 0 else f"failed with status {status}"
            text = f"{role}: {how}, {lasting(_number(record, 'duration_s'))}"
        case {"kind": "attached"}:
            text = f"{role}: follows the job {record.get('job', '')} of {record.get('operator') or 'an earlier run'}"
        case {"kind": "host ended", "result": str(result)}:
            text = f"{result}: {record['sentence']}" if record.get("sentence") else result
        case {"kind": "run began", "verb": str(verb), "operator": str(operator)}:
            text = f"{verb} of {operator} began"
        case {"kind": "run ended", "how": str(how), "status": int(status)}:
            text = f"{how} with status {status}" + (f": {record['sentence']}" if record.get("sentence") else "")
        case _:
            text = _record_text(record)
    style = result_style(str(record.get("result"))) if kind == "host ended" else ""
    words = f"{_local(str(record.get('at', '')))}  {record.get('host') or record.get('run') or 'run'}  {text}"
    return Text(printable(words), style=style)


def show_head(out: Console, summary: RunSummary, run: RecordedRun, *, details: bool) -> None:
    """Print the verb, operator and result of ``run``. With ``details``, add the inventory and options of the run."""
    header = run.header
    title = Text.assemble((printable(summary.run), "bold"), f"  {printable(header.verb)}  exit ", _exit(summary))
    out.print(title.append(f"  {printable(summary.sentence)}" if summary.sentence else ""))
    began = f"began {_local(summary.began)}, took {lasting(summary.duration_s)}"
    commits = {"commit": header.commit, "inventory at": header.inventory_commit}
    at = "".join(f", {name} {commit}" for name, commit in commits.items() if commit)
    options = {name: value for name, value in header.options.items() if value not in ("", False, None, [])}
    who, command = header.operator or "an unidentified operator", f"command {' '.join(header.argv)}"
    every = (
        f"{began}, by {who}, process {header.pid}",
        f"Hostwright {header.version}{at}",
        f"inventory {header.inventory}",
        command,
        f"options {json.dumps(options, ensure_ascii=False)}",
    )
    for line in every if details else (f"{began}, by {who}", command):
        # the method `out.print` would add options to the recorded commands
        Console.print(out, Text(f"  {printable(line)}", style="dim"))
    out.print(Text("  ").append(_counted(summary.results)))
    if run.damaged:
        out.print(Text(f"  not shown: {count(run.damaged, 'damaged line')} of the record", style="yellow"))
    for record in run.said:
        out.print(Text(f"  {printable(_record_text(record))}"))


def _show_host(out: Console, host_run: HostRun, *, outputs: bool) -> None:
    title = Text.assemble(
        "\n", (printable(host_run.host), "bold"), "  ", (printable(host_run.result), result_style(host_run.result))
    )
    out.print(title.append(f"  {printable(host_run.sentence)}" if host_run.sentence else ""))
    for number, plan in enumerate(host_run.plans, start=1):
        out.print(Text(f"  plan {number}: {printable(_planned(plan))}", style="dim"))
    lines: list[tuple[float, list[Text]]] = [
        (role.began_s, list(_role(role, outputs=outputs))) for role in host_run.roles
    ]
    lines += [(_number(record, "t"), [Text(f"  {printable(_record_text(record))}")]) for record in host_run.said]
    for _, texts in sorted(lines, key=lambda line: line[0]):
        for text in texts:
            out.print(text)


def _role(role: RoleRun, *, outputs: bool) -> Iterator[Text]:
    how, style = ("no end recorded", "yellow") if role.status is None else ("ok", "green")
    if role.status:
        how, style = f"failed with status {role.status}", "red"
    text = Text.assemble((f"  {printable(role.role)}: ", "cyan"), (how, style))
    text.append(f", {lasting(role.duration_s)}, {len(role.steps)} of {count(role.planned, 'step')}", style="dim")
    yield text.append(f", job of {printable(role.attached)}" if role.attached else "", style="magenta")
    for step in role.steps:
        yield step_line(step)
        if outputs:
            yield from (Text(f"        │ {printable(line)}", style="dim") for line in step.output.splitlines())


def step_line(step: StepResult) -> Text:
    """Return a step as a line: its duration, and its exit status if it failed."""
    mark, style = ("✓", "green") if step.status == 0 else ("✗", "red")
    ended = "" if step.status == 0 else "  interrupted" if step.status is None else f"  status {step.status}"
    tries = f"  {step.tries} tries" if step.tries != 1 else ""
    return Text(f"    {mark} ", style=style).append(
        f"{lasting(step.duration_s)}  {printable(step.what)}{ended}{tries}", style="" if step.status == 0 else "red"
    )


def _record_text(record: Mapping[str, Any]) -> str:
    word = {name: str(record.get(name, "")) for name in ("what", "reason", "text", "role", "artifact")}
    match record["kind"]:
        case "retrying":
            again = f"try {_number(record, 'number'):.0f}, after {lasting(_number(record, 'wait_s'))}"
            return f"retried: {word['what']}, {again}: {word['reason']}"
        case "rebooted":
            return f"rebooted, back after {lasting(_number(record, 'seconds'))}: {word['reason']}"
        case "silent":
            return f"silent for {lasting(_number(record, 'seconds'))}, waiting for {word['what']}"
        case "delivering":
            size = shown_bytes(int(_number(record, "total_bytes")))
            return f"{word['role']}: {word['artifact']} delivered ({size}{sources_of(record)})"
        case "note":
            return word["text"]
        case kind:
            return _explained(record) if kind == "explained" else _as_it_is(record)


def _explained(record: Mapping[str, Any]) -> str:
    lines = [f"{record.get('what', '')}: {record.get('why', '')}"]
    findings = record.get("findings")
    for finding in findings if isinstance(findings, list) else ():
        match finding:
            case {"rule": str(rule), "cause": str(cause), "cure": str(cure)}:
                lines.append(f"    {cause}. {cure} ({rule})")
    return "\n".join(lines)


def _as_it_is(record: Mapping[str, Any]) -> str:
    more = {key: value for key, value in record.items() if key not in ("kind", "host", "t", "at")}
    return f"{record['kind']} {json.dumps(more, ensure_ascii=False)}"


def _planned(plan: Mapping[str, Any]) -> str:
    match plan:
        case {"roles": list(roles), "stack": str(stack)}:
            changes_of = {str(role.get("role")): role.get("changes") for role in roles if isinstance(role, dict)}
            every = {role: changes for role, changes in changes_of.items() if isinstance(changes, list)}
            if not any(every.values()):
                return f"as desired, {stack}"
            pairs = [
                (str(change.get("kind")), str(change.get("want")))
                for changes in every.values()
                for change in changes
                if isinstance(change, dict)
            ]
            numbers = ", ".join(f"{role} {len(changes)}" for role, changes in every.items())
            return f"{tally(pairs)} to {stack}: {numbers}"
    return "a plan that cannot be read"


def _folded(hosts: tuple[str, ...]) -> str:
    from ClusterShell.NodeSet import NodeSetException

    try:
        names = fold(hosts)
    except NodeSetException:  # a damaged record of a run may contain invalid host names
        names = ",".join(hosts)
    return names if len(names) <= _FOLDED_CHARACTERS or len(hosts) == 1 else f"{len(hosts)} hosts"


def _counted(results: Mapping[str, int]) -> Text:
    shown = {result: SHOWN_RESULTS.get(result, printable(result)) for result in results}
    parts = [Text(f"{number} {shown[result]}", style=result_style(result)) for result, number in results.items()]
    return Text(", ").join(parts)


def result_style(result: str) -> str:
    """Return the style in which the result of a host is printed."""
    return "red" if result in BAD else "yellow" if result in _OPEN else "green"


def _exit(summary: RunSummary) -> Text:
    if summary.state in _STATES:
        return Text(summary.state, style=_STATES[summary.state])
    return Text(f"{summary.status}", style="green" if summary.status == 0 else "red")


def _local(began: str) -> str:
    try:
        return local_time(datetime.fromisoformat(began))
    except (ValueError, OverflowError):
        return "unknown"


def _began(began: str) -> str:
    try:
        over_s = (datetime.now(UTC) - datetime.fromisoformat(began)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return "unknown"
    return ago(over_s) if over_s < RECENT_S else _local(began).partition(" ")[0]


def lasting(seconds: float | None) -> str:
    """Format the duration ``seconds``; ``?`` if it is unknown."""
    return "?" if seconds is None else shown_seconds(seconds)


def _number(record: Mapping[str, Any], name: str) -> float:
    value = record.get(name)
    return float(value) if isinstance(value, (int, float)) else 0.0
