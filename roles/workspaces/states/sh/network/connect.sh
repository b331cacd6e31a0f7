# Put a container back into its person's network: its published port comes back with it. It needs `make_network` of
# make.sh.
: "${name:?}"
: "${network:?}"
export DOCKER_HOST=unix:///var/run/docker.sock # whatever context root has
make_network
must "it could not be put into the network $network again" docker network connect "$network" "workspace-$name"
