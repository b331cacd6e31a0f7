# Kept for fish:  hostwright completion fish > ~/.config/fish/completions/hostwright.fish
function __hostwright_words
    set -l words (commandline -opc)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    type -q -f -- $program; or set program hostwright
    set -l found ($program --complete-words $words[2..-1] (commandline -ct) 2> /dev/null)
    if set -q found[1]
        string join \n -- $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c hostwright -f -a '(__hostwright_words)'
