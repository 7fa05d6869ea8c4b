"""What a model makes of its data while it is trained: a few words, an answer, guesses."""

from __future__ import annotations

from torch import Tensor

from clearhead.formats.load import Loaded
from clearhead.generation.generate import generate
from clearhead.messages import say
from clearhead.models.config import DecoderConfig
from clearhead.models.config_encoders import EncoderConfig, EncoderDecoderConfig
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.ops.loss import IGNORED
from clearhead.training.asked import Data
from clearhead.training.conversation_data import ConversationData
from clearhead.training.fit import evaluating
from clearhead.training.pair_data import PairData
from clearhead.training.plan import Plan
from clearhead.training.run import Training
from clearhead.training.tasks import HiddenTokens
from clearhead.training.text_data import TextData

TOKENS = 100
WINDOW = 24
"""How many tokens of a text with hidden ones are shown."""


def sampled(training: Training, plan: Plan) -> str:
    """What the model makes of its data as it is now; the mode it is in stays, and no random number of the training is used."""
    model, run = training.model, plan.run
    assert isinstance(model, Decoder | Encoder | EncoderDecoder)
    assert isinstance(run.model, DecoderConfig | EncoderConfig | EncoderDecoderConfig)
    with evaluating(model):
        loaded = Loaded(model, run.tokenizer, run.model, run.path, run.chat_template(), ends=run.ends)
        return sample(loaded, plan.data)


def sample(loaded: Loaded, data: Data) -> str:
    """What the model makes of its data, shown to a reader.

    Args:
        loaded: the model as it is now, in evaluation mode.
        data: what it learns from.
    """
    if isinstance(data, PairData | ConversationData):
        asked = data.example.source if isinstance(data, PairData) else data.example.prompt
        answer = generate(loaded, asked, max_tokens=TOKENS, temperature=0).text
        return say("cli.train.answer", source=data.example.source, answer=answer, target=data.example.target)
    if isinstance(data.task, HiddenTokens):
        return _guesses(loaded, data)
    # From a line break on, or as a document begins.
    prompt = "\n" if loaded.tokenizer.begin is None else ""
    return generate(loaded, prompt, max_tokens=TOKENS, temperature=0.8, seed=0).text


def _guesses(loaded: Loaded, data: TextData) -> str:
    """The first text of the validation data; in place of each hidden token the guess, and what was right if it is wrong."""
    batch = next(iter(data.objective(loaded.config, batch=1, seed=0).validation()))
    device = next(loaded.model.parameters()).device
    inputs, targets = batch.inputs[:1], batch.targets[0]
    logits: Tensor = loaded.model(inputs.to(device), real=batch.real[:1].to(device))
    shown = loaded.tokenizer.pieces(inputs[0, :WINDOW].tolist())
    guesses = loaded.tokenizer.pieces(logits[0, :WINDOW].argmax(-1).tolist())
    for place, target in enumerate(targets[:WINDOW].tolist()):
        if target != IGNORED:
            (right,), guess = loaded.tokenizer.pieces([target]), guesses[place]
            shown[place] = f"[{guess}]" if guess == right else f"[{guess}≠{right}]"
    return "".join(shown).replace("\n", "\\n")
