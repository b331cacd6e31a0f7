"""Suggests, in error messages, Hostwright's name for another tool's verb or option, such as `deploy` or `--limit`."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hostwright.common.command import Command

#: verb of Hostwright → verbs of other tools with the same meaning
_VERBS: Mapping[str, str] = {
    "provision": "apply deploy converge site up install upgrade update sync configure playbook create",
    "remove": "destroy delete rm del uninstall purge down clean",
    "plan": "diff dry-run dryrun preview noop simulate",
    "hosts": "list ls ps get inventory nodes show targets graph",
    "audit": "status state drift report refresh",
    "doctor": "diagnose debug troubleshoot ping facts setup events describe",
    "verify": "test tests assert smoke",
    "check": "validate lint syntax-check fmt",
    "run": "exec shell command cmd adhoc ad-hoc execute",
    "ssh": "login connect console attach",
    "runs": "log logs history journal",
    "runs.follow": "watch tail follow",
    "power": "reboot reset restart shutdown",
    "rebuild": "repair reinstall reimage fix heal",
    "rollback": "undo revert downgrade",
    "mirror": "download fetch pull cache",
    "init": "new quickstart scaffold",
    "lock": "cordon taint freeze hold",
    "unlock": "force-unlock uncordon untaint release",
    "vars": "variables config env output inspect",
    "completion": "autocomplete completions",
}
#: option of Hostwright → options of other tools with the same meaning
_OPTIONS: Mapping[str, str] = {
    "--hosts": "--limit -l -H --host --target --targets --target-hosts --nodes --selector --only --subset",
    "--inventory": "-i --inventory-file --hosts-file --inventories",
    "--ask-become-pass": "-K --ask-sudo-pass --sudo-password --use-sudo-password --prompt-for-sudo-password",
    "--ask-vault-password": "-J --ask-vault-pass",
    "--var": "-e --extra-vars --extra-var --set --data --vars -var --define -D",
    "--roles": "-t --tags --role --layers --layer",
    "--yes": "-y --auto-approve --assume-yes --assumeyes --confirm --no-confirm --non-interactive",
    "--check": "-C --dry-run --dry --dryrun --noop --what-if",
    "--batch": "-f --forks --serial --parallel --parallelism -P --concurrency --limit-parallel",
    "--max-fail": "--max-fail-percentage --fail-percent --any-errors-fatal",
    "--out": "-o --output --output-file --save",
    "--json": "-o --output --format --output-format",
    "--accept-new": "--no-host-key-checking --disable-host-key-checking --insecure",
    "--steps": "-v -vv -vvv -vvvv --verbose --debug --trace",
}
#: advice to print → options of other tools that Hostwright does not have
_NOT_HERE: Mapping[str, str] = {
    "set ansible_user in the inventory for the login": "-u --user --remote-user --ssh-user --login-user",
    "set ansible_password in the inventory for the login's password": "-k --ask-pass --password --ssh-password",
    "set ansible_port in the inventory": "-p --port --ssh-port",
    "set ansible_ssh_private_key_file in the inventory": "--private-key --key-file --key --ssh-key "
    "--identity --identity-file",
    "Hostwright uses sudo without an option if it needs root": "-b --become --sudo -s --become-method",
    f"{Command('plan')} shows the difference of each file": "--diff",
    f"{Command('runs.show', steps=True)} shows the output of each step": "-v -vv -vvv -vvvv --verbose --debug --trace",
    "set NO_COLOR=1": "--no-color --no-colour --nocolor",
}


def verb_for(word: str, verbs: Collection[str]) -> str:
    """Return Hostwright's verb for ``word``, a verb of another tool; empty if unknown.

    >>> verb_for("destroy", ["plan", "remove"])
    'remove'
    """
    return next((verb for verb, words in _VERBS.items() if word.lower() in words.split() and verb in verbs), "")


def option_for(name: str, options: Collection[str]) -> str:
    """Return which of ``options`` means the same as ``name``, an option of another tool; empty if none does.

    >>> option_for("--limit", ["--hosts", "--json"])
    '--hosts'
    """
    return next((option for option, names in _OPTIONS.items() if name in names.split() and option in options), "")


def instead_of(name: str) -> str:
    """Return advice for ``name``, an option of another tool that Hostwright lacks; empty if unknown.

    >>> instead_of("--become")
    'Hostwright uses sudo without an option if it needs root'
    """
    return next((sentence for sentence, names in _NOT_HERE.items() if name in names.split()), "")
