"""Messages said by `clearhead trace`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "cli.trace.about": (
        "what a model does with a text: every tensor by name, or one head as a picture",
        "模型对一段文本做了什么：逐个张量，或一个注意力头的图",
    ),
    "cli.trace.no_prompt": ("there is no text to trace; give one with -p", "没有要查看的文本；请用 -p 给出"),
    "cli.trace.tokens": ("text: {tokens}", "文本：{tokens}"),
    "cli.trace.source": ("source: {tokens}", "源文本：{tokens}"),
    "cli.trace.again": (
        "[weights of the fast kernel are computed again from the q and k that ran; what they mix is {difference} from what ran, at most]",
        "[快速内核不保留权重；这里由实际运行的 q、k 重新算出，混合结果与实际相差至多 {difference}]",
    ),
    "cli.trace.head": ("head {head}", "第 {head} 头"),
    "cli.trace.part": (
        "[the last {shown} tokens are shown; --svg shows all]",
        "[只显示最后 {shown} 个 token；--svg 显示全部]",
    ),
    "cli.trace.bad_head": (
        "{value} is no head; write BLOCK.HEAD, such as 3.2",
        "{value} 不是一个头；请写成 块.头，如 3.2",
    ),
    "cli.trace.names_or_head": (
        "--head shows the weights of one head, and --names chooses among all tensors; give one of them",
        "--head 显示一个头的权重，--names 在全部张量中选择；请只给其中一个",
    ),
    "cli.trace.no_head": ("there is no head {head}; the last is {last}", "没有第 {head} 头；最后一个是 {last}"),
    "cli.trace.no_block": ("there is no {name}; the last block is {last}", "没有 {name}；最后一个块是 {last}"),
    "cli.trace.kind": ("this model has no {value} to show; it has {known}", "该模型没有 {value}；可选 {known}"),
    "cli.trace.no_position": (
        "{reason}; count from 0, or from the end with -1",
        "{reason}；从 0 数起，或用 -1 从末尾数起",
    ),
    "cli.trace.no_font": (
        "[no font of this machine has all these signs, some labels are boxes; an SVG has them: --svg]",
        "[本机没有含全部字符的字体，部分标签显示为方框；SVG 不受影响：--svg]",
    ),
    "cli.trace.no_folder": (
        "{path} cannot be written: there is no folder {folder}; make it first",
        "无法写入 {path}：没有文件夹 {folder}；请先创建",
    ),
}
