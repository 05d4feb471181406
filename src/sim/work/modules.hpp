// Modules and libraries, as the functions of their kernels need them.
#pragma once

#include "sim/machine.hpp"

namespace gcx::sim {

Module& module_of(Machine& machine, CUmodule handle); // a library's as well
Module& library_of(Machine& machine, CUlibrary handle);

// The function of that name, made where it has not been asked for before; null: there is none.
Function* get_function(Machine& machine, Module& module, const std::string& name);

} // namespace gcx::sim
