"""The median time of MLX's all_sum over its ring of TCP, as mpi_all_reduce.c: MLX_RANK and MLX_HOSTFILE set."""
import sys
import time

import mlx.core as mx

group = mx.distributed.init(strict=True, backend="ring")
one = mx.zeros(1)
for size, iterations in zip(sys.argv[1::2], sys.argv[2::2]):
    x, times = mx.zeros(int(size) // 4), []
    mx.eval(x)
    for k in range(-(int(iterations) // 5) - 2, int(iterations)):
        mx.eval(mx.distributed.all_sum(one, stream=mx.cpu))
        began = time.perf_counter()
        mx.eval(mx.distributed.all_sum(x, stream=mx.cpu))
        if k >= 0:
            times.append((time.perf_counter() - began) * 1e6)
    if group.rank() == 0:
        print(size, sorted(times)[len(times) // 2], flush=True)
