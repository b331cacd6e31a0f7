# A data directory of a container daemon, as patterns of what somebody put there ($content) and what the daemon makes
# by itself ($made); $key is a file, and $trees are directories without files, that it makes when it starts.
: "${directory:?}"
: "${content:?}"
: "${made:?}"
: "${key?}"
: "${trees?}"
holds() { for path; do if [ -e "$path" ] || [ -L "$path" ]; then return 0; fi; done; return 1; }
held() { [ -L "$directory" ] || eval "holds $content"; }
empty() { [ -d "$directory" ] && [ -z "$(ls -A "$directory")" ] && ! mountpoint -q "$directory"; }
bare() { [ -d "$1" ] && [ -z "$(find "$1" ! -type d)" ]; }
