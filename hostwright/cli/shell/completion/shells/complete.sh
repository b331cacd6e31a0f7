# shellcheck shell=bash
# Loaded in ~/.bashrc:  eval "$(hostwright completion bash)"
_hostwright() {
    local line=${COMP_LINE:0:COMP_POINT} program=${1/#\~\//"$HOME"/} found prefix=''
    if ! type -P -- "$program" > /dev/null; then program=hostwright; fi  # an alias
    # bash replaces no more than $2, the part behind its last break character (= or :) or an open quote
    if [[ $line == *"$2" ]]; then
        prefix=${line%"$2"}
        prefix=${prefix##*[[:space:]]}
        prefix=${prefix//[\"\'\\]/}
    fi
    while IFS= read -r found; do
        if [[ -n $found ]]; then COMPREPLY+=("${found#"$prefix"}"); fi
    done < <("$program" --complete-line "$line" 2> /dev/null)
}
complete -o default -F _hostwright hostwright
