"""Hugging Face folders: `config.json`, safetensors, `tokenizer.json`."""
