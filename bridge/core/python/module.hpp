// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

namespace bridge {

// Defines plan_nodes, its result types and its codes.
void define_plan_nodes(nanobind::module_ &m);

// Defines Book, its result types and its codes.
void define_book(nanobind::module_ &m);

// Defines Alarm and ClockAlarm; must precede the functions that take one.
void define_alarm(nanobind::module_ &m);

// Defines search_orders, its result types and its codes.
void define_search_orders(nanobind::module_ &m);

// Defines Tree and HopMetric.
void define_tree(nanobind::module_ &m);

// Defines judge and its codes.
void define_judge(nanobind::module_ &m);

// Defines RequestTable and its result types.
void define_requests(nanobind::module_ &m);

// Defines choose_widths and its result.
void define_corridor(nanobind::module_ &m);

// Defines RepairNetwork.
void define_neural(nanobind::module_ &m);

// Defines group_numbers and group_objects.
void define_grouping(nanobind::module_ &m);

// Defines match_ids.
void define_ids(nanobind::module_ &m);

// Defines read_status_lists.
void define_status_lists(nanobind::module_ &m);

// Defines write_announcements; must follow HostlistFolder.
void define_announcements(nanobind::module_ &m);

} // namespace bridge
