"""What learned routing earns, and the paper's own experiments."""
