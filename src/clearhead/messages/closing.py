"""Messages said by `closing`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
