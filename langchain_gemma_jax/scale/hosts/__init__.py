"""A group of hosts that run one model together: one process leads, and the others follow.

Each process has to dispatch a program that spans their devices, all of them in the same order. The leader is a server
whose engine decides everything. The seam is ``engine.device.DeviceAccess``, through which all dispatches pass: before
the leader dispatches a program, it sends the program's key and the names of its arguments down a line to each follower;
when it copies arrays to its devices, it sends their bytes. A follower is a loop that does the same under the same
names, and reads no results. Results are whole on each device, so the leader reads its own copy. A program is first
dispatched when all processes have compiled it, or read it from their disks: a process that begins it early waits for
the others inside of the program, and that wait has a short limit.

``line`` carries sealed frames, ``names`` gives arrays the same names on both sides, ``leader`` and ``follower`` are the
two ends, and ``group`` brings the processes together (``jax.distributed``) and ends them. A line that breaks or falls
silent ends the whole group: the leader fails all open calls, and exits. The engine's threads send, a follower's main
thread follows, and at each end of a line a thread of this room listens. The room may import ``server`` and all below
it.
"""
