# A line for each package: name, version, state, with tabs; the name with :ARCHITECTURE where that is not the host's own.
native=$(dpkg --print-architecture)
rows=$(dpkg-query -W -f='${Package}:${Architecture}\t${Version}\t${db:Status-Abbrev}\n') || exit
printf '%s\n' "$rows" | sed "s/^\([^:]*\):\($native\|all\|\)\t/\1\t/"
