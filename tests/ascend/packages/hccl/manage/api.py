# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Names that MindSpore imports and does not call in a cluster that msrun starts."""


def _unused(*_):
    raise NotImplementedError("this function of hccl is not simulated")


create_group = destroy_group = get_rank_size = get_rank_id = get_local_rank_id = (
    get_local_rank_size
) = _unused
get_world_rank_from_group_rank = get_group_rank_from_world_rank = _unused
