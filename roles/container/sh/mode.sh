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
      exit 0 ;;
  esac
done 2>/dev/null <"$file"
exit 0
