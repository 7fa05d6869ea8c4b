"""Messages said by `generation`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
