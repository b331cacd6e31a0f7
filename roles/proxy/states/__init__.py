"""What the proxy alone needs: nginx at work with what its files say."""
