"""GGUF files: one file with description, tokenizer and quantised weights."""
