"""Messages said by the card that closes a training: key -> (English, Chinese)."""

MESSAGES: dict[str, tuple[str, str]] = {
    "closing.title": ("Is my loss normal? (nats per token)", "我的损失正常吗？（奈特/token）"),
    "closing.title_hidden": (
        "Is my loss normal? (nats per hidden token)",
        "我的损失正常吗？（奈特/遮住的 token）",
    ),
    "closing.title_answers": (
        "Is my loss normal? (nats per token of the answers)",
        "我的损失正常吗？（奈特/回答的 token）",
    ),
    "closing.level.uniform": ("guessing, every token alike (ln V)", "随机猜测，每个 token 一样（ln V）"),
    "closing.level.unigram": ("a table of single tokens (unigram)", "单个 token 的统计表（一元）"),
    "closing.level.bigram": ("a table of token pairs (bigram)", "相邻 token 对的统计表（二元）"),
    "closing.level.entropy": ("the entropy of this text: nothing is below", "此文本的熵：无法更低"),
    "closing.row.model": ("this model (validation loss, step {step})", "本模型（验证损失，第 {step} 步）"),
    "closing.row.last": ("validation loss at the end, step {step}", "结束时的验证损失，第 {step} 步"),
    "closing.row.train": ("training loss at the end", "结束时的训练损失"),
    "closing.row.gap": ("gap: validation - training", "差距：验证 - 训练"),
    "closing.row.perplexity": ("perplexity", "困惑度"),
    "closing.row.bits": ("bits per byte", "每字节比特数"),
    "closing.row.exact_match": (
        "pairs not trained on, answered wholly right",
        "未参与训练的数据，完全答对",
    ),
    "closing.row.answers_right": (
        "answers wholly right, in {count} conversations",
        "完全答对的回答，共 {count} 段对话",
    ),
    "closing.of": ("{right} of {count}", "{count} 中的 {right}"),
    "closing.row.tokens": ("tokens learnt from ({epochs} times the data)", "学习的 token 数（数据的 {epochs} 遍）"),
    "closing.row.time": ("time of all updates, {speed} tokens/s", "全部更新用时，{speed} token/秒"),
    "closing.impossible": (
        "Impossible: {loss} is below {entropy}, the entropy of this text. Validation text is among what is trained on, or each"
        " token sees itself (targets not moved by one); trust no number before that is mended.",
        "不可能：{loss} 低于此文本的熵 {entropy}。验证文本混进了训练文本，或每个 token 看得到自己（目标没有错开一位）；"
        "修好之前，任何数字都不可信。",
    ),
    "closing.too_good": (
        "Suspicious: {loss} is less than a twentieth of what a table of token pairs has ({bigram}). Either the text repeats"
        " itself word for word, or each token sees itself (targets not moved by one).",
        "可疑：{loss} 不到二元统计表（{bigram}）的二十分之一。要么文本一字不差地重复自己，"
        "要么每个 token 看得到自己（目标没有错开一位）。",
    ),
    "closing.broken": (
        "{loss} is not below ln V = {uniform}: after {steps} updates the model is no better than guessing. The learning rate is"
        " wrong, or the model is.",
        "{loss} 不低于 ln V = {uniform}：{steps} 次更新之后，模型不比随机猜测好。不是学习率有误，就是模型有误。",
    ),
    "closing.no_number": (
        "No evaluation gave a number: the weights are no numbers any more; start anew with --lr {lr}.",
        "没有一次评估得到数值：权重已不是数了；请用 --lr {lr} 重新开始。",
    ),
    "closing.begun": (
        "{loss} is not below ln V = {uniform} yet: {steps} updates are a beginning.",
        "{loss} 还不低于 ln V = {uniform}：{steps} 次更新只是开始。",
    ),
    "closing.guessing": (
        "{loss} is below guessing, but above {unigram}: the model does not know yet how often each token occurs.",
        "{loss} 好于随机猜测，但高于 {unigram}：模型还不知道各 token 出现的频率。",
    ),
    "closing.unigram": (
        "{loss} is what a table of single tokens has ({unigram}): the model uses nothing of what stands around a token yet.",
        "{loss} 相当于单个 token 的统计表（{unigram}）：模型还没有利用上下文。",
    ),
    "closing.between": (
        "{loss} is between a table of single tokens ({unigram}) and one of token pairs ({bigram}): the model uses a little of"
        " the context.",
        "{loss} 介于单个 token 的统计表（{unigram}）与二元统计表（{bigram}）之间：模型只利用了一点上下文。",
    ),
    "closing.beyond": (
        "{loss} is {below} better than a table of token pairs: the model uses more of the context than one token.",
        "{loss} 比二元统计表低 {below}：模型利用的上下文不止一个 token。",
    ),
    "closing.beyond_single": (
        "{loss} is {below} better than a table of single tokens: the model uses what stands around a token.",
        "{loss} 比单个 token 的统计表低 {below}：模型利用了 token 周围的内容。",
    ),
    "closing.near": (
        "{loss} is only {above} above the entropy, the best that a reader of the whole text can reach: little is left to learn.",
        "{loss} 只比熵高 {above}，而熵是读过全文的读者所能达到的最好值：可学的已所剩无几。",
    ),
    "closing.learnt": (
        "{loss} is {below} better than guessing.",
        "{loss} 比随机猜测低 {below}。",
    ),
    "closing.nonfinite": (
        "{count} of {steps} updates had a loss or a gradient that is no number: the learning rate is too high for these numbers;"
        " start anew with --lr {lr}.",
        "{steps} 次更新中有 {count} 次的损失或梯度不是数：学习率对这种精度太高；请用 --lr {lr} 重新开始。",
    ),
    "closing.climbed": (
        "Learning rate too high: the training loss climbed from {first} to {highest}; start anew with --lr {lr}.",
        "学习率太高：训练损失从 {first} 升到过 {highest}；请用 --lr {lr} 重新开始。",
    ),
    "closing.diverged": (
        "Learning rate too high: the training loss had been at {lowest} and ends at {last}; start anew with --lr {lr}.",
        "学习率太高：训练损失曾到 {lowest}，结束时却是 {last}；请用 --lr {lr} 重新开始。",
    ),
    "closing.jumps": (
        "Learning rate too high: the training loss leapt up {count} times, first at step {step}; start anew with --lr {lr} or a"
        " larger --batch.",
        "学习率太高：训练损失跳升了 {count} 次，第一次在第 {step} 步；请用 --lr {lr} 或更大的 --batch 重新开始。",
    ),
    "closing.norms": (
        "Learning rate too high: {share} of the gradients are more than {times} times what --clip {clip} lets through (median"
        " norm {norm}); start anew with --lr {lr}.",
        "学习率太高：{share} 的梯度超过 --clip {clip} 所允许的 {times} 倍（范数中位数 {norm}）；请用 --lr {lr} 重新开始。",
    ),
    "closing.rate": (
        "Learning rate too high: the loss is no better than that, and {lr} is far above {usual}, the usual one for this width;"
        " start anew with --lr {usual}.",
        "学习率太高：损失没有更好，而 {lr} 远高于此宽度常用的 {usual}；请用 --lr {usual} 重新开始。",
    ),
    "closing.lr_low": (
        "Learning rate too low: the loss still falls evenly, and {lr} is far below {usual}, the usual one for this width; start"
        " anew with --lr {usual}.",
        "学习率太低：损失仍在均匀下降，而 {lr} 远低于此宽度常用的 {usual}；请用 --lr {usual} 重新开始。",
    ),
    "closing.unfinished": (
        "Not finished: the loss still falls. Twice the steps would bring about {gain} more; go on with --resume --steps"
        " {more}.",
        "尚未训练完：损失仍在下降。步数加倍大约还能再降 {gain}；请用 --resume --steps {more} 继续。",
    ),
    "closing.overfitting": (
        "Overfitting: since step {step} the validation loss has risen by {rise}, to {last}, while the training loss fell by"
        " {fall}: what came after was learnt by heart. `generate` uses the checkpoint of step {step}.",
        "过拟合：自第 {step} 步起，验证损失升了 {rise}，到 {last}，而训练损失降了 {fall}：之后学到的只是死记硬背。"
        "`generate` 使用第 {step} 步的检查点。",
    ),
    "closing.gap": (
        "Learnt by heart in part: the training loss is {gap} below the validation loss.",
        "部分是死记硬背：训练损失比验证损失低 {gap}。",
    ),
    "closing.add_dropout": (
        "Against it: more text, or start anew with --model.dropout {dropout}.",
        "对策：更多文本，或用 --model.dropout {dropout} 重新开始。",
    ),
    "closing.add_text": (
        "Against it: more text, or fewer --steps.",
        "对策：更多文本，或更少的 --steps。",
    ),
    "closing.little_data": (
        "Too little data: all of it was read {epochs} times, more than {most}; give more, or stop at --steps {steps}.",
        "数据太少：全部数据读了 {epochs} 遍，多于 {most} 遍；请提供更多数据，或以 --steps {steps} 结束。",
    ),
    "closing.easier": (
        "The validation loss is {gap} below the training loss, more than dropout explains: the validation data is easier than"
        " the training data, the two are swapped, or one is part of the other; look at both.",
        "验证损失比训练损失低 {gap}，dropout 解释不了这么多：验证数据比训练数据容易，两者弄反了，或互有重叠；请检查两者。",
    ),
    "closing.go_on": (
        "Go on with --resume --steps {more}.",
        "请用 --resume --steps {more} 继续。",
    ),
    "closing.another_rate": (
        "The loss stands still: start anew with --lr {lr}.",
        "损失停滞不前：请用 --lr {lr} 重新开始。",
    ),
    "closing.healthy": (
        "The course is healthy: no jumps, no overfitting; twice the steps would bring about {gain} more.",
        "训练过程健康：没有跳升，没有过拟合；步数加倍大约还能再降 {gain}。",
    ),
}
