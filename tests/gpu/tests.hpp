// Declares the parts of the GPU suite.
#pragma once

// Prints the name of the next checks.
void section(const char* name);

void test_splits();
void test_clusters();
// quick runs fewer rounds, for compute-sanitizer.
void test_contexts(bool quick);
void test_captures(bool quick);
void test_leases(bool quick);
void test_graphs(bool quick);
void test_prepared(bool quick);
// Must run last, because it resets the device's primary context.
void test_resets();
void test_processes(const char* libgcx);
