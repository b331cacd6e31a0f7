# For scripts that read users' home directories: homes() prints those of the accounts with a login shell, and whatever lies
# below /home (accounts of a directory service are not listed), one path a line, at most $max_homes. $nl is a line end.
: "${max_homes:?}"
homes() {
  { sed -nE 's,^([^:]*:){5}(/[^:]*):.*sh$,\2,p' /etc/passwd; set +f; printf '%s\n' /home/*; } |
    sort -u | head -n "$max_homes"
}
# shellcheck disable=SC2034  # for the scripts that follow
nl='
'
