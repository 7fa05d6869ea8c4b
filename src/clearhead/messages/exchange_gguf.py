"""Messages said by `formats` about GGUF files: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
