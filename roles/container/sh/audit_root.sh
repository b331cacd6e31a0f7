# What only root can read. A stopped daemon is not queried: a query would start it. It needs `lost_rules` of firewall.sh.
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
driver=; runtime=; rules=
line_of /run/docker.pid
if [ -n "$line" ] && [ -d "/proc/$line" ]; then
  value=$(bounded docker info --format '{{.DefaultRuntime}} {{.CgroupDriver}}')
  runtime=${value%% *}; driver=${value##* }
  rules=$(lost_rules | tr '\n' ' '); rules=${rules:+gone from }${rules:-there}
fi
say 'default runtime' "$runtime"; say 'cgroup driver' "$driver"; say 'firewall rules' "$rules"
