"""Messages said by the checks of rotary turns and positions: key -> (English, Chinese)."""

TURN: dict[str, tuple[str, str]] = {
    "turn.after_axis": (
        "another mistake hides it; it is looked at when that is mended",
        "另一处错误掩盖了它；修正后再看",
    ),
    "turn.tables": (
        "the code gives or takes tables; what turns by them is another's",
        "代码给出或接收角度表；转动由别处完成",
    ),
    "turn.fed": ("the angles are given from outside", "角度由外部给出"),
    "turn.no_heads": ("there is no axis of heads", "没有头这一轴"),
    "turn.axis_pass": (
        "equal vectors stay equal along heads and rows and turn apart along positions (by {tokens})",
        "相同的向量在头与行之间保持相同，随位置转开（{tokens}）",
    ),
    "turn.axis": (
        "equal vectors {layout} turn apart along the {axis} (by {moved}), along positions by {tokens}",
        "相同的向量 {layout} 沿 {axis} 转开（{moved}），沿位置转开 {tokens}",
    ),
    "turn.axis_fix": (
        "take positions from the axis of tokens: torch.arange(x.shape[-2]) for (B,H,T,d), and let cos and sin end in (T,d)",
        "位置取自词元轴：对 (B,H,T,d) 用 torch.arange(x.shape[-2])，cos 与 sin 以 (T,d) 结尾",
    ),
    "turn.no_values": ("v does not come back", "v 没有被返回"),
    "turn.values_pass": ("v comes back as it was", "v 原样返回"),
    "turn.values": (
        "v is turned, too: from position {position} on it moves by {moved} of its size",
        "v 也被转动：从位置 {position} 起变动 {moved}（相对大小）",
    ),
    "turn.values_fix": ("turn q and k alone", "只转动 q 和 k"),
    "turn.unused": (
        "neither q nor k depends on the position (every position moves by {moved}): order is lost",
        "q 与 k 都不依赖位置（各位置同样变动 {moved}）：次序丢失",
    ),
    "turn.unused_fix": ("return the turned tensors", "返回转动后的张量"),
    "turn.one_side": (
        "{still} is not turned by its position, the other is (by {moved})",
        "{still} 没有按位置转动，另一个转动了（{moved}）",
    ),
    "turn.one_side_fix": ("turn {still}, too, by the same angles", "{still} 也按同样角度转动"),
    "turn.one_side_pass": (
        "both turn: q by {q}, k by {k} over 11 positions",
        "两者都转动：11 个位置内 q 为 {q}，k 为 {k}",
    ),
    "turn.relative_pass": (
        "for all basis vectors and pairs of 11 positions q_m · k_n depends on m - n alone, to {worst}",
        "对所有基向量及 11 个位置的各对，q_m · k_n 只依赖 m - n，误差 {worst}",
    ),
    "turn.not_relative": (
        "q_m · k_n for (m, n) = ({m}, {n}) and ({m_less}, {n_less}) differ by {apart}, one distance apart both times",
        "(m, n) = ({m}, {n}) 与 ({m_less}, {n_less}) 的 q_m · k_n 相差 {apart}，而距离相同",
    ),
    "turn.not_relative_fix": (
        "turn each pair by one angle t·ω: (a cos - b sin, b cos + a sin), the same for q and k",
        "每一对按同一角度 t·ω 转动：(a cos - b sin, b cos + a sin)，q 与 k 相同",
    ),
    "turn.narrow": (
        "q_m · k_n at ({m}, {n}) is off by {apart}: cos, sin or angles are rounded to 16 bits",
        "({m}, {n}) 处的 q_m · k_n 偏差 {apart}：cos、sin 或角度被舍入到 16 位",
    ),
    "turn.narrow_fix": (
        "make positions, frequencies, angles, cos and sin in float32, and round the turned vectors alone",
        "位置、频率、角度、cos 与 sin 用 float32 计算，只舍入转动后的向量",
    ),
    "turn.pairing_fix": (
        "repeat the angles in the order of the pairs: cat for i, i + d/2 and repeat_interleave for 2i, 2i + 1",
        "按配对的次序重复角度：i, i + d/2 用 cat，2i, 2i + 1 用 repeat_interleave",
    ),
    "turn.pairs_differ": ("q turns {q} pairs and k {k} pairs", "q 转动 {q} 配对，k 转动 {k} 配对"),
    "turn.mixed": (
        "tables repeat their angles as {tables}, features swap as {swap}",
        "角度表按 {tables} 重复，特征按 {swap} 交换",
    ),
    "turn.sign": ("both features of a pair gain the other's sine with one sign", "一对特征都以同一符号加上对方的正弦"),
    "turn.opposite": ("q and k turn in opposite directions", "q 与 k 转动方向相反"),
    "turn.speeds": (
        "q and k turn at different speeds (last pair {q} and {k})",
        "q 与 k 转动速度不同（最后一对 {q} 与 {k}）",
    ),
    "turn.no_pairs": ("features do not turn in pairs", "特征不是成对转动"),
    "turn.pairs_unstated": ("pairs are {found}; no order is stated", "配对方式为 {found}；没有声明次序"),
    "turn.pairs_pass": ("pairs are {found}, as stated", "配对方式为 {found}，与声明一致"),
    "turn.pairs": (
        "pairs are {found} (feature 0 turns with {one}), and {said} is stated",
        "配对方式为 {found}（特征 0 与 {one} 一同转动），而声明的是 {said}",
    ),
    "turn.pairs_fix": ("pair the features as {said}, as the weights were trained", "按 {said} 配对，与训练权重时一致"),
    "turn.offset_apart": (
        "q and k at one position are turned apart by {apart}: they count from different starts",
        "同一位置的 q 与 k 转角相差 {apart}：两者起点不同",
    ),
    "turn.offset_first": (
        "the first position is turned by {turned}: positions do not start at 0",
        "第一个位置被转动 {turned}：位置不从 0 开始",
    ),
    "turn.offset_fix": (
        "count positions from 0, for q and k alike: torch.arange(T)",
        "q 与 k 都从 0 数位置：torch.arange(T)",
    ),
    "turn.offset_pass": (
        "position 0 is not turned, and q and k at one position are turned alike",
        "位置 0 不转动，同一位置的 q 与 k 转角相同",
    ),
    "turn.offset_raises": ("positions that start at 3 raise", "从 3 开始的位置会抛出异常"),
    "turn.offset_ignored": (
        "given positions 3, 4, … the turn is off by {gap}: they are not used",
        "给定位置 3、4、…时转动偏差 {gap}：没有使用它们",
    ),
    "turn.offset_given_fix": ("turn by the positions that are given", "按所给位置转动"),
    "turn.offset_given_pass": (
        "positions that start at 3 turn as the 4th and later ones",
        "从 3 开始的位置与第 4 个及以后的转动一致",
    ),
    "turn.base_fix": (
        "write base ** (-torch.arange(0, d, 2) / d) with the stated base",
        "用所声明的底数写 base ** (-torch.arange(0, d, 2) / d)",
    ),
    "turn.base_unstated": ("no base is stated", "没有声明底数"),
    "turn.base_scaled": ("frequencies are scaled or trained, by the code's own words", "代码自称频率经过缩放或训练"),
    "turn.base_known": ("the pairs turn at {found}", "各对按 {found} 转动"),
    "turn.base_bent": ("frequencies {speeds}, … are no geometric series", "频率 {speeds}、…不是等比数列"),
    "turn.base_growing": ("frequencies {speeds}, … do not fall from pair to pair", "频率 {speeds}、…没有逐对下降"),
    "turn.base_found": (
        "the base is {found}; none is stated that could be held against it",
        "底数为 {found}；没有可比较的声明",
    ),
    "turn.base_pass": ("the base is {found}, as stated ({said})", "底数为 {found}，与声明一致（{said}）"),
    "turn.base": (
        "the base is {found} (second pair: {second} a position), and {said} is stated",
        "底数为 {found}（第二对每位置 {second}），而声明的是 {said}",
    ),
    "turn.stored": (
        "{name} is stored in 16 bits: angles far out are wrong by whole turns, or cos and sin by 0.4 percent",
        "{name} 以 16 位存储：远处的角度会差出整圈，或 cos 与 sin 有千分之四的误差",
    ),
    "turn.short": ("fewer than 16 positions can be turned", "可转动的位置不足 16 个"),
    "turn.far": (
        "at position {position} cos and sin are off by {apart} of t·ω (at most {worst} over {length} positions): positions or angles are rounded to 16 bits",
        "位置 {position} 的 cos 与 sin 偏离 t·ω {apart}（{length} 个位置内最大 {worst}）：位置或角度被舍入到 16 位",
    ),
    "turn.far_sixteen": (
        "with bfloat16 vectors, at position {position} of {length} cos and sin are off by {apart} (at most {worst}): angles are made in 16 bits",
        "向量为 bfloat16 时，{length} 个位置中的位置 {position} 处 cos 与 sin 偏差 {apart}（最大 {worst}）：角度以 16 位计算",
    ),
    "turn.far_follows": (
        "they follow the type of the vectors, so make them in float32 before it runs in 16 bits",
        "角度沿用向量的类型，若要以 16 位运行，请先用 float32 计算角度",
    ),
    "turn.far_pass": (
        "over {length} positions cos and sin are those of t·ω to {worst}",
        "{length} 个位置内 cos 与 sin 与 t·ω 相差 {worst}",
    ),
    "turn.far_only": (
        "over {length} positions cos and sin are those of t·ω; bfloat16 vectors are refused",
        "{length} 个位置内 cos 与 sin 与 t·ω 一致；不接受 bfloat16 向量",
    ),
}

