#compdef hostwright
# Loaded in ~/.zshrc:  eval "$(hostwright completion zsh)"
# or kept as a file _hostwright in a directory of $fpath
_hostwright() {
    local -a found
    local program=${words[1]/#\~\//$HOME/}
    whence -p -- "$program" > /dev/null || program=hostwright  # an alias
    found=(${(f)"$("$program" --complete-words "${(@)words[2,CURRENT]}" 2> /dev/null)"})
    if (( $#found )); then compadd -- $found; else _files; fi
}
if [[ ${funcstack[1]-} == _hostwright ]]; then  # the file, read at the first completion
    _hostwright "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
    compdef _hostwright hostwright
fi
