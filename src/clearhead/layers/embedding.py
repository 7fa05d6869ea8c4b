"""From ids to vectors."""

from __future__ import annotations

from torch import Tensor, nn

from clearhead.messages import UserError, say


class TokenEmbedding(nn.Embedding):
    """Row i of a trained table E (V,D) for token id i.

    Source: transformer-notes §3.
    """

    def forward(self, ids: Tensor) -> Tensor:
        """(B,T) -> (B,T,D).

        Raises:
            UserError: if an id is outside 0..V-1, with both numbers (on the CPU; other devices fail by themselves).
        """
        try:
            return super().forward(ids)
        except IndexError:
            wrong = next(i for i in ids.flatten().tolist() if not 0 <= i < self.num_embeddings)
            raise UserError(say("models.id_outside", id=wrong, vocab=self.num_embeddings)) from None


class ScaledTokenEmbedding(TokenEmbedding):
    """√D times the row of a token, as in the original Transformer and in Gemma.

    Source: Vaswani et al. 2017 §3.4.
    """

    def forward(self, ids: Tensor) -> Tensor:
        """(B,T) -> (B,T,D); raises as `TokenEmbedding`."""
        scale: float = self.embedding_dim**0.5
        return super().forward(ids) * scale
