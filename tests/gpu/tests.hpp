// The parts of the GPU suite.
#pragma once

// Names what is being checked, for the log of a run.
void section(const char* name);

void test_splits();
void test_clusters();
void test_queries();
// quick: fewer rounds, for running under compute-sanitizer.
void test_contexts(bool quick);
void test_captures(bool quick);
void test_leases(bool quick);
void test_graphs(bool quick);
// What graphs cost, printed; nothing of it is checked.
void graph_figures();
void test_ahead(bool quick);
// Last: it resets the device's primary context.
void test_resets();
void test_processes(const char* libgcx);
