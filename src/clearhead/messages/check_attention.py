"""Messages said by the checks of attention: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "attention.nothing_moves": (
        "no output of {length} positions moves with any input, so that nothing could be seen",
        "{length} 个位置的输出都不随任何输入变化，因此什么也看不出",
    ),
    "attention.not_causal": (
        "nothing claims to be causal, and later positions are seen: attention in both directions",
        "代码未声明因果性，且能看到后面的位置：双向注意力",
    ),
    "attention.passed_causal": (
        "with {length} positions, each replaced in turn, {pairs} pairs see each other and none looks ahead; the same with long inputs, one row, and in training",
        "{length} 个位置逐一替换，共 {pairs} 对可见，无一看向未来；长输入、单行与训练模式下亦然",
    ),
    "attention.leak": (
        "of {length} positions, output {query} moves by {change} of its size when input {source} changes; {count} of {all} pairs with a later key are seen (the shortest input that shows it: {shortest})",
        "{length} 个位置中，改变输入 {source} 会使输出 {query} 变动其大小的 {change}；{all} 对未来位置中有 {count} 对可见（能显出此错的最短输入：{shortest}）",
    ),
    "attention.leak_on_long": (
        "a short input is causal, but of {length} positions output {query} moves by {change} of its size when input {source} changes",
        "短输入是因果的，但在 {length} 个位置时，改变输入 {source} 会使输出 {query} 变动其大小的 {change}",
    ),
    "attention.leak_on_alone": (
        "a batch is causal, but one row alone ({length} positions) is not: output {query} moves by {change} of its size when input {source} changes",
        "成批输入是因果的，但单独一行（{length} 个位置）不是：改变输入 {source} 会使输出 {query} 变动其大小的 {change}",
    ),
    "attention.leak_on_training": (
        "evaluation is causal, training is not: of {length} positions output {query} moves by {change} of its size when input {source} changes",
        "评估模式是因果的，训练模式不是：{length} 个位置中，改变输入 {source} 会使输出 {query} 变动其大小的 {change}",
    ),
    "attention.leak_masked": (
        "with {name} given, the future is seen: of {length} positions output {query} moves by {change} of its size when input {source} changes",
        "给出 {name} 后能看到未来：{length} 个位置中，改变输入 {source} 会使输出 {query} 变动其大小的 {change}",
    ),
    "attention.leak_fix": (
        "hide every later key before the softmax, on every path: scores.masked_fill(~torch.ones(T, S, dtype=torch.bool).tril(S - T), -inf)",
        "在每条路径上都于 softmax 之前遮住后面的键：scores.masked_fill(~torch.ones(T, S, dtype=torch.bool).tril(S - T), -inf)",
    ),
    "attention.self_masked": (
        "of {length} positions, output 1 depends on input 0 alone: each position is hidden from itself (a strict triangle)",
        "{length} 个位置中，输出 1 只依赖输入 0：每个位置都看不到自己（严格三角）",
    ),
    "attention.self_masked_fix": (
        "let query i see the keys <= i: tril() with the diagonal, or triu(diagonal=1) for what is hidden",
        "让查询 i 看到键 <= i：用含对角线的 tril()，或以 triu(diagonal=1) 表示被遮部分",
    ),
    "attention.past_lost": (
        "of {length} positions, output {query} does not move with the earlier input {source}; {count} of {all} earlier pairs are not seen",
        "{length} 个位置中，输出 {query} 不随更早的输入 {source} 变化；{all} 对更早的位置中有 {count} 对不可见",
    ),
    "attention.past_lost_fix": (
        "let query i see every key <= i: one meaning for True in all masks before they are combined",
        "让查询 i 看到所有键 <= i：合并之前，各掩码中 True 的含义须一致",
    ),
    "attention.after_softmax": (
        "weights of hidden keys are taken away after the softmax and the rest is not raised: of {length} positions a row sums to {least} only, and its sum depends on hidden keys",
        "被遮的权重在 softmax 之后才去掉，其余未重新归一：{length} 个位置中有一行之和仅为 {least}，且此和依赖被遮的键",
    ),
    "attention.after_softmax_fix": (
        "mask the scores with -inf before the softmax",
        "在 softmax 之前以 -inf 遮住分数",
    ),
    "attention.finite": (
        "with scores up to {largest}, output {query} moves by {change} of its size with the hidden key {source}: the mask's constant ({constant}) is beaten",
        "分数达到 {largest} 时，被遮的键 {source} 会使输出 {query} 变动其大小的 {change}：掩码的常数（{constant}）被超过",
    ),
    "attention.finite_fix": (
        "fill with -inf, or with torch.finfo(scores.dtype).min, not with a constant that a score can beat",
        "以 -inf 或 torch.finfo(scores.dtype).min 填充，而不是可能被分数超过的常数",
    ),
    "attention.finite_note": (
        "hidden scores are {constant}, not -inf: no sane score beats that, but a row that sees nothing gets the mean of all values",
        "被遮的分数是 {constant} 而非 -inf：正常的分数不会超过它，但什么也看不到的行会得到所有值的平均",
    ),
    "attention.no_stress": (
        "scores cannot be made large ({largest} at most), so that a finite mask constant could not lose",
        "分数无法变大（至多 {largest}），有限的掩码常数不会被超过",
    ),
    "attention.stress_passed": (
        "with scores up to {largest} and {length} positions, nothing hidden is seen",
        "分数达到 {largest}、{length} 个位置时，被遮的仍不可见",
    ),
    "attention.no_window": ("no window is claimed", "代码未声明窗口"),
    "attention.window_short": (
        "a window of {window} is claimed, which {length} positions cannot show",
        "代码声明的窗口为 {window}，{length} 个位置无法显示",
    ),
    "attention.window_right": (
        "of {length} positions each sees the last {window}, itself among them",
        "{length} 个位置中每个都看到最近的 {window} 个（含自己）",
    ),
    "attention.window_wrong": (
        "a window of {window} is claimed, and each of {length} positions sees {found} keys, itself among them",
        "代码声明的窗口为 {window}，而 {length} 个位置各看到 {found} 个键（含自己）",
    ),
    "attention.window_fix": (
        "query i sees the keys i - {window} + 1 .. i: keep where 0 <= i - j < {window}",
        "查询 i 看到键 i - {window} + 1 .. i：保留 0 <= i - j < {window}",
    ),
    "attention.top_left_by_memory": (
        "{queries} queries and {keys} keys: query i sees the keys <= i only, as if both began at the same place",
        "{queries} 个查询、{keys} 个键：查询 i 只看到键 <= i，仿佛两者起点相同",
    ),
    "attention.top_left_by_cache": (
        "{queries} new positions after a cache, {keys} keys in all: the i-th new query sees the keys <= i only",
        "缓存之后有 {queries} 个新位置，共 {keys} 个键：第 i 个新查询只看到键 <= i",
    ),
    "attention.top_left_fix": (
        "query i sees the keys <= i + S - T: tril(diagonal=S - T), not is_causal=True, where T and S differ",
        "查询 i 应看到键 <= i + S - T：T 与 S 不同时用 tril(diagonal=S - T)，不要用 is_causal=True",
    ),
    "attention.top_left_passed": (
        "{queries} queries and {keys} keys: the last query sees every key",
        "{queries} 个查询、{keys} 个键：最后一个查询看到所有键",
    ),
    "attention.no_fewer": (
        "there is no way to give fewer queries than keys",
        "没有办法使查询少于键",
    ),
    "attention.cache_leak": (
        "{queries} new positions after a cache, {keys} keys in all: new query {query} sees the later key {source}",
        "缓存之后有 {queries} 个新位置，共 {keys} 个键：新查询 {query} 看到了更后的键 {source}",
    ),
    "attention.no_mask": (
        "it takes no mask that could be given (parameters that may be one: {tried})",
        "没有可以给出的掩码（可能是掩码的参数：{tried}）",
    ),
    "attention.mask_ignored": (
        "{name} is taken in every form and changes nothing ({length} positions)",
        "{name} 以任何形式给出都不起作用（{length} 个位置）",
    ),
    "attention.mask_ignored_seen": (
        "a key that {name} hides still moves the other outputs by {change} of their size ({length} positions{amount})",
        "被 {name} 遮住的键仍使其他输出变动其大小的 {change}（{length} 个位置{amount}）",
    ),
    "attention.mask_leaks": (
        "of {length} positions, key {source} of row {row} is hidden by {name} and still seen",
        "{length} 个位置中，第 {row} 行的键 {source} 被 {name} 遮住却仍可见",
    ),
    "attention.mask_amount": (
        "two positions of padding behind {length} move the real ones by {change} of their size, though {name} hides them",
        "{length} 个位置之末有两个填充，尽管 {name} 遮住了它们，真实位置仍变动其大小的 {change}",
    ),
    "attention.mask_ignored_mend": (
        "fill the scores of the keys that {name} hides with -inf before the softmax",
        "在 softmax 之前把 {name} 所遮的键的分数填为 -inf",
    ),
    "attention.mask_added_as_number_seen": (
        "{name} is used as a number: the scores of a hidden key move by {amount} and it keeps {change} of influence ({length} positions)",
        "{name} 被当作数相加：被遮的键的分数只变动 {amount}，仍有 {change} 的影响（{length} 个位置）",
    ),
    "attention.mask_added_as_number_mend": (
        "select with it: scores.masked_fill({name} == 0, -inf), or add 0 and -inf",
        "应以它选择：scores.masked_fill({name} == 0, -inf)，或相加 0 与 -inf",
    ),
    "attention.triangle_added": (
        "the triangle that should hide later keys is used as a number: {amount}, and they keep their weight ({length} positions)",
        "本应遮住后面键的三角被当作数使用：{amount}，它们仍保有权重（{length} 个位置）",
    ),
    "attention.triangle_by": ("the scores of later keys move by {step}", "后面键的分数变动 {step}"),
    "attention.triangle_zero": (
        "the scores of later keys are multiplied by 0, and 0 is no -inf",
        "后面键的分数乘以 0，而 0 不是 -inf",
    ),
    "attention.mask_query_axis_seen": (
        "{name} hides queries, not keys: only the row of the hidden position changes, its key still moves the others by {change} of their size ({length} positions{amount})",
        "{name} 遮住的是查询而不是键：只有被遮位置那一行改变，它的键仍使其他输出变动其大小的 {change}（{length} 个位置{amount}）",
    ),
    "attention.mask_query_axis_mend": (
        "put {name} on the axis of keys: {name}[:, None, None, :] for scores (B,H,T,S)",
        "把 {name} 放在键的轴上：分数为 (B,H,T,S) 时用 {name}[:, None, None, :]",
    ),
    "attention.mask_after_softmax_seen": (
        "{name} takes weights away after the softmax and the rest is not raised: a hidden key still moves the others by {change} of their size ({length} positions{amount})",
        "{name} 在 softmax 之后才去掉权重，其余未重新归一：被遮的键仍使其他输出变动其大小的 {change}（{length} 个位置{amount}）",
    ),
    "attention.mask_after_softmax_mend": (
        "mask the scores with -inf before the softmax, by {name}",
        "在 softmax 之前按 {name} 以 -inf 遮住分数",
    ),
    "attention.wrong_row": (
        "of {rows} rows, row {row} moves by {change} of its size when {name} of row {other} alone changes",
        "{rows} 行中，只改变第 {other} 行的 {name}，第 {row} 行却变动其大小的 {change}",
    ),
    "attention.wrong_row_fix": (
        "repeat the mask in the order in which batch and heads were folded: repeat_interleave(H, 0) for (B*H), repeat(H, 1, 1) for (H*B)",
        "按批与头合并的次序重复掩码：(B*H) 用 repeat_interleave(H, 0)，(H*B) 用 repeat(H, 1, 1)",
    ),
    "attention.mask_right": (
        "what {name} hides has no influence, each row by its own mask, and the rest has ({length} positions)",
        "{name} 所遮的没有影响，每行各按自己的掩码，其余都有影响（{length} 个位置）",
    ),
    "attention.keeps": ("keeps a key", "保留该键"),
    "attention.drops": ("drops a key", "去掉该键"),
    "attention.polarity": (
        "{name}: True or 1 is said to say that it {said}; by trial it {found}",
        "{name}：按说明 True 或 1 {said}；实测为{found}",
    ),
    "attention.polarity_unsaid": (
        "nothing says what True in {name} means; both meanings are legal",
        "没有说明 {name} 中 True 的含义；两种都合法",
    ),
    "attention.polarity_fix": (
        "invert {name} where it is used: True or 1 in it {said}",
        "在使用 {name} 处取反：其中 True 或 1 应{said}",
    ),
    "attention.hidden_all": ("all keys of a row hidden", "一行的所有键都被遮住"),
    "attention.hidden_first": ("the first two keys of a row hidden", "一行的前两个键被遮住"),
    "attention.empty_row_forward": (
        "with {what} by {name} the output is NaN ({length} positions)",
        "{name} 使{what}时，输出为 NaN（{length} 个位置）",
    ),
    "attention.empty_row_gradient": (
        "with {what} by {name} the output is finite and gradients are NaN ({length} positions)",
        "{name} 使{what}时，输出有限而梯度为 NaN（{length} 个位置）",
    ),
    "attention.empty_fix": (
        "give rows that see nothing one key before the softmax and zero their output after it: masked_fill on the scores, then where(visible.any(-1), out, 0)",
        "对什么也看不到的行，在 softmax 之前留一个键，之后把输出置零：先对分数 masked_fill，再 where(visible.any(-1), out, 0)",
    ),
    "attention.empty_passed": (
        "a row that {name} hides whole gives finite numbers, forward and back ({length} positions)",
        "被 {name} 全部遮住的行，前向与反向都是有限数（{length} 个位置）",
    ),
    "attention.window_elsewhere": (
        "a window of {window} is stated, and none is seen: it may be hidden by the mask of pairs that is taken, or meant for layers of another type",
        "声明了大小为 {window} 的窗口，但没有看到：可能由传入的成对掩码实现，或只用于另一类层",
    ),
    "attention.empty_narrow": (
        "a row that {name} hides whole is NaN in a float64 run only: the scores are cast to a narrower type, in which the constant is infinite",
        "被 {name} 全部遮住的行只在 float64 运行时为 NaN：打分被转换为更窄的类型，其中该常数成为无穷大",
    ),
    "attention.empty_mean": (
        "a row that {name} hides whole gets a mean of its values, not zeros",
        "被 {name} 全部遮住的行得到其值的平均，而不是零",
    ),
    "attention.empty_theirs": (
        "a row that may see nothing is NaN in PyTorch's own nn.MultiheadAttention; keep one key, or replace such rows afterwards",
        "什么也看不到的行在 PyTorch 的 nn.MultiheadAttention 中为 NaN；请保留一个键，或事后替换这些行",
    ),
    "attention.raised": (
        "the code raised {reason} when this was asked",
        "询问此项时代码抛出 {reason}",
    ),
}
