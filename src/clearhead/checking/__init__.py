"""Proving: probes that a wrong model cannot pass, each showing that it would have seen the fault.

What a test or a notebook asks is fetched on first use, so that the command line does not wait for torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clearhead._lazy import lazily

if TYPE_CHECKING:
    from clearhead.checking.accumulating import check_accumulation as check_accumulation
    from clearhead.checking.asserts import assert_batch_independent as assert_batch_independent
    from clearhead.checking.asserts import assert_cache_consistent as assert_cache_consistent
    from clearhead.checking.asserts import assert_causal as assert_causal
    from clearhead.checking.asserts import assert_padding_invariant as assert_padding_invariant
    from clearhead.checking.asserts import assert_rounding_only as assert_rounding_only
    from clearhead.checking.asserts import assert_same as assert_same
    from clearhead.checking.resuming import check_resume as check_resume
    from clearhead.checking.speculating import check_speculative as check_speculative
    from clearhead.checking.state_dicts import check_state_dict as check_state_dict

__getattr__ = lazily(
    __name__,
    {
        "assert_batch_independent": "clearhead.checking.asserts",
        "assert_cache_consistent": "clearhead.checking.asserts",
        "assert_causal": "clearhead.checking.asserts",
        "assert_padding_invariant": "clearhead.checking.asserts",
        "assert_rounding_only": "clearhead.checking.asserts",
        "assert_same": "clearhead.checking.asserts",
        "check_accumulation": "clearhead.checking.accumulating",
        "check_resume": "clearhead.checking.resuming",
        "check_speculative": "clearhead.checking.speculating",
        "check_state_dict": "clearhead.checking.state_dicts",
    },
)
