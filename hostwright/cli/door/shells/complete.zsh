# Loaded in ~/.zshrc:  eval "$(hostwright completion zsh)"
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
_hostwright() {
    local -a found
    found=(${(f)"$("${words[1]}" --complete-words "${(@)words[2,CURRENT]}" 2> /dev/null)"})
    if (( $#found )); then compadd -- $found; else _files; fi
}
compdef _hostwright hostwright
