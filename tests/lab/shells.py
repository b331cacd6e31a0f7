"""Login shells from public reports: noisy, unusual and refusing shells, as test cases.

Each case was written from its report, with the correct result, before Hostwright's code ran on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

REFUSES = "its login shell ended with"
WAITS = "its login shell did not run"


@dataclass(frozen=True)
class Case:
    """A login shell and its start files.

    ``names`` is the start file that a note must name; empty if there is no noise. ``error`` is a part of the error
    message if no command can run.
    """

    source: str
    shell: str
    files: dict[str, str] = field(default_factory=dict)
    names: str = ""
    error: str = ""


def _bash(source: str, text: str, **more: str) -> Case:
    return Case(source, "bash", {".bashrc": text + "\n"}, **{"names": "~/.bashrc", **more})


TITLE = r"""trap 'printf "\033]0;%s\007" "$BASH_COMMAND"' DEBUG"""
PROGRESS = r"printf '\033[?25h\033[0G\033[K'"

CASES = (
    _bash("ansible#2268", 'echo "hello from .bashrc"'),
    _bash("ansible#15337: npm's completion, no line break", PROGRESS),
    _bash("ansible#14503: a bell before the first word", r"printf '\007'"),
    Case("ansible#13942, vscode-remote-release#19", "tcsh"),
    Case("ansible#13325", "csh", {".cshrc": "echo from csh\n"}, names="~/.cshrc"),
    Case("kitty#4794: an event is not found", "tcsh", {".tcshrc": "set echo verbose\n"}, names="~/.tcshrc"),
    Case("cc-clip#98, supacode#585", "fish"),
    Case("fish-shell#3473", "fish", {".config/fish/config.fish": "echo Welcome to fish\n"}, names="config.fish"),
    Case("fish-shell#10057: a bare status", "fish", {".config/fish/conf.d/a.fish": "status\n"}, names="conf.d/a.fish"),
    Case("vscode-remote-release#39", "zsh", {".zshenv": "echo zsh; print -n more\n"}, names="~/.zshenv"),
    Case("warp#2196: xtrace in a start file", "zsh", {".zshenv": "set -x\n"}, names="~/.zshenv"),
    _bash("voidrice#394, waveterm#264", "stty -ixon"),
    _bash("phpseclib#1307: on standard error alone", "unset TERM; tput setaf 1; tput sgr0"),
    _bash("Bash-it#429", r"""bind '"\e[A":history-search-backward'"""),
    _bash("open-remote-ssh#221: exec of another shell", "exec /usr/bin/fish", names="", error=WAITS),
    _bash("vscode-remote-release#4090", 'export SHELL=/usr/bin/zsh; exec "$SHELL" -l', names="", error=WAITS),
    _bash("perfsonar/toolkit#66: a question", 'read -r -p "Restart the services? " answer', names="", error=WAITS),
    _bash("claude-code#13984: exit for all but people", '[ -n "$PS1" ] || exit 0', names="", error=REFUSES),
    _bash("rustup#498", 'printf "PATH environment variable set.\\n"; printf "You\'re ready to Rust!\\n\\n"'),
    _bash("Bash-it#1040: a title before each command", TITLE),
    Case("nextcloudpi#1732", "nologin", error="This account is currently not available"),
    Case("backintime#578: a restricted shell", "rbash", error="restricted"),
    _bash("mybash#122, usgc-machine-report#8: a report of 200 kB", "head -c 200000 /dev/zero | tr '\\0' '#'"),
    _bash("fish-shell#1759: a farewell", "trap 'echo bye; exit 9' EXIT; echo hello"),
    _bash("ssh2#513: a child keeps the channel open", "sleep 20 &", names=""),
    _bash("claude-code#13984: CDPATH", "export CDPATH=/:/usr", names=""),
    _bash("BASH_ENV", 'export BASH_ENV="$HOME/.noise"; echo on', names="~/.bashrc"),
    Case("elvish as login shell", "elvish"),
    _bash("conda init, nvm: slow", "sleep 1", names=""),
    _bash("NUL bytes", r"printf 'a\000b\n'"),
    Case("sshd(8): ~/.ssh/rc", "bash", {".ssh/rc": "echo from rc\n"}, names="~/.ssh/rc"),
    Case("aliases", "zsh", {".zshenv": "alias env='env | sort' printf=false -g /bin/sh=bash\n"}),
    Case("fish functions", "fish", {".config/fish/config.fish": "function env; end\nfunction head; end\n"}),
    Case("fish_exit", "fish", {".config/fish/config.fish": "function bye --on-event fish_exit; echo bye; end\n"}),
    Case("zshexit", "zsh", {".zshenv": "zshexit() { echo bye; }; TRAPEXIT() { echo trapped; }\n"}),
    _bash("SHELLOPTS", "set -x; export SHELLOPTS"),
    _bash("noise without end", "yes", names="", error="prints endlessly"),
    _bash("set -e in a start file", "set -e; false", names="", error=REFUSES),
)
