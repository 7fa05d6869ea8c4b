"""Learning: the generator of updates, what it needs (batches, losses, optimiser, schedule) and what follows it."""
