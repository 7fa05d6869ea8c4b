"""The encoder-decoder: one sequence is read whole, another is written token by token and asks the first."""

from __future__ import annotations

from torch import Tensor, nn

from clearhead.layers.cross_block import PostNormCrossBlock, SequentialCrossBlock
from clearhead.layers.memory import CrossStore, Memory
from clearhead.layers.store import NO_STORE, as_real
from clearhead.messages import UserError, say
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.ops.masks import EVERYTHING, Allowed, Mask, Padding
from clearhead.ops.tap import NO_TAP, Tap


class EncoderDecoder(nn.Module):
    """logits = decoder(target, asking encoder(source)): the original Transformer, T5, BART.

    The source is read once. To write with a cache, keep what `remember` gives and call the decoder:

        memory = model.remember(source)
        store = memory.beside(GrowingStore(model.decoder))
        logits = model.decoder(target[:, :4], store=store)
        logits = model.decoder(target[:, 4:5], store=store)

    Args:
        encoder: reads the source; its head gives the features as they are.
        decoder: writes the target; its blocks have cross-attention.

    Names for a tap: `encoder.*`, `decoder.*`.

    Source: Vaswani et al. 2017 §3.1; transformer-notes §13.
    """

    def __init__(self, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        *,
        source_real: Tensor | None = None,
        target_real: Tensor | None = None,
        tap: Tap = NO_TAP,
    ) -> Tensor:
        """Source ids (B,M), target ids (B,T) -> logits (B,T,V); position t scores the target's token at t + 1.

        Args:
            source: integers below the source's vocabulary.
            target: integers below V, beginning with whatever the model was trained to begin with.
            source_real: (B,M) booleans, False for padding.
            target_real: (B,T) the same for the target.
            tap: sees, or replaces, the named tensors.

        Raises:
            UserError: if a sequence exceeds its context or an id is outside its vocabulary, with both numbers.
        """
        memory = self.remember(source, real=source_real, tap=tap)
        logits: Tensor = self.decoder(target, real=target_real, store=memory, tap=tap.within("decoder"))
        return logits

    def features(
        self,
        source: Tensor,
        target: Tensor,
        *,
        source_real: Tensor | None = None,
        target_real: Tensor | None = None,
        tap: Tap = NO_TAP,
    ) -> Tensor:
        """The same up to what the decoder's head reads, (B,T,D); arguments and errors as in `forward`."""
        memory = self.remember(source, real=source_real, tap=tap)
        return self.decoder.features(target, real=target_real, store=memory, tap=tap.within("decoder"))

    def remember(self, source: Tensor, *, real: Tensor | None = None, tap: Tap = NO_TAP) -> CrossStore:
        """Read the source (B,M) once, and keep the keys and values that each block of the decoder will ask.

        Args:
            source: ids.
            real: (B,M) booleans, False for padding, which no query will see.
            tap: sees the encoder's tensors, and `decoder.blocks.*.cross_attention.k` and `.v`.

        Raises:
            UserError: if the source exceeds its context or an id is outside its vocabulary, with both numbers.
        """
        if source.shape[-1] > self.encoder.context:
            # Said here: the encoder does not know that what it reads is a source, nor which option makes room for it.
            raise UserError(say("models.source_too_long", length=source.shape[-1], context=self.encoder.context))
        features = self.encoder(source, real=real, tap=tap.within("encoder"))
        visible: Mask = EVERYTHING if real is None else Allowed(Padding(as_real(real, source.device)).matrix())
        memories = []
        for index, block in enumerate(self.decoder.blocks):
            assert isinstance(block, SequentialCrossBlock | PostNormCrossBlock)
            k, v = block.cross_attention.keys_values(
                features, tap=tap.within(f"decoder.blocks.{index}.cross_attention")
            )
            memories.append(Memory(k, v, visible))
        # Named, not left to the default: the compiler cannot take a default that is an object.
        return CrossStore(memories, NO_STORE)
