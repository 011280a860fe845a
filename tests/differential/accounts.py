# SPDX-License-Identifier: Apache-2.0
"""Accounts, users and QOS of both clusters, as lines of sacctmgr."""

from collections.abc import Iterable

LINES = """
add qos twonodes MaxTRESPerJob=node=2
add qos twonodesdeny MaxTRESPerJob=node=2 Flags=DenyOnLimit
add qos fourcpus MaxTRESPerUser=cpu=4
add qos jobcpus MaxTRESPerJob=cpu=4
add qos pernode MaxTRESPerNode=cpu=2
add qos onejob MaxJobsPerUser=1
add qos onesubmit MaxSubmitJobsPerUser=1
add qos fivemin MaxWall=5
add qos mincpus MinTRESPerJob=cpu=2
add qos grpnodes GrpTRES=node=2
add qos grpcpus GrpTRES=cpu=6
add qos grpjobs GrpJobs=1
add qos onegpu MaxTRESPerUser=gres/gpu=1
add qos a100none MaxTRESPerJob=gres/gpu:a100=0
add qos onelicence GrpTRES=license/matlab=1
add qos fewmem MaxTRESPerJob=mem=1000
add qos oneaccount MaxJobsPerAccount=1
add qos acctcpus MaxTRESPerAccount=cpu=4
add qos cpumins MaxTRESMinsPerJob=cpu=30
add qos grpmins GrpTRESMins=cpu=20
add qos runmins GrpTRESRunMins=cpu=60
add qos urgent Priority=1000
add qos lowly Priority=0
add qos overpart Flags=OverPartQOS MaxTRESPerJob=node=4
add qos partmax Flags=PartitionMaxNodes,PartitionMinNodes,PartitionTimeLimit
add qos noreserve Flags=NoReserve
add qos needsresv Flags=RequiresReservation
add qos accrue MaxJobsAccruePerUser=1
add qos userrun MaxTRESRunMinsPerUser=cpu=60
add qos nofactor UsageFactor=0 GrpTRESMins=cpu=20
add qos usernodes MaxTRESPerUser=node=2
add qos grpsubmit GrpSubmitJobs=2
add qos acctjobs MaxJobsPerAccount=2 MaxSubmitJobsPerAccount=3
add qos grpwall GrpWall=5
add qos grpmem GrpTRES=mem=1500
add account physics
add account chem
add account few GrpTRES=node=2
add account single GrpJobs=1
add account small GrpTRES=cpu=4
add account lean GrpTRES=mem=1000
add account oneach MaxJobs=1
add account jobnodes MaxTRESPerJob=node=2
add account shortwall MaxWall=5
add account submits MaxSubmitJobs=2
add account nogpus GrpTRES=gres/gpu=0
add account groupwall GrpWall=5
add account runmins GrpTRESRunMins=cpu=60
add user user,alice,bob Account=physics,chem,few,single,small,lean,oneach,jobnodes,shortwall
add user user,alice,bob Account=submits,groupwall,runmins
modify user user,alice,bob set DefaultAccount=everyone
"""


def commands(*, early: bool) -> str:
    """Shell lines that make them: `early` before slurmctld starts, whose partitions name one.

    The others limit what only a running slurmctld tells the database of: GPUs and licences.
    """
    lines = LINES.strip().splitlines()
    late = [line for line in lines if "gres/" in line or "license/" in line]
    if early:
        return _script(line for line in lines if line not in late)
    qos = ",".join(line.split()[2] for line in lines if line.startswith("add qos"))
    accounts = [line for line in late if line.startswith("add account")]
    users = f"add user user,alice,bob Account={','.join(line.split()[2] for line in accounts)}"
    return _script([*late, users, f"modify user user,alice,bob set qos=normal,{qos}"])


def _script(lines: Iterable[str]) -> str:
    return "".join(f"sacctmgr -i -Q {line}\n" for line in lines)
