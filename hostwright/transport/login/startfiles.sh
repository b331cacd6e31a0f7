# Prints the path of the user's login shell, and then, a line each, those of its start files that print something. It
# sources each of them alone, as the shell would for a command over ssh. $limit_s bounds each.
# shellcheck disable=SC2016  # the login shell expands it
: "${limit_s:?}"
entry=$(getent passwd "$(id -u)") || entry=$(grep "^[^:]*:[^:]*:$(id -u):" /etc/passwd)
shell=${entry##*:}
shell=${shell:-/bin/sh}
printf '%s\n' "$shell"
config=${XDG_CONFIG_HOME:-$HOME/.config}/fish
prints() {
  file=$1; shift
  [ -r "$file" ] || return 0
  printed=$(env -i HOME="$HOME" USER="$USER" LOGNAME="$LOGNAME" SHELL="$shell" SSH_CLIENT="$SSH_CLIENT" \
    SSH_CONNECTION="$SSH_CONNECTION" PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games SHLVL=2 \
    START="$file" timeout "$limit_s" "$@" </dev/null 2>&1 | timeout "$limit_s" head -c 1 | wc -c)
  [ "$printed" -gt 0 ] || return 0
  case $file in "$HOME"/*) printf '~%s\n' "${file#"$HOME"}";; *) printf '%s\n' "$file";; esac
}
if [ -e "$HOME/.ssh/rc" ]; then rc=$HOME/.ssh/rc; else rc=/etc/ssh/sshrc; fi
prints "$rc" /bin/sh "$rc"
case ${shell##*/} in
  bash | rbash)
    for file in /etc/bash.bashrc "$HOME/.bashrc"; do
      prints "$file" "$shell" --norc --noprofile -c '. "$START"; :'
    done;;
  zsh*)
    for file in /etc/zshenv /etc/zsh/zshenv "${ZDOTDIR:-$HOME}/.zshenv"; do
      prints "$file" "$shell" -f -c '. "$START"; :'
    done;;
  tcsh | csh | bsd-csh)
    own=$HOME/.cshrc
    case ${shell##*/} in tcsh) [ ! -e "$HOME/.tcshrc" ] || own=$HOME/.tcshrc;; esac
    for file in /etc/csh.cshrc "$own"; do
      prints "$file" "$shell" -f -c 'source "$START"; true'
    done;;
  fish) # before 3.5 it has no --no-config, and reads the system's files here too
    scratch=$(mktemp -d) || exit 1
    alone=$("$shell" --no-config -c 'echo --no-config' 2>/dev/null)
    for file in /etc/fish/conf.d/*.fish "$config"/conf.d/*.fish /etc/fish/config.fish "$config/config.fish"; do
      prints "$file" env XDG_CONFIG_HOME="$scratch" "$shell" ${alone:+"$alone"} -c 'source $START; true'
    done
    rm -rf -- "$scratch";;
esac
