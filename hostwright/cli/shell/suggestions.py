"""Sentences for words that no verb takes: what was typed, and what may have been meant. Pure functions of the words;
an empty text where there is nothing to say.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from itertools import takewhile

from invoke.parser import ParserContext

from hostwright.cli.shell.completion.names import may_be_hosts
from hostwright.common.input.nearest import SIMILAR, nearest

#: the options that stand before a verb, without those of Invoke's own that nobody is told of
CORE = ("help", "list", "site", "version")
COMMANDS = ("run", "ssh")  #: verbs that take words behind ``--``
ALIKE = 0.8  #: how similar a further word must be to a verb to be taken for one
_SIMILAR = 0.55  #: how similar a verb must be to be suggested: a slip in "plan" is a quarter of it
_SLIP = 0.9  #: how similar an option must be to one of this verb's, where other verbs have it exactly
_OFFERED = 4  #: verbs that a sentence names
_NOISE = ("host", "hosts", "group", "groups", "node", "nodes")  #: what others write in front of names
_DASHES, _QUOTES = "‐‑‒–—―−", "“”„‘’‚«»"


def pasted(word: str) -> str:
    """For what was pasted from where dashes and quotes are made to look well."""
    if word[:1] and word[0] in _DASHES:
        name, sign, _ = word.lstrip(_DASHES + "-").partition("=")
        return f"{word} begins with a dash of a text processor, which is no option; did you mean --{name}{sign}?"
    if word[:1] and (word[0] in _QUOTES or (word[-1] in _QUOTES and not word[0].isalnum())):
        return f"{word} has quotes of a text processor, which no shell reads; did you mean '{word.strip(_QUOTES)}'?"
    return ""


def unknown_verb(word: str, verbs: Sequence[str]) -> str:
    """For a verb that does not exist: the one of that meaning, or one that is written nearly so."""
    from hostwright.cli.shell import elsewhere  # only for mistakes

    known = {**{name.rpartition(".")[2]: name for name in verbs}, **{name: name for name in verbs}}
    verb = elsewhere.verb_for(word, verbs)
    if not verb and (found := nearest(word, known, _SIMILAR)):
        verb = known[found]
    meant = f"did you mean {verb!r}?" if verb else "`hostwright --help` shows them all"
    return f"there is no verb {word!r}; {meant}"


def no_group(word: str, groups: Sequence[str], verbs: Sequence[str]) -> str:
    """For what ``--list`` cannot list: a verb, or nothing at all."""
    if word in verbs:
        return f"{word} is a verb by itself; `hostwright --help {word}` explains it"
    near = nearest(word, groups)
    meant = f"did you mean {near!r}?" if near else "`hostwright --list` lists them all"
    return f"there are no verbs {word}.…; {meant}"


def no_verb(typed: str, word: str, verbs: Sequence[str]) -> str:
    """For a word behind a verb that takes none."""
    near = nearest(word, verbs, ALIKE)
    return f"{typed} takes no {word!r}; " + (
        f"did you mean the verb {near!r}?" if near else f"see `hostwright --help {typed}`"
    )


def single_dash(typed: str, name: str, verb: ParserContext) -> str:
    """For a long option with one dash, as Terraform has it: its first letter would be taken for an option."""
    from hostwright.cli.shell import elsewhere  # only for mistakes

    long, flags = f"-{name}", (*verb.flag_names(), *(f"--{each}" for each in CORE))
    if name.startswith("--") or len(name) <= len("-x"):
        return ""
    meant = long if long in flags else elsewhere.option_for(long, flags) or nearest(long, flags, ALIKE)
    return f"{typed} has no option {name}; did you mean {meant}?" if meant else ""


def unknown_option(typed: str, name: str, verb: ParserContext | None, verbs: Mapping[str, ParserContext]) -> str:
    """For an option that the verb does not have, or that stands where no verb does."""
    from hostwright.cli.shell import elsewhere  # only for mistakes

    having = [each for each, context in verbs.items() if name in context.flags]
    if verb is None:
        if having:
            return f"{name} belongs behind its verb, as in `hostwright {having[0]} {name} …`"
        meant = nearest(name, [f"--{each}" for each in CORE])
        return f"there is no option {name}; " + (f"did you mean {meant}?" if meant else "see `hostwright --help`")
    flags, without = verb.flag_names(), f"{typed} has no option {name}"
    meant, instead = elsewhere.option_for(name, flags), elsewhere.instead_of(name)
    if instead and not meant:
        return f"{without}: {instead}"
    # one that another verb has is no slip, unless it is nearly one of this verb's
    if meant := meant or nearest(name, flags, _SLIP if having else SIMILAR) or "":
        return f"{without}; did you mean {meant}?"
    others = f" ({', '.join(having[:_OFFERED])} {'has' if len(having) == 1 else 'have'} it)" if having else ""
    return f"{without}{others}; `hostwright --help {typed}` shows those that it has"


def no_hosts(typed: str, word: str, left: Sequence[str], before: tuple[str, str]) -> str:
    """For a word that is no host: the rest of a value with blanks in it (``before`` is the option with its value that
    stands in front of the word), or a word that only says what follows (``plan host gpu01``)."""
    rest = [*takewhile(is_no_option, left)]
    option, value = before
    if not (option or word in _NOISE) or may_be_hosts(word):
        return ""
    if option:
        whole = shlex.quote(" ".join((value, word, *takewhile(lambda each: not may_be_hosts(each), rest))))
        return f"there is no host {word!r}; where it belongs to {option}, use quotes: {option} {whole}"
    return f"{typed}: leave {word!r} out: `hostwright {typed} {shlex.join(rest)}`" if rest else ""


def bare_command(typed: str, hosts: Sequence[str], words: Sequence[str], *, one: bool) -> str:
    """For a command without ``--`` before it; ``one`` says that the verb is about a single host."""
    if not hosts or may_be_hosts(words[0]):
        return ""
    named = hosts[0] if one else f"--hosts {shlex.quote(','.join(hosts))}"
    return f"a command stands behind --: `hostwright {typed} {named} -- {shlex.join(words)}`"


def is_no_option(word: str) -> bool:
    """Whether a word can be a value or a name."""
    return not word.startswith("-")
