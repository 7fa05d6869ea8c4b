"""PyTorch's own files, read without running anything in them: nanoGPT's checkpoints, state dicts of the course's GPT."""
