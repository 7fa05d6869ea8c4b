"""Messages said where somebody's code is compared: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "diff.code_raises": (
        "{name} could not be run on these inputs: {reason}; name its kind (--kind), or wrap it so that it takes what the other takes",
        "无法用这些输入运行 {name}：{reason}；请指明其类别（--kind），或把它包装成接受与另一方相同的输入",
    ),
    "diff.no_tensor": (
        "{name} gives no tensor, but a {kind}; let its forward return a tensor, or a tuple or dict that has one",
        "{name} 返回的不是张量，而是 {kind}；请让它的 forward 返回张量，或含张量的元组或字典",
    ),
    "diff.inputs_differ": (
        "{a} and {b} do not take the same inputs: on {given}, {who} raised {reason}; mend that, or wrap one of them so that it takes what the other takes",
        "{a} 与 {b} 接受的输入不同：输入为 {given} 时，{who} 抛出 {reason}；请改正，或包装其中一个，使它接受与另一个相同的输入",
    ),
    "diff.inputs_unknown": (
        "{a} and {b} do not take the same inputs as far as is known: no way was found to call {who} ({reason}); name its kind (--kind), or give --call",
        "目前看来 {a} 与 {b} 接受的输入不同：没有找到调用 {who} 的方法（{reason}）；请指明其类别（--kind），或给出 --call",
    ),
    "diff.further_alone": (
        "{side} gives more than its result, which was not compared: {names}",
        "{side} 在结果之外还给出了未比较的内容：{names}",
    ),
    "diff.further_result": (
        "compared is {name} of {side}, which has the shape of the other's result",
        "比较的是 {side} 的 {name}，其形状与另一方的结果一致",
    ),
    "diff.last_only": (
        "{side} gives what belongs to the last position alone; it was asked for each position",
        "{side} 只给出最后一个位置的结果；已逐个位置询问",
    ),
    "diff.given_ids": ("{rows} x {length} random ids below {vocab}", "{rows} x {length} 个小于 {vocab} 的随机编号"),
    "diff.given_both": ("{first}, then {second}", "{first}，再用 {second}"),
    "diff.broken": (
        "{side} gives {what} from {place} on; numbers beyond that cannot be compared",
        "{side} 从 {place} 起给出 {what}；此后的数值无法比较",
    ),
    "diff.given_vectors": ("random vectors of shape {shapes}", "形状为 {shapes} 的随机向量"),
    "diff.given_text": ("the {count} ids of the text", "文本的 {count} 个编号"),
    "diff.no_ids": ("the text has no tokens; give a longer one", "文本没有任何词元；请给更长的文本"),
    "diff.id_too_large": (
        "the text has the id {id}, and one of the two knows only ids below {vocab}; give another text, or none",
        "文本含编号 {id}，而其中一方只认识小于 {vocab} 的编号；请换一段文本，或不给文本",
    ),
    "diff.no_tokenizer": (
        "neither of the two has a tokenizer, so a text cannot be read; leave the text out and random ids are taken",
        "两者都没有分词器，无法读取文本；请去掉文本，改用随机编号",
    ),
    "diff.formula": (
        "{where}: of {x}, A computes {a}, and B computes {b}",
        "{where}：由 {x} 出发，A 计算：{a}；B 计算：{b}",
    ),
    "diff.words_dropped": (
        "x with {rate} of its numbers dropped and the others times {factor}: dropout in evaluation",
        "丢弃比例为 {rate} 的 x，其余乘以 {factor}：评估时仍有 dropout",
    ),
    "diff.words_softmax": (
        "softmax of {inner} over the {axis}, {sight}",
        "对 {inner} 沿{axis}轴做 softmax，{sight}",
    ),
    "diff.words_after": (
        "softmax of x over all keys, hidden afterwards, {sight}",
        "对 x 沿所有键做 softmax，之后才遮蔽，{sight}",
    ),
    "diff.words_turn": (
        "a turn of {turning} of {width} features, {pairing} pairs, base {base}, first position {start}, direction {direction}",
        "旋转 {width} 个特征中的 {turning} 个，配对方式 {pairing}，底数 {base}，首个位置 {start}，方向 {direction}",
    ),
    "diff.sight_all": ("every query sees every key", "每个查询看到所有键"),
    "diff.sight_causal": ("query i sees keys up to i", "查询 i 看到不晚于 i 的键"),
    "diff.sight_strict": ("query i sees keys before i, not itself", "查询 i 只看到早于 i 的键，看不到自己"),
    "diff.sight_shifted": ("query i sees keys up to i + {shift}", "查询 i 看到不晚于 i + {shift} 的键"),
    "diff.sight_window": ("{base}, the last {width} of them", "{base}，其中最后 {width} 个"),
    "diff.sight_other": ("{count} of {all} pairs are seen", "{all} 对中可见 {count} 对"),
    "diff.scores": (
        "{where}: A multiplies q kᵀ by {a}, and B by {b}",
        "{where}：A 把 q kᵀ 乘以 {a}，B 乘以 {b}",
    ),
    "diff.exchanged": ("{where}: A multiplies {a}, and B multiplies {b}", "{where}：A 相乘的是 {a}，B 相乘的是 {b}"),
    "diff.arranged": (
        "{where}: both have the same numbers, and they lie otherwise in B: {what}",
        "{where}：两者的数相同，但在 B 中排列不同：{what}",
    ),
    "diff.arranged_axis": (
        "along axis {axis}, B has A's slices in the order {order}",
        "沿第 {axis} 轴，B 按 {order} 的顺序取 A 的切片",
    ),
    "diff.shifted": (
        "{where}: B has at each position what A has {step} positions on",
        "{where}：B 在每个位置上的值是 A 在其后第 {step} 个位置上的值",
    ),
    "diff.fed": (
        "{where}: the matrix of {stage} is given {a} in A, and {b} in B",
        "{where}：{stage} 的矩阵在 A 中作用于 {a}，在 B 中作用于 {b}",
    ),
    "diff.fed_through": ("{formula} with x = {x}", "{formula}，其中 x = {x}"),
    "diff.rewired": (
        "{where}: A computes {formula} of {a}, and B the same of {b}",
        "{where}：A 由 {a} 计算 {formula}，B 由 {b} 计算同样的式子",
    ),
    "diff.summed": ("{where}: A adds up {a}, and B {b}", "{where}：A 相加的是 {a}，B 则是 {b}"),
}
