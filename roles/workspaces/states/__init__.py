"""Resources (desired states of a host) of the role ``workspaces``."""
