"""Messages said by `formats`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
