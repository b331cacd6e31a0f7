"""The route to a server: reads its settings from ``ssh_config``, resolves jump hosts, and opens sockets."""
