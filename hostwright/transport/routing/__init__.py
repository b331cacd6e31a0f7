"""The route to a server: its address, the jump hosts before it, and the socket."""
