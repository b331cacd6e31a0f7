"""What every host is asked, whatever its roles are: its jobs, and whether it is drained."""
