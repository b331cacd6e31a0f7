"""How a verb is declared: a function, the options that it shares with other verbs, and help texts of its own.

    @verb(*REACHED, CHECK, archive="the file with the images")
    def push(given: Given, archive: str = "") -> int:
        \"\"\"Bring the images of an archive to hosts.\"\"\"
        return pushing.push(given.selection, given.connection, archive, check=given.check, as_json=given.json)

Invoke makes options of parameters, so ``verb`` adds those of the shared options to the function's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from invoke import Context, Exit, Task

from hostwright.cli.arguments import CALL, NOTIFY, STRICT, VAULT, ConnectionOptions, Selection, VaultOptions
from hostwright.cli.shell.libraries import lacking
from hostwright.cli.tasks import settings
from hostwright.common.errors import BAD_INPUT, InputError, Mistakes

if TYPE_CHECKING:
    from hostwright.apply.rollout.options import ChangeOptions

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Option:
    """An option that several verbs share. One whose default is ``None`` may be given more than once."""

    name: str
    help: str
    default: str | bool | None

    def told(self, text: str) -> Option:
        """The same option with the help text of one verb."""
        return replace(self, help=text)

    def when_silent(self, default: str) -> Option:
        """The same option with another value where nobody gives one."""
        return replace(self, default=default)


HOSTS = Option(
    "hosts",
    "which hosts: gpu01,gpu[03-09],@group,!gpu05,~regex or all; ^FILE: those that a file lists, ^-: standard input",
    "",
)
ALL_HOSTS = HOSTS.when_silent("all")  #: of verbs that show all hosts where none is named
HOST = Option("host", "the host", "")  #: of verbs about a single host
INVENTORIES = Option(
    "inventory",
    "the inventory (default: inventory/): a directory, a file, a program that answers --list, or h1,h2,; "
    "repeatable, later ones win",
    None,
)
VAULT_FILE = Option("vault_password_file", "a file with the password of Ansible Vault, or a program that prints it", "")
ASK_VAULT = Option("ask_vault_password", "prompt for the password of Ansible Vault", False)
STRICTLY = Option(
    "strict", "end with 2 if a host cannot be provisioned, or has a variable that only looks like a role's", False
)
VAR = Option("var", "set a variable for this run, KEY=VALUE; repeatable", None)
ROLES = Option("roles", "only these roles, without those that they need: base,driver; or all but one: '!NAME'", "")
JSON = Option("json", "print a single JSON document and nothing else", False)
ASK_BECOME_PASS = Option("ask_become_pass", "prompt once for the sudo password", False)
ACCEPT_NEW = Option(
    "accept_new", "accept and record the keys of unknown hosts (a changed key is always an error)", False
)
CHECK = Option("check", "only show what would be done; change nothing", False)
DRAIN = Option(
    "drain", "if a GPU is in use, drain the host (hostwright_drain) and wait until its work has ended", False
)
FORCE = Option("force", "change hosts even if their GPUs are in use, killing the processes that use them", False)
YES = Option("yes", "go on without being asked whether hosts may be disturbed or lose something", False)
CANARY = Option("canary", "start with N (or N%) hosts; if any of them fails, do not touch the others", "")
BATCH = Option("batch", "work on at most N (or N%) hosts at a time; start the next as soon as one is done", "")
MAX_FAIL = Option("max_fail", "stop starting hosts after more than N (or N%) have failed or were unreachable", "")
PROVE = Option(
    "prove", "then run the proofs of this level, quick or full; a host whose proofs do not pass has failed", ""
)
TIMELINE = Option(
    "timeline",
    "write a page to this file, however the run ends: what was done when on each host, and what its end waited for",
    "",
)
NO_SUDO = Option("no_sudo", "do not use sudo; root-only checks are reported as not read", False)
SINCE = Option("since", "how far back: 7d, 12w (default: all)", "")
NOTIFIED = Option("notify", "a command for /bin/sh that gets the run as JSON at its end, and at its first failure", "")
_SEVERAL = {INVENTORIES.name, VAR.name}

READ = (INVENTORIES, VAULT_FILE, ASK_VAULT, STRICTLY)  #: of verbs that read an inventory
NAMED = (HOSTS, *READ, JSON)  #: and are about some of its hosts
CONNECTED = (ASK_BECOME_PASS, ACCEPT_NEW)
REACHED = (*NAMED, *CONNECTED)  #: of verbs that connect to hosts
LISTED = (ALL_HOSTS, *READ, JSON, *CONNECTED)  #: to all of them where none is named
OF_ONE = (HOST, *READ, JSON, *CONNECTED)  #: to one host
WANTED = (*REACHED, VAR, ROLES)  #: of verbs that also know what is wanted of hosts
GRADUAL = (CANARY, BATCH, MAX_FAIL)
CHANGING = (*WANTED, DRAIN, FORCE, *GRADUAL, NOTIFIED)  #: and change them


@dataclass(frozen=True, slots=True)
class Given:
    """What was typed of the options that a verb shares; of an option that it does not have, its default."""

    hosts: str = ""
    host: str = ""
    inventory: tuple[str, ...] = ()
    var: tuple[str, ...] = ()
    roles: str = ""
    json: bool = False
    ask_become_pass: bool = False
    accept_new: bool = False
    check: bool = False
    drain: bool = False
    force: bool = False
    yes: bool = False
    canary: str = ""
    batch: str = ""
    max_fail: str = ""
    no_sudo: bool = False
    since: str = ""
    prove: str = ""
    timeline: str = ""

    @property
    def selection(self) -> Selection:
        """Which hosts, of which inventory."""
        return Selection(self.hosts or self.host, self.inventory, self.var, self.roles)

    @property
    def connection(self) -> ConnectionOptions:
        """How hosts are connected to."""
        return ConnectionOptions(self.ask_become_pass, self.accept_new)

    def change(self, *, no_reboot: bool = False, executor: str = "", scheduler: str = "") -> ChangeOptions:
        """How hosts are changed."""
        from hostwright.apply.rollout.options import ChangeOptions, RolloutOptions, Spread

        rollout = RolloutOptions(self.canary, self.batch, self.max_fail)
        return ChangeOptions(self.drain, no_reboot, rollout, self.yes, Spread(executor, scheduler))


def verb(
    *shared: Option,
    called: str = "",
    default: bool = False,
    checks_settings: bool = False,
    optional: tuple[str, ...] = (),
    **own: str,
) -> Callable[[Callable[Concatenate[Given, P], int]], Task[Any]]:
    """A task of a function that returns an exit status: errors are printed, and Invoke ends with the status.

    ``shared`` are options whose values the function gets as its first argument; ``own`` are the help texts of its own
    parameters. ``called`` is the verb's name where it is not the function's, ``default`` says that it is also the
    one of its collection's name. ``optional`` are parameters whose option may stand without a value, which is ``True``
    then. Mistakes in the settings end every verb but one that ``checks_settings`` itself.
    """

    options = {each.name: each for each in shared}  # the last one of a name is the verb's

    def task_of(body: Callable[Concatenate[Given, P], int]) -> Task[Any]:
        _, *parameters = signature(body).parameters.values()
        added = [Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default) for each in options.values()]
        context = Parameter("c", Parameter.POSITIONAL_OR_KEYWORD)
        several = [each.name for each in (*parameters, *added) if each.default is None]
        for each in (*parameters, *added):
            settings.declare(each.name, each.default, shared=each.name in options)

        @wraps(body)
        def task_body(_: Context, /, *args: Any, **words: Any) -> None:
            typed = {each.name: words.pop(each.name, each.default) for each in options.values()}
            status = copy_context().run(_call, body, typed, args, words, checks_settings)
            if status:
                raise Exit(code=status)

        whole = signature(body).replace(parameters=[context, *parameters, *added])
        task_body.__signature__ = whole  # type: ignore[attr-defined]
        texts = {**{each.name: each.help for each in options.values()}, **own}
        helps = {name.rstrip("_"): text for name, text in texts.items()}
        return settings.Verb(
            task_body,
            name=called or None,
            default=default,
            help=helps,
            iterable=several,
            optional=optional,
            auto_shortflags=False,
        )

    return task_of


def _call(
    body: Callable[..., int], typed: dict[str, Any], args: tuple[Any, ...], own: Mapping[str, Any], lenient: bool
) -> int:
    """The exit status of a verb. Options about how an inventory is read are known as long as it lasts."""
    try:
        from hostwright.cli.exits import run
    except ModuleNotFoundError as error:
        if sentence := lacking(error):
            raise Exit(sentence, code=BAD_INPUT) from error
        raise

    return run(lambda: _body(body, typed, args, own, lenient))


def _body(
    body: Callable[..., int], typed: dict[str, Any], args: tuple[Any, ...], own: Mapping[str, Any], lenient: bool
) -> int:
    from hostwright.cli.tasks import hostlists
    from hostwright.cli.views.shared import warn

    values = settings.readable(Mistakes()) if lenient else settings.current()
    with Mistakes():  # those that are left are what a verb checks
        settings.use_state()
    for sentence in settings.misspelt():
        warn(sentence)
    used = {name: each for name, each in values.items() if {**typed, **own}.get(name.replace("-", "_")) == each.value}
    NOTIFY.set(typed.pop(NOTIFIED.name, ""))
    for option in {HOSTS.name, HOST.name} & typed.keys():
        typed[option] = hostlists.filled_in(typed[option] or "")
    CALL.set(_taken_over(typed))
    VAULT.set(VaultOptions(typed.pop(VAULT_FILE.name, ""), typed.pop(ASK_VAULT.name, False)))
    STRICT.set(typed.pop(STRICTLY.name, False))
    several: dict[str, Any] = {name: tuple(typed[name] or ()) for name in _SEVERAL & typed.keys()}
    given = Given(**{**typed, **several})
    if YES.name in typed:
        from hostwright.cli.asking import answered

        given = replace(given, yes=answered(given.yes))
    try:
        return body(given, *args, **own)
    except InputError as error:
        raise settings.placed(error, used) from error
    finally:
        if NOTIFY.get():
            from hostwright.apply.notifying import settle

            settle()


def _taken_over(typed: Mapping[str, Any]) -> dict[str, str | bool | tuple[str, ...]]:
    """What advised commands take over of what was typed. A variable that is named like a secret is not shown."""
    called: dict[str, Any] = {HOSTS.name: typed.get(HOSTS.name) or typed.get(HOST.name)}
    for option in (ROLES, VAR, INVENTORIES, VAULT_FILE, ASK_VAULT, ASK_BECOME_PASS):
        called[option.name] = typed.get(option.name)
    if called[VAR.name]:
        from hostwright.inventory.draft import named_like_a_secret

        pairs = dict(pair.partition("=")[::2] for pair in called[VAR.name])
        called["stack"] = pairs.get("hostwright_stack") or pairs.get("stack")  # for verbs that take it as an option
        called[VAR.name] = [pair for pair in called[VAR.name] if not named_like_a_secret(pair.partition("=")[0])]
    kept = {name: tuple(filter(None, value)) if name in _SEVERAL else value for name, value in called.items() if value}
    return {name.replace("_", "-"): value for name, value in kept.items() if value}
