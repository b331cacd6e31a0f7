# What only root is told. A daemon that does not run is not asked: to ask would start it.
driver=; runtime=
line_of /run/docker.pid
if [ -n "$line" ] && [ -d "/proc/$line" ]; then
  value=$(bounded docker info --format '{{.DefaultRuntime}} {{.CgroupDriver}}')
  runtime=${value%% *}; driver=${value##* }
fi
say 'default runtime' "$runtime"; say 'cgroup driver' "$driver"
