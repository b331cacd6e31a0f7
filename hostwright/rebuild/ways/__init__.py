"""Choice of the method to rebuild a host (``rebuild.Way``): the diagnosis, and the rules that decide."""
