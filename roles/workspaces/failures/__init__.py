"""Failures that people meet in their containers: the browser's, the kernel's, the SSH box's, the limits'."""

from __future__ import annotations

from hostwright.standard.roles.workspaces.failures.jupyter import JUPYTER_RULES
from hostwright.standard.roles.workspaces.failures.spaces import SPACE_RULES

COMMANDS = ("sshd",)  #: the first words of sentences

FAILURES = (*JUPYTER_RULES, *SPACE_RULES)
