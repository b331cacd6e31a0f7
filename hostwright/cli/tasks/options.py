"""Declares verbs: a verb is a function, with options from fields of the request, and with help texts.

    @verb(*REACHED, "check", archive="the file with the images")
    def push(request: Request, archive: str = "") -> int:
        \"\"\"Bring the images of an archive to hosts.\"\"\"
        …

Invoke creates options from parameters, so ``verb`` adds a parameter for each of these fields to the function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import replace
from functools import wraps
from inspect import Parameter, signature, unwrap
from pathlib import Path
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec

from invoke import Argument, Context, Exit, Task

from hostwright.cli.shell.advice import CALL, current
from hostwright.cli.shell.libraries import lacking
from hostwright.cli.tasks import settings
from hostwright.common.errors import BAD_INPUT, InputError, Mistakes
from hostwright.common.request import OPTIONS, Option, Request, group_of

P = ParamSpec("P")

HOST = "host"  #: option of verbs that take exactly one host
READ = group_of("read")
NAMED = ("hosts", *READ, "json")  #: options of verbs that select hosts without connecting to any
CONNECTED = group_of("connected")
REACHED = (*NAMED, *CONNECTED)  #: options of verbs that connect to hosts and have no default for --hosts
LISTED = ("hosts=all", *READ, "json", *CONNECTED)  #: options of verbs that connect to all hosts by default
OF_ONE = (HOST, *READ, "json", *CONNECTED)  #: options of verbs that connect to a single host
WANTED = (*REACHED, *group_of("wanted"))  #: options of verbs that compute the desired state of hosts
GRADUAL = group_of("gradual")
CHANGING = (*WANTED, *group_of("changing"), *GRADUAL)  #: options of verbs that change hosts
PROVISION = (*CHANGING, *group_of("provision"))
_EVERY: Mapping[str, Option] = {**OPTIONS, HOST: Option("the host", "")}


def verb(
    *taken: str,
    called: str = "",
    default: bool = False,
    checks_settings: bool = False,
    further: Mapping[str, Option] = MappingProxyType({}),
    **helps: str,
) -> Callable[[Callable[Concatenate[Request, P], int]], Verb]:
    """Turn a function that returns an exit status into a verb: an Invoke task that prints errors and exits.

    ``taken`` names the fields of the request that become options, or ``host``; ``NAME=TEXT`` sets another default.
    ``helps`` are the help texts for parameters of the function and for ``further`` options, which the function receives
    as keywords. ``called`` replaces the function's name. ``default`` makes the verb its collection's default. A mistake
    in the settings ends the verb, unless ``checks_settings`` is set.
    """

    def task_of(body: Callable[Concatenate[Request, P], int]) -> Verb:
        _, *every = signature(body).parameters.values()
        own = [each for each in every if each.kind is not Parameter.VAR_KEYWORD]
        own += [_parameter(name, each) for name, each in further.items()]
        more = [name for name in helps if name not in {each.name for each in own}]
        named = dict(map(_with_default, (*more, *taken)))
        options = {name: replace(each, help=helps.get(name, each.help)) for name, each in named.items()}
        if wrong := {each.name for each in own} & (OPTIONS.keys() | options.keys()):
            raise TypeError(f"{body.__name__}: {', '.join(sorted(wrong))}: fields of the request")
        defaults = {each.name: each.default for each in map(_parameter, options, options.values())}
        parameters = [*own, *map(_parameter, options, options.values())]

        @wraps(body)
        def task_body(_: Context, /, *args: Any, **words: Any) -> None:
            typed = {name: words.pop(name, each) for name, each in defaults.items()}
            more = {name: words.pop(name, each.default) for name, each in further.items()}
            words |= {name: list(each or ()) if further[name].kind is list else each for name, each in more.items()}
            status = copy_context().run(_call, body, typed, args, words, checks_settings)
            if status:
                raise Exit(code=status)

        context = Parameter("c", Parameter.POSITIONAL_OR_KEYWORD)
        whole = signature(body).replace(parameters=[context, *parameters])
        task_body.__signature__ = whole  # type: ignore[attr-defined]
        texts = {**{name: each.help for name, each in {**options, **further}.items()}, **helps}
        return Verb(
            task_body,
            name=called or None,
            default=default,
            help={name.rstrip("_"): text for name, text in texts.items()},
            iterable=[each.name for each in parameters if each.default is None],
            optional=tuple(name for name, each in options.items() if each.optional_value),
            auto_shortflags=False,
        )

    return task_of


class Verb(Task[Any]):
    """An Invoke task with option defaults from the site's file or the environment. Other verbs can call it, too."""

    def __call__(self, *args: Any, **words: Any) -> int:
        """Run the verb. With a request as the only argument, as in calls from other verbs, return the exit status."""
        function = unwrap(self.body) if args and isinstance(args[0], Request) else super().__call__
        status: int = function(*args, **words)
        return status

    def __deepcopy__(self, _: object) -> Verb:
        """Return the verb itself, not a copy, because it never changes and Invoke copies the tasks of every module."""
        return self

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:
        """Return Invoke's arguments, with defaults from the settings. The setting ``drain = true`` creates
        ``--no-drain``.
        """
        texts = dict(self.help)
        values = settings.for_help()
        found = super().get_arguments(ignore_unknown_help)
        self.help = texts  # Invoke removes each used text from `help`, and a second call needs all texts
        return [_with(each, values[each.names[0]]) if each.names[0] in values else each for each in found]


