// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace bridge {

// Adds plan_nodes, what it returns, and its codes.
void define_plan_nodes(nanobind::module_ &m);

// Adds Book, what it returns, and its codes.
void define_book(nanobind::module_ &m);

// Adds Alarm and ClockAlarm; before whoever takes one.
void define_alarm(nanobind::module_ &m);

// Adds search_orders, what it returns, and its codes.
void define_search_orders(nanobind::module_ &m);

// Adds UsageVector.
void define_usage(nanobind::module_ &m);

// Adds Tree and HopMetric.
void define_tree(nanobind::module_ &m);

// Adds judge and its codes.
void define_judge(nanobind::module_ &m);

// Adds RequestTable and what it returns.
void define_requests(nanobind::module_ &m);

// Adds RepairNetwork.
void define_neural(nanobind::module_ &m);

} // namespace bridge
