"""Encoders: stacks of blocks in several styles, with ids or vectors; with a mistake or right."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from bench.checking.case import Case


class Layer(nn.Module):
    def __init__(self, d=32, h=4, pre=True):
        super().__init__()
        self.attn = nn.MultiheadAttention(d, h, batch_first=True)
        self.norm1, self.norm2, self.pre = nn.LayerNorm(d), nn.LayerNorm(d), pre
        self.ff = nn.Sequential(nn.Linear(d, 96), nn.GELU(), nn.Linear(96, d))

    def attend(self, x, drop):
        return self.attn(x, x, x, key_padding_mask=drop, need_weights=False)[0]

    def forward(self, x, drop=None):
        if self.pre:
            x = x + self.attend(self.norm1(x), drop)
            return x + self.ff(self.norm2(x))
        x = self.norm1(x + self.attend(x, drop))
        return self.norm2(x + self.ff(x))


class Stack(nn.Module):
    layer, pre, final = Layer, True, True

    def __init__(self, d_model=32, nhead=4, num_layers=2):
        super().__init__()
        self.layers = nn.ModuleList(self.layer(d_model, nhead, self.pre) for _ in range(num_layers))
        self.norm = nn.LayerNorm(d_model) if self.final else nn.Identity()

    def forward(self, x, key_padding_mask=None):
        for layer in self.layers:
            x = layer(x, key_padding_mask)
        return self.norm(x)


class PreStackRight(Stack):
    pass


class PostStackRight(Stack):
    pre, final = False, False


class NoFinalNorm(Stack):
    final = False


class StaleLayer(Layer):
    def forward(self, x, drop=None):
        u = x + self.attend(self.norm1(x), drop)
        return x + self.ff(self.norm2(u))


class StaleStack(Stack):
    layer = StaleLayer


class NoSkipLayer(Layer):
    def forward(self, x, drop=None):
        x = x + self.attend(self.norm1(x), drop)
        return self.ff(self.norm2(x))


class NoSkipStack(Stack):
    layer = NoSkipLayer


class FromNormLayer(Layer):
    def forward(self, x, drop=None):
        x = self.norm1(x)
        x = x + self.attend(x, drop)
        x = self.norm2(x)
        return x + self.ff(x)


class FromNormStack(Stack):
    layer = FromNormLayer


class LinearLayer(Layer):
    def __init__(self, d, h, pre):
        super().__init__(d, h, pre)
        self.ff = nn.Sequential(nn.Linear(d, 96), nn.Linear(96, d))


class LinearStack(Stack):
    layer = LinearLayer


class BertRight(nn.Module):
    """Ids in, learned positions, a norm of the embeddings, post-norm blocks."""

    def __init__(self, vocab_size=61, hidden_size=32, heads=4, layers=2, max_len=40):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab_size, hidden_size, padding_idx=0)
        self.position_embeddings = nn.Embedding(max_len, hidden_size)
        self.embedding_norm = nn.LayerNorm(hidden_size)
        self.layer = nn.ModuleList(Layer(hidden_size, heads, False) for _ in range(layers))

    def embed(self, input_ids):
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        return self.embedding_norm(self.word_embeddings(input_ids) + self.position_embeddings(places))

    def forward(self, input_ids, attention_mask=None):
        x = self.embed(input_ids)
        for layer in self.layer:
            x = layer(x, None if attention_mask is None else attention_mask == 0)
        return x


class BertForgetful(BertRight):
    def embed(self, input_ids):
        return self.embedding_norm(self.word_embeddings(input_ids))


class FunctionalRight(nn.Module):
    """One module, lists of parts, a loop; sinusoids and a factor before the first block."""

    def __init__(self, vocab=61, dim=32, heads=4, depth=2):
        super().__init__()
        self.emb, self.heads = nn.Embedding(vocab, dim), heads
        self.qkv = nn.ModuleList(nn.Linear(dim, 3 * dim) for _ in range(depth))
        self.out = nn.ModuleList(nn.Linear(dim, dim) for _ in range(depth))
        self.up = nn.ModuleList(nn.Linear(dim, 80) for _ in range(depth))
        self.down = nn.ModuleList(nn.Linear(80, dim) for _ in range(depth))
        self.n = nn.ModuleList(nn.LayerNorm(dim) for _ in range(2 * depth + 1))
        rate = torch.exp(-math.log(10000.0) * torch.arange(0, dim, 2) / dim)
        angle = torch.arange(64)[:, None] * rate
        self.register_buffer("pos", torch.stack([angle.sin(), angle.cos()], -1).flatten(1), persistent=False)

    def attend(self, i, x):
        B, T, D = x.shape
        q, k, v = self.qkv[i](x).view(B, T, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        return self.out[i](F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, T, D))

    def block(self, i, x):
        x = x + self.attend(i, self.n[2 * i](x))
        return x + self.down[i](F.gelu(self.up[i](self.n[2 * i + 1](x))))

    def forward(self, tokens):
        x = self.emb(tokens) * math.sqrt(self.emb.embedding_dim) + self.pos[: tokens.shape[1]]
        for i in range(len(self.qkv)):
            x = self.block(i, x)
        return self.n[-1](x)


class PositionsAgain(FunctionalRight):
    def block(self, i, x):
        return super().block(i, x if i == 0 else x + self.pos[: x.shape[1]])


class FunctionalStale(FunctionalRight):
    def block(self, i, x):
        u = x + self.attend(i, self.n[2 * i](x))
        return x + self.down[i](F.gelu(self.up[i](self.n[2 * i + 1](u))))


class FunctionalNoFinal(FunctionalRight):
    def forward(self, tokens):
        x = self.emb(tokens) * math.sqrt(self.emb.embedding_dim) + self.pos[: tokens.shape[1]]
        for i in range(len(self.qkv)):
            x = self.block(i, x)
        return x


class PositionedLayer(Layer):
    def __init__(self, d, h, pre):
        super().__init__(d, h, pre)
        self.pe = nn.Parameter(torch.randn(1, 64, d) * 0.1)

    def forward(self, x, drop=None):
        return super().forward(x + self.pe[:, : x.shape[1]], drop)


class PositionsInEachLayer(Stack):
    layer = PositionedLayer


class PositionsForgotten(Stack):
    def __init__(self, d_model=32, nhead=4, num_layers=2, max_len=50):
        super().__init__(d_model, nhead, num_layers)
        self.pos_emb = nn.Parameter(torch.zeros(1, max_len, d_model))

    def forward(self, x, key_padding_mask=None):
        _ = x + self.pos_emb[:, : x.shape[1]]
        return super().forward(x, key_padding_mask)


class VisionRight(nn.Module):
    """A first projection, positions that start at zero, a head."""

    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.proj, self.pos_embed = nn.Linear(dim, dim), nn.Parameter(torch.zeros(1, 64, dim))
        self.blocks = nn.Sequential(Layer(dim, heads), Layer(dim, heads))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, dim)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.proj(x) + self.pos_embed[:, : x.shape[1]])))


class TorchRight(nn.Module):
    def __init__(self, d_model=32, nhead=4):
        super().__init__()
        layer = nn.TransformerEncoderLayer(d_model, nhead, 64, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(d_model), enable_nested_tensor=False)

    def forward(self, src, src_key_padding_mask=None):
        return self.enc(src, src_key_padding_mask=src_key_padding_mask)


class TorchNoFinal(TorchRight):
    def __init__(self, d_model=32, nhead=4):
        super().__init__(d_model, nhead)
        self.enc.norm, self.head = None, nn.Linear(d_model, d_model)

    def forward(self, src, src_key_padding_mask=None):
        return self.head(super().forward(src, src_key_padding_mask))


class SameBlock(Stack):
    def __init__(self, d_model=32, nhead=4, num_layers=3):
        super().__init__(d_model, nhead, num_layers)
        self.layers = nn.ModuleList([Layer(d_model, nhead)] * num_layers)


class PythonList(Stack):
    def __init__(self, d_model=32, nhead=4, num_layers=2):
        nn.Module.__init__(self)
        self.norm = nn.LayerNorm(d_model)
        self.layers = [Layer(d_model, nhead) for _ in range(num_layers)]


FAULTS = {
    "norm.final-missing": ("NoFinalNorm", "FunctionalNoFinal", "TorchNoFinal"),
    "residual.stale": ("StaleStack", "FunctionalStale"),
    "residual.missing": ("NoSkipStack",),
    "residual.from-norm": ("FromNormStack",),
    "activation.missing": ("LinearStack",),
    "position.unused": ("BertForgetful", "PositionsForgotten"),
    "position.every-block": ("PositionsAgain", "PositionsInEachLayer"),
    "blocks.shared": ("SameBlock",),
    "parameter.unregistered": ("PythonList",),
}
RIGHT = ("PreStackRight", "PostStackRight", "BertRight", "FunctionalRight", "VisionRight", "TorchRight")
OTHERS = {"BertForgetful": ("parameter.unused",), "PositionsForgotten": ("parameter.unused",)}
CASES = [Case(n, "encoder", fault, OTHERS.get(n, ())) for fault, names in FAULTS.items() for n in names]
CASES += [Case(name, "encoder") for name in RIGHT]
