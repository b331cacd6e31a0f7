# For scripts that look into people's homes: homes() prints the homes of the accounts with a login shell and whatever lies
# below /home (accounts of a directory service are not listed), one path a line, $max_homes at most. $nl is a line end.
: "${max_homes:?}"
homes() {
  { sed -nE 's,^([^:]*:){5}(/[^:]*):.*sh$,\2,p' /etc/passwd; set +f; printf '%s\n' /home/*; } |
    sort -u | head -n "$max_homes"
}
# shellcheck disable=SC2034  # for the scripts that stand on this
nl='
'
