"""A group of hosts that have one model together: one process leads, and the others follow what it does.

Programs on devices of several processes have to be handed over by each of them, in one order. The leader is a server
with an engine; that decides everything. The seam is ``engine.device.DeviceAccess``, through which all dispatches pass:
before the leader hands a program to its devices it sends the program's key and the names of its arguments down a line
to each follower, and of arrays that it copies to the devices, the bytes. A follower is a loop that does the same, under
the same names, and looks at nothing. What comes back is whole on each device, so the leader reads its own copy. A
program is first handed over when all have made it, or fetched it from their disks: who begins it waits within it for
the others, and not for long.

``line`` carries sealed frames, ``names`` gives arrays the names by which both sides call them, ``leader`` and
``follower`` are the two ends, and ``group`` brings the processes together (``jax.distributed``) and ends them. A line
that breaks, or falls silent, is the end of the whole group: the leader tells that to all who wait, and exits. The
engine's threads tell, a follower's main thread follows, and at each end of a line a thread of this room listens. The
room may import ``server`` and all below it.
"""
