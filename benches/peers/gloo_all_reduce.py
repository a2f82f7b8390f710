"""The median time of torch's all_reduce over Gloo, as mpi_all_reduce.c: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT set."""
import sys
import time

import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
for size, iterations in zip(sys.argv[1::2], sys.argv[2::2]):
    x, times = torch.zeros(int(size) // 4), []
    for k in range(-(int(iterations) // 5) - 2, int(iterations)):
        dist.barrier()
        began = time.perf_counter()
        dist.all_reduce(x)
        if k >= 0:
            times.append((time.perf_counter() - began) * 1e6)
    if dist.get_rank() == 0:
        print(size, sorted(times)[len(times) // 2], flush=True)
dist.destroy_process_group()
