"""Prints a line about the SSH host keys of each host."""

from __future__ import annotations

from rich.text import Text

from hostwright.apply.rollout.rollout import result_of
from hostwright.cli import console
from hostwright.cli.views.shared import errors_json, print_document, show_errors, show_sums
from hostwright.common.text import printable
from hostwright.inventory.patterns import headed
from hostwright.rebuild.newkeys import KeyResults, Told

_MOST_ALONE = 3  #: maximum number of hosts with known keys that are printed on separate lines
WORDS = {"trusted": "trusted anew", "known": "already known", "forgotten": "forgotten"}


def tell(told: Told) -> None:
    """Print a host's result as soon as its new key is accepted. ``show_keys`` prints hosts with known keys."""
    if told.result != "known":
        console.make_console().print(Text(printable(_line(told))))


def show_keys(results: KeyResults, *, as_json: bool) -> None:
    """Print the results that ``tell`` has not printed, and the totals."""
    if as_json:
        hosts = [told.to_json() for told in results.told]
        print_document("trust", {"hosts": hosts, "errors": errors_json(results.errors)})
        return
    out = console.make_console()
    known = [told for told in results.told if told.result == "known"]
    if len(known) > _MOST_ALONE:
        names = headed(told.replaced.host for told in known)[0]
        out.print(Text(printable(f"{names}  already known; nothing was changed")))
    else:
        for told in known:
            out.print(Text(printable(_line(told))))
    show_errors(results.errors)
    show_sums(out, [*(WORDS[told.result] for told in results.told), *map(result_of, results.errors)])


def _line(told: Told) -> str:
    replaced = told.replaced
    old = ", ".join(dict.fromkeys(f"{key.key_type} {key.fingerprint}" for key in replaced.before)) or "no key"
    if told.result == "known":
        return f"{replaced.host}  already known: {', '.join(map(str, replaced.now))}; nothing was changed"
    if not replaced.files:
        return f"{replaced.host}  {old}; nothing was changed"
    new = ", ".join(map(str, replaced.now)) or "no key"
    by = f"  by {told.source}" if told.source else ""
    return f"{replaced.host}  {old} → {new}{by}  in {', '.join(map(str, replaced.files))}"
