"""Messages said by `checking`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "checking.mend_model": (
        "take another copy of the weights; if it stays, it is a defect of clearhead: report it with this output",
        "请换一份权重；若仍如此，则是 clearhead 的缺陷：请附上此输出报告",
    ),
    "checking.future": (
        "changing all tokens from t on, at {places} places t, moved earlier outputs by {leak} and later ones by {answer} or more",
        "在 {places} 个位置 t 改变其后的全部 token：之前的输出变动 {leak}，之后的输出变动不小于 {answer}",
    ),
    "checking.no_future_to_see": (
        "a context of one position has no future to see",
        "上下文只有一个位置，没有未来可看",
    ),
    "checking.future_gradient": (
        "the gradient of an output with respect to later inputs is {leak}, to its own {own} or more",
        "输出对其后输入的梯度为 {leak}，对自身输入的梯度不小于 {own}",
    ),
    "checking.past": (
        "the gradient of an output with respect to some earlier input is {past} or more",
        "输出对某个更早输入的梯度不小于 {past}",
    ),
    "checking.source": (
        "the gradient of an output with respect to every position of the source is {weakest} or more",
        "输出对源的每个位置的梯度都不小于 {weakest}",
    ),
    "checking.padding": (
        "padding behind a source, and other tokens in it, moved the outputs by {moved} in float64; rounding allows {allowed}",
        "在源之后填充、并改变填充的内容，float64 下输出变动 {moved}；舍入允许 {allowed}",
    ),
    "checking.cache": (
        "writing token by token with a cache differs from one forward by {difference} in float64; rounding allows {allowed}",
        "用缓存逐 token 计算与一次前向在 float64 下相差 {difference}；舍入允许 {allowed}",
    ),
    "checking.kernels": (
        "the model, its visible and its fused kernel differ by up to {difference} in float64; rounding allows {allowed}",
        "模型本身、可见内核与融合内核在 float64 下最多相差 {difference}；舍入允许 {allowed}",
    ),
}
