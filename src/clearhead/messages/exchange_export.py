"""Messages said by `formats` about what is written for others: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
