"""Messages said by `data`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
