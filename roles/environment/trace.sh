# What bash's start files for login shells set, as the user who runs this: `+hostwright FILE:LINE: COMMAND` for each
# command, to be run by bash. What they print is left out, and one that ends the shell ends the list.
exec 9>&1 >/dev/null 2>&1 </dev/null
PS4='+hostwright ${BASH_SOURCE}:${LINENO}: '
BASH_XTRACEFD=9
set -x
# shellcheck disable=SC1091  # the host's
. /etc/profile
for file in ~/.bash_profile ~/.bash_login ~/.profile; do
  # shellcheck disable=SC1090  # whichever it is
  if [ -r "$file" ]; then . "$file"; break; fi
done
