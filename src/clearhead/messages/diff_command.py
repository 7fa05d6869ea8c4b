"""Messages said by `clearhead diff` and by `assert_same`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "cli.diff.about": (
        "where two models, or two pieces of anyone's code, first part, and why",
        "两个模型或任意两段代码从何处开始不同，以及原因",
    ),
    "cli.diff.working": ("comparing {a} and {b} in a process of its own ...", "正在单独的进程中比较 {a} 与 {b} ……"),
    "cli.diff.comparing": ("comparing {a} and {b} ...", "正在比较 {a} 与 {b} ……"),
    "cli.diff.page": ("the comparison is in {path}", "比较结果已写入 {path}"),
    "cli.diff.itself": (
        "A and B are both {name}, which is equal to itself; name two",
        "A 与 B 都是 {name}，与自身必然相同；请给出两个不同的对象",
    ),
    "cli.diff.no_words": (
        "{a} and {b} are code, and know no words: nothing can read -p; leave it out, and both get the same random inputs",
        "{a} 与 {b} 都是代码，不认识文字，无法读入 -p；请去掉它，两者会得到相同的随机输入",
    ),
    "cli.diff.no_text": (
        "-p is empty; give a text of at least one character, or leave it out",
        "-p 为空；请给出至少一个字符的文本，或去掉它",
    ),
    "diff.vocabularies": (
        "A has {a} ids and B has {b}: both are given only ids that both have, and their logits have not one shape",
        "A 有 {a} 个 id，B 有 {b} 个：只给两者都有的 id，且它们的 logits 形状不同",
    ),
    "diff.tokenizers": (
        "the tokenizers write the text in other ids: B is given those of A, which are other words to it",
        "两者的分词器把文本写成不同的 id：B 得到的是 A 的 id，对它来说是别的词",
    ),
    "diff.unknown": (
        "the text has characters that the model does not know, and reads as unknown marks: {characters}",
        "文本含有模型不认识的字符，它们被读作未知符号：{characters}",
    ),
    "cli.diff.not_code": (
        "{flags} says something of code, and {a} and {b} are models; leave it out",
        "{flags} 只用于代码，而 {a} 与 {b} 都是模型；请去掉它",
    ),
    "diff.equal": (
        "equal to rounding: {stages} of {a} and {b} compared on {given}; the largest difference is {largest} of the size, rounding explains {allowed}",
        "在舍入范围内相等：以 {given} 比较了 {a} 与 {b} 的 {stages}；最大差异为其大小的 {largest}，舍入可解释 {allowed}",
    ),
    "diff.nothing": (
        "{a} and {b}: what they give could not be compared, so that nothing is shown; name two that take and give the same",
        "{a} 与 {b}：两者的结果无法比较，因此什么也没有证明；请给出输入和输出一致的两者",
    ),
    "diff.parts": (
        "they part at {place}: the difference is {largest} of the size, rounding explains {allowed}; {before} (on {given})",
        "从 {place} 开始不同：差异为其大小的 {largest}，舍入只能解释 {allowed}；{before}（输入：{given}）",
    ),
    "diff.parts_in_shape": (
        "they part at {place}: the shapes are not the same; {before} (on {given})",
        "从 {place} 开始不同：形状不一致；{before}（输入：{given}）",
    ),
    "diff.parts_in_numbers": (
        "they part at {place}: {text}; {before} (on {given})",
        "从 {place} 开始不同：{text}；{before}（输入：{given}）",
    ),
    "diff.stages_one": ("1 stage", "1 个阶段"),
    "diff.stages_many": ("{count} stages", "{count} 个阶段"),
    "diff.before_one": ("1 stage before it is equal", "此前 1 个阶段相等"),
    "diff.before_many": ("{count} stages before it are equal", "此前 {count} 个阶段相等"),
    "diff.unreached": (
        "not equal: weights differ that these inputs do not reach ({names}); all that was compared of {a} and {b} is equal, {stages} on {given}",
        "不相等：有些权重不同，而这些输入没有触及它们（{names}）；以 {given} 比较，{a} 与 {b} 的 {stages}都相等",
    ),
    "diff.no_size": ("no size", "无法度量"),
    "diff.held_equal": ("equal", "相等"),
    "diff.held_island": ("equal to float32", "在 float32 内相等"),
    "diff.held_differs": ("DIFFERS", "不同"),
    "diff.held_unpaired": ("no partner", "无对应"),
    "diff.state_same": ("the same", "相同"),
    "diff.state_changed": ("changed", "改变"),
    "diff.state_related": ("related", "相关"),
    "diff.state_missing": ("only in A", "仅 A 有"),
    "diff.state_unexpected": ("only in B", "仅 B 有"),
    "diff.reproduced": ("A, changed so, gives what B gives", "把 A 这样改动，得到的正是 B 的结果"),
    "diff.consistent": ("what was seen fits this", "与观察到的现象相符"),
    "diff.remains": (
        "of a difference of {before}, {after} remains once A is changed so",
        "A 作此改动后，{before} 的差异只剩 {after}",
    ),
    "diff.no_tensors": ("none", "无"),
    "diff.weights_own": ("weights, each its own: {counts}", "权重（各用自己的）：{counts}"),
    "diff.weights_of_a": ("weights, those of A given to B: {counts}", "权重（把 A 的给了 B）：{counts}"),
    "diff.more_tensors": ("and {count} more; --all shows them", "另有 {count} 个；用 --all 查看"),
    "diff.difference": ("difference", "差异"),
    "diff.allowed": ("rounding", "舍入"),
    "diff.line": ("line", "行"),
    "diff.note": ("note:", "说明："),
    "diff.why": ("Why", "原因"),
    "diff.stages": ("Stage by stage", "逐阶段"),
    "diff.all_stages": ("all {count} stages", "全部 {count} 个阶段"),
    "diff.weights": ("Weights", "权重"),
    "diff.all_tensors": ("all {count} that are not the same", "全部 {count} 个不相同的张量"),
    "diff.chart": (
        "how far each stage of B is from that of A, beside its size, as powers of ten; the lines mark what rounding explains",
        "B 的每个阶段与 A 相差多少（相对其大小，以 10 的幂表示）；横线为舍入可解释的范围",
    ),
    "asserts.same": ("{a} and {b} are not the same:", "{a} 与 {b} 不相同："),
    "asserts.same_vacuous": (
        "{a} and {b}: what they give could not be compared, so that nothing is shown; give two that take and give the same",
        "{a} 与 {b}：两者的结果无法比较，因此什么也没有证明；请给出输入和输出一致的两者",
    ),
}
