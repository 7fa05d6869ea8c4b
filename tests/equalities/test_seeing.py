"""Seeing: weights of fused runs, logits as sums, patches that carry a whole run over, nothing left behind."""

from __future__ import annotations

from dataclasses import replace

import torch

from clearhead.models import choices as c
from clearhead.tracing import Chain, Edit, Editor, Recorder, direct_logit_attribution, patch, zero
from tests.equalities import faults_seeing as s
from tests.equalities.registry import claim, close
from tests.equalities.variants import VARIANTS, ids_of, model_of

PLAIN = [name for name, config in VARIANTS.items() if config.softcap is None and not config.sinks]
SUMS = [name for name, config in VARIANTS.items() if not isinstance(config.block, c.PostNorm)]


@claim(
    "Scores and weights of a run that kept none, computed again = those of the definition, and what they mix = what ran",
    "未保留权重的运行，重算出的得分与权重 = 定义给出的；其混合结果 = 实际运行的结果",
    over=PLAIN,
    faults={s.keys_tiled: "rotary, fused", s.mask_forgotten: "learned"},
)
@torch.no_grad()
def test_weights_are_seen_again(variant: str) -> None:
    config = VARIANTS[variant]
    shown = Recorder()
    model_of(replace(config, kernel=c.Visible()))(ids_of(), tap=shown)
    for kernel in (c.Fused(), c.Blockwise(block=4)):
        again = Recorder()
        model_of(replace(config, kernel=kernel))(ids_of(), tap=again)
        for name, tensor in shown.tensors.items():
            close(again.tensors[name], tensor)
        close(torch.stack(list(again.differences.values())), torch.zeros(len(again.differences), dtype=torch.float64))


@claim(
    "What embedding, positions, heads, feed-forward parts and biases add to a logit sums to the logit, to 1e-10",
    "嵌入、位置、各头、前馈与各偏置对一个 logit 的贡献之和 = 该 logit，误差不超过 1e-10",
    over=SUMS,
    faults={s.scale_left_out: "learned"},
)
def test_a_logit_is_the_sum_of_its_parts(variant: str) -> None:
    model, ids = model_of(variant), ids_of(1)[0].tolist()
    for position, token, versus in ((-1, None, None), (4, 2, 7)):
        found = direct_logit_attribution(model, ids, position, token, versus)
        close(found.values.sum(), torch.tensor(found.logit, dtype=torch.float64), 1e-10)


@claim(
    "A run with the tensors of another patched in = the other run from there on; the next run is untouched by any edit",
    "把另一次运行的张量换入 = 从那里起就是另一次运行；任何修改都不影响下一次运行",
    over=VARIANTS,
    faults={s.edit_stays: "learned"},
)
@torch.no_grad()
def test_a_patch_carries_a_run_over(variant: str) -> None:
    model, ids = model_of(variant), ids_of()
    plain, other, seen = Recorder(), Recorder(), Recorder()
    model(ids, tap=plain)
    kept = {name: tensor.clone() for name, tensor in plain.tensors.items()}
    model((ids + 1) % 11, tap=other)
    close(model(ids, tap=Chain(Editor(Edit("input", patch(other.tensors))), seen)), other.tensors["logits"])
    model(ids, tap=Chain(plain, Editor(Edit("*.feedforward.output", zero))))
    for name, tensor in kept.items():
        if name.startswith(("embedding", "input", "blocks.0.attention")):
            close(plain.tensors[name], tensor)
    changed = Recorder()
    model(ids, tap=Chain(changed, Editor(Edit("blocks.0.feedforward.output", zero))))
    close(changed.tensors["blocks.0.feedforward.output"], kept["blocks.0.feedforward.output"])
