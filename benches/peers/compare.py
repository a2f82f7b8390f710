#!/usr/bin/env python3
"""Unisono beside its peers on this machine, in the same minutes: rounds in turn, medians of the rounds, ratios.

    cargo build --release -p unisono-cli
    benches/peers/compare.py [--ranks 2,4] [--rounds 5] [--unisono target/release/unisono] [--mpi mpicc,mpirun]... [--python PYTHON]

--mpi names the compiler and the launcher of an Open MPI (default those of the path; may be given several times); --python
an interpreter that has torch, mlx or both. What is not there is left out, and said so.
"""
import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SIZES = [(4, 3000), (4096, 3000), (65536, 1500), (1 << 20, 200), (4 << 20, 60), (64 << 20, 7)]


def lines(text):
    return {int(a): float(b) for a, b in (line.split() for line in text.splitlines() if len(line.split()) == 2)}


def unisono(program, ranks):
    times = {}
    for size, iterations in SIZES:
        command = [program, "bench", "--ranks", str(ranks), "--bytes", str(size), "--iters", str(iterations),
                   "--warmup", str(iterations // 5 + 2), "--json"]
        row = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        times[size] = json.loads(row)["p50_us"]
    return times


def pairs(share=1):
    return [str(x) for size, iterations in SIZES for x in (size, max(5, iterations // share))]


def mpi(launcher, program, ranks):
    command = [launcher, "--allow-run-as-root", "--oversubscribe", "-np", str(ranks), "--mca", "btl", "tcp,self",
               "--mca", "btl_tcp_if_include", "lo", "--mca", "pml", "ob1", program, *pairs()]
    return lines(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def free_ports(n):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def python(interpreter, script, ranks):
    ports = free_ports(ranks)
    # They need milliseconds where the others need microseconds.
    arguments = pairs(20)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as hosts:
        json.dump([[f"127.0.0.1:{port}"] for port in ports], hosts)
        hosts.flush()
        children = []
        for rank in range(ranks):
            env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", GLOO_SOCKET_IFNAME="lo",
                       MASTER_PORT=str(ports[0]), MLX_RANK=str(rank), MLX_HOSTFILE=hosts.name)
            children.append(subprocess.Popen([interpreter, HERE / script, *arguments], env=env, text=True,
                                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
        try:
            outputs = [child.communicate(timeout=60)[0] for child in children]
        except subprocess.TimeoutExpired:
            for child in children:
                child.kill()
            return {}
    return lines(outputs[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--unisono", default="target/release/unisono")
    parser.add_argument("--mpi", action="append")
    parser.add_argument("--python", default=sys.executable)
    args = parser.parse_args()
    peers = {}
    with tempfile.TemporaryDirectory() as scratch:
        for number, pair in enumerate(args.mpi or ["mpicc,mpirun"]):
            compiler, launcher = pair.split(",")
            program = f"{scratch}/mpi{number}"
            try:
                subprocess.run([compiler, "-O2", "-o", program, HERE / "mpi_all_reduce.c"], check=True)
                name = subprocess.run([launcher, "--version"], capture_output=True, text=True).stdout.split()[3]
                peers[f"Open MPI {name}"] = lambda ranks, l=launcher, p=program: mpi(l, p, ranks)
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"left out: {pair}: {error}", file=sys.stderr)
        for name, module, script in [("Gloo (torch)", "torch", "gloo_all_reduce.py"), ("MLX ring", "mlx", "mlx_all_reduce.py")]:
            if subprocess.run([args.python, "-c", f"import {module}"], capture_output=True).returncode:
                print(f"left out: {name}: no module {module} in {args.python}", file=sys.stderr)
            else:
                peers[name] = lambda ranks, s=script: python(args.python, s, ranks)
        for ranks in map(int, args.ranks.split(",")):
            contenders = {"Unisono": lambda ranks: unisono(args.unisono, ranks), **peers}
            rounds = {name: [] for name in contenders}
            for _ in range(args.rounds):
                for name, run in contenders.items():
                    rounds[name].append(run(ranks))
            print(f"\n{ranks} ranks, all_reduce of f32 over TCP loopback, us, median of {args.rounds} rounds in turn\n")
            print("| |" + "|".join(f" {size} B " for size, _ in SIZES) + "|\n|---|" + "---|" * len(SIZES))
            medians = {}
            for name, found in rounds.items():
                for size, _ in SIZES:
                    values = [r[size] for r in found if size in r]
                    if values:
                        medians[name, size] = statistics.median(values)
                print(f"| {name} |" + "|".join(f" {medians.get((name, s), float('nan')):.1f} " for s, _ in SIZES) + "|")
            best = [min(medians[n, s] for n in peers if (n, s) in medians) for s, _ in SIZES]
            ratios = [medians["Unisono", s] / b for (s, _), b in zip(SIZES, best)]
            print("| **Unisono / best peer** |" + "|".join(f" {r:.2f} " for r in ratios) + "|", flush=True)


if __name__ == "__main__":
    main()
