"""What the proxy alone needs: a certificate of the host's own, and nginx at work with what its files say."""
