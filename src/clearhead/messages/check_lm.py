"""Messages said by the checks of language models: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
