"""More than one machine: replicas of the server's app, which a system such as Ray Serve runs, scales and routes to.

Each replica is a process with its own engine. The code here runs in the thread of its event loop; the decision on the
number of replicas runs in the controller's. The room may import ``server`` and all below it. Only ``ray`` and
``ray_policy`` import Ray.
"""
