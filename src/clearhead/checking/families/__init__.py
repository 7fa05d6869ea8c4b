"""Models of published families, held part by part against our own model of the same weights."""
