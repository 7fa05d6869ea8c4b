"""Messages said by the checks of norms: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "small.evaluation": ("evaluation", "评估"),
    "small.training": ("training", "训练"),
    "small.norm_other": (
        "{name} says that its statistics are taken over more than the features of a position (batch, instance or group norm): legal where it is wanted, not a norm of each position",
        "{name} 声明其统计量不只取自一个位置的特征（批、实例或组归一化）：若确属所需则合法，但不是逐位置的归一化",
    ),
    "small.norm_other_skip": ("it does not claim to treat each position by itself", "它没有声明逐位置处理"),
    "small.norm_after_axis": (
        "the axis is wrong; the formula is looked at when that is mended",
        "轴有误；修正后再看公式",
    ),
    "small.norm_after_narrow": ("16-bit statistics hide it", "16 位的统计量掩盖了它"),
    "small.norm_after_formula": (
        "the formula is wrong; the rest is looked at when that is mended",
        "公式有误；修正后再看其余",
    ),
    "small.norm_blind": (
        "the output does not move with its own input, so nothing could be seen",
        "输出不随自身输入变化，无从看出",
    ),
    "small.norm_axis_pass": (
        "one position was replaced: its own output moved by {own} of its size, every other by nothing, in evaluation and in training",
        "替换一个位置：它自己的输出变动了 {own}（相对大小），其余位置在评估与训练中都不变",
    ),
    "small.norm_mixes": (
        "a position's output moves with other positions (by {largest} of its size); it claims no norm of each position",
        "某位置的输出随其他位置变动（相对大小 {largest}）；它并未声明逐位置归一化",
    ),
    "small.norm_axis_unknown": ("an unknown axis", "未知的轴"),
    "small.norm_axis": (
        "when position 0 of row 0 alone is replaced, the output of row {row} at position {position} moves by {largest} of its size (in {mode}): statistics over {over}",
        "只替换第 0 行的位置 0 时，第 {row} 行位置 {position} 的输出变动 {largest}（相对大小，{mode}模式）：统计量取自 {over}",
    ),
    "small.norm_axis_fix": (
        "take mean and variance over the features alone: dim=-1, keepdim=True",
        "均值与方差只取特征轴：dim=-1, keepdim=True",
    ),
    "small.norm_exact": (
        "over positions of sizes 100 to 10000 the output is the formula to {left}",
        "对大小从 100 到 10000 的各位置，输出与公式相差 {left}",
    ),
    "small.norm_island": (
        "statistics run in float32 inside a float64 run (difference {left}): legal",
        "在 float64 运行中统计量以 float32 计算（相差 {left}）：合法",
    ),
    "small.norm_narrow": (
        "in a run in float64 or float32 the output differs from {formula} by {left} of its size: 16-bit numbers are in between",
        "在 float64 或 float32 运行中，输出与 {formula} 相差 {left}（相对大小）：中间用了 16 位数",
    ),
    "small.norm_narrow_fix": (
        "take the statistics in float32: x.float(), and go back to the input's type at the end",
        "以 float32 计算统计量：x.float()，最后再转回输入的类型",
    ),
    "small.norm_formula": (
        "the output is {found}, to {left}; from any legal norm it differs by {right} of its size",
        "输出等于 {found}（相差 {left}）；与任何合法归一化相差 {right}（相对大小）",
    ),
    "small.norm_formula_fix": (
        "write {right} over the last axis, eps inside the root",
        "在最后一轴上写 {right}，eps 放在根号内",
    ),
    "small.norm_formula_none": (
        "the output is no norm: the nearest, {name}, differs by {right} of its size, whatever weight and bias",
        "输出不是归一化：最接近的 {name} 在任意权重与偏置下仍相差 {right}（相对大小）",
    ),
    "small.norm_unknown": ("a formula that is not known here", "此处未知的公式"),
    "small.norm_named": (
        "it computes {found}; it does not claim to be LayerNorm or RMSNorm alone, so its formula is taken as meant",
        "它计算的是 {found}；它并未声明只是 LayerNorm 或 RMSNorm，因此视为有意",
    ),
    "small.norm_named_skip": ("neither LayerNorm nor RMSNorm is claimed", "没有声明 LayerNorm 或 RMSNorm"),
    "small.norm_claim": (
        "{name} is {found}, to {left}, where its name means {wanted}",
        "{name} 实为 {found}（相差 {left}），而其名称意为 {wanted}",
    ),
    "small.norm_unbiased": (
        "the output is the norm times {factor} = sqrt((D-1)/D) for D = {width}: the variance is divided by D-1",
        "输出是归一化结果乘以 {factor} = sqrt((D-1)/D)，D = {width}：方差除以了 D-1",
    ),
    "small.norm_unbiased_fix": (
        "write x.var(-1, keepdim=True, unbiased=False)",
        "写 x.var(-1, keepdim=True, unbiased=False)",
    ),
    "small.norm_is": ("the output is {found}, to {left}", "输出等于 {found}，相差 {left}"),
    "small.norm_factor": (
        "with its own weight the output is the norm times {factor}; dividing by D-1 would show as sqrt((D-1)/D)",
        "带上自身权重，输出是归一化结果乘以 {factor}；若除以 D-1，会显出 sqrt((D-1)/D)",
    ),
    "small.norm_weight": (
        "the output is {found} times {form}, w the stored weight",
        "输出是 {found} 乘以 {form}，w 为所存权重",
    ),
    "small.norm_weight_fix": ("multiply by the weight, once", "只乘一次权重"),
    "small.norm_sum": (
        "the output is {factor} times {found} with its weight, for D = {width}: a sum stands where the mean of the features should",
        "带上权重，输出是 {found} 的 {factor} 倍，D = {width}：该取特征均值处用了求和",
    ),
    "small.norm_scaled": ("a constant factor {factor} stands before the norm", "归一化前有常数因子 {factor}"),
    "small.norm_no_weight": ("no stored weight enters that could have an offset", "没有参与计算且可带偏移的权重"),
    "small.norm_offset_twice": (
        "the stored weight w enters as {form}: the 1 is added twice",
        "所存权重 w 以 {form} 参与：1 加了两次",
    ),
    "small.norm_offset_ones": (
        "the weight enters as 1 + w and is stored near one (mean {mean}): the gain is {gain}",
        "权重以 1 + w 参与，而所存值接近 1（均值 {mean}）：增益为 {gain}",
    ),
    "small.norm_offset_missing": (
        "the weight enters as w and is stored near zero (at most {largest}): the output vanishes; the 1 + w of that convention is missing",
        "权重以 w 参与，而所存值接近 0（至多 {largest}）：输出消失；缺少该约定中的 1 + w",
    ),
    "small.norm_offset_missing_name": (
        "{name} says that weights are stored as offsets from one, and multiplies by w alone",
        "{name} 声明权重以相对 1 的偏移存储，却只乘以 w",
    ),
    "small.norm_offset_fix": (
        "one convention: ones and x * w, or zeros and x * (1 + w)",
        "只用一种约定：初始为 1 并写 x * w，或初始为 0 并写 x * (1 + w)",
    ),
    "small.norm_offset_pass": ("the weight enters as {form}, as it is stored", "权重以 {form} 参与，与存储方式一致"),
    "small.norm_eps_outside": (
        "for inputs of spread c the output shrinks as c / (c + {value}): eps stands outside the root",
        "输入幅度为 c 时输出按 c / (c + {value}) 缩小：eps 在根号之外",
    ),
    "small.norm_eps_fix": ("divide by {right}", "除以 {right}"),
    "small.norm_eps_bound": (
        "eps is a lower bound of the divisor, or enters in a way of its own (about {value})",
        "eps 是除数的下界，或以特别的方式参与（约 {value}）",
    ),
    "small.norm_eps_unseen": ("no eps could be told apart with inputs down to 1e-9", "输入小至 1e-9 也分辨不出 eps"),
    "small.norm_eps_inside": (
        "for inputs of spread c the output shrinks as c / sqrt(c² + {value})",
        "输入幅度为 c 时输出按 c / sqrt(c² + {value}) 缩小",
    ),
    "small.norm_eps_ignored": (
        "eps = {claim} is stated and has no effect, down to inputs of 1e-9",
        "声明了 eps = {claim}，输入小至 1e-9 也不起作用",
    ),
    "small.norm_eps_none": (
        "there is no eps: a position of equal features gives NaN",
        "没有 eps：特征全相等的位置给出 NaN",
    ),
    "small.norm_eps_none_note": ("there is no eps: a position of zeros gives NaN", "没有 eps：全零位置给出 NaN"),
    "small.norm_eps_value_fix": ("use the stated eps, inside the root", "在根号内使用所声明的 eps"),
    "small.norm_eps_negative": ("eps = {value} is taken off in place of added", "eps = {value} 被减去而不是加上"),
    "small.norm_eps_unstated": ("eps is {value}; none is stated", "eps 为 {value}；没有声明值"),
    "small.norm_eps_same": ("eps is {value}, as stated ({claim})", "eps 为 {value}，与声明一致（{claim}）"),
    "small.norm_eps_value": (
        "small inputs show eps = {value}, and {claim} is stated",
        "小输入显示 eps = {value}，而声明的是 {claim}",
    ),
}
