"""The simulated driver of gcx, which the package gcx uses for GCX_DRIVER=sim:..."""

_FOLDER = __file__.rpartition("/")[0]
#: The path of the simulated driver.
LIBRARY = f"{_FOLDER}/libgcx-sim.so"
#: A folder for LD_LIBRARY_PATH. Its libcuda.so.1 is the simulated driver.
LIBCUDA_FOLDER = f"{_FOLDER}/libcuda"
