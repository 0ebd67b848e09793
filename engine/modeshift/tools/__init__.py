"""What tools are made of: how one is declared, files, processes, the network.

The tools themselves are the clone's.
"""
