/* The median time of MPI_Allreduce in place, f32 sum, a barrier before each call: mpi_all_reduce BYTES ITERATIONS ... */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; i + 1 < argc; i += 2) {
        long count = atol(argv[i]) / 4, iterations = atol(argv[i + 1]), warmup = iterations / 5 + 2;
        float *x = calloc(count, sizeof *x);
        double *time = malloc(iterations * sizeof *time);
        for (long k = -warmup; k < iterations; k++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double began = MPI_Wtime();
            MPI_Allreduce(MPI_IN_PLACE, x, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            if (k >= 0) time[k] = (MPI_Wtime() - began) * 1e6;
        }
        qsort(time, iterations, sizeof *time, by_size);
        if (rank == 0) printf("%ld %.3f\n", count * 4, time[iterations / 2]);
        fflush(stdout);
        free(x);
        free(time);
    }
    MPI_Finalize();
}
