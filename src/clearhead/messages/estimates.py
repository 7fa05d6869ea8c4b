"""Messages said by the estimates of a training: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "estimate.before": (
        "Estimate: {updates} updates, {tokens} tokens, about {time} with {evaluations} evaluations; memory about {memory}.",
        "预估：{updates} 次更新、{tokens} 个 token，约 {time}（含 {evaluations} 次评估）；内存约 {memory}。",
    ),
    "estimate.unknown": ("unknown", "未知"),
    "estimate.too_much_memory": (
        "An update needs about {needed} of memory, and there are {available}: the system may stop it."
        " Smaller: --batch, --micro-batch, --recompute, --logits-at-once, or another --model.",
        "一次更新约需 {needed} 内存，而可用的只有 {available}：系统可能会终止它。"
        "可减小：--batch、--micro-batch、--recompute、--logits-at-once，或另选 --model。",
    ),
    "estimate.corrected": (
        "After {updates} updates: about {time} in all (the estimate before was {off} off).",
        "{updates} 次更新后：总共约 {time}（之前的预估偏差 {off}）。",
    ),
    "estimate.after": (
        "It took {time}; the estimate before was {planned} ({off}).",
        "实际用时 {time}；事前预估 {planned}（{off}）。",
    ),
    "estimate.after_memory": (
        "Memory was {memory} at most; the estimate was {planned} ({off}).",
        "内存最高 {memory}；预估 {planned}（{off}）。",
    ),
    "sizing.dial": (
        "Size for {minutes} min: {layers} blocks of width {width}, {numbers} numbers in them; {steps} updates at about {speed} tokens/s"
        " show each of them {each} tokens, the text {passes} times.",
        "按 {minutes} 分钟选定的规模：{layers} 个块、宽度 {width}，块内共 {numbers} 个参数；{steps} 次更新，每秒约 {speed} 个 token，"
        "平均每个参数对应 {each} 个 token，文本读 {passes} 遍。",
    ),
    "estimate.seconds": ("{seconds} s", "{seconds} 秒"),
    "estimate.minutes": ("{minutes} min {seconds} s", "{minutes} 分 {seconds} 秒"),
    "estimate.hours": ("{hours} h {minutes} min", "{hours} 小时 {minutes} 分"),
}
