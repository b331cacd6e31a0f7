"""What became of the keys of hosts, one line each."""

from __future__ import annotations

from rich.text import Text

from hostwright.cli import console
from hostwright.cli.views.shared import errors_json, print_document, show_errors
from hostwright.common.text import printable
from hostwright.rebuild.newkeys import KeyResults, Told


def tell(told: Told) -> None:
    """One host, as soon as its key is settled."""
    console.make_console().print(Text(printable(_line(told))))


def show_keys(results: KeyResults, *, as_json: bool) -> None:
    """What is left to show at the end."""
    if as_json:
        hosts = [told.to_json() for told in results.told]
        print_document("trust", {"hosts": hosts, "errors": errors_json(results.errors)})
    else:
        show_errors(results.errors)


def _line(told: Told) -> str:
    """One host in one line."""
    replaced = told.replaced
    old = ", ".join(dict.fromkeys(f"{key.key_type} {key.fingerprint}" for key in replaced.before)) or "no key"
    if told.result == "known":
        return f"{replaced.host}  already known: {', '.join(map(str, replaced.now))}; nothing was changed"
    if not replaced.files:
        return f"{replaced.host}  {old}; nothing was changed"
    new = ", ".join(map(str, replaced.now)) or "no key"
    by = f"  by {told.source}" if told.source else ""
    return f"{replaced.host}  {old} → {new}{by}  in {', '.join(map(str, replaced.files))}"
