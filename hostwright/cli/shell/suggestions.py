"""Error messages for words that no verb accepts, with suggestions. All functions are pure.

Each function returns an empty text if it has no message.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from itertools import takewhile

from invoke.parser import ParserContext

from hostwright.cli.shell.completion.names import may_be_hosts
from hostwright.common.input.nearest import SIMILAR, nearest

#: options without a verb that error messages may suggest
CORE = ("help", "list", "site", "version")
COMMANDS = ("run", "ssh")  #: verbs that take a remote command after ``--``
ALIKE = 0.8  #: minimum similarity, from 0 to 1, for suggesting a verb or an option in place of a typed word
_SIMILAR = 0.55  #: minimum similarity, from 0 to 1, of a suggested verb. One wrong letter in "plan" gives 0.75.
_SLIP = 0.9  #: minimum similarity, from 0 to 1, of a suggested option, if another verb has the typed option
_OFFERED = 4  #: maximum number of suggested verbs in an error message
#: words that precede host names in other tools and that error messages ignore
_NOISE = ("host", "hosts", "group", "groups", "node", "nodes")
_DASHES, _QUOTES = "‐‑‒–—―−", "“”„‘’‚«»"


def pasted(word: str) -> str:
    """Return the message for ``word`` if it has typographic dashes or quotes."""
    if word[:1] and word[0] in _DASHES:
        name, sign, _ = word.lstrip(_DASHES + "-").partition("=")
        return f"{word} begins with a typographic dash; did you mean --{name}{sign}?"
    if word[:1] and (word[0] in _QUOTES or (word[-1] in _QUOTES and not word[0].isalnum())):
        return f"{word} has typographic quotes, which a shell does not interpret; did you mean '{word.strip(_QUOTES)}'?"
    return ""


def unknown_verb(word: str, verbs: Sequence[str]) -> str:
    """Return the message for the unknown verb ``word``, with the verb of the same meaning or a similar one."""
    from hostwright.cli.shell import elsewhere

    known = {**{name.rpartition(".")[2]: name for name in verbs}, **{name: name for name in verbs}}
    verb = elsewhere.verb_for(word, verbs)
    if not verb and (found := nearest(word, known, _SIMILAR)):
        verb = known[found]
    meant = f"did you mean {verb!r}?" if verb else "`hostwright --help` lists all verbs"
    return f"unknown verb {word!r}; {meant}"


def no_group(word: str, groups: Sequence[str], verbs: Sequence[str]) -> str:
    """Return the message for ``--list WORD`` if no group of verbs has this name: ``word`` is a verb, or unknown."""
    if word in verbs:
        return f"{word} is a verb by itself; `hostwright --help {word}` explains it"
    near = nearest(word, groups)
    meant = f"did you mean {near!r}?" if near else "`hostwright --list` lists them all"
    return f"unknown group of verbs {word}.…; {meant}"


def no_verb(typed: str, word: str, verbs: Sequence[str]) -> str:
    """Return the message for ``word`` after the verb ``typed``, which accepts no words."""
    near = nearest(word, verbs, ALIKE)
    return f"{typed} takes no {word!r}; " + (
        f"did you mean the verb {near!r}?" if near else f"see `hostwright --help {typed}`"
    )


def single_dash(typed: str, name: str, verb: ParserContext) -> str:
    """Return the message for ``name``, a long option with one dash. Invoke would parse ``name`` as several short
    options.
    """
    from hostwright.cli.shell import elsewhere

    long, flags = f"-{name}", (*verb.flag_names(), *(f"--{each}" for each in CORE))
    if name.startswith("--") or len(name) <= len("-x"):
        return ""
    meant = long if long in flags else elsewhere.option_for(long, flags) or nearest(long, flags, ALIKE)
    return f"{typed} has no option {name}; did you mean {meant}?" if meant else ""


def unknown_option(typed: str, name: str, verb: ParserContext | None, verbs: Mapping[str, ParserContext]) -> str:
    """Return the message for the option ``name`` if ``verb`` lacks it, or if ``verb`` is ``None`` because the option
    comes first.
    """
    from hostwright.cli.shell import elsewhere

    having = [each for each, context in verbs.items() if name in context.flags]
    if verb is None:
        if having:
            return f"{name} must follow its verb, as in `hostwright {having[0]} {name} …`"
        meant = nearest(name, [f"--{each}" for each in CORE])
        return f"unknown option {name}; " + (f"did you mean {meant}?" if meant else "see `hostwright --help`")
    flags, without = verb.flag_names(), f"{typed} has no option {name}"
    meant, instead = elsewhere.option_for(name, flags), elsewhere.instead_of(name)
    if instead and not meant:
        return f"{without}; {instead}"
    # an option that another verb has is probably not misspelt
    if meant := meant or nearest(name, flags, _SLIP if having else SIMILAR) or "":
        return f"{without}; did you mean {meant}?"
    others = f" ({', '.join(having[:_OFFERED])} {'has' if len(having) == 1 else 'have'} it)" if having else ""
    return f"{without}{others}; `hostwright --help {typed}` lists its options"


def no_hosts(typed: str, word: str, left: Sequence[str], before: tuple[str, str]) -> str:
    """Return the message for ``word`` after the verb ``typed``, if the word cannot mean hosts.

    The word may belong to a value with blanks, or may be a keyword of another tool (``plan host gpu01``). ``before`` is
    the preceding option and its value; ``left`` are the words after ``word``.
    """
    rest = [*takewhile(is_no_option, left)]
    option, value = before
    if not (option or word in _NOISE) or may_be_hosts(word):
        return ""
    if option:
        whole = shlex.quote(" ".join((value, word, *takewhile(lambda each: not may_be_hosts(each), rest))))
        return f"there is no host {word!r}; if it belongs to {option}, use quotes: {option} {whole}"
    return f"{typed}: leave {word!r} out: `hostwright {typed} {shlex.join(rest)}`" if rest else ""


def bare_command(typed: str, hosts: Sequence[str], words: Sequence[str], *, one: bool) -> str:
    """Return the message for a remote command (``words``) without ``--`` before it. ``one`` means that the verb accepts
    only one host.
    """
    if not hosts or may_be_hosts(words[0]):
        return ""
    named = hosts[0] if one else f"--hosts {shlex.quote(','.join(hosts))}"
    return f"a command must follow --: `hostwright {typed} {named} -- {shlex.join(words)}`"


def is_no_option(word: str) -> bool:
    """Return whether ``word`` does not begin with a dash, and can therefore be a value or a name."""
    return not word.startswith("-")
