"""Messages said by `tokenizers`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
