"""API for the module ``tasks`` of roles: the decorator ``verb``, and everything that verbs need.

Names are imported on first use, because ``hostwright --list`` loads every verb without calling it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hostwright.apply.rollout.connections import Connections
    from hostwright.apply.rollout.goals import OnlyStates
    from hostwright.apply.rollout.limits import read_limits
    from hostwright.apply.rollout.rollout import NOTHING_CHANGED, Interrupted, Results, on_each
    from hostwright.cli import console
    from hostwright.cli.asking import agree, answered
    from hostwright.cli.changing import change, show_plan
    from hostwright.cli.exits import shown
    from hostwright.cli.opening import ask_password, open_fleet, targets_of
    from hostwright.cli.tasks.change import provision
    from hostwright.cli.tasks.options import CONNECTED, GRADUAL, LISTED, OF_ONE, REACHED, READ, verb
    from hostwright.cli.views.shared import errors_json, print_document, show_errors, warn
    from hostwright.common.command import Command
    from hostwright.common.request import Option, Request
    from hostwright.fleet import Fleet, Targets
    from hostwright.inventory import Host, bind, definitions, load
    from hostwright.inventory.patterns import counted
    from hostwright.plan.observing import ask
    from hostwright.plan.roles.site import Site
    from hostwright.plan.targets import TargetHost
    from hostwright.transport.identity.keys import HostKey
    from hostwright.transport.root.rootshell import RootShell

__all__ = [
    "CONNECTED", "GRADUAL", "LISTED", "NOTHING_CHANGED", "OF_ONE", "REACHED", "READ", "Command", "Connections", "Fleet",
    "Host", "HostKey", "Interrupted", "OnlyStates", "Option", "Request", "Results", "RootShell", "Site", "TargetHost",
    "Targets", "agree", "answered", "ask", "ask_password", "bind", "change", "console", "counted", "definitions",
    "errors_json", "load", "on_each", "open_fleet", "print_document", "provision", "read_limits", "show_errors",
    "show_plan", "shown", "targets_of", "verb", "warn",
]  # fmt: skip

_MODULES = {
    "hostwright.apply.rollout.connections": "Connections",
    "hostwright.apply.rollout.goals": "OnlyStates",
    "hostwright.apply.rollout.limits": "read_limits",
    "hostwright.apply.rollout.rollout": "NOTHING_CHANGED Interrupted Results on_each",
    "hostwright.cli": "console",
    "hostwright.cli.asking": "agree answered",
    "hostwright.cli.changing": "change show_plan",
    "hostwright.cli.exits": "shown",
    "hostwright.cli.opening": "ask_password open_fleet targets_of",
    "hostwright.cli.tasks.change": "provision",
    "hostwright.cli.tasks.options": "CONNECTED GRADUAL LISTED OF_ONE REACHED READ verb ",
    "hostwright.cli.views.shared": "errors_json print_document show_errors warn",
    "hostwright.common.command": "Command",
    "hostwright.common.request": "Option Request",
    "hostwright.fleet": "Fleet Targets",
    "hostwright.inventory": "Host bind definitions load",
    "hostwright.inventory.patterns": "counted",
    "hostwright.plan.observing": "ask",
    "hostwright.plan.roles.site": "Site",
    "hostwright.plan.targets": "TargetHost",
    "hostwright.transport.identity.keys": "HostKey",
    "hostwright.transport.root.rootshell": "RootShell",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        for module, names in _MODULES.items():
            if name in names.split():
                return getattr(__import__(module, fromlist=[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
