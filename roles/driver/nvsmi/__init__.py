"""What nvidia-smi says of a host's cards, whatever driver generation wrote it."""
