"""Messages said by `text_sources`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
