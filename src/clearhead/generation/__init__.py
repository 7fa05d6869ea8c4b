"""Writing: from logits to probabilities to text, one token after another."""
