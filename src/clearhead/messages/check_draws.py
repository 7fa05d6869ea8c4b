"""Messages said by the checks of losses and samplers: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