class _Several(Argument):
    """A repeatable option. The first typed value replaces the default from the settings; later values are added."""

    def set_value(self, value: Any, cast: bool = True) -> None:  # noqa: ARG002 (Invoke's own signature)
        self.raw_value = value
        self._value = [*(self._value or []), value]


def _with(argument: Argument, setting: settings.Setting) -> Argument:
    if argument.kind is list:
        argument = _Several(names=argument.names, kind=list, help=argument.help, attr_name=argument.attr_name)
        argument._value = None
    argument.default = setting.value
    argument.help = f"{argument.help or ''} (set in {Path(setting.origin).name})".strip()
    return argument


def _parameter(name: str, option: Option) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None if option.kind is list else option.default)


def _with_default(taken: str) -> tuple[str, Option]:
    name, sign, text = taken.partition("=")
    return name, replace(_EVERY[name], default=text) if sign else _EVERY[name]


def _call(
    body: Callable[..., int], typed: dict[str, Any], args: tuple[Any, ...], own: Mapping[str, Any], lenient: bool
) -> int:
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
    from hostwright.cli.views.shared import warn

    values = settings.readable(Mistakes()) if lenient else settings.current()
    with Mistakes():  # a help text shows valid settings only; the called verb reports invalid ones
        settings.use_state()
    for sentence in settings.misspelt():
        warn(sentence)
    used = {name: each for name, each in values.items() if {**typed, **own}.get(name.replace("-", "_")) == each.value}
    request = _request(typed)
    CALL.set(replace(current(), request=request))
    try:
        return body(request, *args, **own)
    except InputError as error:
        raise settings.placed(error, used) from error
    finally:
        if request.notify:
            from hostwright.apply.notifying import settle

            settle()


def _request(typed: Mapping[str, Any]) -> Request:
    from hostwright.cli.tasks import hostlists

    named = {"hosts" if name == HOST else name: value for name, value in typed.items()}
    given: dict[str, Any] = {
        name: tuple(value or ()) if OPTIONS[name].kind is list else value for name, value in named.items()
    }
    if "hosts" in given:
        given["hosts"] = hostlists.filled_in(given["hosts"] or "")
    if "yes" in given:
        from hostwright.cli.asking import answered

        given["yes"] = answered(given["yes"])
    return Request(**given)
