"""Messages said by the assertions for tests: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "asserts.causal": ("no position depends on a later one", "任何位置都不依赖其后的位置"),
    "asserts.cache": ("a cache changes nothing", "缓存不改变结果"),
    "asserts.padding": ("what stands in masked positions moves no other", "被掩蔽位置的内容不影响其他位置"),
    "asserts.rows": ("each row is what it is alone", "每一行都与单独运行时相同"),
    "asserts.right": ("it is right", "它是正确的"),
    "asserts.fix": ("fix:", "修复："),
    "asserts.contradicted": (
        "{name}, checked as {kind}, contradicts the claim that {claim}:",
        "{name} 作为 {kind} 检查，与“{claim}”相矛盾：",
    ),
    "asserts.vacuous": (
        "{name}, checked as {kind}: whether {claim} could not be seen ({reasons}); say kind=, values= or call= so that it can",
        "{name} 作为 {kind} 检查：无法看出是否“{claim}”（{reasons}）；请用 kind=、values= 或 call= 说明",
    ),
    "asserts.unlike": (
        "{one} and {other} cannot be compared; give two tensors, or two modules or functions with their inputs",
        "{one} 与 {other} 无法比较；请给出两个张量，或两个模块或函数及其输入",
    ),
    "asserts.no_tensor": (
        "a {found} with no tensor in it was returned; wrap the call so that it gives a tensor",
        "返回的 {found} 中没有张量；请包装调用，使其返回张量",
    ),
    "asserts.shapes": (
        "shapes {one} and {other} differ: a fault, no rounding",
        "形状 {one} 与 {other} 不同：是错误，不是舍入",
    ),
    "asserts.fault": (
        "a fault, no rounding: the difference is {gap} of the size, and rounding in {kind} explains {allowed}; the largest stands at {place}: {one} and {other}",
        "是错误，不是舍入：差异为其大小的 {gap}，而 {kind} 的舍入只能解释 {allowed}；最大差异位于 {place}：{one} 与 {other}",
    ),
    "asserts.island": (
        "an island: the difference is {gap} of the size, rounding of {kind}, in which a part was computed (up to {allowed})",
        "孤岛：差异为其大小的 {gap}，是以 {kind} 计算的某一部分的舍入（至多 {allowed}）",
    ),
    "asserts.rounding": (
        "rounding: the difference is {gap} of the size, {kind} explains up to {allowed}",
        "舍入：差异为其大小的 {gap}，{kind} 可解释至 {allowed}",
    ),
}
