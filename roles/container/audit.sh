value=
if [ -r /etc/docker/daemon.json ]; then value=$(tr -d '[:space:]' </etc/docker/daemon.json); fi
case $value in
  *'"runtimes":{'*'"nvidia":{'*) say 'nvidia runtime' yes ;;
  *) say 'nvidia runtime' no ;;
esac