PLACE: dict[str, tuple[str, str]] = {
    "place.after_rows": (
        "positions follow the rows; the rest is looked at when that is mended",
        "位置随行变化；修正后再看其余",
    ),
    "place.after_unused": (
        "positions are not used; the rest is looked at when that is mended",
        "位置没有起作用；修正后再看其余",
    ),
    "place.seq_first": (
        "positions follow the first axis: x is taken as (T,B,D); with (B,T,D) each row would get one position",
        "位置沿第一轴：x 视为 (T,B,D)；若给 (B,T,D)，每一行只得到一个位置",
    ),
    "place.by_row": (
        "for x (B,T,D) of zeros the rows differ by {across} and the positions of a row by {along}: what is added follows the rows",
        "对全零的 x (B,T,D)，行间相差 {across}，行内各位置相差 {along}：所加的向量随行变化",
    ),
    "place.by_row_fix": (
        "index positions with x.size(1), and keep the table as (1,T,D)",
        "以 x.size(1) 取位置，并把表保持为 (1,T,D)",
    ),
    "place.same": ("positions {one} and {other} get the same vector", "位置 {one} 与 {other} 得到相同的向量"),
    "place.used": (
        "{length} positions get vectors of their own (apart by up to {apart})",
        "{length} 个位置各有自己的向量（相差至多 {apart}）",
    ),
    "place.unused": (
        "all of {length} positions get the same vector ({rows} rows): order does not matter",
        "{length} 个位置都得到相同的向量（{rows} 行）：次序不起作用",
    ),
    "place.unused_fix": (
        "add the vector of position t to x[:, t]: x + table[:T]",
        "把位置 t 的向量加到 x[:, t]：x + table[:T]",
    ),
    "place.learnt_pass": (
        "position t gets row t of the trained table, for {length} positions",
        "{length} 个位置中，位置 t 得到训练表的第 t 行",
    ),
    "place.other_start": (
        "the first position is number {first}, by the code's own words",
        "第一个位置的编号为 {first}，代码自称如此",
    ),
    "place.learnt": (
        "position 0 gets row {first} of the trained table and position 1 row {second}",
        "位置 0 得到训练表的第 {first} 行，位置 1 得到第 {second} 行",
    ),
    "place.start_fix": ("count from 0: torch.arange(T)", "从 0 数起：torch.arange(T)"),
    "place.learnt_unseen": ("what is added is no row of a weight", "所加的不是某个权重的一行"),
    "place.start_raises": ("positions that start at 3 raise", "从 3 开始的位置会抛出异常"),
    "place.start_pass": (
        "positions that start at 3 get the vectors of the 4th and later ones",
        "从 3 开始的位置得到第 4 个及以后的向量",
    ),
    "place.start": (
        "with a start of 3 the vectors are off by {apart}: the start is not used",
        "起点为 3 时向量偏差 {apart}：没有使用起点",
    ),
    "place.given_fix": ("take the positions that are given", "使用所给的位置"),
    "place.frequency_fix": (
        "sin and cos of one angle t · base^(-2i/D) for pair i: exp(-log(base) * torch.arange(0, D, 2) / D)",
        "第 i 对取同一角度 t · base^(-2i/D) 的 sin 与 cos：exp(-log(base) * torch.arange(0, D, 2) / D)",
    ),
    "place.known": ("the table is {found}", "位置表为 {found}"),
    "place.not_finite": ("{count} numbers of the table are not finite", "位置表中有 {count} 个数不是有限值"),
    "place.no_sinusoids": ("the table does not claim to be sinusoids", "位置表没有声明为正弦波"),
    "place.squares": (
        "sin² + cos² of pair {pair} moves by {off} of its size from position to position: the two differ in frequency",
        "第 {pair} 对的 sin² + cos² 随位置变动 {off}（相对大小）：两者频率不同",
    ),
    "place.own_speeds": ("frequencies {speeds}, … are the code's own", "频率 {speeds}、…由代码自定"),
    "place.still": (
        "{still} of {count} pairs do not move over {length} positions: their frequencies are 0",
        "{count} 对中有 {still} 对在 {length} 个位置内不变：频率为 0",
    ),
    "place.bent": ("frequencies {speeds}, … are no geometric series", "频率 {speeds}、…不是等比数列"),
    "place.growing": ("frequencies {speeds}, … do not fall from pair to pair", "频率 {speeds}、…没有逐对下降"),
    "place.frequency_pass": (
        "pairs ({layout}) turn at base^(-2i/D), base {base}",
        "各对（{layout}）按 base^(-2i/D) 变化，底数 {base}",
    ),
    "place.base": (
        "the base is {found} (frequencies {speeds}, …), and {said} is stated",
        "底数为 {found}（频率 {speeds}、…），而声明的是 {said}",
    ),
    "place.base_unstated": (
        "the base is {found}; none is stated that could be held against it",
        "底数为 {found}；没有可比较的声明",
    ),
    "place.no_start": ("the pairs do not tell where positions start", "各对看不出位置从何处开始"),
    "place.zero_first": ("the first row is position 0: sines 0, cosines 1", "第一行是位置 0：正弦为 0，余弦为 1"),
    "place.first": ("the first row is that of position {first}", "第一行是位置 {first} 的向量"),
}

MESSAGES: dict[str, tuple[str, str]] = TURN | PLACE
