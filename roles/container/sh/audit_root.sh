# What only root can read. A stopped daemon is not queried: a query would start it.
driver=; runtime=
line_of /run/docker.pid
if [ -n "$line" ] && [ -d "/proc/$line" ]; then
  value=$(bounded docker info --format '{{.DefaultRuntime}} {{.CgroupDriver}}')
  runtime=${value%% *}; driver=${value##* }
fi
say 'default runtime' "$runtime"; say 'cgroup driver' "$driver"
