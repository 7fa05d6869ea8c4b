"""Messages said by the checks of blocks and encoders: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {}
