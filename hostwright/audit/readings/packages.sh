# The versions and holds of the installed packages whose names match "$@"; dpkg-query is started once.
# $any: a sed expression for each group of packages of which any one is enough.
: "${any?}"
# shellcheck disable=SC2016  # the expressions are dpkg's
bounded dpkg-query -W -f='${db:Status-Status} package ${Package}=${Version}
${db:Status-Status} mark ${Package}=${db:Status-Want}
' -- "$@" | sed -nE '/^installed /!d
s/^installed //
s/^(mark .*)=hold$/\1=held/; s/^(mark .*)=[a-z]*(install|purge|unknown)$/\1=not held/; p
'"$any"
