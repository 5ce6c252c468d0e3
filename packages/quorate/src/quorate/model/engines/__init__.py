"""Where a pass runs: on threads, through JAX, on a cluster; one protocol, one factory."""
