"""Formats plans: a line for each change, and a diff for each file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from hostwright.cli.console import Hanging, Quoted
from hostwright.cli.shell import advice
from hostwright.common.text import one_line
from hostwright.inventory.patterns import fold, headed
from hostwright.plan.model import Change, Deferred, Plan, Planned, Refusal, RolePlan, tally
from hostwright.plan.planning import HostPlan

#: kind of a line in a plan → printed sign and style of the line
_SIGNS = {"change": ("~", ""), "reboot": ("~", ""), "deferred": ("?", "dim"), "refusal": ("!", "red")}


def show_plan(host_plan: HostPlan, *, among: Sequence[str] = (), diffs: bool = True) -> RenderableType:
    """Return a host's plan as text: a line per change (have → want), diffs of files, and values still unknown.

    ``among`` are the names of all hosts with an equal plan.
    """
    lines = _plan_lines(host_plan, among or (host_plan.host,), brief=False)
    return Group(*(line for line in lines if diffs or not isinstance(line, Quoted)))


def folded_plans(host_plans: Iterable[HostPlan], *, brief: bool = False) -> Iterator[RenderableType]:
    """Yield the plans of hosts as text. Equal plans are one text, at the position of the first host."""
    alike: dict[tuple[str, ...], list[HostPlan]] = {}
    for host_plan in host_plans:
        alike.setdefault(reads(host_plan, brief=brief), []).append(host_plan)
    for same in alike.values():
        yield Group(*_plan_lines(same[0], [each.host for each in same], brief=brief))


def reads(host_plan: HostPlan, *, brief: bool = False) -> tuple[str, ...]:
    """Return the lines of a plan without its host's name. The lines are equal for hosts with equal plans."""
    return tuple(line.plain for line in _plan_lines(host_plan, (), brief=brief))


def _plan_lines(host_plan: HostPlan, hosts: Sequence[str], *, brief: bool) -> list[Text]:
    plan = host_plan.plan
    head, below = headed(hosts) if hosts else ("", "")
    names = [Hanging(f"  {below}", style="dim")] if below else []
    about = [advice.of_host(one_line(note), fold(hosts)) if hosts else one_line(note) for note in host_plan.notes]
    about += [one_line("; ".join(host_plan.aged))] if host_plan.aged else []
    notes = [Hanging(f"  {note}", style="yellow") for note in about]
    if plan.empty:
        title = Hanging.assemble((head, "bold"), "  as desired: nothing to do", style="green")
        return [title, *(names if notes else ()), *notes]
    lines = [Hanging.assemble((head, "bold"), f"  {plan.tally}{_towards(plan)}", style="yellow"), *names, *notes]
    for role in plan.roles:
        lines += _show_briefly(role) if brief else _show_role(role)
    for loss in host_plan.losses:
        sentence = f"deletes {one_line(loss)} permanently (confirm at the prompt, or pass --yes)"
        lines.append(Hanging(f"  {sentence}", style="red"))
    if host_plan.busy:
        users = ", ".join(one_line(user) for user in host_plan.busy)
        lines.append(Hanging(f"  in use by {users}; pass --drain or --force ({plan.disturbs})", style="red"))
    if plan.reboot:
        lines.append(Hanging(f"  then a reboot: {one_line(plan.reboot)}", style="magenta"))
    return lines


def _show_role(role: RolePlan) -> Iterable[Text]:
    yield Hanging(f"  {role.role}", style="bold cyan")
    for change in role.changes:
        yield _show_planned(change)
        for sentence in change.warnings if isinstance(change, Change) else ():
            yield Hanging(f"      {one_line(sentence)}", style="yellow")
        for line in change.diff.splitlines() if isinstance(change, Change) else ():
            yield Quoted(f"        {one_line(line)}", style=_diff_style(line))


def _towards(plan: Plan) -> str:
    kinds = tally((planned.kind, planned.want) for planned in plan.changes)
    return f" to {plan.stack}" if "change" in kinds else f" of {plan.stack}" if "removal" in kinds else ""


def _show_briefly(role: RolePlan) -> Iterator[Text]:
    sentence = ", ".join(dict.fromkeys(one_line(change.what) for change in role.changes))
    refused = [change for change in role.changes if isinstance(change, Refusal)]
    text = Hanging.assemble((f"  {role.role}", "bold cyan"), f"  {role.tally}: ")
    yield text.append(sentence, style="red" if refused else "")
    for refusal in refused:
        yield Hanging(f"      refused: {one_line(refusal.sentence)}", style="red")


def _show_planned(planned: Planned) -> Text:
    sign, style = _SIGNS[planned.kind]
    text = Hanging(f"    {sign} {one_line(planned.what)}: ", style=style)
    text.append(f"{one_line(planned.have)} → {one_line(planned.want)}")
    match planned:
        case Deferred(until=until):
            text.append(f"  (known after {one_line(until)})", style="dim")
        case Refusal(sentence=sentence):
            text.append(f"\n      refused: {one_line(sentence)}", style="red")
    return text


def _diff_style(line: str) -> str:
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")
