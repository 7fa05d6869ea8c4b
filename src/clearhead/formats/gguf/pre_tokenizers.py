"""The names that GGUF files have for ways of splitting text, and the ways."""

from __future__ import annotations

from clearhead.formats.library_files import GPT2, LLAMA3, QWEN2, SMOLLM, TEKKEN, Splitting

__all__ = ["OPENED", "PRE_TOKENIZERS"]

PRE_TOKENIZERS: dict[str, Splitting] = {
    "default": GPT2,
    "gpt-2": GPT2,
    "smollm": SMOLLM,
    "starcoder": SMOLLM,
    "refact": SMOLLM,
    "qwen2": QWEN2,
    "deepseek-r1-qwen": QWEN2,
    "llama-bpe": LLAMA3,
    "llama3": LLAMA3,
    "llama-v3": LLAMA3,
    "tekken": TEKKEN,
}
"""By `tokenizer.ggml.pre`. A name is given to the splitting of the model's own `tokenizer.json`, which is followed here:
llama.cpp and `transformers` leave Qwen2's NFC out, and `transformers` SmolLM's digits and the whole words of Llama 3, too."""

OPENED = {"llama-bpe", "llama3", "llama-v3", "tekken"}
"""Those whose texts begin with the first mark, if the file does not say."""
