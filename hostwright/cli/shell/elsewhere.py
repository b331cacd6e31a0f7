"""What people bring along from other tools: verbs and options that are called otherwise here, or are not needed.

Ansible, Fabric, pyinfra, Terraform and kubectl say `deploy`, `destroy`, `--limit`, `-auto-approve`. None of it is
taken: it is answered with what it is called here, so that everybody learns one name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hostwright.common.command import Command

#: verbs, by what others call them
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
#: options, by what others call them
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
#: what stands in the inventory here, or is done without being asked for
_NOT_HERE: Mapping[str, str] = {
    "ansible_user in the inventory says who logs in": "-u --user --remote-user --ssh-user --login-user",
    "ansible_password in the inventory is the login's password": "-k --ask-pass --password --ssh-password",
    "ansible_port in the inventory says which port": "-p --port --ssh-port",
    "ansible_ssh_private_key_file in the inventory names the key": "--private-key --key-file --key --ssh-key "
    "--identity --identity-file",
    "it becomes root by sudo where that is needed, without being told": "-b --become --sudo -s --become-method",
    f"{Command('plan')} shows the difference of each file": "--diff",
    f"{Command('runs.show', steps=True)} shows what each step printed": "-v -vv -vvv -vvvv --verbose --debug --trace",
    "set NO_COLOR=1": "--no-color --no-colour --nocolor",
}


def verb_for(word: str, verbs: Collection[str]) -> str:
    """The verb here for a word that is a verb elsewhere; empty where none is known.

    >>> verb_for("destroy", ["plan", "remove"])
    'remove'
    """
    return next((verb for verb, words in _VERBS.items() if word.lower() in words.split() and verb in verbs), "")


def option_for(name: str, options: Collection[str]) -> str:
    """The option of a verb, of these, for what is an option elsewhere; empty where none is known.

    >>> option_for("--limit", ["--hosts", "--json"])
    '--hosts'
    """
    return next((option for option, names in _OPTIONS.items() if name in names.split() and option in options), "")


def instead_of(name: str) -> str:
    """What is done here without the option that elsewhere has this name; empty where nothing is known.

    >>> instead_of("--become")
    'it becomes root by sudo where that is needed, without being told'
    """
    return next((sentence for sentence, names in _NOT_HERE.items() if name in names.split()), "")
