"""Messages said by `clearhead check`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "cli.check.about": (
        "prove that a model, or anyone's attention code, does what it should; name the mistake",
        "证明一个模型或任何人的注意力代码计算正确；指出错误的名字",
    ),
    "cli.check.as_kind": ("{target}, checked as {kind}", "{target}，按 {kind} 检查"),
    "cli.check.guessed": (
        "{target}, checked as {kind} (guessed; --kind says otherwise)",
        "{target}，按 {kind} 检查（推测得出；可用 --kind 指定）",
    ),
    "cli.check.right": ("right", "正确"),
    "cli.check.wrong": ("WRONG", "错误"),
    "cli.check.pass": ("right", "正确"),
    "cli.check.fail": ("WRONG", "错误"),
    "cli.check.skipped": ("not asked", "未检查"),
    "cli.check.error": ("ERROR", "出错"),
    "cli.check.note": ("note:", "说明："),
    "cli.check.fix": ("mend:", "改法："),
    "cli.check.effect": ("the output is off by {effect} of its size", "输出偏差为其大小的 {effect}"),
    "cli.check.reproduced": (
        "this mistake, put into the right formula, gives the very output",
        "把这个错误放进正确的公式，得到的正是该输出",
    ),
    "cli.check.consistent": ("what was seen fits this mistake", "观察到的现象符合这个错误"),
    "cli.check.what": ("what", "对象"),
    "cli.check.verdict": ("verdict", "结论"),
    "cli.check.expected": ("expected", "应当"),
    "cli.check.found": ("found", "实际"),
    "cli.check.all_right": (
        "nothing is wrong: {passed} checks passed, {skipped} could not be asked",
        "没有错误：{passed} 项通过，{skipped} 项无法检查",
    ),
    "cli.check.wrong_sum": (
        "faults named: {faults}; checks failed: {failed}, passed: {passed}",
        "指出 {faults} 个错误；{failed} 项未通过，{passed} 项通过",
    ),
    "cli.check.working": ("checking {target} in a process of its own ...", "正在单独的进程中检查 {target} ……"),
    "cli.check.page": ("the report is in {path}", "报告已写入 {path}"),
    "cli.check.no_folder": (
        "{path}: there is no folder {folder}; make it first",
        "{path}：没有文件夹 {folder}；请先建立",
    ),
    "cli.check.both_causal": (
        "--causal and --no-causal cannot both be meant; leave one out",
        "--causal 与 --no-causal 不能同时使用；请去掉一个",
    ),
    "cli.check.model_says": (
        "{flags} was not used: a model says itself what it is",
        "{flags} 未被使用：模型自己说明了它是什么",
    ),
    "cli.check.set": (
        "--set takes KEY=VALUE, not {written}; KEY is a parameter of the constructor",
        "--set 需要 KEY=VALUE 的形式，而不是 {written}；KEY 是构造函数的参数",
    ),
}
