# older_gcc NEWEST: the newest version up to NEWEST of which a g++-VERSION is installed; it fails where there is none.
older_gcc() {
    version=$1
    while [ "$version" -ge 5 ]; do
        if command -v "g++-$version" >/dev/null; then echo "$version"; return 0; fi
        version=$((version - 1))
    done
    return 1
}
