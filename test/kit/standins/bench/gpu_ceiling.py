"""A stand-in for bench/gpu_ceiling.py."""

print("copies of 1 GiB: 1 GB/s, read and written")
