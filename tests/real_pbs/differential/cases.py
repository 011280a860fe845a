# SPDX-License-Identifier: Apache-2.0
"""Kinds of jobs, each as a little program for a server of four vnodes of four CPUs and 8 GiB.

Steps, separated by `; `
    a: OPTIONS      submits job `a` as alice; `a@bob:` as bob; `a~3:` one that runs for 3 s
    qmgr LINE       changes the configuration; undone after the case
    offline n1      takes a vnode offline; undone after the case
    hold a, release a, delete a, rerun a, suspend a, resume a, run a
    alter a OPTIONS
    reserve OPTIONS pbs_rsub as alice; `reserve! OPTIONS` as the administrator
    begun           waits until the last reservation runs
    config LINE     changes a line of sched_config; undone after the case
    file NAME TEXT  writes another file of sched_priv, with `|` for line breaks; undone likewise
    settle          waits until nothing changes any more; also at the end of each case

n1 and n2 have rack=r1, n3 and n4 rack=r2; n3 is red and n4 is big; n2 has 100 GiB of scratch and
two GPUs; the server has three licences `lic`; `site` (a string), `apps` (a string_array) and `open`
(a boolean) belong to no vnode. The host n5 has two vnodes of two CPUs, n5[0] and n5[1], of the
queue vq.

In options and texts, `{a}` is the id of job a; `{R}` the queue of the last reservation; `{+600}`
the instant in 600 s as MM/DD/YYYY HH:MM, and `{@600}` its hour and minute as HHMM.
"""

ALL_FOUR = "z: -l select=4:ncpus=4 -l place=scatter; settle"
"""A job on all CPUs."""

