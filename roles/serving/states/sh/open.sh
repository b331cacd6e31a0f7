# Let a model's server read the model's files and its configuration, as they were when they were brought.
: "${name:?}"
: "${state:?}"
models=$state/$name/models
for path in "$models" "$models/models.config"; do
  [ ! -e "$path" ] || must "$path could not be made readable" chmod u=rwX,go=rX -- "$path"
done
[ ! -d "$models/$name" ] || must "the files of $name could not be made readable" chmod -R u=rwX,go=rX -- "$models/$name"
