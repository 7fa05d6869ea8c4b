"""Messages said by `clearhead eval`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "cli.eval.about": (
        "how well a model predicts a text: loss, perplexity, bits per byte",
        "模型对一段文本预测得如何：损失、困惑度、每字节比特数",
    ),
    "cli.eval.reading": ("reading", "读取"),
    "cli.eval.scoring": ("scoring", "评分"),
    "cli.eval.postfix": ("{speed} tokens/s", "{speed} token/秒"),
    "cli.eval.model": ("Model: {source}", "模型：{source}"),
    "cli.eval.scored": (
        "Scored: {tokens} tokens, {bytes} bytes, {characters} characters; documents: {documents}",
        "评分范围：{tokens} 个 token，{bytes} 字节，{characters} 个字符；文本数：{documents}",
    ),
    "cli.eval.ends": (
        "  {ends} of the tokens are end marks, which have no bytes; their loss counts, as where a text ends is a part of it",
        "  其中 {ends} 个是结束标记，不占字节；其损失计入，因为在何处结束也是文本的一部分",
    ),
    "cli.eval.touching": (
        "Windows: {context} tokens that touch; each token is predicted from 1 to {context} before it (--stride shows it more)",
        "窗口：{context} 个 token，首尾相接；每个 token 由它前面的 1 到 {context} 个预测（--stride 可让它看到更多）",
    ),
    "cli.eval.overlapping": (
        "Windows: {context} tokens, {stride} apart; each token is predicted from {least} to {context} before it, or all there are",
        "窗口：{context} 个 token，间隔 {stride}；每个 token 由它前面的 {least} 到 {context} 个预测，不足时由全部预测",
    ),
    "cli.eval.row.loss": ("loss (nats per token)", "损失（奈特/token）"),
    "cli.eval.row.perplexity": ("perplexity", "困惑度"),
    "cli.eval.row.bits_per_byte": ("bits per byte", "每字节比特数"),
    "cli.eval.row.bits_per_character": ("bits per character", "每字符比特数"),
    "cli.eval.row.accuracy": ("of the hidden tokens guessed right", "遮住的 token 中猜对的比例"),
    "cli.eval.row.exact_match": (
        "of the answers wholly right (decoding greedily)",
        "完全答对的比例（贪心解码）",
    ),
    "cli.eval.row.answers_right": (
        "of the answers wholly right (decoding greedily)",
        "完全答对的比例（贪心解码）",
    ),
    "cli.eval.guessing": ("; guessing would have {uniform} (ln V)", "；随机猜测为 {uniform}（ln V）"),
    "cli.eval.unknown": (
        "[{unknown} characters are not known to the tokenizer and were predicted as the unknown mark, which is easier:"
        " bits per byte and per character are too low]",
        "[有 {unknown} 个字符分词器不认识，按未知标记预测，这更容易：每字节与每字符的比特数因此偏低]",
    ),
    "cli.eval.scored_pairs": (
        "Scored: {tokens} tokens of targets, their end marks among them; pairs: {pairs}",
        "评分范围：{pairs} 个目标的 {tokens} 个 token，含结束标记",
    ),
    "cli.eval.scored_conversations": (
        "Scored: {tokens} tokens of {answers} answers, each after all that stands before it; conversations: {conversations}",
        "评分范围：{answers} 个回答的 {tokens} 个 token，每个都接在其之前的全部内容之后；对话数：{conversations}",
    ),
    "cli.eval.mixed": (
        "{path} holds conversations and {other} does not; score them one after the other",
        "{path} 中是对话，而 {other} 中不是；请分别评分",
    ),
    "cli.eval.scored_hidden": (
        "Scored: {tokens} tokens that were hidden, chosen by seed {seed}",
        "评分范围：{tokens} 个被遮住的 token，由种子 {seed} 选出",
    ),
    "cli.eval.both_sides": (
        "Windows: up to {context} tokens, of which the model sees what is not hidden, on both sides",
        "窗口：至多 {context} 个 token，模型能看到两侧未被遮住的部分",
    ),
    "cli.eval.no_meaning": (
        "--{flag} has no meaning for a model of this kind; leave it out",
        "--{flag} 对这类模型没有意义；请不要给出它",
    ),
}