CASES: dict[str, str] = {
    # ---- select
    "no request": "a:",
    "ncpus alone": "a: -l ncpus=3",
    "ncpus and mem": "a: -l ncpus=2 -l mem=1gb",
    "old nodes=": "a: -l nodes=2:ppn=2",
    "one chunk": "a: -l select=1:ncpus=2",
    "two equal chunks": "a: -l select=2:ncpus=2",
    "two kinds": "a: -l select=1:ncpus=4+2:ncpus=1",
    "three kinds": "a: -l select=1:ncpus=1+1:ncpus=2+1:ncpus=3",
    "a count alone": "a: -l select=3",
    "whole machine": "a: -l select=4:ncpus=4",
    "one CPU too many in a chunk": "a: -l select=1:ncpus=5",
    "one chunk too many": "a: -l select=5:ncpus=4",
    "seventeen small chunks": "a: -l select=17:ncpus=1",
    "memory": "a: -l select=1:ncpus=1:mem=8gb",
    "memory in kb": "a: -l select=1:ncpus=1:mem=3000001kb",
    "memory in bytes": "a: -l select=1:ncpus=1:mem=1000000b",
    "too much memory": "a: -l select=1:ncpus=1:mem=9gb",
    "two that share by memory": "a: -l select=1:ncpus=1:mem=5gb:vnode=n1; settle; "
    "b: -l select=1:ncpus=1:mem=5gb:vnode=n1",
    "no CPUs": "a: -l select=1:ncpus=0:mem=1gb",
    "mpiprocs": "a: -l select=2:ncpus=2:mpiprocs=2",
    "ompthreads": "a: -l select=1:ncpus=4:ompthreads=4",
    "host": "a: -l select=1:ncpus=1:host=n3",
    "vnode": "a: -l select=1:ncpus=1:vnode=n4",
    "two hosts": "a: -l select=1:ncpus=1:host=n3+1:ncpus=1:host=n2",
    "host and any": "a: -l select=1:ncpus=1:host=n2+2:ncpus=1",
    "no such host": "a: -l select=1:ncpus=1:host=n9",
    "old host=": "a: -l host=n2",
    "string": "a: -l select=1:ncpus=1:color=red",
    "string that no vnode has": "a: -l select=1:ncpus=1:color=blue",
    "string_array": "a: -l select=2:ncpus=4:rack=r2",
    "string_array too often": "a: -l select=3:ncpus=4:rack=r2",
    "boolean true": "a: -l select=1:ncpus=1:big=true",
    "boolean false": "a: -l select=1:ncpus=1:big=false",
    "boolean false everywhere": "a: -l select=4:ncpus=4:big=false",
    "boolean and string": "a: -l select=1:ncpus=1:big=true+1:ncpus=1:color=red",
    "boolean with string of another": "a: -l select=1:ncpus=1:big=true:color=red",
    "size": "a: -l select=1:ncpus=1:scratch=50gb",
    "size twice": "a: -l select=2:ncpus=1:scratch=50gb",
    "size too large": "a: -l select=1:ncpus=1:scratch=101gb",
    "size where none is": "a: -l select=1:ncpus=1:scratch=1gb:host=n1",
    "gpus": "a: -l select=1:ncpus=1:ngpus=2",
    "too many gpus": "a: -l select=2:ncpus=1:ngpus=2",
    "gpus one after the other": "a: -l select=1:ncpus=1:ngpus=2; settle; "
    "b: -l select=1:ncpus=1:ngpus=1",
    "arch": "a: -l select=1:ncpus=1:arch=linux",
    "another arch": "a: -l select=1:ncpus=1:arch=cray",
    # ---- place
    "free": "a: -l select=2:ncpus=2 -l place=free",
    "pack": "a: -l select=2:ncpus=2 -l place=pack",
    "pack too much": "a: -l select=5:ncpus=1 -l place=pack",
    "pack of kinds": "a: -l select=1:ncpus=3+1:ncpus=1 -l place=pack",
    "scatter": "a: -l select=3:ncpus=1 -l place=scatter",
    "scatter too wide": "a: -l select=5:ncpus=1 -l place=scatter",
    "scatter of kinds": "a: -l select=1:ncpus=4+3:ncpus=1 -l place=scatter",
    "vscatter": "a: -l select=4:ncpus=1 -l place=vscatter",
    "excl": "a: -l select=1:ncpus=1 -l place=excl; settle; b: -l select=4:ncpus=1 -l place=scatter",
    "exclhost": "a: -l select=2:ncpus=1 -l place=scatter:exclhost",
    "excl when all are in use": "a: -l select=4:ncpus=1 -l place=scatter; settle; "
    "b: -l select=1:ncpus=1 -l place=excl",
    "shared": "a: -l select=1:ncpus=1 -l place=free:shared",
    "pack and excl": "a: -l select=2:ncpus=1 -l place=pack:excl",
    "group by rack": "a: -l select=2:ncpus=3 -l place=scatter:group=rack",
    "group too small": "a: -l select=3:ncpus=3 -l place=scatter:group=rack",
    "group by host": "a: -l select=3:ncpus=1 -l place=group=host",
    "group with one value": "a: -l select=1:ncpus=1 -l place=group=color",
    # ---- what is in use
    "waits for CPUs": f"{ALL_FOUR}; a: -l select=1:ncpus=1",
    "waits for one of four": "z: -l select=3:ncpus=4 -l place=scatter; settle; "
    "a: -l select=2:ncpus=4; b: -l select=1:ncpus=4 -l walltime=00:01:00",
    "short one behind a wide one": "z: -l select=3:ncpus=4 -l place=scatter -l walltime=00:10:00; "
    "settle; a: -l select=4:ncpus=4; settle; b: -l select=1:ncpus=2 -l walltime=00:05:00",
    "long one behind a wide one": "z: -l select=3:ncpus=4 -l place=scatter -l walltime=00:10:00; "
    "settle; a: -l select=4:ncpus=4; settle; b: -l select=1:ncpus=4 -l walltime=05:00:00",
    "fills the rest": "z: -l select=1:ncpus=3:vnode=n1; settle; a: -l select=13:ncpus=1",
    "starts when another ends": "z~4: -l select=4:ncpus=4 -l place=scatter; settle; "
    "a: -l select=4:ncpus=4; settle; settle",
    "starts when another is deleted": f"{ALL_FOUR}; a: -l select=2:ncpus=4; settle; delete z",
    "many small ones": "a: -l select=1:ncpus=4; b: -l select=1:ncpus=4; c: -l select=1:ncpus=4; "
    "d: -l select=1:ncpus=4; e: -l select=1:ncpus=4",
    # ---- holds and times
    "held at submission": "a: -h",
    "held": f"{ALL_FOUR}; a: -l ncpus=1; hold a; delete z",
    "released": "a: -h; settle; release a",
    "system hold": f"{ALL_FOUR}; a: -l ncpus=1; hold a -h s; delete z",
    "begins later": "a: -a 2359.59",
    "after another that runs": "z: -l ncpus=1; settle; a: -W depend=after:{z}",
    "after another ends": "z: -l ncpus=1; settle; a: -W depend=afterany:{z}",
    "after another ended": "z~2: -l ncpus=1; a: -W depend=afterany:{z}; settle; settle",
    "after another succeeds": "z~2: -l ncpus=1; a: -W depend=afterok:{z}; settle; settle",
    "before another": "z: -h; a: -W depend=before:{z}",
    "walltime too long for nobody": "a: -l walltime=1000:00:00",
    "no walltime": "qmgr unset server resources_default.walltime; a: -l ncpus=1",
    "shrinks to fit": "a: -l min_walltime=00:05:00 -l max_walltime=10:00:00",
    # ---- arrays
    "array": "a: -J 1-3",
    "array with steps": "a: -J 1-9:4",
    "array larger than the machine": "a: -J 1-6 -l select=1:ncpus=4",
    "array with a maximum": "a: -J 1-5%2",
    "array of wide tasks": "a: -J 1-3 -l select=2:ncpus=4 -l place=scatter",
    "array held": "a: -h -J 1-3",
    "array of one left": "z: -l select=3:ncpus=4; settle; a: -J 1-3 -l select=1:ncpus=4",
    "array and a job after it": "a: -J 1-20; b: -l select=1:ncpus=4",
    # ---- queues
    "queue stopped": "qmgr set queue workq started=False; a:",
    "queue not enabled after submission": f"{ALL_FOUR}; a: -l ncpus=1; "
    "qmgr set queue workq enabled=False; delete z",
    "queue with vnodes": "qmgr create queue q2 queue_type=e,enabled=t,started=t; "
    "qmgr set node n2 queue=q2; a: -q q2 -l select=1:ncpus=1; b: -l select=4:ncpus=4",
    "queue of higher priority": "qmgr create queue q2 "
    "queue_type=e,enabled=t,started=t,priority=100; "
    f"{ALL_FOUR}; a: -l select=1:ncpus=4:vnode=n1; b: -q q2 -l select=1:ncpus=4:vnode=n1; "
    "settle; delete z",
    "routed": "qmgr create queue r1 queue_type=route,enabled=t,started=t,route_destinations=workq; "
    "a: -q r1",
    "default of the queue": "qmgr set queue workq resources_default.ncpus=3; a:",
    "maximum of the queue": "qmgr set queue workq resources_max.ncpus=2; a: -l ncpus=2",
    "default chunk of the queue": "qmgr set queue workq default_chunk.mem=1gb; a: -l select=2",
    # ---- limits
    "max_run of each user": "qmgr set server max_run=[u:PBS_GENERIC=1]; a:; b:; c@bob:",
    "max_run of a user": "qmgr set server max_run=[u:alice=1]; a:; b:; c@bob:; d@bob:",
    "max_run of all": "qmgr set server max_run=[o:PBS_ALL=2]; a:; b:; c@bob:",
    "max_run of groups": "qmgr set server max_run=[g:PBS_GENERIC=1]; a:; b:; c@bob:",
    "max_run of a project": "qmgr set server max_run=[p:lab=1]; a: -P lab; b: -P lab; c: -P home",
    "max_run of a queue": "qmgr set queue workq max_run=[u:PBS_GENERIC=2]; a:; b:; c:",
    "max_run_res of a user": "qmgr set server max_run_res.ncpus=[u:PBS_GENERIC=5]; a: -l ncpus=3; "
    "b: -l ncpus=3; c@bob: -l ncpus=3",
    "max_run_res that a smaller one meets": "qmgr set server max_run_res.ncpus=[u:alice=4]; "
    "a: -l ncpus=3; b: -l ncpus=2; c: -l ncpus=1",
    "max_run_res of memory": "qmgr set server max_run_res.mem=[o:PBS_ALL=3gb]; "
    "a: -l ncpus=1 -l mem=2gb; b: -l ncpus=1 -l mem=2gb",
    "max_run_res at a queue": "qmgr set queue workq max_run_res.ncpus=[o:PBS_ALL=4]; "
    "a: -l ncpus=4; b: -l ncpus=1",
    "max_running": "qmgr set queue workq max_running=1; a:; b:",
    "max_user_run": "qmgr set queue workq max_user_run=1; a:; b:; c@bob:",
    "max_run and arrays": "qmgr set server max_run=[u:PBS_GENERIC=2]; a: -J 1-5",
    "max_run zero": "qmgr set server max_run=[u:alice=0]; a:; b@bob:",
    "soft limit": "qmgr set server max_run_soft=[u:alice=0]; "
    f"{ALL_FOUR}; a: -l select=1:ncpus=4:vnode=n1; b@bob: -l select=1:ncpus=4:vnode=n1; settle; "
    "delete z",
    "max_queued": "qmgr set server max_queued=[u:alice=2]; a:; b:",
    "licences": "a: -l lic=2; b: -l lic=2",
    "licences that others leave": "a: -l lic=2; b: -l lic=2; c: -l lic=1",
    "too many licences": "a: -l lic=4",
    "server's ncpus": "qmgr set server resources_available.ncpus=6; a: -l ncpus=4; b: -l ncpus=4; "
    "c: -l ncpus=2",
    "queue's ncpus": "qmgr set queue workq resources_available.ncpus=3; a: -l ncpus=4; "
    "b: -l ncpus=2",
    "string of the server": "qmgr set server resources_available.site=a; a: -l site=a; "
    "b: -l site=b; c:",
    "string that the server does not state": "a: -l site=z",
    "boolean of a queue": "qmgr set queue workq resources_available.open=False; a: -l open=true; "
    "b: -l open=false; c:",
    "string_array of the server": "qmgr set server resources_available.apps='x,y'; a: -l apps=y; "
    "b: -l apps=z",
    "vnode's max_running": "qmgr set node n1 max_running=1; a: -l select=1:ncpus=1:vnode=n1; "
    "settle; "
    "b: -l select=1:ncpus=1:vnode=n1",
    # ---- vnodes
    "offline": "offline n1; a: -l select=1:ncpus=1:vnode=n1; b: -l select=4:ncpus=4",
    "offline leaves three": "offline n1; a: -l select=3:ncpus=4",
    "fewer CPUs": "qmgr set node n1 resources_available.ncpus=2; a: -l select=4:ncpus=3; "
    "b: -l select=1:ncpus=2:vnode=n1",
    "no jobs of several vnodes": "qmgr set node n1 no_multinode_jobs=True; settle; "
    "a: -l select=4:ncpus=1 -l place=scatter; b: -l select=1:ncpus=1:vnode=n1",
    "vnode of higher priority": "qmgr set node n4 priority=100; a: -l select=1:ncpus=1",
    # ---- changes
    "altered to fit": "a: -l select=1:ncpus=5; settle; alter a -l select=1:ncpus=4",
    "altered not to fit": f"{ALL_FOUR}; a: -l select=1:ncpus=1; alter a -l select=1:ncpus=9; "
    "delete z",
    "moved to another queue": "qmgr create queue q2 queue_type=e,enabled=t,started=f; a: -q q2; "
    "settle; move a workq",
    "rerun": "a: -l ncpus=1; settle; rerun a",
    "suspended": "a: -l select=1:ncpus=4:vnode=n1; settle; suspend a; settle; "
    "b: -l select=1:ncpus=4:vnode=n1",
    "resumed": "a: -l select=1:ncpus=4:vnode=n1; settle; suspend a; settle; resume a",
    "run by an operator": "qmgr set queue workq started=False; a:; settle; run a",
    "run by an operator beyond a limit": "qmgr set server max_run=[u:alice=0]; a:; settle; run a",
    # ---- order
    "in order of arrival": f"{ALL_FOUR}; a: -l select=1:ncpus=4:vnode=n1; settle; "
    "b: -l select=1:ncpus=4:vnode=n1; settle; delete z",
    "job_sort_formula": "qmgr set server job_sort_formula=ncpus; "
    f"{ALL_FOUR}; a: -l select=1:ncpus=1:vnode=n1 -l place=excl; "
    "b: -l select=1:ncpus=3:vnode=n1 -l place=excl; settle; delete z",
    "formula with priority": "qmgr set server job_sort_formula=job_priority; "
    f"{ALL_FOUR}; a: -l select=1:ncpus=4:vnode=n1; b: -p 100 -l select=1:ncpus=4:vnode=n1; settle; "
    "delete z",
    "priority without a formula": f"{ALL_FOUR}; a: -l select=1:ncpus=4:vnode=n1; "
    "b: -p 100 -l select=1:ncpus=4:vnode=n1; settle; delete z",
    # ---- others
    "not rerunnable": "a: -r n",
    "in a group": "a: -W group_list=alice",
    "with an account": "a: -A lab",
    "with a project": "a: -P lab",
    "named": "a: -N name",
    "interactive attributes": "a: -W umask=022",
    "reservation": "reserve -R +60 -D 600 -l select=2:ncpus=4; settle; a: -l select=4:ncpus=4 "
    "-l walltime=01:00:00; b: -l select=2:ncpus=4 -l walltime=01:00:00",
    "reservation that cannot be": "reserve -R +60 -D 600 -l select=5:ncpus=4; settle",
    "short job before a reservation": "reserve -R +600 -D 600 -l select=4:ncpus=4 "
    "-l place=scatter; settle; a: -l select=4:ncpus=4 -l walltime=00:01:00",
    "long job before a reservation": "reserve -R +600 -D 600 -l select=4:ncpus=4 -l place=scatter; "
    "settle; a: -l select=4:ncpus=4 -l walltime=01:00:00",
    "job beside part of a vnode": "reserve -R +600 -D 600 -l select=1:ncpus=2:vnode=n1; settle; "
    "a: -l select=1:ncpus=2:vnode=n1 -l walltime=01:00:00; "
    "b: -l select=1:ncpus=1:vnode=n1 -l walltime=01:00:00",

    # ---- reservations
    "standing reservation": 'reserve -R +60 -D 600 -r "FREQ=DAILY;COUNT=3" -l select=2:ncpus=4; '
    "settle",
    "standing reservation beside a job": "z: -l select=4:ncpus=4 -l walltime=05:00:00; settle; "
    'reserve -R +21600 -D 600 -r "FREQ=DAILY;COUNT=3" -l select=4:ncpus=4; settle',
    "standing reservation that meets another": "reserve -R +90000 -D 3600 -l select=4:ncpus=4; "
    'settle; reserve -R +3600 -D 7200 -r "FREQ=DAILY;COUNT=3" -l select=4:ncpus=4; settle',
    "long job before a later occurrence": "z: -l select=4:ncpus=4; settle; "
    'reserve -R +7200 -D 600 -r "FREQ=DAILY;COUNT=3" -l select=4:ncpus=4; settle; '
    "delete z; settle; "
    "a: -l select=1:ncpus=1 -l walltime=30:00:00; b: -l select=1:ncpus=1 -l walltime=01:00:00",
    "reservation for maintenance": "z: -l select=1:ncpus=1:vnode=n1; settle; "
    "reserve! --hosts n1 n2 -R +600 -D 600; settle; a: -l select=1:ncpus=1:vnode=n2; "
    "b: -l select=1:ncpus=1:vnode=n2 -l walltime=00:05:00; c: -l select=1:ncpus=1:vnode=n3",
    "job in a reservation": "reserve -R +8 -D 600 -l select=2:ncpus=4; begun; "
    "a: -q {R} -l select=2:ncpus=4 -l walltime=00:05:00; b: -l select=3:ncpus=4; settle",
    "job in a reservation of part of a vnode": "reserve -R +8 -D 600 -l select=1:ncpus=2:vnode=n1; "
    "begun; a: -q {R} -l select=1:ncpus=2 -l walltime=00:05:00; "
    "b: -l select=1:ncpus=2:vnode=n1; c: -l select=1:ncpus=1:vnode=n1; settle",
    "job too large for its reservation": "reserve -R +8 -D 600 -l select=1:ncpus=2:vnode=n1; "
    "begun; a: -q {R} -l select=1:ncpus=3 -l walltime=00:05:00; settle",
    "short job on part of a vnode": "reserve -R +1800 -D 600 -l select=1:ncpus=2:vnode=n1; "
    "settle; a: -l select=1:ncpus=4:vnode=n1 -l walltime=00:10:00",
    "two reservations of one vnode": "reserve -R +600 -D 600 -l select=1:ncpus=2:vnode=n1; settle; "
    "reserve -R +600 -D 600 -l select=1:ncpus=1:vnode=n1; settle; "
    "a: -l select=1:ncpus=1:vnode=n1; settle; b: -l select=1:ncpus=1:vnode=n1",
    # ---- a host of several vnodes
    "one vnode of a host": "a: -q vq -l select=1:ncpus=2",
    "chunk over the vnodes of a host": "a: -q vq -l select=1:ncpus=3",
    "vscatter on one host": "a: -q vq -l select=2:ncpus=1 -l place=vscatter",
    "vscatter too wide for a host": "a: -q vq -l select=3:ncpus=1 -l place=vscatter",
    "scatter on one host": "a: -q vq -l select=2:ncpus=1 -l place=scatter",
    "pack on a host": "a: -q vq -l select=4:ncpus=1 -l place=pack",
    "exclhost on a host of several vnodes": "a: -q vq -l select=1:ncpus=1 -l place=exclhost; "
    "settle; b: -q vq -l select=1:ncpus=1",
    "excl on a host of several vnodes": "a: -q vq -l select=1:ncpus=1 -l place=excl; settle; "
    "b: -q vq -l select=1:ncpus=1",
    "group by vnode": "a: -q vq -l select=2:ncpus=1 -l place=group=vnode",
    # ---- placement sets
    "node_group_key": "qmgr set server node_group_key=rack; "
    "qmgr set server node_group_enable=True; a: -l select=2:ncpus=3 -l place=scatter",
    "node_group_key and no free set": "qmgr set server node_group_key=rack; "
    "qmgr set server node_group_enable=True; z: -l select=1:ncpus=4:vnode=n1; settle; "
    "y: -l select=1:ncpus=4:vnode=n3; settle; a: -l select=2:ncpus=3 -l place=scatter",
    "node_group_key and no set large enough": "qmgr set server node_group_key=rack; "
    "qmgr set server node_group_enable=True; a: -l select=3:ncpus=3 -l place=scatter",
    "node_group_key of a queue": "qmgr set server node_group_enable=True; "
    "qmgr set queue workq node_group_key=rack; z: -l select=1:ncpus=4:vnode=n1; settle; "
    "y: -l select=1:ncpus=4:vnode=n3; settle; a: -l select=2:ncpus=3 -l place=scatter",
    # ---- what only the server checks, at submission
    "users of the queue changed": f"{ALL_FOUR}; a: -l ncpus=1; qmgr set queue workq acl_users=bob; "
    "qmgr set queue workq acl_user_enable=True; delete z",
    "groups of the queue changed": f"{ALL_FOUR}; a: -l ncpus=1; "
    "qmgr set queue workq acl_groups=bob; qmgr set queue workq acl_group_enable=True; delete z",
    "hosts of the queue changed": f"{ALL_FOUR}; a: -l ncpus=1; qmgr set queue workq acl_hosts=n9; "
    "qmgr set queue workq acl_host_enable=True; delete z",
    "users of the server changed": f"{ALL_FOUR}; a: -l ncpus=1; qmgr set server acl_users=bob; "
    "qmgr set server acl_user_enable=True; delete z",
    "maximum lowered": f"{ALL_FOUR}; a: -l ncpus=3; "
    "qmgr set queue workq resources_max.ncpus=2; delete z",
    "minimum raised": f"{ALL_FOUR}; a: -l ncpus=1; "
    "qmgr set queue workq resources_min.ncpus=2; delete z",
    "maximum of the server lowered": f"{ALL_FOUR}; a: -l ncpus=3; "
    "qmgr set server resources_max.ncpus=2; delete z",
    # ---- sched_config
    "resource that is not compared": 'config resources: "ncpus, mem, host, vnode"; '
    "a: -l select=4:ncpus=1:scratch=50gb -l place=scatter; b: -l select=1:ncpus=1:color=blue",
    "boolean that is not listed": 'config resources: "ncpus, mem, host, vnode"; '
    "a: -l select=2:ncpus=1:big=true -l place=scatter",
    "node_sort_key by memory": 'config node_sort_key: "mem LOW" ALL; '
    "qmgr set node n3 resources_available.mem=4gb; a: -l select=1:ncpus=1",
    "node_sort_key by unused CPUs": 'config node_sort_key: "ncpus HIGH unused" ALL; '
    "z: -l select=1:ncpus=2:vnode=n1; settle; a: -l select=1:ncpus=1",
    "node_sort_key by assigned CPUs": 'config node_sort_key: "ncpus HIGH assigned" ALL; '
    "z: -l select=1:ncpus=2:vnode=n3; settle; a: -l select=1:ncpus=1",
    "not by queue": "config by_queue: False ALL; qmgr create queue q2 "
    "queue_type=e,enabled=t,started=t,priority=100; "
    f"{ALL_FOUR}; a: -l select=1:ncpus=4:vnode=n1; settle; "
    "b: -q q2 -l select=1:ncpus=4:vnode=n1; settle; delete z",
    "express queue": "config by_queue: False ALL; qmgr create queue q2 "
    "queue_type=e,enabled=t,started=t,priority=200; "
    "config preemptive_sched: False ALL; "
    f"{ALL_FOUR}; a: -l select=1:ncpus=4:vnode=n1; settle; "
    "b: -q q2 -l select=1:ncpus=4:vnode=n1; settle; delete z",
    "job_sort_key": 'config job_sort_key: "ncpus HIGH" ALL; '
    f"{ALL_FOUR}; a: -l select=1:ncpus=1:vnode=n1 -l place=excl; settle; "
    "b: -l select=1:ncpus=3:vnode=n1 -l place=excl; settle; delete z",
    "job_sort_key by priority": 'config job_sort_key: "job_priority HIGH" ALL; '
    f"{ALL_FOUR}; a: -l select=1:ncpus=4:vnode=n1; settle; "
    "b: -p 100 -l select=1:ncpus=4:vnode=n1; settle; delete z",
    "job_sort_key by walltime": 'config job_sort_key: "walltime LOW" ALL; '
    f"{ALL_FOUR}; a: -l select=1:ncpus=4:vnode=n1 -l walltime=05:00:00; settle; "
    "b: -l select=1:ncpus=4:vnode=n1 -l walltime=04:00:00; settle; delete z",
    "two job_sort_keys": 'config job_sort_key: "ncpus HIGH" ALL; '
    'config+ job_sort_key: "job_priority HIGH" ALL; '
    f"{ALL_FOUR}; a: -l select=1:ncpus=4:vnode=n1; settle; "
    "b: -p 100 -l select=1:ncpus=4:vnode=n1; settle; delete z",
    "formula that fails": "qmgr set server job_sort_formula=1/(ncpus-3); "
    f"{ALL_FOUR}; a: -l select=1:ncpus=2:vnode=n1 -l place=excl; settle; "
    "b: -l select=1:ncpus=3:vnode=n1 -l place=excl; settle; delete z",
    # ---- fair share
    "fair share by shares": "file resource_group alice 50 root 10|bob 51 root 90|carol 52 root 10; "
    "config fair_share: True ALL; config fairshare_usage_res: ncpus*walltime; "
    "z@carol: -l select=4:ncpus=4 -l place=scatter; settle; a: -l select=1:ncpus=4:vnode=n1; "
    "settle; b@bob: -l select=1:ncpus=4:vnode=n1; settle; delete z",
    "fair share in turns": "file resource_group pbsadm 50 root 10|bob 51 root 10|carol 52 root 10; "
    "config fair_share: True ALL; config fairshare_usage_res: ncpus*walltime; "
    "z@bob: -l select=4:ncpus=4 -l place=scatter; settle; a@carol: -l select=2:ncpus=4; "
    "b@carol: -l select=2:ncpus=4; settle; c@pbsadm: -l select=2:ncpus=4; "
    "d@pbsadm: -l select=2:ncpus=4; settle; delete z",
    "fair share without shares": "file resource_group alice 50 root 10|bob 51 root 0; "
    "config fair_share: True ALL; config fairshare_enforce_no_shares: True; a:; b@bob:",
    "fair share of unknown users": "file resource_group alice 50 root 10|bob 51 root 0; "
    "config fair_share: True ALL; config unknown_shares: 10; "
    f"{ALL_FOUR}; b@bob: -l select=1:ncpus=4:vnode=n1; settle; "
    "c@carol: -l select=1:ncpus=4:vnode=n1; settle; delete z",
    "formula of fair share": "file resource_group alice 50 root 10|bob 51 root 90; "
    "qmgr set server job_sort_formula=fairshare_perc; "
    f"{ALL_FOUR}; a: -l select=1:ncpus=4:vnode=n1; settle; "
    "b@bob: -l select=1:ncpus=4:vnode=n1; settle; delete z",
    # ---- dedicated and prime time
    "dedicated time": "qmgr create queue ded1 queue_type=e,enabled=t,started=t; "
    "file dedicated_time {-120} {+7200}; a: -l ncpus=1; b: -q ded1 -l ncpus=1; "
    "c: -q ded1 -l ncpus=1 -l walltime=05:00:00",
    "before dedicated time": "qmgr create queue ded1 queue_type=e,enabled=t,started=t; "
    "file dedicated_time {+1800} {+7200}; a: -l ncpus=1 -l walltime=00:10:00; "
    "b: -l ncpus=1 -l walltime=02:00:00; c: -q ded1 -l ncpus=1",
    "queue of dedicated time alone": "qmgr create queue ded1 queue_type=e,enabled=t,started=t; "
    "a: -q ded1 -l ncpus=1; b: -l ncpus=1",
    "reservation in dedicated time": "file dedicated_time {+1800} {+7200}; "
    "reserve -R +3600 -D 600 -l select=1:ncpus=1; settle",
    "prime time": "qmgr create queue p_q queue_type=e,enabled=t,started=t; "
    "qmgr create queue np_q queue_type=e,enabled=t,started=t; "
    "file holidays YEAR 2026|weekday all none|saturday all none|sunday all none; "
    "a: -q p_q -l ncpus=1; b: -q np_q -l ncpus=1; c: -l ncpus=1",
    "non-prime time": "qmgr create queue p_q queue_type=e,enabled=t,started=t; "
    "qmgr create queue np_q queue_type=e,enabled=t,started=t; "
    "file holidays YEAR 2026|weekday none all|saturday none all|sunday none all; "
    "a: -q p_q -l ncpus=1; b: -q np_q -l ncpus=1; c: -l ncpus=1",
    "across the end of prime time": "config backfill_prime: True ALL; "
    "file holidays YEAR 2026|weekday {@-3600} {@+3600}|saturday {@-3600} {@+3600}|"
    "sunday {@-3600} {@+3600}; a: -l ncpus=1 -l walltime=00:10:00; "
    "b: -l ncpus=1 -l walltime=02:00:00",
    "across the end of prime time with a spill": "config backfill_prime: True ALL; "
    "config prime_spill: 02:00:00 ALL; "
    "file holidays YEAR 2026|weekday {@-3600} {@+3600}|saturday {@-3600} {@+3600}|"
    "sunday {@-3600} {@+3600}; a: -l ncpus=1 -l walltime=02:00:00; "
    "b: -l ncpus=1 -l walltime=05:00:00",
    "queues of any time across it": "config backfill_prime: True ALL; "
    "config prime_exempt_anytime_queues: True; "
    "qmgr create queue p_q queue_type=e,enabled=t,started=t; "
    "file holidays YEAR 2026|weekday {@-3600} {@+3600}|saturday {@-3600} {@+3600}|"
    "sunday {@-3600} {@+3600}; a: -l ncpus=1 -l walltime=02:00:00; "
    "b: -q p_q -l ncpus=1 -l walltime=02:00:00",
    # ---- released vnodes
    "released vnode": "a: -l select=2:ncpus=4 -l place=scatter; settle; free a; "
    "b: -l select=3:ncpus=4 -l place=scatter",
}  # fmt: skip

BY_POLICY: dict[str, str] = {
    "reservation": "b would delay the planned start of a; pbs_sched plans none",
    "long one behind a wide one": "the wide job keeps its planned start; pbs_sched plans none",
}
"""Kinds that differ because the policy decides otherwise, and how."""
