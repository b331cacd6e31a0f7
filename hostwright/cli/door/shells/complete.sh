# shellcheck shell=bash
# Loaded in ~/.bashrc:  eval "$(hostwright completion bash)"
_hostwright() {
    local line=${COMP_LINE:0:COMP_POINT} found word
    local -a words
    read -ra words <<< "$line"
    if [[ $line == *[[:space:]] ]]; then words+=(''); fi
    word=${words[${#words[@]} - 1]}
    # bash replaces no more than $2, the part behind its last break character (= or :)
    while IFS= read -r found; do
        if [[ -n $found ]]; then COMPREPLY+=("${found#"${word%"$2"}"}"); fi
    done < <("$1" --complete-words "${words[@]:1}" 2> /dev/null)
}
complete -o default -F _hostwright hostwright
