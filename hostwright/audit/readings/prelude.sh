# Functions for the program that prints values. A value is one line of at most 200 characters, so that it cannot pass for
# another name, and fits a label of Prometheus and a cell of a table.
LC_ALL=C; export LC_ALL; PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
scope=
say() { printf '%s%s=%.200s\n' "$scope" "$1" "${2%%
*}"; }
line_of() { line=; if [ -r "$1" ]; then IFS= read -r line <"$1"; fi; }
there() { if [ -e "$2" ]; then say "$1" yes; else say "$1" no; fi; }
program() { if [ -x "$2" ]; then say "$1" yes; else say "$1" no; fi; }
# The path $1 by the name that people use: what a link at /usr/local leads to is /usr/local. Sets $value.
well_known() {
  : "${usr_local:=$(readlink -m -- /usr/local)}"
  value=$1
  case $value in "$usr_local"/*) value=/usr/local${value#"$usr_local"} ;; esac
}
bounded() { timeout -k 1 10 "$@"; }
line_of /proc/sys/kernel/osrelease
# shellcheck disable=SC2034  # for the snippets of roles
kernel=$line
