"""Questions that every kind is asked: modes, rows, weights as found, number types."""
