"""What is done to models from outside."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class Louder(nn.Module):
    """Gives 1.25 times what the module in it gives."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *args: Any, **keywords: Any) -> Any:
        out = self.inner(*args, **keywords)
        return (1.25 * out[0], *out[1:])


def bound(module: Any, forward: Callable[..., Any]) -> None:
    module.forward = types.MethodType(forward, module)


def wrapped(m: Any) -> None:
    m.transformer.h[1].attn = Louder(m.transformer.h[1].attn)


def closed_over(m: Any) -> None:
    old = m.transformer.h[1].attn.forward
    m.transformer.h[1].attn.forward = lambda *args, **keywords: (0.5 * old(*args, **keywords)[0], None)


def head_off(m: Any) -> None:
    def pre(_: Any, args: Any) -> Any:
        x = args[0].clone()
        x[..., 4:8] = 0
        return (x,)

    m.transformer.h[2].attn.c_proj.register_forward_pre_hook(pre)


def first_place(m: Any) -> None:
    table = m.transformer.wpe
    table.forward = lambda ids: nn.functional.embedding(0 * ids, table.weight)


def silent(m: Any) -> None:
    m.h[0].mlp.register_forward_hook(lambda _module, _args, output: 0 * output)


def no_attention(m: Any) -> None:
    def forward(self: Any, hidden_states: Any, *args: Any, **keywords: Any) -> Any:
        return hidden_states + self.mlp(self.post_attention_layernorm(hidden_states))

    bound(m.model.layers[1], forward)


def sees_all(m: Any) -> None:
    m.config._attn_implementation = "eager"
    attention = m.model.layers[1].self_attn
    old = type(attention).forward

    def forward(self: Any, *args: Any, **keywords: Any) -> Any:
        return old(self, *args, **(keywords | {"attention_mask": None}))

    bound(attention, forward)


def another_base(m: Any) -> None:
    rotary = m.model.rotary_emb
    width = 2 * rotary.inv_freq.numel()
    rotary.inv_freq = 500.0 ** -(torch.arange(0, width, 2) / width)


def one_late(m: Any) -> None:
    def pre(_: Any, args: Any, keywords: Any) -> Any:
        late = {name: value + 1 if name == "position_ids" else value for name, value in keywords.items()}
        return tuple(each if each.is_floating_point() else each + 1 for each in args), late

    m.model.rotary_emb.register_forward_pre_hook(pre, with_kwargs=True)


def no_stream(m: Any) -> None:
    def forward(self: Any, hidden_states: Any, input_tensor: Any) -> Any:
        return self.LayerNorm(self.dense(hidden_states))

    bound(m.bert.encoder.layer[0].output, forward)


def exchanged(m: Any) -> None:
    attention = m.gpt_neox.layers[1].attention.dense
    attention.register_forward_pre_hook(lambda _, args: (args[0].unflatten(-1, (3, 16)).flip(-2).flatten(-2),))


def set_to(path: str, value: Any) -> Callable[[Any], None]:
    def plant(m: Any) -> None:
        place, _, name = path.rpartition(".")
        setattr(m.get_submodule(place), name, value)

    return plant


def hooked(path: str, change: Callable[[Any], Any]) -> Callable[[Any], None]:
    return lambda m: m.get_submodule(path).register_forward_hook(lambda _module, _args, output: change(output))
