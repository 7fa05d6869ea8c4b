"""Messages said by the questions that every kind is asked: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
