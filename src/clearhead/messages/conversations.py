"""Messages said by `conversations`: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "generation.template_rewrites": (
        "chat_template.jinja writes an answer, or what stood before it, otherwise once the answer stands there, so answers"
        " cannot be told apart and learnt; take another template",
        "一旦写入回答，chat_template.jinja 就会改写该回答或其之前的内容，因而无法分辨并学习回答；请换一个模板",
    ),
    "training.conversation_no_answer": (
        "the assistant says nothing in this conversation; give it an answer",
        "这段对话中 assistant 什么也没有说；请补上回答",
    ),
    "training.conversation_place": (
        "line {line} of {path}: {reason}",
        "{path} 第 {line} 行：{reason}",
    ),
    "training.conversation_one_question": (
        "{count} conversations begin with one and the same question; validation needs another one, so give more",
        "全部 {count} 段对话都以同一个问题开头；验证需要另一个问题，请给出更多对话",
    ),
    "training.conversation_too_long": (
        "the longest conversation, in line {line} of {path}, needs {longest} positions, and the context is {context};"
        " give a longer --model.context, or shorten the conversation",
        "最长的对话在 {path} 第 {line} 行，需要 {longest} 个位置，而上下文只有 {context}；"
        "请调大 --model.context，或缩短这段对话",
    ),
    "training.conversation_no_end": (
        "no mark ends the answers, as the template writes none that the tokenizer knows: the model will not learn where to"
        " end, and --stop or --max-tokens must end what it writes",
        "回答没有结束标记，因为模板没有写出分词器认识的结束标记：模型学不会在哪里结束，须由 --stop 或 --max-tokens 结束它的输出",
    ),
}
