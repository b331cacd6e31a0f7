# What only root can read. A stopped daemon is not queried: a query would start it. It needs `lost_rules` of firewall.sh.
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
driver=; runtime=; rules=
line_of /run/docker.pid
if [ -n "$line" ] && [ -d "/proc/$line" ]; then
  info=$(bounded curl -q -s -f -m 3 --noproxy '*' --unix-socket /var/run/docker.sock http://docker/info ||
    bounded docker info --format '{{json .}}')
  case $info in *'"DefaultRuntime":"'*) runtime=${info#*'"DefaultRuntime":"'}; runtime=${runtime%%'"'*} ;; esac
  case $info in *'"CgroupDriver":"'*) driver=${info#*'"CgroupDriver":"'}; driver=${driver%%'"'*} ;; esac
  rules=$(lost_rules | tr '\n' ' '); rules=${rules:+gone from }${rules:-there}
fi
say 'default runtime' "$runtime"; say 'cgroup driver' "$driver"; say 'firewall rules' "$rules"
