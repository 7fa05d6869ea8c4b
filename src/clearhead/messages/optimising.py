"""Messages said by `optimising`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
