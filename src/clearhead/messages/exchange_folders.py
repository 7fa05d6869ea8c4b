"""Messages said by `formats` about folders of Hugging Face and their safetensors: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
