"""Messages said by `scoring`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
