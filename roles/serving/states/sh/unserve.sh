# Take the models of these workspaces off a host: their servers let them go first, where they still run.
: "${names:?}"
: "${state:?}"
eval "set -- $names"
for name; do
  models=$state/$name/models
  if [ -d "$models" ]; then
    echo 'model_config_list {}' >"$models/.models.config.new"
    chmod 644 -- "$models/.models.config.new"
    mv -f -- "$models/.models.config.new" "$models/models.config"
    rm -f -- "$models/models.config.former"
  fi
done
sleep 3 # the servers read their configuration once a second
for name; do
  must "the models of $name could not be removed" rm -rf -- "${state:?}/$name/models/$name" "${state:?}/$name/models/versions"
done
