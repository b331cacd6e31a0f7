"""Read-only verbs about a site's hosts, variables, stacks and schemas. Only ``stacks --hosts`` contacts hosts."""

from __future__ import annotations

from hostwright.cli.tasks.options import CONNECTED, NAMED, READ, verb
from hostwright.common.request import Request

TITLE = "Inspect (changes nothing)"


@verb(*NAMED, "var", "roles", called="vars", why="show file and line of every definition, the one in effect first")
def variables(request: Request, why: bool = False) -> int:
    """Show the variables of each role for hosts.

    hostwright vars gpu01 --roles base --why
    """
    from hostwright.cli.opening import open_fleet, targets_of
    from hostwright.cli.views.inventory import show_variables

    fleet = open_fleet(request)
    show_variables(fleet, targets_of(fleet, request, outside=True), request, why=why)
    return 0


@verb("hosts=all", *READ, "json")
def hosts(request: Request) -> int:
    """List the selected hosts with address, stack, groups and mistakes.

    hostwright hosts
    hostwright hosts 'gpu[01-08],!gpu05'
    """
    from hostwright.cli.opening import open_fleet, outside_of, refuse_unnamed
    from hostwright.cli.views.inventory import show_hosts, show_remarks

    fleet = open_fleet(request)
    refuse_unnamed(fleet, request)
    if request.strict:
        fleet.targets(request.hosts)
    chosen = fleet.select(request.hosts, usable=False)
    show_hosts(fleet, chosen, outside_of(fleet, chosen), as_json=request.json)
    show_remarks(fleet, chosen)
    return 0


@verb(
    *NAMED,
    *CONNECTED,
    hosts="show which stacks fit these hosts, the best first, and which rule refuses the others",
    ask="connect to all of the hosts, even if an audit has already read them",
)
def stacks(request: Request, ask: bool = False) -> int:
    """Show the available stacks, or with --hosts which of them fit these hosts.

    A stack is shown with its versions, its distributions, the end of its fixes, and where it was tried. The
    facts of a host's last audit, or else a new probe, decide which stacks fit it.

    hostwright stacks
    hostwright stacks --hosts gpu01
    """
    from hostwright.cli.opening import ask_password, open_fleet, refuse_strangers, targets_of
    from hostwright.cli.views.stackfits import show_fits
    from hostwright.cli.views.stacks import show_stacks
    from hostwright.common.errors import AS_DESIRED, BAD_INPUT, FAILED

    fleet = open_fleet(request)
    if request.hosts:
        password = ask_password(request)
        found = fleet.fitting_stacks(targets_of(fleet, request), ask=ask, password=password)
        show_fits(found.values, found.errors, as_json=request.json)
        return FAILED if found.errors else AS_DESIRED
    refuse_strangers(fleet)
    listed = fleet.stacks()
    show_stacks(listed, fleet.advisories, as_json=request.json)
    return BAD_INPUT if any(stack.problem for stack in listed) else AS_DESIRED


@verb(*READ, "json", checks_settings=True)
def check(request: Request) -> int:
    """Check the files of this site, for CI and pre-commit. Contacts no host.

    The files are the inventory, stacks, roles, templates and hostwright.toml.

    hostwright check
    """
    from dataclasses import asdict

    from hostwright.cli.opening import open_fleet
    from hostwright.cli.tasks import settings
    from hostwright.cli.views.inventory import show_check
    from hostwright.cli.views.shared import print_document
    from hostwright.common.errors import AS_DESIRED, BAD_INPUT, FAILED, Mistakes

    mistakes = Mistakes()
    settings.readable(mistakes)
    checked = open_fleet(request, mistakes=mistakes).check(mistakes)
    if request.json:
        print_document("check", asdict(checked))
    else:
        show_check(checked)
    if checked.mistakes:
        return BAD_INPUT
    return FAILED if checked.unread else AS_DESIRED


@verb(
    schema="the name of the schema (default: list all names)",
    write="write the schemas of this site's files into .schemas/, to which the files from `init` refer",
)
def schema(_: Request, schema: str = "", write: bool = False) -> int:
    """Print the JSON Schema of a file that you write, or of a verb's --json output.

    Editors and programs use the schemas.

    hostwright schema
    hostwright schema stack
    hostwright schema --write
    """
    from rich.text import Text

    from hostwright.cli.console import make_console
    from hostwright.cli.opening import roles_here
    from hostwright.cli.shell.reference import schemas
    from hostwright.cli.sitefiles import FOLDER, write_schemas
    from hostwright.cli.views.inventory import show_schemas
    from hostwright.common.errors import InputError
    from hostwright.common.input.nearest import suggestion
    from hostwright.plan.roles.site import Site

    if write:
        root = Site.find().root
        written = write_schemas(root, roles_here())
        make_console().print(Text(f"{root / FOLDER}: {', '.join(path.name for path in written)}"))
        return 0
    of_files, of_documents = schemas.written(roles_here()), schemas.printed()
    if schema in of_files:
        print(schemas.rendered(of_files[schema]()), end="")
    elif schema in of_documents:
        print(of_documents[schema].read_text("utf-8"), end="")
    elif schema:
        raise InputError(f"unknown schema {schema!r}; {suggestion(schema, [*of_files, *of_documents])}", "schema")
    else:
        show_schemas(of_files, of_documents)
    return 0
