"""Past one machine: replicas of the server's app, kept, scaled and routed to by a system that does nothing else.

Each replica is a process with an engine of its own; its event loop's thread runs what is here, and the controller's
runs the decision how many there are. The room may import ``server`` and all below it. Only ``ray`` and ``ray_policy``
import Ray.
"""
