# SPDX-License-Identifier: Apache-2.0
"""Tables of a PBS server, as its batch interface states them, and a judge of what runs there."""

from bridge.pbs.objects.exec_vnode import parse_exec_vnode, total_by_vnode
from bridge.pbs.objects.parsed import Reader
from bridge.pbs.tables import Tables

NOW_S = 1_700_000_000
RESOURCES = {
    "ncpus": {"type": "1", "flag": "163847"},
    "mem": {"type": "5", "flag": "163847"},
    "walltime": {"type": "1", "flag": "7"},
    "scratch": {"type": "size", "flag": "hn"},
    "lic": {"type": "long", "flag": "q"},
    "color": {"type": "string", "flag": "h"},
    "rack": {"type": "string_array", "flag": "h"},
    "big": {"type": "boolean", "flag": "h"},
    "site": {"type": "string", "flag": ""},
    "apps": {"type": "string_array", "flag": ""},
    "open": {"type": "boolean", "flag": ""},
}


def a_vnode(host="n1", ncpus=4, mem="8388608kb", **settings):
    state, sharing = settings.pop("state", "free"), settings.pop("sharing", "default_shared")
    own = {
        key: settings.pop(key) for key in ("queue", "Priority", "max_running") if key in settings
    }
    available = {"ncpus": str(ncpus), "mem": mem, "host": host, "vnode": host, **settings}
    return {"state": state, "sharing": sharing, "resources_available": available, **own}


def a_queue(**settings):
    return {"queue_type": "Execution", "enabled": "True", "started": "True", **settings}


def a_job(select="1:ncpus=1", place="free", user="ann", state="Q", **settings):
    listed = {"select": select, "place": place, "walltime": "00:10:00"}
    listed |= settings.pop("listed", {})
    return {
        "job_state": state, "queue": "workq", "Job_Owner": f"{user}@host", "Hold_Types": "n",
        "schedselect": select, "Resource_List": listed, "ctime": str(NOW_S - 100),
        "qtime": str(NOW_S - 100), "etime": str(NOW_S - 100), "Job_Name": "job", **settings,
    }  # fmt: skip


def running(exec_vnode, **settings):
    settings = {"stime": str(NOW_S - 10), "substate": "42"} | settings
    return a_job(state="R", exec_vnode=exec_vnode, **settings)


def some_tables(jobs=None, vnodes=None, **settings):
    """Four vnodes n1 to n4 of four CPUs, one queue, and these jobs."""
    if vnodes is None:
        vnodes = {f"n{at}": a_vnode(f"n{at}") for at in range(1, 5)}
    names = {"now_s": NOW_S, "server_name": "srv", "server": {}, "sched": {}}
    names |= {"queues": {"workq": a_queue()}, "reservations": {}, "resources": RESOURCES}
    return Tables(**(names | {"vnodes": vnodes, "jobs": jobs or {}} | settings))


def violations(tables):
    """What is wrong with the running jobs: judged without the code of the last check."""
    parsed, found = Reader().read(tables), []
    used, alone, jobs = {}, {}, {}
    for job_id, job in tables.jobs.items():
        if job["job_state"] != "R":
            continue
        named = parse_exec_vnode(job["exec_vnode"], parsed.definitions)
        chunks = [chunk for chunk in named if chunk[0][1]]  # without the rest of exclhost's hosts
        if len(chunks) != parsed.jobs[job_id].n_chunks:
            found.append(f"{job_id}: {len(chunks)} chunks")
        hosts = [parsed.vnodes[chunk[0][0]].host for chunk in chunks]
        if any(len({parsed.vnodes[name].host for name, _ in chunk}) > 1 for chunk in chunks):
            found.append(f"{job_id}: a chunk on two hosts")
        place = job["Resource_List"].get("place", "")
        if "pack" in place and len(set(hosts)) > 1:
            found.append(f"{job_id}: not packed")
        if place.startswith("scatter") and len(set(hosts)) < len(hosts):
            found.append(f"{job_id}: not scattered")
        for vnode, taken in total_by_vnode(named).items():
            jobs.setdefault(vnode, []).append(job_id)
            if "excl" in place:
                alone.setdefault(vnode, []).append(job_id)
            if "exclhost" in place:
                for other, each in parsed.vnodes.items():
                    if each.host == parsed.vnodes[vnode].host and other != vnode:
                        alone.setdefault(other, []).append(job_id)
            for name, value in taken.items():
                pool = tables.vnodes[vnode]["resources_available"].get(name, "")
                on = pool[1:] if pool.startswith("@") else vnode
                used[on, name] = used.get((on, name), 0) + value
    for (vnode, name), value in used.items():
        if value > parsed.vnodes[vnode].amounts.get(name, 0):
            found.append(f"{vnode}: {value} {name}")
    found += [
        f"{vnode}: used alone by {owners} beside {jobs[vnode]}"
        for vnode, owners in alone.items()
        if vnode in jobs and set(jobs[vnode]) - {owners[0]}
    ]
    return found
