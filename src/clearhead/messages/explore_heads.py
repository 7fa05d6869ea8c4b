"""Messages said by `web` about the heads that a page asks for: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "heads.missing": (
        "the question names no {name}; add {name}= to the address",
        "提问缺少 {name}；请在地址中加上 {name}=",
    ),
    "heads.not_a_number": (
        "{name}={value!r} is no whole number; give one from 0 to {last}",
        "{name}={value!r} 不是整数；请给 0 到 {last} 之间的整数",
    ),
    "heads.outside": (
        "there is no {name} {value} here; give one from 0 to {last}",
        "这里没有 {name} {value}；请给 0 到 {last} 之间的整数",
    ),
    "heads.no_part": (
        "this model has no part called {value!r}; it has {parts}",
        "该模型没有名为 {value!r} 的部分；它有 {parts}",
    ),
}
