"""A site of its own: the package installed from its wheel, roles that the engine has never heard of, real hosts."""
