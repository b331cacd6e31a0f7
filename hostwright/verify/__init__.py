"""testinfra over our own connection: the checks of each layer."""
