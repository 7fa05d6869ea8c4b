"""Messages said by the checks of attention's formula and of sdpa: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "formula.no_core": (
        "no product of queries and keys followed by a softmax was seen as it ran, so that its stages cannot be told apart",
        "运行时没有看到“查询与键相乘后接 softmax”的计算，因此无法区分各个步骤",
    ),
    "formula.failed": ("the code could not be followed: {reason}", "无法跟踪这段代码：{reason}"),
    "formula.unseen": (
        "what it needs could not be followed from the projections on",
        "它所需的张量无法从投影开始跟踪",
    ),
    "formula.held": (
        "followed through {count} attention(s) as they ran, from the projections to the output, and as it should be",
        "在运行中跟踪了 {count} 个注意力（从投影到输出），结果正确",
    ),
    "formula.key_reshaped": (
        "the scores use the numbers of {count} positions as key {row} of head {head}: k was reshaped, not transposed",
        "打分时，第 {head} 个头的第 {row} 个键混有 {count} 个位置的数：k 被 reshape 而不是转置",
    ),
    "formula.split": (
        "{parts}: row {row} of {letter} in head {head} does not hold that position's features of that head, but another position's or head's",
        "{parts}：第 {head} 个头中 {letter} 的第 {row} 行不是该位置、该头的特征，而是别的位置或头的特征",
    ),
    "formula.axis": (
        "the softmax is over axis {taken} of the scores, the sum of the values over axis {summed}: the weights of a query do not sum to 1",
        "softmax 沿打分的第 {taken} 轴，而对值求和沿第 {summed} 轴：一个查询的权重之和不为 1",
    ),
    "formula.grouped": (
        "the query heads of a group are added up before the softmax, so that the group attends as one head",
        "同一组的查询头在 softmax 之前被相加，整组只作为一个头进行注意",
    ),
    "formula.tiled": (
        "query heads 0.. use the heads {used} of {letter}: {kv_heads} heads are repeated as a whole, not each {heads} // {kv_heads} times",
        "查询头 0.. 依次使用 {letter} 的头 {used}：{kv_heads} 个头被整体重复，而不是每个头重复 {heads} // {kv_heads} 次",
    ),
    "formula.disordered": (
        "{name} is split in the order {found} (head {head})",
        "{name} 按 {found} 的顺序拆分（第 {head} 个头）",
    ),
    "formula.misread": ("{name} is read as {part}", "{name} 被当作 {part} 读取"),
    "formula.bent": ("{name} is applied to {letter} after its projection", "{letter} 在投影之后又经过 {name}"),
    "formula.sliced": (
        "a head of {letter} reads {read} of the {width} features of the input",
        "{letter} 的一个头只读取输入 {width} 个特征中的 {read} 个",
    ),
    "formula.merge": (
        "row {row} of what the output projection is given mixes several positions",
        "送入输出投影的第 {row} 行混合了多个位置",
    ),
    "formula.unmixed": (
        "{heads} heads are put side by side and never mixed: no projection follows",
        "{heads} 个头只是并排放在一起，从不混合：后面没有投影",
    ),
    "formula.narrow": ("scores or weights are computed in {kind}", "打分或权重以 {kind} 计算"),
    "formula.scale": (
        "the scores are q·k times {found} = {formula}, not {right} = 1/√d (d = {d})",
        "打分为 q·k 乘以 {found} = {formula}，而不是 {right} = 1/√d（d = {d}）",
    ),
    "formula.dropped": (
        "dropout (p = {rate}) is applied to the scores, before the softmax",
        "dropout（p = {rate}）作用在 softmax 之前的打分上",
    ),
    "formula.values_turned": (
        "with the same content everywhere, v differs from position to position: it is rotated",
        "各位置内容相同时，v 仍随位置变化：它被旋转了",
    ),
    "formula.by_head": (
        "with the same content everywhere, q and k turn from head to head and not from position to position",
        "各位置内容相同时，q 和 k 随头而不是随位置旋转",
    ),
    "formula.one_side": (
        "with the same content everywhere, {turned} turns with the position and {still} does not",
        "各位置内容相同时，{turned} 随位置旋转而 {still} 不旋转",
    ),
    "formula.parted": (
        "with the same content everywhere, scores at the same distance differ by {parted} of the largest",
        "各位置内容相同时，相同距离的打分相差最大值的 {parted}",
    ),
    "formula.fix.scale_missing": ("divide the scores by math.sqrt(d), d the width of one head", "把打分除以 math.sqrt(d)，d 为单个头的宽度"),
    "formula.fix.scale_model_width": ("divide by the square root of the width of one head, not of the model", "除以单个头宽度的平方根，而不是模型宽度的"),
    "formula.fix.scale_length": ("divide by the square root of q.shape[-1], not of the length", "除以 q.shape[-1] 的平方根，而不是序列长度的"),
    "formula.fix.scale_inverted": ("divide by math.sqrt(d) where you multiply by it", "应除以 math.sqrt(d)，而不是乘以它"),
    "formula.fix.scale_twice": ("scale once: either q or the scores, by 1/math.sqrt(d)", "只缩放一次：对 q 或对打分乘以 1/math.sqrt(d)"),
    "formula.fix.softmax_axis": ("take the softmax over the keys: dim=-1 of (B, H, T, S)", "softmax 应沿键的轴：(B, H, T, S) 的 dim=-1"),
    "formula.fix.heads_split_without_transpose": ("split with .view(B, T, H, d).transpose(1, 2)", "用 .view(B, T, H, d).transpose(1, 2) 拆分头"),
    "formula.fix.heads_merge_without_transpose": ("merge with .transpose(1, 2).reshape(B, T, H * d)", "用 .transpose(1, 2).reshape(B, T, H * d) 合并头"),
    "formula.fix.heads_kv_tiled": ("repeat each head with repeat_interleave(H // K, dim=1), not repeat", "用 repeat_interleave(H // K, dim=1) 重复每个头，而不是 repeat"),
    "formula.fix.heads_grouped_summed": ("let each query head attend on its own; never sum over the axis of a group", "让每个查询头各自注意；不要沿组的轴求和"),
    "formula.fix.heads_input_sliced": ("project all D features: nn.Linear(D, H * d), then split", "投影全部 D 个特征：nn.Linear(D, H * d)，然后再拆分"),
    "formula.fix.scores_key_reshaped": ("write k.transpose(-2, -1), not k.view(..., d, T)", "写 k.transpose(-2, -1)，而不是 k.view(..., d, T)"),
    "formula.fix.qkv_layout": ("split in the order in which the weights were written: q, k, v", "按权重写入的顺序拆分：q、k、v"),
    "formula.fix.projection_output_missing": ("end with an output projection nn.Linear(H * d, D)", "最后加上输出投影 nn.Linear(H * d, D)"),
    "formula.fix.projection_activation": ("leave q, k and v linear: take the activation out", "q、k、v 应保持线性：去掉激活函数"),
    "formula.fix.score_dropout": ("drop the weights, after the softmax", "对 softmax 之后的权重做 dropout"),
    "formula.fix.score_precision": ("compute scores and softmax in float32 at least", "至少用 float32 计算打分与 softmax"),
    "formula.fix.rotary_values": ("rotate q and k only", "只旋转 q 和 k"),
    "formula.fix.rotary_one_side": ("rotate both q and k", "q 和 k 都要旋转"),
    "formula.fix.rotary_axis": ("take the angles along the axis of positions, -2 of (B, H, T, d)", "角度应沿位置轴，即 (B, H, T, d) 的第 -2 轴"),
    "formula.fix.rotary_not_relative": ("rotate q and k by the same angles, each pair by position × frequency", "用相同的角度旋转 q 和 k，每一对按 位置×频率"),
    "formula.fix.rotary_low_precision": ("compute angles, cos and sin in float32 at least", "至少用 float32 计算角度、cos 与 sin"),
}  # fmt: skip
