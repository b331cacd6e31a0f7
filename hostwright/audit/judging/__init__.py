"""From the facts of a host to what an audit says of it: pure."""
