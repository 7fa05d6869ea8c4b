"""Messages said by `clearhead train`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "cli.train.about": ("learn from text, yours or the built-in stories", "从文本学习：您自己的文本，或内置的故事"),
    "cli.train.no_out": (
        "say where the run goes: --out runs/NAME",
        "请说明训练结果放在哪里：--out runs/名称",
    ),
    "cli.train.preparing": (
        "Preparing: reading, splitting, measuring this machine ...",
        "准备中：读取、切分、测量本机速度……",
    ),
    "cli.train.looks_like_pairs": (
        "Every line looks like a pair: a source, a tab, a target. A decoder learns them as text; to learn to answer sources,"
        " stop, add --model EncoderDecoder and give another --out.",
        "每一行都像一对数据：源、制表符、目标。解码器会把它们当作普通文本来学；若要学会回答源，"
        "请停止，加上 --model EncoderDecoder，并换一个 --out。",
    ),
    "cli.train.finished_already": (
        "{out} has done its {steps} steps already; --steps with a larger number goes on.",
        "{out} 已完成全部 {steps} 步；用更大的 --steps 可以继续。",
    ),
    "cli.train.step": ("training", "训练"),
    "cli.train.evaluating": ("evaluating", "评估中"),
    "cli.train.postfix": ("loss {loss}, {speed} tokens/s", "损失 {loss}，{speed} token/秒"),
    "cli.train.ceiling": (", {share} of the ceiling", "，上限的 {share}"),
    "cli.train.line": (
        "{what} {done}/{total} ({share}) [{gone} gone, {left} left]",
        "{what} {done}/{total}（{share}）[已用 {gone}，剩余 {left}]",
    ),
    "cli.train.evaluated": (
        "step {step}: validation loss {loss}; it writes:",
        "第 {step} 步：验证损失 {loss}；它写道：",
    ),
    "cli.train.evaluated_hidden": (
        "step {step}: validation loss {loss}; in place of hidden tokens its guesses, [guess], or [guess≠token] where it is wrong:",
        "第 {step} 步：验证损失 {loss}；被遮住的 token 处是它的猜测：[猜测]，猜错时为 [猜测≠原 token]：",
    ),
    "cli.train.stopping": ("Stopping after this update and saving ...", "完成这一步更新后停止并保存……"),
    "cli.train.stopped": (
        "Stopped and saved after step {step}. Go on with: {command}",
        "已在第 {step} 步后停止并保存。继续请用：{command}",
    ),
    "cli.train.evaluated_pairs": (
        "step {step}: validation loss {loss}, {share} of the answers wholly right; it writes:",
        "第 {step} 步：验证损失 {loss}，完全正确的回答占 {share}；它写道：",
    ),
    "cli.train.answer": ("{source} → {answer} (wanted: {target})", "{source} → {answer}（应为：{target}）"),
    "cli.train.frozen": (
        "The frozen weights are bit for bit what they were (sha256 {sha256}...).",
        "冻结的权重逐位未变（sha256 {sha256}……）。",
    ),
    "cli.train.done": (
        "Done. Now: {command}",
        "完成。接下来：{command}",
    ),
    "cli.train.preset_and_model": (
        "--preset {preset} has sizes and parts of its own; leave --model out, or --preset",
        "--preset {preset} 自带规模和部件；请不要同时给出 --model，或不要给出 --preset",
    ),
    "cli.train.sized_already": (
        "the run has its sizes already; --steps makes it longer",
        "这次训练的规模已定；可用 --steps 延长",
    ),
}
