"""Messages said by `formats` about PyTorch's own files: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
