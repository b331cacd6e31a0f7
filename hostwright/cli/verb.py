"""For authors of roles: how a verb is declared (``tasks.py``), and what its function works with once it is called.

Each name is imported when it is first used: ``hostwright --list`` declares all verbs and calls none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hostwright.apply.rollout.connections import Connections
    from hostwright.apply.rollout.goals import OnlyStates
    from hostwright.apply.rollout.options import ChangeOptions
    from hostwright.apply.rollout.rollout import LEFT, NOTHING_CHANGED, Interrupted, Results, on_each
    from hostwright.cli import console
    from hostwright.cli.arguments import ConnectionOptions, Selection
    from hostwright.cli.asking import agree, answered
    from hostwright.cli.exits import shown
    from hostwright.cli.opening import ask_password, members_of, open_fleet
    from hostwright.cli.tasks.options import (
        CHECK,
        CONNECTED,
        DRAIN,
        FORCE,
        GRADUAL,
        HOST,
        LISTED,
        OF_ONE,
        REACHED,
        READ,
        YES,
        Given,
        verb,
    )
    from hostwright.cli.verbs import changes
    from hostwright.cli.views.shared import errors_json, print_document, show_errors, warn
    from hostwright.fleet import Fleet, Members
    from hostwright.inventory import Host, bind, definitions, load
    from hostwright.inventory.patterns import counted
    from hostwright.plan.member import Member
    from hostwright.plan.observing import ask
    from hostwright.plan.roles.site import Site
    from hostwright.transport.identity.keys import HostKey
    from hostwright.transport.root.rootshell import RootShell

__all__ = [
    "CHECK", "CONNECTED", "DRAIN", "FORCE", "GRADUAL", "HOST", "LEFT", "LISTED", "NOTHING_CHANGED", "OF_ONE",
    "REACHED", "READ", "YES", "ChangeOptions", "ConnectionOptions", "Connections", "Fleet", "Given", "Host", "HostKey",
    "Interrupted", "Member", "Members", "OnlyStates", "Results", "RootShell", "Selection", "Site", "agree", "answered",
    "ask", "ask_password", "bind", "changes", "console", "counted", "definitions", "errors_json", "load", "members_of",
    "on_each", "open_fleet", "print_document", "show_errors", "shown", "verb", "warn",
]  # fmt: skip

_MODULES = {
    "hostwright.apply.rollout.connections": "Connections",
    "hostwright.apply.rollout.goals": "OnlyStates",
    "hostwright.apply.rollout.options": "ChangeOptions",
    "hostwright.apply.rollout.rollout": "Interrupted LEFT NOTHING_CHANGED Results on_each",
    "hostwright.cli": "console",
    "hostwright.cli.arguments": "ConnectionOptions Selection",
    "hostwright.cli.asking": "agree answered",
    "hostwright.cli.exits": "shown",
    "hostwright.cli.opening": "ask_password members_of open_fleet",
    "hostwright.cli.tasks.options": (
        "CHECK CONNECTED DRAIN FORCE GRADUAL HOST LISTED OF_ONE REACHED READ YES Given verb"
    ),
    "hostwright.cli.verbs": "changes",
    "hostwright.cli.views.shared": "errors_json print_document show_errors warn",
    "hostwright.fleet": "Fleet Members",
    "hostwright.inventory": "Host bind definitions load",
    "hostwright.inventory.patterns": "counted",
    "hostwright.plan.member": "Member",
    "hostwright.plan.observing": "ask",
    "hostwright.plan.roles.site": "Site",
    "hostwright.transport.identity.keys": "HostKey",
    "hostwright.transport.root.rootshell": "RootShell",
}


def __getattr__(name: str) -> Any:
    """The name, from its module."""
    for module, names in _MODULES.items():
        if name in names.split():
            return getattr(__import__(module, fromlist=[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
