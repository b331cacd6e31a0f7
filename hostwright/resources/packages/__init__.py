"""States of Debian packages and apt repositories."""
