"""Messages said by `training`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "training.setting": (
        "{name} = {value} must be {wanted}",
        "{name} = {value} 应满足 {wanted}",
    ),
}
