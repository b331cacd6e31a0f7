"""What a host has of models, and the states that bring it to what is declared."""
