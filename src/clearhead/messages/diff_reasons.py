"""Messages that say why two walks part: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "diff.axis_keys": ("keys", "键"),
    "diff.axis_queries": ("queries", "查询"),
    "diff.axis_heads": ("heads", "头"),
    "diff.axis_rows": ("rows of the batch", "批次的行"),
    "diff.arranged_turned": (
        "queries stand where the other has keys: q and k are exchanged (transposed)",
        "一方的查询轴在另一方是键轴：q 与 k 互换（转置）",
    ),
    "diff.arranged_grouped": (
        "features are shared out to {heads} heads in turn, where the other gives each head {width} that follow each other",
        "特征轮流分给 {heads} 个头，而另一方给每个头连续的 {width} 个",
    ),
    "diff.columns": (
        "{where}: of the features of {source} A takes {a}, and B takes {b}",
        "{where}：在 {source} 的特征中，A 取 {a}，B 取 {b}",
    ),
    "diff.arranged_split": (
        "heads were split off by a reshape alone where the axis of heads must also move",
        "只靠变形拆出了各头，而头所在的轴还应移动",
    ),
    "diff.arranged_merged": (
        "{heads} heads were merged by a reshape alone where the axis of heads must first move back",
        "只靠变形合并了 {heads} 个头，而头所在的轴应先移回",
    ),
    "diff.heads": (
        "{where}: A shares the same queries and keys out to {a} heads of {width_a}, B to {b} heads of {width_b}",
        "{where}：同样的查询与键，A 分给 {a} 个头（每头 {width_a}），B 分给 {b} 个头（每头 {width_b}）",
    ),
    "diff.words_finite": (
        "softmax of x over the keys, {sight}, the others {number} in place of -inf: they are seen a little",
        "对 x 沿键轴做 softmax，{sight}，其余以 {number} 代替 -inf：它们仍被看到一些",
    ),
    "diff.words_finite_added": (
        "softmax of x over the keys, {sight}, with {number} added to the others in place of -inf: they are seen a little",
        "对 x 沿键轴做 softmax，{sight}，其余加上 {number} 而不是 -inf：它们仍被看到一些",
    ),
    "diff.skipped": (
        "{where}: {who} makes {stage} of {source} first, and {other} goes on with {source} itself",
        "{where}：{who} 先由 {source} 算出 {stage}，而 {other} 直接使用 {source}",
    ),
    "diff.skipped_table": (
        "{where}: {who} adds positions to {source}, and {other} adds none",
        "{where}：{who} 给 {source} 加上位置编码，而 {other} 不加",
    ),
    "diff.skipped_again": (
        "{where}: {who} adds to {source} positions that it has added before, and {other} adds them once",
        "{where}：{who} 把已经加过的位置编码又加到 {source} 上，而 {other} 只加一次",
    ),
    "diff.skipped_block": (
        "{where}: {who} has a block more: it makes {stage} of {source}, where {other} goes on",
        "{where}：{who} 多一个块：它由 {source} 算出 {stage}，而 {other} 直接往下走",
    ),
    "diff.unsteady": (
        "{side} does not give the same twice: on the same inputs two runs of it differ from {place} on ({where})",
        "{side} 两次运行的结果不同：输入相同，从 {place} 起不一致（{where}）",
    ),
    "diff.unexplained": (
        "located, not explained: after what is named they still part at {place}, by {gap} of the size; {count} stages from there on were not reached",
        "已定位，未能解释：除上述原因外，两者仍在 {place} 处分开，差异为其大小的 {gap}；从那里起有 {count} 个阶段未能比较",
    ),
    "diff.located": (
        "located, not explained: no known change of one of the two closes the difference",
        "已定位，未能解释：没有已知的改动能消除这一差异",
    ),
    "diff.reordered": (
        "{where}: {who} puts {source} in another order before it goes on: {what}",
        "{where}：{who} 先改变 {source} 的次序再往下算：{what}",
    ),
    "diff.biased": (
        "{where}: {many} adds a bias to {stage} that {few} does not have",
        "{where}：{many} 给 {stage} 加上偏置，{few} 没有",
    ),
    "diff.ids_apart": (
        "A knows {a} ids and B {b}; of the {least} that both know the logits were compared, the others were not",
        "A 有 {a} 个编号，B 有 {b} 个；只比较了两者都有的 {least} 个编号的 logits，其余未比较",
    ),
    "diff.window_unseen": (
        "a window of {window} keys hides nothing in {length} positions, and no longer input was taken: what it hides was not compared",
        "窗口为 {window} 个键，在 {length} 个位置中不会遮住任何内容，也没有更长的输入可用：窗口的作用未经比较",
    ),
    "choices.learned": ("learned", "可学习的"),
    "choices.sinusoidal": ("sinusoidal", "正弦"),
    "choices.rotary": ("rotary", "旋转"),
    "choices.pre_norm": ("pre-norm (a norm before each branch)", "前归一化（每个分支之前归一化）"),
    "choices.post_norm": ("post-norm (a norm of each sum)", "后归一化（对每次相加的结果归一化）"),
    "choices.around_norm": ("norms before and after each branch", "每个分支前后都归一化"),
    "choices.parallel": ("parallel branches", "并行分支"),
    "choices.parallel_shared": ("parallel branches that share a norm", "共用一个归一化的并行分支"),
}
