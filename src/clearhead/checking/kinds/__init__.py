"""What can be checked, a kind a module: how it is called, what must be true of it, and what its mistakes are called."""
