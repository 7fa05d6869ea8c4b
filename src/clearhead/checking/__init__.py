"""Proving: probes that a wrong model cannot pass, each showing that it would have seen the fault.

The assertions for tests are fetched on first use, so that the command line does not wait for torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clearhead._lazy import lazily

if TYPE_CHECKING:
    from clearhead.checking.asserts import assert_batch_independent as assert_batch_independent
    from clearhead.checking.asserts import assert_cache_consistent as assert_cache_consistent
    from clearhead.checking.asserts import assert_causal as assert_causal
    from clearhead.checking.asserts import assert_padding_invariant as assert_padding_invariant
    from clearhead.checking.asserts import assert_rounding_only as assert_rounding_only

_ASSERTS = (
    "assert_batch_independent",
    "assert_cache_consistent",
    "assert_causal",
    "assert_padding_invariant",
    "assert_rounding_only",
)

__getattr__ = lazily(__name__, dict.fromkeys(_ASSERTS, "clearhead.checking.asserts"))
