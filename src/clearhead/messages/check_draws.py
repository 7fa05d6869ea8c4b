"""Messages said by the checks of losses and samplers: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "loss.no_target": (
        "no position's gradient turns when a target changes, so nothing can be said of it",
        "改变目标时，没有任何位置的梯度方向改变，因此无法判断",
    ),
    "loss.shift": (
        "each position is scored on the entry of {name} that is {shift} ahead",
        "每个位置以 {name} 中向后 {shift} 位的元素计分",
    ),
    "loss.shift_unsaid": (
        "the name {name} does not say who shifts; the loss scores a position on the entry that is {shift} ahead",
        "名称 {name} 没有说明由谁移位；该损失以向后 {shift} 位的元素为一个位置计分",
    ),
    "loss.shift_wrong": (
        "T={length}: changing {name}[t+{shift}] turns the gradient at position t, so position t is scored on the entry that is {shift} ahead; it should be {wanted}",
        "T={length}：改变 {name}[t+{shift}] 会使位置 t 的梯度转向，即位置 t 以向后 {shift} 位的元素计分；应为 {wanted}",
    ),
    "loss.fix_shift_inside": (
        "shift once: logits[:, :-1] against {name}[:, 1:]",
        "只移位一次：logits[:, :-1] 对 {name}[:, 1:]",
    ),
    "loss.fix_shift_outside": (
        "{name} are shifted by the caller: compare logits[:, t] with {name}[:, t]; or call them labels",
        "{name} 已由调用者移位：用 logits[:, t] 对 {name}[:, t]；否则请命名为 labels",
    ),
    "loss.sign": (
        "the gradient makes the targets less probable: the log-probability is summed without its minus",
        "梯度使目标的概率变小：对数概率求和时缺少负号",
    ),
    "loss.fix_sign": ("return -log p(target)", "返回 -log p(target)"),
    "loss.smoothed": ("label smoothing of {smoothing}", "标签平滑为 {smoothing}"),
    "loss.once": (
        "the gradient at {positions} positions is that of -log softmax(logits)[target]",
        "{positions} 个位置的梯度等于 -log softmax(logits)[target] 的梯度",
    ),
    "loss.twice": (
        "the gradient is that of a cross-entropy of softmax(logits): the softmax is taken twice",
        "梯度等于 softmax(logits) 的交叉熵的梯度：做了两次 softmax",
    ),
    "loss.fix_twice": (
        "give cross_entropy the logits themselves; it takes the softmax",
        "把 logits 本身交给 cross_entropy；它自己会做 softmax",
    ),
    "loss.no_log": (
        "the gradient is that of -softmax(logits)[target]: the logarithm is missing",
        "梯度等于 -softmax(logits)[target] 的梯度：缺少对数",
    ),
    "loss.fix_no_log": (
        "use log_softmax with nll_loss, or cross_entropy",
        "nll_loss 请配合 log_softmax，或使用 cross_entropy",
    ),
    "loss.own_formula": (
        "it is neither a cross-entropy nor a known mistake of one, so its formula is not judged",
        "它既不是交叉熵，也不是交叉熵的已知错误，因此不评判其公式",
    ),
    "loss.no_mark": (
        "it takes neither -100 nor a mask nor the padding's id, so padding cannot be marked",
        "它不接受 -100、掩码或填充 id，因此无法标记填充",
    ),
    "loss.counted": (
        "rows with {lengths} real tokens, the rest marked by {name}: {wrong} marked targets count beside {real} real ones, the first at row {row}, position {place}",
        "各行有 {lengths} 个真实词元，其余由 {name} 标记：{wrong} 个被标记的目标与 {real} 个真实目标一同计入，第一个在第 {row} 行位置 {place}",
    ),
    "loss.fix_counted": (
        "leave out each position whose target is marked by {name}: shift the mask with the targets, mask[:, 1:], and divide by what is left",
        "排除目标被 {name} 标记的每个位置：掩码与目标一起移位 mask[:, 1:]，并除以剩余的个数",
    ),
    "loss.lost": (
        "rows with {lengths} real tokens, the rest marked by {name}: {lost} real targets do not count, the first at row {row}, position {place}",
        "各行有 {lengths} 个真实词元，其余由 {name} 标记：{lost} 个真实目标未计入，第一个在第 {row} 行位置 {place}",
    ),
    "loss.fix_lost": (
        "keep every position whose target is real, the last of a text among them",
        "保留目标为真实词元的每个位置，包括文本的最后一个",
    ),
    "loss.reverse": ("True in {name} means that a position is left out", "{name} 中 True 表示该位置被排除"),
    "loss.polarity": (
        "{name} is read the other way round: only positions with 0 count",
        "{name} 被反着读：只有为 0 的位置计入",
    ),
    "loss.fix_polarity": ("let positions with 1 count", "让为 1 的位置计入"),
    "loss.not_counted": (
        "of targets marked by {name} none counts, and all {real} real ones do",
        "由 {name} 标记的目标都不计入，{real} 个真实目标都计入",
    ),
    "loss.own_division": (
        "marked by {name}: the weights of the real targets are those of no known mean, and not judged",
        "由 {name} 标记：真实目标的权重不属于任何已知的平均方式，不作评判",
    ),
    "loss.means": (
        "rows with {lengths} real tokens (marked by {name}): real targets weigh {weights}, each should weigh 1/{count} = {wanted}: means are averaged",
        "各行有 {lengths} 个真实词元（由 {name} 标记）：真实目标的权重为 {weights}，而每个应为 1/{count} = {wanted}：对平均值又取了平均",
    ),
    "loss.fix_means": (
        "sum over all real targets of the batch, then divide once by their number",
        "对批次中所有真实目标求和，再除以其总数一次",
    ),
    "loss.all_positions": (
        "marked by {name}: the sum is divided by {number}, padding among them; there are {count} real targets",
        "由 {name} 标记：总和被除以 {number}（含填充）；真实目标有 {count} 个",
    ),
    "loss.fix_all_positions": ("divide by the number of real targets, mask.sum()", "除以真实目标的个数 mask.sum()"),
    "loss.summed": (
        "it is no mean over all real targets: the sum is divided by {number}; whoever adds up batches must divide by their targets",
        "它不是所有真实目标的平均：总和除以 {number}；合并多个批次时须除以目标数",
    ),
    "loss.divided": (
        "marked by {name}: {count} real targets weigh the same, 1/{number}",
        "由 {name} 标记：{count} 个真实目标权重相同，为 1/{number}",
    ),
    "loss.end_masked": (
        "{name} = {id}: no target that is the end of a text counts, the first of a row neither, so that the end is never learnt",
        "{name} = {id}：文本结束符作为目标从不计入，连每行第一个也不计入，因此永远学不会结束",
    ),
    "loss.fix_end": (
        "tell padding by the attention mask or the lengths, not by an id that is also the end's",
        "用注意力掩码或长度区分填充，而不是用同时表示结束的 id",
    ),
    "loss.end_counts": ("targets that are the end of a text ({name}) count", "作为文本结束的目标（{name}）计入"),
    "loss.no_end": ("the code names no id of the end of a text", "代码没有指明文本结束符的 id"),
    "loss.one_row": ("a batch of one row gives a loss", "只有一行的批次给出损失"),
    "loss.one_row_raises": ("a batch of one row raises {reason}", "只有一行的批次抛出 {reason}"),
    "loss.fix_one_row": ("keep the axes: squeeze only the one that is meant", "保留各轴：只 squeeze 指定的那一轴"),
}
