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
    "sampler.nothing": ("nothing set", "不作设置"),
    "sampler.right": ("{asked}: {seen}, as it should be ({wanted})", "{asked}：{seen}，与应有的（{wanted}）一致"),
    "sampler.blind": (
        "{asked}: too few draws to tell a mistake from what is right",
        "{asked}：抽样太少，无法区分错误与正确",
    ),
    "sampler.wrong": (
        "{asked}: the chances of {wanted} were expected, and {seen} found: {how}",
        "{asked}：应有概率 {wanted}，实际为 {seen}：{how}",
    ),
    "sampler.unknown": (
        "{asked}: {seen} in place of {wanted}, which is no known mistake, so it is not judged",
        "{asked}：得到 {seen} 而不是 {wanted}，但不属于已知错误，因此不作评判",
    ),
    "sampler.how_zero": (
        "the logits of the others are 0, not -inf, and keep a chance",
        "其余的 logits 是 0 而不是 -inf，仍有概率",
    ),
    "sampler.fix_zero": (
        "give every token outside the set a logit of -inf before the one softmax",
        "在唯一一次 softmax 之前，把集合之外的每个词元的 logit 设为 -inf",
    ),
    "sampler.how_softmax_after": (
        "probabilities are set to 0 and a softmax is taken of them again",
        "把概率设为 0 之后又做了一次 softmax",
    ),
    "sampler.fix_softmax_after": (
        "mask the logits with -inf before the softmax, or divide the masked probabilities by their sum",
        "在 softmax 之前用 -inf 遮住 logits，或用剩余概率之和去除",
    ),
    "sampler.how_twice": ("the softmax is taken twice", "做了两次 softmax"),
    "sampler.fix_twice": (
        "take one softmax: give probabilities to multinomial, or logits to Categorical(logits=...)",
        "只做一次 softmax：把概率交给 multinomial，或把 logits 交给 Categorical(logits=...)",
    ),
    "sampler.how_mask_sorted": (
        "what is dropped is told by the place in the sorted order, not by the token",
        "被丢弃的是排序后的位置，而不是词元",
    ),
    "sampler.fix_mask_sorted": (
        "scatter the mask back to the tokens with the indices of the sort",
        "用排序得到的下标把掩码 scatter 回词元的位置",
    ),
    "sampler.how_ids_sorted": ("the ranks in the sorted order are given as ids", "把排序后的名次当作 id 返回"),
    "sampler.fix_ids_sorted": (
        "look the drawn rank up in the indices of the sort: indices.gather(-1, drawn)",
        "在排序的下标中查出抽到的名次：indices.gather(-1, drawn)",
    ),
    "sampler.how_no_effect": ("the setting changes nothing", "该设置不起作用"),
    "sampler.fix_no_effect": (
        "apply it to the logits, before the softmax; a factor on probabilities is lost when they are normalised",
        "在 softmax 之前作用于 logits；乘在概率上的因子会在归一化时消失",
    ),
    "sampler.how_multiplied": ("the logits are multiplied by the temperature", "logits 被乘以温度"),
    "sampler.fix_multiplied": ("divide the logits by the temperature", "用 logits 除以温度"),
    "sampler.how_too_few": (
        "the set does not reach p: the token that crosses it is dropped",
        "集合未达到 p：跨过 p 的词元被丢弃",
    ),
    "sampler.fix_too_few": (
        "drop a token only if the better ones alone reach p: (cumsum - probs) >= p",
        "仅当更好的词元已达到 p 时才丢弃：(cumsum - probs) >= p",
    ),
    "sampler.how_too_many": ("the set is not the smallest that reaches p", "集合不是达到 p 的最小集合"),
    "sampler.fix_too_many": (
        "keep a token only while the better ones have less than p: (cumsum - probs) < p",
        "仅当更好的词元之和小于 p 时保留：(cumsum - probs) < p",
    ),
    "sampler.how_absolute": ("probabilities are compared with min_p itself", "概率直接与 min_p 比较"),
    "sampler.fix_absolute": ("compare with min_p times the largest probability", "与 min_p 乘最大概率比较"),
    "sampler.not_plain": ("it cannot be asked: {reason}", "无法询问：{reason}"),
    "sampler.greedy": ("it always takes the best token", "它总是取最好的词元"),
    "sampler.outside": (
        "{asked}: {number} tokens can be drawn ({seen}), those outside with {share} together",
        "{asked}：可抽到 {number} 个词元（{seen}），集合之外的合计 {share}",
    ),
    "sampler.emptied": (
        "top_p=0.2, below the best token's own {best}: nothing is left ({seen})",
        "top_p=0.2，低于最好词元自身的 {best}：什么都没有剩下（{seen}）",
    ),
    "sampler.fix_empty": (
        "always keep the best token: drop only where (cumsum - probs) >= p",
        "始终保留最好的词元：仅在 (cumsum - probs) >= p 处丢弃",
    ),
    "sampler.never_empty": (
        "top_p=0.2, below the best token's own chance: {seen}",
        "top_p=0.2，低于最好词元自身的概率：{seen}",
    ),
    "sampler.refused": ("temperature=0 is refused in words: {reason}", "temperature=0 被明确拒绝：{reason}"),
    "sampler.argmax": ("temperature=0 gives the best token: {seen}", "temperature=0 给出最好的词元：{seen}"),
    "sampler.zero_untouched": (
        "temperature=0 leaves the logits as they are: whoever draws must take the best himself",
        "temperature=0 不改变 logits：抽样者须自行取最好的词元",
    ),
    "sampler.not_argmax": (
        "temperature=0: {wanted} was expected, and {seen} found",
        "temperature=0：应为 {wanted}，实际为 {seen}",
    ),
    "sampler.fix_zero_temperature": (
        "at temperature 0 return the argmax (one-hot), or refuse it with a ValueError",
        "温度为 0 时返回 argmax（one-hot），或抛出 ValueError 拒绝",
    ),
    "sampler.whole": ("asked for nothing, all {vocab} tokens can be drawn", "不作要求时，{vocab} 个词元都可抽到"),
    "sampler.hidden": (
        "asked for nothing, {seen} of {vocab} tokens can be drawn: {where}",
        "不作要求时，{vocab} 个词元中只能抽到 {seen} 个：{where}",
    ),
    "sampler.in_signature": ("the default {said} cuts the rest off", "默认值 {said} 截掉了其余"),
    "sampler.in_body": ("a constant in the body cuts the rest off", "函数体中的常数截掉了其余"),
    "sampler.fix_hidden": (
        "let the default be None (or 0, or 1.0), and cut off only what is asked for",
        "默认值改为 None（或 0、1.0），只在被要求时截断",
    ),
    "sampler.its_purpose": ("fewer tokens are what {feature} is for", "减少词元正是 {feature} 的用途"),
    "sampler.no_history": ("what has been generated could not be given to it", "无法把已生成的内容交给它"),
    "sampler.gained": (
        "penalty {penalty}: a token with logit {logit} that has occurred goes from {before} to {after} beside those that have not: it gains",
        "惩罚 {penalty}：已出现、logit 为 {logit} 的词元相对未出现者从 {before} 变为 {after}：反而升高",
    ),
    "sampler.fix_sign": (
        "divide positive logits by the penalty and multiply negative ones: where(z > 0, z / r, z * r)",
        "正 logit 除以惩罚，负 logit 乘以惩罚：where(z > 0, z / r, z * r)",
    ),
    "sampler.no_penalty": ("the penalty changes nothing that could be seen", "看不出惩罚的任何作用"),
    "sampler.lowered": (
        "penalty {penalty}: tokens that have occurred lose, {before} -> {after}",
        "惩罚 {penalty}：已出现的词元降低，{before} -> {after}",
    ),
    "sampler.one_row": ("it takes one row at a time", "它一次只接受一行"),
    "sampler.mixed": (
        "{asked}: row {row} gives {alone} alone and {together} in a batch of {rows}",
        "{asked}：第 {row} 行单独为 {alone}，在 {rows} 行的批次中为 {together}",
    ),
    "sampler.fix_mixed": (
        "take each maximum, threshold, sum and softmax over the last axis, with keepdim",
        "最大值、阈值、求和与 softmax 都沿最后一轴并保留维度（keepdim）",
    ),
    "sampler.apart": ("{asked}: each of {rows} rows is what it is alone", "{asked}：{rows} 行中每一行都与单独时相同"),
    "sampler.kept": ("one row gives shape {shape}", "一行给出形状 {shape}"),
    "sampler.squeezed": (
        "one row gives shape {shape}, two rows give {two}: {wanted} was expected",
        "一行给出形状 {shape}，两行给出 {two}：应为 {wanted}",
    ),
    "sampler.fix_squeezed": ("squeeze(-1), not squeeze()", "用 squeeze(-1)，不要用 squeeze()"),
}
