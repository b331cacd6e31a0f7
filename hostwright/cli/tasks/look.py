"""Read-only verbs: they show hosts, or what is known about them."""

from __future__ import annotations

from hostwright.cli.tasks.options import NAMED, READ, WANTED, verb
from hostwright.common.request import Request

TITLE = "Look (changes nothing)"


@verb(
    *WANTED,
    out="save the plan to this file, for `invoke provision --plan FILE`",
    summary="only name what would change in each layer: no values, no diffs",
)
def plan(request: Request, out: str = "", summary: bool = False) -> int:
    """Show what would change on hosts: have → want, with a diff of each file. Changes nothing.

    hostwright plan gpu01 gpu02
    hostwright plan @rack3 --out rack3.plan
    """
    from hostwright.cli.verbs import changes

    return changes.plan(request, out=out, summary=summary)


@verb(
    *WANTED,
    "notify",
    details="show each host and layer by itself, and every change of hosts on which no layer is as desired",
    prove="then run the proofs of this level: quick or full",
)
def verify(request: Request) -> int:
    """Confirm that nothing differs from the stack, then test every layer of hosts with testinfra.

    hostwright verify gpu01
    """
    from hostwright.cli.verbs import verify as verifying

    return verifying.verify(request)


@verb(
    *WANTED,
    "notify",
    quick="only the quick proofs: a few minutes, without burn-in",
    proofs="only these proofs or layers, with commas between them",
    baseline="hold hosts to what is measured now: a later loss is a finding",
    html="write a self-contained HTML report with plots to this file (- for standard output)",
    prometheus="write metrics for node_exporter's textfile collector to this file (- for standard output)",
    at_once="how many hosts to prove at a time (default: as many connections as this machine can open)",
    details="show every figure, and on what device it was measured",
)
def prove(
    request: Request,
    quick: bool = False,
    proofs: str = "",
    baseline: bool = False,
    html: str = "",
    prometheus: str = "",
) -> int:
    """Prove by measuring that hosts do their work, each against its peers and its own past. Changes nothing.

    hostwright prove gpu01 --quick
    """
    from hostwright.cli.opening import hosts_at_once
    from hostwright.cli.verbs import verify as verifying
    from hostwright.prove.proving import ProveOptions

    return verifying.prove(
        request,
        ProveOptions("quick" if quick else "full", verifying.named(proofs), baseline, hosts_at_once(request)),
        verifying.ProofOutputs(prometheus, html),
    )


@verb(
    *WANTED,
    "no_sudo",
    called="fleet",
    default=True,
    csv="write a CSV report to this file (- for standard output)",
    junit="write a JUnit XML report for CI servers to this file (- for standard output)",
    prometheus="write metrics for node_exporter's textfile collector to this file (- for standard output)",
    html="write a self-contained HTML report to this file (- for standard output)",
    cyclonedx="write a software bill of materials of each host to this directory (CycloneDX JSON)",
    watch="repeat the audit at this interval (60s, 5m) until Ctrl-C",
    offline="do not connect: compare the facts of the last audit with the current stack",
    at_once="how many hosts to audit at a time (default: as many connections as this machine can open)",
    details="show every value and every GPU, not only those that differ",
    hosts="which hosts (default: the whole inventory)",
)
def audit_fleet(
    request: Request,
    csv: str = "",
    junit: str = "",
    prometheus: str = "",
    html: str = "",
    cyclonedx: str = "",
    watch: str = "",
    offline: bool = False,
) -> int:
    """Show which hosts are not on their stack, since when, and their known problems. Changes nothing.

    hostwright audit
    hostwright audit @rack3 --html rack3.html
    """
    from hostwright.audit.auditor import AuditOptions
    from hostwright.cli.opening import hosts_at_once
    from hostwright.cli.verbs import audit
    from hostwright.cli.views.reports import Outputs

    return audit.audit(
        request,
        Outputs(csv, junit, prometheus, html, cyclonedx),
        AuditOptions(sudo=not request.no_sudo, offline=offline, at_once=hosts_at_once(request)),
        every=watch,
    )


@verb(
    *NAMED,
    "since",
    called="history",
    details="show every change in full, not only those of each layer together",
)
def audit_history(request: Request) -> int:
    """Show the audit history of hosts, a line for each audit and layer in which something changed.

    hostwright audit.history gpu01 --since 30d
    """
    from hostwright.cli.verbs import history

    return history.history(request)


@verb(
    *NAMED, "since=7d", called="diff", hosts="which hosts (default: all)", since="how far back: 7d, 12h (default: 7d)"
)
def audit_diff(request: Request) -> int:
    """Show what changed across the fleet between an earlier audit and the latest one.

    hostwright audit.diff --since 24h
    """
    from hostwright.cli.verbs import history

    return history.diff(request)


@verb(*WANTED, "no_sudo", explain="print what is known about one known problem, by its name; no host is contacted")
def doctor(request: Request, explain: str = "") -> int:
    """Show known problems of hosts: symptom, cause, fix. Changes nothing.

    hostwright doctor gpu01
    hostwright doctor --explain no-space
    """
    from hostwright.audit.auditor import AuditOptions
    from hostwright.cli.verbs import audit

    if explain:
        return audit.explain(explain)
    return audit.doctor(request, AuditOptions(sudo=not request.no_sudo))


@verb(*NAMED, "var", "roles", called="vars", why="show file and line of every definition, the one in effect first")
def variables(request: Request, why: bool = False) -> int:
    """Show the variables of each role for hosts.

    hostwright vars gpu01 --roles base --why
    """
    from hostwright.cli.verbs import inventory

    return inventory.variables(request, why=why)


@verb("hosts=all", *READ, "json")
def hosts(request: Request) -> int:
    """Show the hosts that a selection matches, with address, stack and groups, and what keeps any from being used.

    hostwright hosts
    hostwright hosts 'gpu[01-08],!gpu05'
    """
    from hostwright.cli.verbs import inventory

    return inventory.hosts(request)


@verb(*READ, "json")
def stacks(request: Request) -> int:
    """Show the available stacks: what each pins, for which distributions, and what was tried where.

    hostwright stacks
    """
    from hostwright.cli.verbs import stacks as pinned

    return pinned.stacks(request)


@verb(*READ, "json", checks_settings=True)
def check(request: Request) -> int:
    """Check all that this site holds, for CI and pre-commit: inventory, stacks, roles, templates, hostwright.toml.

    Asks no host.

    hostwright check
    """
    from hostwright.cli.verbs import inventory

    return inventory.check(request)


@verb(
    schema="the schema's name (default: list all of them)",
    write="write those of the files of this site into .schemas/, where the files that `init` made look for them",
)
def schema(_: Request, schema: str = "", write: bool = False) -> int:
    """Print the JSON Schema of a file that you write, or of what a verb prints with --json, for editors and programs.

    hostwright schema
    hostwright schema stack
    hostwright schema --write
    """
    from hostwright.cli.verbs import init

    return init.schema(schema, write=write)
