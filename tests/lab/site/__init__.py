"""A separate site: the package installed from its wheel, custom roles, real hosts."""
