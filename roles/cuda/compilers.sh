# Prints "gcc N" for the host's own gcc: the one that is installed, else the one that apt offers. Where that is newer
# than $newest, prints also "installed N" or "offered N" for the newest other g++ up to that, if there is one. Where the
# stack names a $compiler, prints "missing N" if that is neither installed nor offered, and nothing else. Needs
# older_gcc.
: "${newest:?}"
: "${compiler?}"
# Prints "NAME VERSION" of each of these packages that apt would install. It takes an unknown name for a pattern.
candidates() {
    LC_ALL=C apt-cache policy "$@" 2>/dev/null |
        sed -n '/^[^ ]/{s/:$//;h;};/^ *Candidate: [0-9]/{s/.*Candidate: //;H;x;s/\n/ /p;}'
}

compared() {
    if [ -n "$compiler" ]; then
        command -v "$compiler" >/dev/null || candidates "$compiler" | grep -q "^$compiler " || echo "missing ${compiler#*-}"
        return 0
    fi
    have=$(gcc -dumpversion 2>/dev/null) || have=$(candidates gcc | sed -n 's/^gcc \([0-9]*:\)\{0,1\}//p')
    have=${have%%[!0-9]*}
    [ -n "$have" ] || return 0
    echo "gcc $have"
    [ "$have" -gt "$newest" ] || return 0
    if version=$(older_gcc "$newest"); then echo "installed $version"; return 0; fi
    # shellcheck disable=SC2046  # a name a word
    candidates $(LC_ALL=C apt-cache pkgnames g++- 2>/dev/null | grep -x 'g++-[0-9]\{1,2\}') |
        sed -n 's/^g++-\([0-9]*\) .*/\1/p' | sort -rn | while read -r version; do
            if [ "$version" -le "$newest" ]; then echo "offered $version"; break; fi
        done
}
compared
