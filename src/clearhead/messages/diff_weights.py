"""Messages on how the weights of two models are to each other: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "weights.related": ("B has A's numbers, but {how}", "B 含有 A 的数，但{how}"),
    "weights.rounded": ("rounded to {kind}", "舍入为 {kind}"),
    "weights.transposed": ("transposed: A's rows are B's columns", "被转置：A 的行是 B 的列"),
    "weights.axes": (
        "with axes in another order: A's as {split}, its axes taken as {axes}",
        "各轴的次序不同：把 A 看作 {split}，按 {axes} 取各轴",
    ),
    "weights.of_rows": ("with its rows in another order: ", "各行的次序不同："),
    "weights.of_columns": ("with its columns in another order: ", "各列的次序不同："),
    "weights.shifted": (
        "with {number} added to each (+1 or -1: one stores w, the other 1 + w)",
        "每个数加上 {number}（+1 或 -1：一方存 w，另一方存 1 + w）",
    ),
    "weights.negated": ("with the other sign", "符号相反"),
    "weights.scaled": ("times {factor}", "乘以 {factor}"),
    "weights.is_head_width": (", {number} the width of a head", "，{number} 是每头的宽度"),
    "weights.is_width": (", {number} the width of the model", "，{number} 是模型的宽度"),
    "weights.parts": ("A's q, k, v stand as {order}", "A 的 q、k、v 排成 {order}"),
    "weights.halves": (
        "its two halves are in each other's place (gate and up, k and v, sine and cosine)",
        "前后两半互换（gate 与 up、k 与 v、正弦与余弦）",
    ),
    "weights.by_head": (
        "A has all q, all k, all v; B the q, k and v of head 0, then of head 1 ({heads} heads of {width})",
        "A 先放所有 q、再 k、再 v；B 先放第 0 头的 q、k、v，再放第 1 头的（{heads} 个头，每头 {width}）",
    ),
    "weights.by_part": (
        "A has the q, k and v of head 0, then of head 1; B all q, all k, all v ({heads} heads of {width})",
        "A 先放第 0 头的 q、k、v，再放第 1 头的；B 先放所有 q、再 k、再 v（{heads} 个头，每头 {width}）",
    ),
    "weights.by_group": (
        "A has all q, all k, all v; B the queries of a group, its key and its value, group by group ({groups} groups, heads of {width})",
        "A 先放所有 q、再 k、再 v；B 逐组放该组的查询、键和值（{groups} 组，每头 {width}）",
    ),
    "weights.by_group_back": (
        "A has the queries of a group, its key and its value, group by group; B all q, all k, all v ({groups} groups, heads of {width})",
        "A 逐组放该组的查询、键和值；B 先放所有 q、再 k、再 v（{groups} 组，每头 {width}）",
    ),
    "weights.pairs": (
        "A turns feature i of a head with feature i + {half}, B its neighbours (heads of {width}, {turned} of them turned)",
        "A 把每头的第 i 个特征与第 i + {half} 个一起旋转，B 旋转相邻的两个（每头 {width}，其中 {turned} 个旋转）",
    ),
    "weights.halves_turned": (
        "A turns neighbouring features of a head, B feature i with feature i + {half} (heads of {width}, {turned} of them turned)",
        "A 旋转每头相邻的两个特征，B 把第 i 个与第 i + {half} 个一起旋转（每头 {width}，其中 {turned} 个旋转）",
    ),
    "weights.features_first": (
        "A counts (head, feature), B (feature, head); {heads} heads of {width}",
        "A 按（头，特征）排列，B 按（特征，头）；{heads} 个头，每头 {width}",
    ),
    "weights.heads_first": (
        "A counts (feature, head), B (head, feature); {heads} heads of {width}",
        "A 按（特征，头）排列，B 按（头，特征）；{heads} 个头，每头 {width}",
    ),
    "weights.flipped": ("the last is the first", "首尾颠倒"),
    "weights.rolled": (
        "each stands {step} further on, the last ones at the start",
        "每个后移 {step} 位，末尾的移到开头",
    ),
    "weights.heads_order": ("B's {heads} blocks are A's {order}", "B 的 {heads} 块依次是 A 的 {order}"),
    "weights.permuted": (
        "{moved} of {number} are elsewhere; B's {row} is A's {other}",
        "{number} 个中有 {moved} 个换了位置；B 的第 {row} 个是 A 的第 {other} 个",
    ),
    "weights.zero": ("B's numbers are all 0, A's are not", "B 的数全为 0，A 的不是"),
    "weights.constant": (
        "B's numbers are all {number}, A's lie between {low} and {high}",
        "B 的数全为 {number}，A 的在 {low} 与 {high} 之间",
    ),
    "weights.cropped": (
        "B has rows {first} to {last} of A's {number} alone",
        "B 只有 A 的 {number} 行中的第 {first} 到 {last} 行",
    ),
    "weights.padded": (
        "B has A's rows from row {start} on, and {number} more, {what}",
        "B 从第 {start} 行起是 A 的各行，另有 {number} 行，{what}",
    ),
    "weights.padded_zeros": ("all zeros", "全为零"),
    "weights.padded_other": ("with numbers of their own", "有自己的数"),
    "weights.quantised": (
        "B has A's numbers quantised to {bits} bits, {group} numbers a scale",
        "B 是 A 的数量化到 {bits} 位的结果，每 {group} 个数共用一个比例",
    ),
    "weights.few_numbers": (
        "B's are near A's, with at most {number} different numbers a row: quantised",
        "B 的数接近 A 的，每行最多 {number} 个不同的数：已量化",
    ),
    "weights.rounded_a": ("A has B's numbers rounded to {kind}", "A 是 B 的数舍入为 {kind} 的结果"),
    "weights.nearly": (
        "the two agree to {size} of the largest, as after a conversion in float32",
        "两者相差不到最大值的 {size}，如同经过一次 float32 转换",
    ),
    "weights.exchanged": (
        "B has here the numbers of A's {name}",
        "B 在此处放的是 A 的 {name} 的数",
    ),
    "weights.joined": ("A's {number}, one below the other", "由 A 的 {number} 个上下拼接而成"),
    "weights.part": ("rows {first} to {last} of A's", "A 的第 {first} 到 {last} 行"),
    "weights.alone_zero": ("all its numbers are 0", "其中的数全为 0"),
    "weights.alone_tied": (
        "it has the numbers of {name}: tied on the other side, perhaps",
        "它与 {name} 的数相同：另一方也许将二者绑定",
    ),
    "weights.shapes": ("the shapes are {one} and {other}", "形状分别为 {one} 和 {other}"),
    "weights.changed": (
        "{different} of {number} numbers differ, by up to {largest}; the difference is {part} of A's size",
        "{number} 个数中有 {different} 个不同，最多差 {largest}；差的大小是 A 的 {part}",
    ),
    "weights.nan": (
        "{a} of A's {number} numbers and {b} of B's are NaN",
        "{number} 个数中，A 有 {a} 个、B 有 {b} 个为 NaN",
    ),
    "weights.nan_held": (
        "of {name}, {tensor} holds {lost} of {number} numbers that are none (NaN)",
        "{name} 的 {tensor} 的 {number} 个数中有 {lost} 个为 NaN",
    ),
    "copying.given": (
        "{number} of B's {all} parameters were given A's numbers; {kept} of them had the same already",
        "B 的 {all} 个参数中有 {number} 个换成了 A 的数；其中 {kept} 个原来就相同",
    ),
    "copying.missing": ("B has no place for it", "B 中没有它的位置"),
    "copying.unchanged": ("A has nothing for it: it keeps B's own value", "A 中没有对应的张量：保留 B 自己的值"),
    "copying.unsure": (
        "{number} tensors of equal shapes were given in their order, since their names do not tell which is which: {names}",
        "{number} 个形状相同的张量按次序赋值，因为名称看不出哪个是哪个：{names}",
    ),
    "copying.squares": (
        "{number} square matrices were taken to lie as (in, out), as the others beside them do: {names}",
        "{number} 个方阵被视为（输入，输出）排列，与其旁边的矩阵一致：{names}",
    ),
    "copying.left": (
        "{number} parameters of B keep their own values, since A has nothing for them: {names}",
        "B 的 {number} 个参数保留自己的值，因为 A 中没有对应的张量：{names}",
    ),
    "copying.known_names": (
        "B's names are those of a known library, whose order of rows and columns was used",
        "B 的名称来自一个已知的库，采用了该库的行列次序",
    ),
    "copying.split": ("one of {number} that A holds joined", "A 中拼接的 {number} 个之一"),
    "copying.turned": (
        "transposed: one holds (in, out), the other (out, in)",
        "经转置：一方存（输入，输出），另一方存（输出，输入）",
    ),
    "copying.rearranged": ("with rows in B's order", "行按 B 的次序排列"),
    "copying.joined": ("{number} of A's, one below the other", "由 A 的 {number} 个上下拼接"),
    "copying.part": ("some rows of A's", "A 的一部分行"),
    "copying.tied": ("A's head is its embedding", "A 的输出头就是它的嵌入"),
    "copying.of_library": (
        "joined or turned from the rows and columns that a known library has",
        "由一个已知库的行列拼接或转换而来",
    ),
    "weights.alone_mask": ("a mask: it holds {numbers} alone", "掩码：其中只有 {numbers}"),
    "weights.alone_angles": ("a table of angles or positions, which nothing trains", "角度或位置的表，不参与训练"),
}
