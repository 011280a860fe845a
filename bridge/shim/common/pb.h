// SPDX-License-Identifier: GPL-2.0-or-later
// Short names for the generated messages.
#ifndef BRIDGE_PB_H
#define BRIDGE_PB_H

#include "schedbridge/v1/scheduler.pb-c.h"

typedef Schedbridge__V1__HelloRequest pb_hello_request_t;
typedef Schedbridge__V1__HelloReply pb_hello_reply_t;
typedef Schedbridge__V1__CycleRequest pb_cycle_request_t;
typedef Schedbridge__V1__CycleReply pb_cycle_reply_t;
typedef Schedbridge__V1__Job pb_job_t;
typedef Schedbridge__V1__Request pb_request_t;
typedef Schedbridge__V1__Malleable pb_malleable_t;
typedef Schedbridge__V1__Chunks pb_chunks_t;
typedef Schedbridge__V1__Allocation pb_allocation_t;
typedef Schedbridge__V1__NodeUse pb_node_use_t;
typedef Schedbridge__V1__Node pb_node_t;
typedef Schedbridge__V1__Gres pb_gres_t;
typedef Schedbridge__V1__LicenceUse pb_licence_use_t;
typedef Schedbridge__V1__Partition pb_partition_t;
typedef Schedbridge__V1__Partitions pb_partitions_t;
typedef Schedbridge__V1__Reservation pb_reservation_t;
typedef Schedbridge__V1__Reservations pb_reservations_t;
typedef Schedbridge__V1__Licence pb_licence_t;
typedef Schedbridge__V1__Licences pb_licences_t;
typedef Schedbridge__V1__ControllerStatus pb_status_t;
typedef Schedbridge__V1__Fate pb_decision_result_t;
typedef Schedbridge__V1__Decision pb_decision_t;
typedef Schedbridge__V1__Start pb_start_t;
typedef Schedbridge__V1__PlannedStart pb_planned_start_t;
typedef Schedbridge__V1__Pending pb_pending_t;
typedef Schedbridge__V1__Resize pb_resize_t;
typedef Schedbridge__V1__Progress pb_progress_t;
typedef Schedbridge__V1__Requeue pb_requeue_t;
typedef Schedbridge__V1__Extend pb_extend_t;
typedef Schedbridge__V1__Power pb_power_t;
typedef Schedbridge__V1__Reserve pb_reserve_t;
typedef Schedbridge__V1__Unreserve pb_unreserve_t;
typedef Schedbridge__V1__EndedJob pb_ended_job_t;
typedef Schedbridge__V1__Ending pb_ending_t;
typedef Schedbridge__V1__Outcome pb_outcome_t;
typedef Schedbridge__V1__Hold pb_hold_t;
typedef Schedbridge__V1__ReasonCode pb_reason_t;

#define PB(name) SCHEDBRIDGE__V1__##name

// A message in the arena, with its default values.
#define PB_NEW(arena, type, init_name)                                                             \
    ({                                                                                             \
        type *message_ = arena_take(arena, sizeof(type));                                          \
        schedbridge__v1__##init_name##__init(message_);                                            \
        message_;                                                                                  \
    })

#endif
