# The mode of nvidia-container-runtime in the toolkit's config.toml; nothing where it says none, or does not exist.
: "${file:?}"
table=
while read -r line || [ -n "$line" ]; do
  case $line in
    '['*) table=$line ;;
    'mode = "'* | 'mode="'*)
      [ "$table" = '[nvidia-container-runtime]' ] || continue
      line=${line#*\"}
      echo "${line%%\"*}"
      break ;;
  esac
done 2>/dev/null <"$file"
:
